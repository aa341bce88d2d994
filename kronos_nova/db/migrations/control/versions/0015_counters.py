"""Totals for monitoring, and when an aggregate was last evaluated well."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0015'
down_revision = '0014'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'counters',
        sa.Column('name', sa.String(64), primary_key=True),
        sa.Column('labels', sa.String(512), primary_key=True),
        sa.Column('value', sa.Double, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    op.add_column('cycles', sa.Column('good_at', TIMESTAMP))
