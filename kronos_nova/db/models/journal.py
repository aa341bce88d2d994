"""The journal: plans, their reports, moves and their events."""

import sqlalchemy as sa

from kronos_nova.db.column_types import CompressedText
from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class PlanRow(Base):
    """A plan for one aggregate.

    ``purpose`` is ``balance``, ``repair``, ``drain`` or ``make_room``. ``detail`` is the reason why
    an approved plan is not started yet. ``combined_now`` is for a plan that waits for approval: the
    combined imbalance that its moves would reach with the loads of the last evaluation.

    ``fingerprint`` is equal for plans that move the same instances between the same hosts. A plan
    at level ``observe`` whose fingerprint equals that of the last plan gets no row of its own.
    Instead ``times_seen`` and ``last_seen_at`` of the last plan's row are updated.
    """

    __tablename__ = 'plans'

    uuid = sa.Column(sa.String(36), primary_key=True)
    aggregate = sa.Column(sa.String(255), nullable=False)
    mode = sa.Column(sa.String(16), nullable=False)
    planner = sa.Column(sa.String(64), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    created_at = sa.Column(Timestamp, nullable=False)
    expires_at = sa.Column(Timestamp, nullable=False)
    finished_at = sa.Column(Timestamp)
    approved_at = sa.Column(Timestamp)
    approved_by = sa.Column(sa.String(255))
    combined_before = sa.Column(sa.Double)
    combined_after = sa.Column(sa.Double)
    combined_now = sa.Column(sa.Double)
    detail = sa.Column(Text)
    purpose = sa.Column(sa.String(16), nullable=False, default='balance', server_default='balance')
    move_count = sa.Column(sa.Integer, nullable=False, default=0, server_default='0')
    fingerprint = sa.Column(sa.String(64))
    last_seen_at = sa.Column(Timestamp)
    times_seen = sa.Column(sa.Integer, nullable=False, default=1, server_default='1')
    ended_because = sa.Column(Text)

    __table_args__ = (sa.Index('plans_aggregate_state_idx', 'aggregate', 'state'),
                      sa.Index('plans_aggregate_created_at_idx', 'aggregate', 'created_at'),
                      sa.Index('plans_state_expires_at_idx', 'state', 'expires_at'),
                      sa.Index('plans_created_at_idx', 'created_at'),
                      sa.Index('plans_finished_at_idx', 'finished_at'))


class ReportRow(Base):
    """The AggregateReport of a plan as JSON. For each reason why instances are not moved, the
    report has the number of these instances, but not their names.

    A report is kept for a shorter time than its plan.
    """

    __tablename__ = 'reports'

    plan_uuid = sa.Column(sa.String(36), sa.ForeignKey('plans.uuid'), primary_key=True)
    created_at = sa.Column(Timestamp, nullable=False)
    body = sa.Column(CompressedText, nullable=False)

    __table_args__ = (sa.Index('reports_created_at_idx', 'created_at'),)


class MoveRow(Base):
    """A move of a plan and its state. ``owner`` is the worker that carries the move out. ``kind``
    is ``live``, ``cold`` or ``restart``.

    ``settled_at`` is the time at which the consequences of the move's end, such as a quarantine,
    were recorded. ``forced_at`` is the time at which Nova was asked to complete the migration by
    force. ``outage`` is true if the last attempt at the move failed because a service that Nova
    needs did not answer. ``adopted`` is true if the worker took the move over from another worker
    during an attempt. ``group`` is a number that moves of the plan share if they improve the
    balance only together. ``only_makes_room`` is true if the move serves nothing but moves of the
    plan that depend on it. ``memory_total``, ``memory_remaining`` and ``memory_processed`` are in
    bytes. ``caused_by`` is the instance whose load caused the move. Moves that are due are started
    in the order of ``position``, the lowest first. ``expected_seconds`` and ``expected_downtime``
    are the predictions of the plan.
    """

    __tablename__ = 'moves'

    uuid = sa.Column(sa.String(36), primary_key=True)
    plan_uuid = sa.Column(sa.String(36), sa.ForeignKey('plans.uuid'), nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    ordinal = sa.Column(sa.Integer, nullable=False)
    depends_on = sa.Column(Text, nullable=False)
    group = sa.Column('group_number', sa.Integer)
    only_makes_room = sa.Column(sa.Boolean, nullable=False, default=False,
                                server_default=sa.false())
    phase = sa.Column(sa.String(16), nullable=False)
    instance_uuid = sa.Column(sa.String(36), nullable=False)
    source = sa.Column(sa.String(255), nullable=False)
    destination = sa.Column(sa.String(255), nullable=False)
    memory_mb = sa.Column(sa.Integer, nullable=False)
    reason = sa.Column(Text, nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    owner = sa.Column(sa.String(255))
    not_before = sa.Column(Timestamp, nullable=False)
    retry_count = sa.Column(sa.Integer, nullable=False, default=0)
    migration_uuid = sa.Column(sa.String(36))
    abort_requested = sa.Column(sa.Boolean, nullable=False, default=False)
    created_at = sa.Column(Timestamp, nullable=False)
    checked_at = sa.Column(Timestamp)
    dispatched_at = sa.Column(Timestamp)
    requested_at = sa.Column(Timestamp)
    forced_at = sa.Column(Timestamp)
    finished_at = sa.Column(Timestamp)
    settled_at = sa.Column(Timestamp)
    memory_total = sa.Column(sa.BigInteger)
    memory_remaining = sa.Column(sa.BigInteger)
    memory_processed = sa.Column(sa.BigInteger)
    error_type = sa.Column(sa.String(64))
    error = sa.Column(Text)
    outage = sa.Column(sa.Boolean, nullable=False, default=False, server_default=sa.false())
    kind = sa.Column(sa.String(8), nullable=False, default='live', server_default='live')
    project_id = sa.Column(sa.String(255))
    caused_by = sa.Column(sa.String(36))
    position = sa.Column(sa.Integer, nullable=False, default=0, server_default='0')
    expected_seconds = sa.Column(sa.Double)
    expected_downtime = sa.Column(sa.Double)
    adopted = sa.Column(sa.Boolean, nullable=False, default=False, server_default=sa.false())

    __table_args__ = (sa.Index('moves_plan_uuid_idx', 'plan_uuid'),
                      sa.Index('moves_checked_at_idx', 'checked_at'),
                      sa.Index('moves_created_at_idx', 'created_at'),
                      sa.Index('moves_state_idx', 'state', 'not_before'),
                      sa.Index('moves_state_finished_at_idx', 'state', 'finished_at'),
                      sa.Index('moves_instance_uuid_idx', 'instance_uuid'))


class MoveEventRow(Base):
    """One change of a move's state, with its time and reason. Rows are added and deleted, but never
    changed."""

    __tablename__ = 'move_events'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    move_uuid = sa.Column(sa.String(36), sa.ForeignKey('moves.uuid'), nullable=False)
    at = sa.Column(Timestamp, nullable=False)
    old_state = sa.Column(sa.String(16))
    new_state = sa.Column(sa.String(16), nullable=False)
    worker = sa.Column(sa.String(255))
    detail = sa.Column(Text, nullable=False, default='')

    __table_args__ = (sa.Index('move_events_move_uuid_idx', 'move_uuid'),
                      sa.Index('move_events_at_idx', 'at'))
