"""The tables of the control database: the journal of plans and moves, and what outlives a cycle.

The plans and moves of years may be kept: what is asked every few seconds has an index of its own.
"""

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova.db.column_types import CompressedText
from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp


class Base(orm.DeclarativeBase):
    pass


class PlanRow(Base):
    """A plan for one aggregate. ``purpose`` is ``balance``, ``repair`` or ``drain``; ``detail`` is
    why it is not started although it is approved. ``combined_now`` is the combined imbalance that a
    plan which waits would end at by the last evaluation.

    ``fingerprint`` tells plans apart that move other instances or to other hosts. An observed plan
    that says what the last one said is no row of its own: ``times_seen`` counts how often it was
    made, ``last_seen_at`` is when last.
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
    """The AggregateReport of a plan as JSON, with what stayed counted by reason.

    Kept for a shorter time than the plan.
    """

    __tablename__ = 'reports'

    plan_uuid = sa.Column(sa.String(36), sa.ForeignKey('plans.uuid'), primary_key=True)
    created_at = sa.Column(Timestamp, nullable=False)
    body = sa.Column(CompressedText, nullable=False)

    __table_args__ = (sa.Index('reports_created_at_idx', 'created_at'),)


class MoveRow(Base):
    """A move of a plan and where it stands. ``owner`` is the worker that carries it out, ``kind``
    ``live`` or ``cold``.

    ``settled_at`` is when what follows from its end was done: a quarantine, or nothing.
    ``forced_at`` is when Nova was asked to complete it by force. ``outage`` tells whether the last
    try ended because something that Nova needs did not answer, ``adopted`` whether its worker took
    it over from another in mid-try. ``group`` is a number that it shares with the moves of its plan
    without which it does not help. Memory is in bytes. ``caused_by`` is
    the instance whose load the move is put down to. Of moves that are due, that of the lowest
    ``position`` goes first; ``expected_seconds`` and ``expected_downtime`` are what the plan
    expected.
    """

    __tablename__ = 'moves'

    uuid = sa.Column(sa.String(36), primary_key=True)
    plan_uuid = sa.Column(sa.String(36), sa.ForeignKey('plans.uuid'), nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    ordinal = sa.Column(sa.Integer, nullable=False)
    depends_on = sa.Column(Text, nullable=False)
    group = sa.Column('group_number', sa.Integer)
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
    """One transition of a move, with its time and reason. Only ever added to."""

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


class CooldownRow(Base):
    """An aggregate or an instance that is left alone until a time.

    ``scope`` is ``aggregate`` or ``instance``, ``name`` the aggregate's name or the instance's
    uuid, ``set_at`` when the time was set.
    """

    __tablename__ = 'cooldowns'

    scope = sa.Column(sa.String(16), primary_key=True)
    name = sa.Column(sa.String(255), primary_key=True)
    until = sa.Column(Timestamp, nullable=False)
    times = sa.Column(sa.Integer, nullable=False, default=1)
    set_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('cooldowns_scope_until_idx', 'scope', 'until'),)


class QuarantineRow(Base):
    """An instance whose migration failed for good; ``until`` is null where an operator has to
    say."""

    __tablename__ = 'quarantines'

    instance_uuid = sa.Column(sa.String(36), primary_key=True)
    until = sa.Column(Timestamp)
    reason = sa.Column(Text, nullable=False)
    created_at = sa.Column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('quarantines_until_idx', 'until'),)


class RefusalRow(Base):
    """An instance that Nova would not let go to some ``hosts`` (a JSON list), and that is left
    alone until then."""

    __tablename__ = 'refusals'

    instance_uuid = sa.Column(sa.String(36), primary_key=True)
    until = sa.Column(Timestamp, nullable=False)
    hosts = sa.Column(Text, nullable=False)
    reason = sa.Column(Text, nullable=False)
    refused_at = sa.Column(Timestamp, nullable=False)


class ScoreRow(Base):
    """The last score of a host in a policy."""

    __tablename__ = 'scores'

    host = sa.Column(sa.String(255), primary_key=True)
    policy = sa.Column(sa.String(64), primary_key=True)
    mode = sa.Column(sa.String(16), nullable=False)
    weight = sa.Column(sa.Double, nullable=False)
    value = sa.Column(sa.Double, nullable=False)
    at = sa.Column(Timestamp, nullable=False)


class CycleRow(Base):
    """The last evaluation of an aggregate: when it began and ended, and what it found.

    ``outcome`` and ``report`` (with the uuid of every instance that stayed) are of the last one
    that ended. ``imbalanced_cycles`` counts how many in a row found an imbalance above its
    threshold. ``failures`` counts how many in a row did not
    end, because their process did not; the next one begins at ``not_before`` or later. ``good_at``
    is when the last one ended that had data to plan by. ``doubted`` is JSON, pairs of policy and
    host whose metrics failed in the last one that ended.
    """

    __tablename__ = 'cycles'

    aggregate = sa.Column(sa.String(255), primary_key=True)
    started_at = sa.Column(Timestamp, nullable=False)
    finished_at = sa.Column(Timestamp)
    worker = sa.Column(sa.String(255), nullable=False)
    outcome = sa.Column(sa.String(16))
    imbalanced_cycles = sa.Column(sa.Integer, nullable=False, default=0)
    report = sa.Column(CompressedText)
    failures = sa.Column(sa.Integer, nullable=False, default=0, server_default='0')
    not_before = sa.Column(Timestamp)
    good_at = sa.Column(Timestamp)
    doubted = sa.Column(Text)


class HostLoadsRow(Base):
    """The hosts of an aggregate at its last evaluation; see
    :mod:`kronos_nova.objects.host_load`."""

    __tablename__ = 'host_loads'

    aggregate = sa.Column(sa.String(255), primary_key=True)
    at = sa.Column(Timestamp, nullable=False)
    hosts = sa.Column(CompressedText, nullable=False)


class AggregateLoadStatsRow(Base):
    """Statistics of the loads of the instances of an aggregate; see
    :mod:`kronos_nova.load.load_statistics`. ``body`` is JSON."""

    __tablename__ = 'habits'

    aggregate = sa.Column(sa.String(255), primary_key=True)
    at = sa.Column(Timestamp, nullable=False)
    body = sa.Column(CompressedText, nullable=False)


class EvaluationRow(Base):
    """An evaluation of the past. ``policies`` is JSON: {policy: [imbalance, threshold]}. ``slots``
    is JSON: {flavor: how many more servers fit}, null where none were counted."""

    __tablename__ = 'evaluations'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    aggregate = sa.Column(sa.String(255), nullable=False)
    at = sa.Column(Timestamp, nullable=False)
    outcome = sa.Column(sa.String(16), nullable=False)
    policies = sa.Column(Text, nullable=False)
    slots = sa.Column(Text)

    __table_args__ = (sa.Index('evaluations_aggregate_at_idx', 'aggregate', 'at'),
                      sa.Index('evaluations_at_idx', 'at'))


class LoadSumRow(Base):
    """The load of an aggregate's hosts in a day (UTC); see :class:`kronos_nova.db.sums.LoadSum`."""

    __tablename__ = 'load_sums'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    day = sa.Column(sa.Date, nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    observed_seconds = sa.Column(sa.Double, nullable=False)
    hot_seconds = sa.Column(sa.Double, nullable=False)
    contended_seconds = sa.Column(sa.Double, nullable=False)
    replayed_seconds = sa.Column(sa.Double, nullable=False, default=0.0)
    unmoved_hot_seconds = sa.Column(sa.Double, nullable=False, default=0.0)
    unmoved_contended_seconds = sa.Column(sa.Double, nullable=False, default=0.0)

    __table_args__ = (sa.Index('load_sums_day_aggregate_idx', 'day', 'aggregate', unique=True),)


class MoveSumRow(Base):
    """The moves of a day (UTC) that were dropped; see :class:`kronos_nova.db.sums.MoveSum`.
    ``project_id`` is empty where it was not known."""

    __tablename__ = 'move_sums'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    day = sa.Column(sa.Date, nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    project_id = sa.Column(sa.String(255), nullable=False)
    completed = sa.Column(sa.Integer, nullable=False)
    failed = sa.Column(sa.Integer, nullable=False)
    abandoned = sa.Column(sa.Integer, nullable=False)
    memory_mb = sa.Column(sa.BigInteger, nullable=False)
    seconds = sa.Column(sa.Double, nullable=False)

    __table_args__ = (sa.Index('move_sums_key_idx', 'day', 'aggregate', 'project_id',
                               unique=True),)


class WorkerRow(Base):
    """A process that lives writes another ``heartbeat_at`` with every tick: that the time changes
    is the sign of life. ``role`` is ``executor``, which carries out moves, or ``engine``, which
    only plans. ``clock_skew`` is by how many seconds the clock of its host is ahead of the
    database's.
    """

    __tablename__ = 'workers'

    name = sa.Column(sa.String(255), primary_key=True)
    heartbeat_at = sa.Column(Timestamp, nullable=False)
    role = sa.Column(sa.String(16), nullable=False, default='executor', server_default='executor')
    clock_skew = sa.Column(sa.Double)


class SerializationLockRow(Base):
    """One row that is written first by every transaction that must not run beside another of its
    kind."""

    __tablename__ = 'gates'

    name = sa.Column(sa.String(64), primary_key=True)
    passed = sa.Column(sa.Integer, nullable=False, default=0)


class RepairRow(Base):
    """A change that heals allocations. ``before`` and ``after`` are what its consumers held, as
    JSON bodies of POST /allocations."""

    __tablename__ = 'repairs'

    uuid = sa.Column(sa.String(36), primary_key=True)
    kind = sa.Column(sa.String(16), nullable=False)
    instance_uuid = sa.Column(sa.String(36), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    evidence = sa.Column(Text, nullable=False)
    before = sa.Column(Text, nullable=False)
    after = sa.Column(Text, nullable=False)
    detail = sa.Column(Text, nullable=False, default='')
    created_at = sa.Column(Timestamp, nullable=False)
    closed_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('repairs_instance_uuid_idx', 'instance_uuid'),
                      sa.Index('repairs_created_at_idx', 'created_at'))


class TaskRow(Base):
    """A live migration task in a conductor worker, and when that last said that it lives."""

    __tablename__ = 'tasks'

    migration_uuid = sa.Column(sa.String(36), primary_key=True)
    instance_uuid = sa.Column(sa.String(36), nullable=False)
    worker = sa.Column(sa.String(255), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    beat_at = sa.Column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('tasks_worker_idx', 'worker'),
                      sa.Index('tasks_state_beat_at_idx', 'state', 'beat_at'))


class _Switched:
    """Columns of a level or a pause that a command set, of an aggregate or of every one (``*``)."""

    value = sa.Column(sa.String(16), nullable=False)
    set_at = sa.Column(Timestamp, nullable=False)
    set_by = sa.Column(sa.String(255), nullable=False)
    reason = sa.Column(Text, nullable=False)


class SwitchRow(_Switched, Base):
    """A level or a pause in force. An aggregate has one level and any number of pauses."""

    __tablename__ = 'switches'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    kind = sa.Column(sa.String(16), nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)


class SwitchEventRow(_Switched, Base):
    """A switch that was set, or with an empty ``value`` ended. The last column says whether a log
    has it."""

    __tablename__ = 'switch_events'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    kind = sa.Column(sa.String(16), nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    told = sa.Column(sa.Boolean, nullable=False, server_default=sa.true())


class CounterRow(Base):
    """A total of :mod:`kronos_nova.db.counters`; ``labels`` are a JSON object."""

    __tablename__ = 'counters'

    name = sa.Column(sa.String(64), primary_key=True)
    labels = sa.Column(sa.String(512), primary_key=True)
    value = sa.Column(sa.Double, nullable=False)


class ServerNameRow(Base):
    """The name of a server in a plan, as it was when it was last read."""

    __tablename__ = 'server_names'

    uuid = sa.Column(sa.String(36), primary_key=True)
    name = sa.Column(sa.String(255), nullable=False)
    aggregate = sa.Column(sa.String(255))
    seen_at = sa.Column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('server_names_seen_at_idx', 'seen_at'),)


class LeaseRow(Base):
    """Work that one process does for all, who that is and until when.

    ``progress_at`` is as far as it has come; what that means is the work's own affair.
    """

    __tablename__ = 'leases'

    name = sa.Column(sa.String(64), primary_key=True)
    holder = sa.Column(sa.String(255))
    expires_at = sa.Column(Timestamp)
    progress_at = sa.Column(Timestamp)


class DrainRow(Base):
    """The wish to empty a host; see :class:`kronos_nova.drain.states.Drain`. ``avoid``,
    ``blocked``, ``to_stop`` and ``stopped`` are JSON."""

    __tablename__ = 'drains'

    uuid = sa.Column(sa.String(36), primary_key=True)
    host = sa.Column(sa.String(255), nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    requested_by = sa.Column(sa.String(255), nullable=False)
    requested_at = sa.Column(Timestamp, nullable=False)
    reason = sa.Column(Text, nullable=False)
    with_stopped = sa.Column(sa.Boolean, nullable=False)
    parallel = sa.Column(sa.Integer)
    deadline = sa.Column(Timestamp)
    keep_spare = sa.Column(sa.Integer, nullable=False)
    avoid = sa.Column(Text, nullable=False)
    unmovable = sa.Column(sa.String(8), nullable=False, default='leave')
    to_stop = sa.Column(Text, nullable=False, default='[]')
    stopped = sa.Column(Text, nullable=False, default='{}')
    # Nothing reads it: whose a disabled service is, Nova tells by its reason.
    is_ours = sa.Column(sa.Boolean, nullable=False, default=False)
    is_unwatched = sa.Column(sa.Boolean, nullable=False, default=False)
    looked_at = sa.Column(Timestamp)
    servers = sa.Column(sa.Integer)
    left = sa.Column(sa.Integer)
    blocked = sa.Column(Text, nullable=False)
    waits_for = sa.Column(Text, nullable=False, default='')
    problem = sa.Column(Text, nullable=False)
    finished_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('drains_host_idx', 'host'), sa.Index('drains_state_idx', 'state'))


class HoldRow(Base):
    """Room for new servers; see :class:`kronos_nova.objects.hold.Hold`. ``shape``, ``hosts``,
    ``known`` and ``used`` are JSON."""

    __tablename__ = 'holds'

    uuid = sa.Column(sa.String(36), primary_key=True)
    aggregate = sa.Column(sa.String(255), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    shape = sa.Column(Text, nullable=False)
    count = sa.Column(sa.Integer, nullable=False)
    project_id = sa.Column(sa.String(255), nullable=False)
    availability_zone = sa.Column(sa.String(255), nullable=False)
    requested_by = sa.Column(sa.String(255), nullable=False)
    requested_at = sa.Column(Timestamp, nullable=False)
    reason = sa.Column(Text, nullable=False)
    hold_seconds = sa.Column(sa.Integer, nullable=False)
    is_forced = sa.Column(sa.Boolean, nullable=False)
    expires_at = sa.Column(Timestamp, nullable=False)
    moves = sa.Column(sa.Integer, nullable=False)
    memory_mb = sa.Column(sa.Integer, nullable=False)
    hosts = sa.Column(Text, nullable=False)
    known = sa.Column(Text, nullable=False)
    used = sa.Column(Text, nullable=False)
    plan_uuid = sa.Column(sa.String(36), nullable=False)
    plans = sa.Column(sa.Integer, nullable=False)
    problem = sa.Column(Text, nullable=False)
    finished_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('holds_state_idx', 'state'),)


class MaintenanceRow(Base):
    """A rolling maintenance; see :class:`kronos_nova.objects.maintenance.Maintenance`. ``options``
    and ``hosts`` are JSON, the hosts with their states in order."""

    __tablename__ = 'maintenances'

    uuid = sa.Column(sa.String(36), primary_key=True)
    state = sa.Column(sa.String(16), nullable=False)
    requested_by = sa.Column(sa.String(255), nullable=False)
    requested_at = sa.Column(Timestamp, nullable=False)
    options = sa.Column(Text, nullable=False)
    hosts = sa.Column(Text, nullable=False)
    runner = sa.Column(sa.String(255))
    runner_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('maintenances_state_idx', 'state'),)


class NotificationRow(Base):
    """A notification to be sent, or that was sent at ``sent_at``; see
    :class:`kronos_nova.objects.notification.Notification`. ``body`` is JSON. It has no ``sequence``
    before a worker is about to send it."""

    __tablename__ = 'notifications'

    # Without this, SQLite gives the number of the last row that was deleted once more.
    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    uuid = sa.Column(sa.String(36), nullable=False)
    sequence = sa.Column(sa.Integer)
    event_type = sa.Column(sa.String(64), nullable=False)
    at = sa.Column(Timestamp, nullable=False)
    body = sa.Column(Text, nullable=False)
    sent_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('notifications_uuid_idx', 'uuid', unique=True),
                      sa.Index('notifications_sequence_idx', 'sequence', unique=True),
                      sa.Index('notifications_sent_at_idx', 'sent_at', 'sequence'),
                      sa.Index('notifications_at_idx', 'at'),
                      {'sqlite_autoincrement': True})
