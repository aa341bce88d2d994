"""Hosts that operators want empty, cold migrations, and why plans ended."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0011'
down_revision = '0010'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'drains',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('host', sa.String(255), nullable=False),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('requested_by', sa.String(255), nullable=False),
        sa.Column('requested_at', TIMESTAMP, nullable=False),
        sa.Column('reason', TEXT, nullable=False),
        sa.Column('with_stopped', sa.Boolean, nullable=False),
        sa.Column('parallel', sa.Integer),
        sa.Column('deadline', TIMESTAMP),
        sa.Column('keep_spare', sa.Integer, nullable=False),
        sa.Column('avoid', TEXT, nullable=False),
        sa.Column('is_ours', sa.Boolean, nullable=False),
        sa.Column('looked_at', TIMESTAMP),
        sa.Column('servers', sa.Integer),
        sa.Column('left', sa.Integer),
        sa.Column('blocked', TEXT, nullable=False),
        sa.Column('problem', TEXT, nullable=False),
        sa.Column('finished_at', TIMESTAMP),
        sa.Index('drains_host_idx', 'host'),
        sa.Index('drains_state_idx', 'state'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    op.add_column('moves', sa.Column('kind', sa.String(8), nullable=False,
                                     server_default='live'))
    op.add_column('plans', sa.Column('ended_because', TEXT))
