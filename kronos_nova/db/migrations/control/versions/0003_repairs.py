"""The journal of repairs of allocations."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0003'
down_revision = '0002'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'repairs',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('kind', sa.String(16), nullable=False),
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('evidence', TEXT, nullable=False),
        sa.Column('before', TEXT, nullable=False),
        sa.Column('after', TEXT, nullable=False),
        sa.Column('detail', TEXT, nullable=False),
        sa.Column('created_at', TIMESTAMP, nullable=False),
        sa.Column('closed_at', TIMESTAMP),
        sa.Index('repairs_instance_uuid_idx', 'instance_uuid'),
        sa.Index('repairs_created_at_idx', 'created_at'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
