"""Rolling maintenances, host by host."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0012'
down_revision = '0011'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'maintenances',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('requested_by', sa.String(255), nullable=False),
        sa.Column('requested_at', TIMESTAMP, nullable=False),
        sa.Column('options', TEXT, nullable=False),
        sa.Column('hosts', TEXT, nullable=False),
        sa.Column('runner', sa.String(255)),
        sa.Column('runner_at', TIMESTAMP),
        sa.Index('maintenances_state_idx', 'state'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
