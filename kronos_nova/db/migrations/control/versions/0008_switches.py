"""Levels and pauses that commands set, what plans are for, and how servers are called."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0008'
down_revision = '0007'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'switches',
        sa.Column('kind', sa.String(16), primary_key=True),
        sa.Column('aggregate', sa.String(255), primary_key=True),
        sa.Column('value', sa.String(16), nullable=False),
        sa.Column('set_at', TIMESTAMP, nullable=False),
        sa.Column('set_by', sa.String(255), nullable=False),
        sa.Column('reason', TEXT, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    op.create_table(
        'switch_events',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('kind', sa.String(16), nullable=False),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('value', sa.String(16), nullable=False),
        sa.Column('set_at', TIMESTAMP, nullable=False),
        sa.Column('set_by', sa.String(255), nullable=False),
        sa.Column('reason', TEXT, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    op.add_column('plans', sa.Column('purpose', sa.String(16), nullable=False,
                                     server_default='balance'))
    op.create_table(
        'server_names',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('seen_at', TIMESTAMP, nullable=False),
        sa.Index('server_names_seen_at_idx', 'seen_at'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
