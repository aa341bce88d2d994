"""Instances that Nova lets go nowhere, when moves were last checked, and why plans wait."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0013'
down_revision = '0012'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'refusals',
        sa.Column('instance_uuid', sa.String(36), primary_key=True),
        sa.Column('until', TIMESTAMP, nullable=False),
        sa.Column('hosts', TEXT, nullable=False),
        sa.Column('reason', TEXT, nullable=False),
        sa.Column('refused_at', TIMESTAMP, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    op.add_column('moves', sa.Column('checked_at', TIMESTAMP))
    op.add_column('plans', sa.Column('detail', TEXT))
    op.execute('UPDATE moves SET checked_at = created_at')
