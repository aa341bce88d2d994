"""The control database: the journal of plans and moves, and other data that is kept from one cycle
to the next.

Until a release is tagged, this revision is edited in place. Each edit raises the number of the
revision, so that a database with an earlier number is refused.
"""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0032'
down_revision = None

SERVERS = ('mysql', 'mariadb', 'postgresql')
TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
BLOB = sa.LargeBinary().with_variant(mysql.LONGBLOB(), 'mysql', 'mariadb')
NAME = sa.Text().with_variant(sa.String(255), *SERVERS)
UUID = sa.Text().with_variant(sa.String(36), *SERVERS)
WORD = sa.Text().with_variant(sa.String(32), *SERVERS)
OPTIONS: dict[str, Any] = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade() -> None:
    create_journal()
    create_operations()
    create_planning_history()
    create_observability()
    create_coordination()
    create_claims()


def create_journal() -> None:
    op.create_table(
        'plans',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('mode', sa.String(16), nullable=False),
        sa.Column('planner', sa.String(64), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('created_at', TIMESTAMP, nullable=False),
        sa.Column('expires_at', TIMESTAMP, nullable=False),
        sa.Column('finished_at', TIMESTAMP),
        sa.Column('approved_at', TIMESTAMP),
        sa.Column('approved_by', sa.String(255)),
        sa.Column('combined_before', sa.Double),
        sa.Column('combined_after', sa.Double),
        sa.Column('combined_now', sa.Double),
        sa.Column('detail', TEXT),
        sa.Column('purpose', sa.String(16), nullable=False, server_default='balance'),
        sa.Column('move_count', sa.Integer, nullable=False, server_default='0'),
        sa.Column('fingerprint', sa.String(64)),
        sa.Column('last_seen_at', TIMESTAMP),
        sa.Column('times_seen', sa.Integer, nullable=False, server_default='1'),
        sa.Column('ended_because', TEXT),
        sa.Index('plans_aggregate_created_at_idx', 'aggregate', 'created_at'),
        sa.Index('plans_aggregate_state_idx', 'aggregate', 'state'),
        sa.Index('plans_created_at_idx', 'created_at'),
        sa.Index('plans_finished_at_idx', 'finished_at'),
        sa.Index('plans_state_expires_at_idx', 'state', 'expires_at'),
        **OPTIONS)
    op.create_table(
        'reports',
        sa.Column('plan_uuid', sa.String(36), sa.ForeignKey('plans.uuid'), primary_key=True),
        sa.Column('created_at', TIMESTAMP, nullable=False),
        sa.Column('body', BLOB, nullable=False),
        sa.Index('reports_created_at_idx', 'created_at'),
        **OPTIONS)
    op.create_table(
        'moves',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('plan_uuid', sa.String(36), sa.ForeignKey('plans.uuid'), nullable=False),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('ordinal', sa.Integer, nullable=False),
        sa.Column('depends_on', TEXT, nullable=False),
        sa.Column('group_number', sa.Integer),
        sa.Column('only_makes_room', sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column('phase', sa.String(16), nullable=False),
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('source', sa.String(255), nullable=False),
        sa.Column('destination', sa.String(255), nullable=False),
        sa.Column('memory_mb', sa.Integer, nullable=False),
        sa.Column('reason', TEXT, nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('owner', sa.String(255)),
        sa.Column('not_before', TIMESTAMP, nullable=False),
        sa.Column('retry_count', sa.Integer, nullable=False),
        sa.Column('migration_uuid', sa.String(36)),
        sa.Column('abort_requested', sa.Boolean, nullable=False),
        sa.Column('created_at', TIMESTAMP, nullable=False),
        sa.Column('checked_at', TIMESTAMP),
        sa.Column('dispatched_at', TIMESTAMP),
        sa.Column('requested_at', TIMESTAMP),
        sa.Column('forced_at', TIMESTAMP),
        sa.Column('finished_at', TIMESTAMP),
        sa.Column('settled_at', TIMESTAMP),
        sa.Column('memory_total', sa.BigInteger),
        sa.Column('memory_remaining', sa.BigInteger),
        sa.Column('memory_processed', sa.BigInteger),
        sa.Column('error_type', sa.String(64)),
        sa.Column('error', TEXT),
        sa.Column('outage', sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column('kind', sa.String(8), nullable=False, server_default='live'),
        sa.Column('project_id', sa.String(255)),
        sa.Column('caused_by', sa.String(36)),
        sa.Column('position', sa.Integer, nullable=False, server_default='0'),
        sa.Column('expected_seconds', sa.Double),
        sa.Column('expected_downtime', sa.Double),
        sa.Column('adopted', sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Index('moves_checked_at_idx', 'checked_at'),
        sa.Index('moves_created_at_idx', 'created_at'),
        sa.Index('moves_instance_uuid_idx', 'instance_uuid'),
        sa.Index('moves_plan_uuid_idx', 'plan_uuid'),
        sa.Index('moves_state_finished_at_idx', 'state', 'finished_at'),
        sa.Index('moves_state_idx', 'state', 'not_before'),
        **OPTIONS)
    op.create_table(
        'move_events',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('move_uuid', sa.String(36), sa.ForeignKey('moves.uuid'), nullable=False),
        sa.Column('at', TIMESTAMP, nullable=False),
        sa.Column('old_state', sa.String(16)),
        sa.Column('new_state', sa.String(16), nullable=False),
        sa.Column('worker', sa.String(255)),
        sa.Column('detail', TEXT, nullable=False),
        sa.Index('move_events_at_idx', 'at'),
        sa.Index('move_events_move_uuid_idx', 'move_uuid'),
        **OPTIONS)


def create_operations() -> None:
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
        sa.Column('unmovable', sa.String(8), nullable=False),
        sa.Column('to_stop', TEXT, nullable=False),
        sa.Column('stopped', TEXT, nullable=False),
        sa.Column('keep_spare', sa.Integer, nullable=False),
        sa.Column('avoid', TEXT, nullable=False),
        sa.Column('is_ours', sa.Boolean, nullable=False),
        sa.Column('is_unwatched', sa.Boolean, nullable=False),
        sa.Column('looked_at', TIMESTAMP),
        sa.Column('servers', sa.Integer),
        sa.Column('left', sa.Integer),
        sa.Column('blocked', TEXT, nullable=False),
        sa.Column('waits_for', TEXT, nullable=False),
        sa.Column('waits_in_vain', sa.Boolean, nullable=False),
        sa.Column('problem', TEXT, nullable=False),
        sa.Column('finished_at', TIMESTAMP),
        sa.Index('drains_host_idx', 'host'),
        sa.Index('drains_state_idx', 'state'),
        **OPTIONS)
    op.create_table(
        'holds',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('shape', TEXT, nullable=False),
        sa.Column('count', sa.Integer, nullable=False),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('availability_zone', sa.String(255), nullable=False),
        sa.Column('requested_by', sa.String(255), nullable=False),
        sa.Column('requested_at', TIMESTAMP, nullable=False),
        sa.Column('reason', TEXT, nullable=False),
        sa.Column('hold_seconds', sa.Integer, nullable=False),
        sa.Column('is_forced', sa.Boolean, nullable=False),
        sa.Column('expires_at', TIMESTAMP, nullable=False),
        sa.Column('moves', sa.Integer, nullable=False),
        sa.Column('memory_mb', sa.Integer, nullable=False),
        sa.Column('hosts', TEXT, nullable=False),
        sa.Column('known', TEXT, nullable=False),
        sa.Column('used', TEXT, nullable=False),
        sa.Column('plan_uuid', sa.String(36), nullable=False),
        sa.Column('plans', sa.Integer, nullable=False),
        sa.Column('keeper', sa.String(16), nullable=False),
        sa.Column('consumers', TEXT, nullable=False),
        sa.Column('problem', TEXT, nullable=False),
        sa.Column('finished_at', TIMESTAMP),
        sa.Index('holds_state_idx', 'state'),
        **OPTIONS)
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
        **OPTIONS)
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
        sa.Index('repairs_created_at_idx', 'created_at'),
        sa.Index('repairs_instance_uuid_idx', 'instance_uuid'),
        **OPTIONS)
    op.create_table(
        'tasks',
        sa.Column('migration_uuid', sa.String(36), primary_key=True),
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('worker', sa.String(255), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('beat_at', TIMESTAMP, nullable=False),
        sa.Index('tasks_state_beat_at_idx', 'state', 'beat_at'),
        sa.Index('tasks_worker_idx', 'worker'),
        **OPTIONS)
    op.create_table(
        'switches',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('kind', sa.String(16), nullable=False),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('value', sa.String(16), nullable=False),
        sa.Column('set_at', TIMESTAMP, nullable=False),
        sa.Column('set_by', sa.String(255), nullable=False),
        sa.Column('reason', TEXT, nullable=False),
        **OPTIONS)
    op.create_table(
        'switch_events',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('kind', sa.String(16), nullable=False),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('told', sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column('value', sa.String(16), nullable=False),
        sa.Column('set_at', TIMESTAMP, nullable=False),
        sa.Column('set_by', sa.String(255), nullable=False),
        sa.Column('reason', TEXT, nullable=False),
        **OPTIONS)


def create_planning_history() -> None:
    op.create_table(
        'cooldowns',
        sa.Column('scope', sa.String(16), primary_key=True),
        sa.Column('name', sa.String(255), primary_key=True),
        sa.Column('until', TIMESTAMP, nullable=False),
        sa.Column('times', sa.Integer, nullable=False),
        sa.Column('set_at', TIMESTAMP),
        sa.Index('cooldowns_scope_until_idx', 'scope', 'until'),
        **OPTIONS)
    op.create_table(
        'quarantines',
        sa.Column('instance_uuid', sa.String(36), primary_key=True),
        sa.Column('until', TIMESTAMP),
        sa.Column('reason', TEXT, nullable=False),
        sa.Column('created_at', TIMESTAMP, nullable=False),
        sa.Index('quarantines_until_idx', 'until'),
        **OPTIONS)
    op.create_table(
        'refusals',
        sa.Column('instance_uuid', sa.String(36), primary_key=True),
        sa.Column('until', TIMESTAMP, nullable=False),
        sa.Column('hosts', TEXT, nullable=False),
        sa.Column('reason', TEXT, nullable=False),
        sa.Column('refused_at', TIMESTAMP, nullable=False),
        **OPTIONS)
    op.create_table(
        'cycles',
        sa.Column('aggregate', sa.String(255), primary_key=True),
        sa.Column('started_at', TIMESTAMP, nullable=False),
        sa.Column('finished_at', TIMESTAMP),
        sa.Column('worker', sa.String(255), nullable=False),
        sa.Column('outcome', sa.String(16)),
        sa.Column('imbalanced_cycles', sa.Integer, nullable=False),
        sa.Column('report', BLOB),
        sa.Column('failures', sa.Integer, nullable=False, server_default='0'),
        sa.Column('not_before', TIMESTAMP),
        sa.Column('good_at', TIMESTAMP),
        sa.Column('doubted', TEXT),
        **OPTIONS)
    op.create_table(
        'scores',
        sa.Column('host', sa.String(255), primary_key=True),
        sa.Column('policy', sa.String(64), primary_key=True),
        sa.Column('mode', sa.String(16), nullable=False),
        sa.Column('weight', sa.Double, nullable=False),
        sa.Column('value', sa.Double, nullable=False),
        sa.Column('at', TIMESTAMP, nullable=False),
        **OPTIONS)
    op.create_table(
        'host_loads',
        sa.Column('aggregate', sa.String(255), primary_key=True),
        sa.Column('at', TIMESTAMP, nullable=False),
        sa.Column('hosts', BLOB, nullable=False),
        **OPTIONS)
    op.create_table(
        'habits',
        sa.Column('aggregate', sa.String(255), primary_key=True),
        sa.Column('at', TIMESTAMP, nullable=False),
        sa.Column('body', BLOB, nullable=False),
        **OPTIONS)
    op.create_table(
        'evaluations',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('at', TIMESTAMP, nullable=False),
        sa.Column('outcome', sa.String(16), nullable=False),
        sa.Column('policies', TEXT, nullable=False),
        sa.Column('slots', TEXT),
        sa.Index('evaluations_aggregate_at_idx', 'aggregate', 'at'),
        sa.Index('evaluations_at_idx', 'at'),
        **OPTIONS)
    op.create_table(
        'load_sums',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('day', sa.Date, nullable=False),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('observed_seconds', sa.Double, nullable=False),
        sa.Column('hot_seconds', sa.Double, nullable=False),
        sa.Column('contended_seconds', sa.Double, nullable=False),
        sa.Column('replayed_seconds', sa.Double, nullable=False),
        sa.Column('unmoved_hot_seconds', sa.Double, nullable=False),
        sa.Column('unmoved_contended_seconds', sa.Double, nullable=False),
        sa.Index('load_sums_day_aggregate_idx', 'day', 'aggregate', unique=True),
        **OPTIONS)
    op.create_table(
        'move_sums',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('day', sa.Date, nullable=False),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('completed', sa.Integer, nullable=False),
        sa.Column('failed', sa.Integer, nullable=False),
        sa.Column('abandoned', sa.Integer, nullable=False),
        sa.Column('memory_mb', sa.BigInteger, nullable=False),
        sa.Column('seconds', sa.Double, nullable=False),
        sa.Index('move_sums_key_idx', 'day', 'aggregate', 'project_id', unique=True),
        **OPTIONS)


def create_observability() -> None:
    op.create_table(
        'server_names',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('aggregate', sa.String(255)),
        sa.Column('seen_at', TIMESTAMP, nullable=False),
        sa.Index('server_names_seen_at_idx', 'seen_at'),
        **OPTIONS)
    op.create_table(
        'notifications',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('sequence', sa.Integer),
        sa.Column('event_type', sa.String(64), nullable=False),
        sa.Column('at', TIMESTAMP, nullable=False),
        sa.Column('body', TEXT, nullable=False),
        sa.Column('sent_at', TIMESTAMP),
        sa.Index('notifications_at_idx', 'at'),
        sa.Index('notifications_sent_at_idx', 'sent_at', 'sequence'),
        sa.Index('notifications_sequence_idx', 'sequence', unique=True),
        sa.Index('notifications_uuid_idx', 'uuid', unique=True),
        sqlite_autoincrement=True, **OPTIONS)
    op.create_table(
        'counters',
        sa.Column('name', sa.String(64), primary_key=True),
        sa.Column('labels', sa.String(512), primary_key=True),
        sa.Column('value', sa.Double, nullable=False),
        **OPTIONS)


def create_coordination() -> None:
    op.create_table(
        'workers',
        sa.Column('name', sa.String(255), primary_key=True),
        sa.Column('heartbeat_at', TIMESTAMP, nullable=False),
        sa.Column('role', sa.String(16), nullable=False, server_default='executor'),
        sa.Column('clock_skew', sa.Double),
        **OPTIONS)
    gates = op.create_table(
        'gates',
        sa.Column('name', sa.String(64), primary_key=True),
        sa.Column('passed', sa.Integer, nullable=False),
        **OPTIONS)
    insert_missing(gates, passed=0, names=('dispatch', 'planning', 'notifications'))
    leases = op.create_table(
        'leases',
        sa.Column('name', sa.String(64), primary_key=True),
        sa.Column('holder', sa.String(255)),
        sa.Column('expires_at', TIMESTAMP),
        sa.Column('progress_at', TIMESTAMP),
        **OPTIONS)
    insert_missing(leases, names=('reconciler', 'retention', 'notifications'))


def create_claims() -> None:
    op.create_table(
        'claims',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('host', NAME, nullable=False),
        sa.Column('node', NAME, nullable=False),
        sa.Column('instance_uuid', UUID, nullable=False),
        sa.Column('vcpus', sa.Integer, nullable=False),
        sa.Column('memory_mb', sa.Integer, nullable=False),
        sa.Column('disk_gb', sa.Integer, nullable=False),
        sa.Column('pci', sa.Text),
        sa.Column('resize_target', sa.Integer, nullable=False),
        sa.Column('created_at', WORD, nullable=False),
        sa.Column('state', WORD, nullable=False, server_default='claimed'),
        sa.Column('migration_uuid', UUID),
        sa.Column('numa_topology', sa.Text),
        sa.Index('claims_key_idx', 'host', 'node', 'instance_uuid', 'resize_target', unique=True),
        sqlite_autoincrement=True, **OPTIONS)


def insert_missing(table: sa.TableClause, names: Iterable[str], **values: object) -> None:
    """Insert a row for each of ``names`` that has no row yet. An interrupted upgrade may have
    inserted some of the rows."""
    connection = op.get_bind()
    found = {*connection.scalars(sa.select(table.c.name))}
    for name in names:
        if name not in found:
            connection.execute(sa.insert(table).values(name=name, **values))
