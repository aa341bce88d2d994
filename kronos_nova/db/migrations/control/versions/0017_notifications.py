"""Notifications that wait to be sent."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0017'
down_revision = '0016'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'notifications',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('sequence', sa.Integer),
        sa.Column('event_type', sa.String(64), nullable=False),
        sa.Column('at', TIMESTAMP, nullable=False),
        sa.Column('body', TEXT, nullable=False),
        sa.Column('sent_at', TIMESTAMP),
        sa.Index('notifications_uuid_idx', 'uuid', unique=True),
        sa.Index('notifications_sequence_idx', 'sequence', unique=True),
        sa.Index('notifications_sent_at_idx', 'sent_at', 'sequence'),
        sa.Index('notifications_at_idx', 'at'),
        sqlite_autoincrement=True, mysql_engine='InnoDB', mysql_charset='utf8mb4')
    gates = sa.table('gates', sa.column('name'), sa.column('passed'))
    leases = sa.table('leases', sa.column('name'))
    # An upgrade that was interrupted may have made them.
    for table, values in ((gates, {'name': 'notifications', 'passed': 0}),
                          (leases, {'name': 'notifications'})):
        connection = op.get_bind()
        if not connection.scalar(sa.select(sa.func.count()).select_from(table).where(
                table.c.name == values['name'])):
            connection.execute(sa.insert(table).values(**values))
