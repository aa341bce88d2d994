"""Reports apart from plans, compressed; indexes for what is asked all the time; leases."""

import json
import zlib

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0010'
down_revision = '0009'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
BLOB = sa.LargeBinary().with_variant(mysql.LONGBLOB(), 'mysql', 'mariadb')
OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}
INDEXES = (
    ('plans_aggregate_created_at_idx', 'plans', ['aggregate', 'created_at']),
    ('plans_state_expires_at_idx', 'plans', ['state', 'expires_at']),
    ('moves_state_finished_at_idx', 'moves', ['state', 'finished_at']),
    ('move_events_at_idx', 'move_events', ['at']),
    ('cooldowns_scope_until_idx', 'cooldowns', ['scope', 'until']),
    ('quarantines_until_idx', 'quarantines', ['until']),
    ('tasks_state_beat_at_idx', 'tasks', ['state', 'beat_at']),
)
# Reports hold the uuid of every instance that stayed: many of them do not fit into memory.
CHUNK = 100


def upgrade():
    op.add_column('plans', sa.Column('move_count', sa.Integer, nullable=False, server_default='0'))
    op.add_column('plans', sa.Column('fingerprint', sa.String(64)))
    op.add_column('plans', sa.Column('last_seen_at', TIMESTAMP))
    op.add_column('plans', sa.Column('times_seen', sa.Integer, nullable=False, server_default='1'))
    op.create_table(
        'reports',
        sa.Column('plan_uuid', sa.String(36), sa.ForeignKey('plans.uuid'), primary_key=True),
        sa.Column('created_at', TIMESTAMP, nullable=False),
        sa.Column('body', BLOB, nullable=False),
        sa.Index('reports_created_at_idx', 'created_at'),
        **OPTIONS)
    move_reports()
    op.drop_column('plans', 'report')
    # The next evaluation writes it again.
    op.drop_column('cycles', 'report')
    op.add_column('cycles', sa.Column('report', BLOB))
    for name, table, columns in INDEXES:
        op.create_index(name, table, columns)
    create_leases()


def move_reports():
    connection = op.get_bind()
    if 'report' not in {column['name'] for column in sa.inspect(connection).get_columns('plans')}:
        return  # moved before the upgrade was interrupted
    plans = sa.table('plans', *map(sa.column, ('uuid', 'report', 'move_count')),
                     sa.column('created_at', TIMESTAMP))
    reports = sa.table('reports', sa.column('plan_uuid'), sa.column('created_at', TIMESTAMP),
                       sa.column('body', BLOB))
    last = ''
    moved = sa.exists().where(reports.c.plan_uuid == plans.c.uuid)
    while rows := connection.execute(sa.select(plans).where(
            plans.c.uuid > last, ~moved).order_by(plans.c.uuid).limit(CHUNK)).all():
        for row in rows:
            report = json.loads(row.report)
            report['not_moved'] = [
                {'reason': skip['reason'], 'count': len(skip['instances'])}
                for skip in report.get('not_moved', ())]
            body = json.dumps(report, sort_keys=True)
            connection.execute(sa.insert(reports).values(
                plan_uuid=row.uuid, created_at=row.created_at, body=zlib.compress(body.encode())))
            connection.execute(sa.update(plans).where(plans.c.uuid == row.uuid).values(
                move_count=len(report['moves'])))
        last = rows[-1].uuid


def create_leases():
    leases = op.create_table(
        'leases',
        sa.Column('name', sa.String(64), primary_key=True),
        sa.Column('holder', sa.String(255)),
        sa.Column('expires_at', TIMESTAMP),
        sa.Column('progress_at', TIMESTAMP),
        **OPTIONS)
    op.bulk_insert(leases, [{'name': 'reconciler'}, {'name': 'retention'}])
