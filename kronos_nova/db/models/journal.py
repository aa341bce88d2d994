"""The journal: plans, their reports, moves and their events."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

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

    uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    aggregate: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    mode: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    planner: Mapped[str] = mapped_column(sa.String(64), nullable=False)
    state: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    created_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    expires_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    finished_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    approved_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    approved_by: Mapped[str | None] = mapped_column(sa.String(255))
    combined_before: Mapped[float | None] = mapped_column(sa.Double)
    combined_after: Mapped[float | None] = mapped_column(sa.Double)
    combined_now: Mapped[float | None] = mapped_column(sa.Double)
    detail: Mapped[str | None] = mapped_column(Text)
    purpose: Mapped[str] = mapped_column(
        sa.String(16), nullable=False, default='balance', server_default='balance')
    move_count: Mapped[int] = mapped_column(
        sa.Integer, nullable=False, default=0, server_default='0')
    fingerprint: Mapped[str | None] = mapped_column(sa.String(64))
    last_seen_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    times_seen: Mapped[int] = mapped_column(
        sa.Integer, nullable=False, default=1, server_default='1')
    ended_because: Mapped[str | None] = mapped_column(Text)

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

    plan_uuid: Mapped[str] = mapped_column(
        sa.String(36), sa.ForeignKey('plans.uuid'), primary_key=True)
    created_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    body: Mapped[str] = mapped_column(CompressedText, nullable=False)

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

    uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    plan_uuid: Mapped[str] = mapped_column(
        sa.String(36), sa.ForeignKey('plans.uuid'), nullable=False)
    aggregate: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    ordinal: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    depends_on: Mapped[str] = mapped_column(Text, nullable=False)
    group: Mapped[int | None] = mapped_column('group_number', sa.Integer)
    only_makes_room: Mapped[bool] = mapped_column(
        sa.Boolean, nullable=False, default=False, server_default=sa.false())
    phase: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    instance_uuid: Mapped[str] = mapped_column(sa.String(36), nullable=False)
    source: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    destination: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    memory_mb: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    reason: Mapped[str] = mapped_column(Text, nullable=False)
    state: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    owner: Mapped[str | None] = mapped_column(sa.String(255))
    not_before: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    retry_count: Mapped[int] = mapped_column(sa.Integer, nullable=False, default=0)
    migration_uuid: Mapped[str | None] = mapped_column(sa.String(36))
    abort_requested: Mapped[bool] = mapped_column(sa.Boolean, nullable=False, default=False)
    created_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    checked_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    dispatched_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    requested_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    forced_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    finished_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    settled_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    memory_total: Mapped[int | None] = mapped_column(sa.BigInteger)
    memory_remaining: Mapped[int | None] = mapped_column(sa.BigInteger)
    memory_processed: Mapped[int | None] = mapped_column(sa.BigInteger)
    error_type: Mapped[str | None] = mapped_column(sa.String(64))
    error: Mapped[str | None] = mapped_column(Text)
    outage: Mapped[bool] = mapped_column(
        sa.Boolean, nullable=False, default=False, server_default=sa.false())
    kind: Mapped[str] = mapped_column(
        sa.String(8), nullable=False, default='live', server_default='live')
    project_id: Mapped[str | None] = mapped_column(sa.String(255))
    caused_by: Mapped[str | None] = mapped_column(sa.String(36))
    position: Mapped[int] = mapped_column(sa.Integer, nullable=False, default=0, server_default='0')
    expected_seconds: Mapped[float | None] = mapped_column(sa.Double)
    expected_downtime: Mapped[float | None] = mapped_column(sa.Double)
    adopted: Mapped[bool] = mapped_column(
        sa.Boolean, nullable=False, default=False, server_default=sa.false())

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

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=True)
    move_uuid: Mapped[str] = mapped_column(
        sa.String(36), sa.ForeignKey('moves.uuid'), nullable=False)
    at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    old_state: Mapped[str | None] = mapped_column(sa.String(16))
    new_state: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    worker: Mapped[str | None] = mapped_column(sa.String(255))
    detail: Mapped[str] = mapped_column(Text, nullable=False, default='')

    __table_args__ = (sa.Index('move_events_move_uuid_idx', 'move_uuid'),
                      sa.Index('move_events_at_idx', 'at'))
