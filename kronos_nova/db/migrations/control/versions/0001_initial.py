"""The journal of plans and moves, and what outlives a cycle."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0001'
down_revision = None

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
OPTIONS = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


def upgrade():
    create_journal()
    create_memory()
    create_workers()


def create_journal():
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
        sa.Column('report', TEXT, nullable=False),
        sa.Index('plans_aggregate_state_idx', 'aggregate', 'state'),
        sa.Index('plans_created_at_idx', 'created_at'),
        **OPTIONS)
    op.create_table(
        'moves',
        sa.Column('uuid', sa.String(36), primary_key=True),
        sa.Column('plan_uuid', sa.String(36), sa.ForeignKey('plans.uuid'), nullable=False),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('ordinal', sa.Integer, nullable=False),
        sa.Column('depends_on', TEXT, nullable=False),
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
        sa.Column('requested_at', TIMESTAMP),
        sa.Column('finished_at', TIMESTAMP),
        sa.Column('error_type', sa.String(64)),
        sa.Column('error', TEXT),
        sa.Index('moves_plan_uuid_idx', 'plan_uuid'),
        sa.Index('moves_state_idx', 'state', 'not_before'),
        sa.Index('moves_instance_uuid_idx', 'instance_uuid'),
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
        sa.Index('move_events_move_uuid_idx', 'move_uuid'),
        **OPTIONS)


def create_memory():
    op.create_table(
        'cooldowns',
        sa.Column('scope', sa.String(16), primary_key=True),
        sa.Column('name', sa.String(255), primary_key=True),
        sa.Column('until', TIMESTAMP, nullable=False),
        sa.Column('times', sa.Integer, nullable=False),
        **OPTIONS)
    op.create_table(
        'quarantines',
        sa.Column('instance_uuid', sa.String(36), primary_key=True),
        sa.Column('until', TIMESTAMP),
        sa.Column('reason', TEXT, nullable=False),
        sa.Column('created_at', TIMESTAMP, nullable=False),
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
        'cycles',
        sa.Column('aggregate', sa.String(255), primary_key=True),
        sa.Column('started_at', TIMESTAMP, nullable=False),
        sa.Column('finished_at', TIMESTAMP),
        sa.Column('worker', sa.String(255), nullable=False),
        sa.Column('outcome', sa.String(16)),
        sa.Column('imbalanced_cycles', sa.Integer, nullable=False),
        sa.Column('report', TEXT),
        **OPTIONS)


def create_workers():
    op.create_table(
        'workers',
        sa.Column('name', sa.String(255), primary_key=True),
        sa.Column('heartbeat_at', TIMESTAMP, nullable=False),
        **OPTIONS)
    gates = op.create_table(
        'gates',
        sa.Column('name', sa.String(64), primary_key=True),
        sa.Column('passed', sa.Integer, nullable=False),
        **OPTIONS)
    op.bulk_insert(gates, [{'name': 'dispatch', 'passed': 0}, {'name': 'planning', 'passed': 0}])
