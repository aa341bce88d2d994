"""When moves were dispatched, forced and settled, and how far they are."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0004'
down_revision = '0003'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')


def upgrade():
    for name in ('dispatched_at', 'forced_at', 'settled_at'):
        op.add_column('moves', sa.Column(name, TIMESTAMP))
    for name in ('memory_total', 'memory_remaining'):
        op.add_column('moves', sa.Column(name, sa.BigInteger))
    # Of those that ended before, everything has followed.
    op.execute('UPDATE moves SET settled_at = finished_at')
