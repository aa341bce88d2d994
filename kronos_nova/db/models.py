"""The tables of the control database: the journal of plans and moves, and what outlives a cycle.

Times are UTC without a zone, to the microsecond.
"""

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import mysql

Timestamp = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
Text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')


class Base(orm.DeclarativeBase):
    pass


class Plan(Base):
    """A plan for one aggregate. ``report`` is its AggregateReport as JSON, ``purpose`` what it is
    for: ``balance`` or ``drain``."""

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
    report = sa.Column(Text, nullable=False)
    purpose = sa.Column(sa.String(16), nullable=False, default='balance', server_default='balance')

    __table_args__ = (sa.Index('plans_aggregate_state_idx', 'aggregate', 'state'),
                      sa.Index('plans_created_at_idx', 'created_at'))


class Move(Base):
    """A move of a plan and where it stands. ``owner`` is the worker that carries it out.

    ``settled_at`` is when what follows from its end was done: a quarantine, or nothing.
    ``forced_at`` is when Nova was asked to complete it by force. ``outage`` tells whether the last
    try ended because something that Nova needs did not answer. Memory is in bytes.
    """

    __tablename__ = 'moves'

    uuid = sa.Column(sa.String(36), primary_key=True)
    plan_uuid = sa.Column(sa.String(36), sa.ForeignKey('plans.uuid'), nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    ordinal = sa.Column(sa.Integer, nullable=False)
    depends_on = sa.Column(Text, nullable=False)
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
    dispatched_at = sa.Column(Timestamp)
    requested_at = sa.Column(Timestamp)
    forced_at = sa.Column(Timestamp)
    finished_at = sa.Column(Timestamp)
    settled_at = sa.Column(Timestamp)
    memory_total = sa.Column(sa.BigInteger)
    memory_remaining = sa.Column(sa.BigInteger)
    error_type = sa.Column(sa.String(64))
    error = sa.Column(Text)
    outage = sa.Column(sa.Boolean, nullable=False, default=False, server_default=sa.false())

    __table_args__ = (sa.Index('moves_plan_uuid_idx', 'plan_uuid'),
                      sa.Index('moves_state_idx', 'state', 'not_before'),
                      sa.Index('moves_instance_uuid_idx', 'instance_uuid'))


class MoveEvent(Base):
    """One transition of a move, with its time and reason. Only ever added to."""

    __tablename__ = 'move_events'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    move_uuid = sa.Column(sa.String(36), sa.ForeignKey('moves.uuid'), nullable=False)
    at = sa.Column(Timestamp, nullable=False)
    old_state = sa.Column(sa.String(16))
    new_state = sa.Column(sa.String(16), nullable=False)
    worker = sa.Column(sa.String(255))
    detail = sa.Column(Text, nullable=False, default='')

    __table_args__ = (sa.Index('move_events_move_uuid_idx', 'move_uuid'),)


class Cooldown(Base):
    """An aggregate or an instance that is left alone until a time.

    ``scope`` is ``aggregate`` or ``instance``, ``name`` the aggregate's name or the instance's
    uuid.
    """

    __tablename__ = 'cooldowns'

    scope = sa.Column(sa.String(16), primary_key=True)
    name = sa.Column(sa.String(255), primary_key=True)
    until = sa.Column(Timestamp, nullable=False)
    times = sa.Column(sa.Integer, nullable=False, default=1)


class Quarantine(Base):
    """An instance whose migration failed for good; ``until`` is null where an operator has to
    say."""

    __tablename__ = 'quarantines'

    instance_uuid = sa.Column(sa.String(36), primary_key=True)
    until = sa.Column(Timestamp)
    reason = sa.Column(Text, nullable=False)
    created_at = sa.Column(Timestamp, nullable=False)


class Score(Base):
    """The last score of a host in a policy."""

    __tablename__ = 'scores'

    host = sa.Column(sa.String(255), primary_key=True)
    policy = sa.Column(sa.String(64), primary_key=True)
    mode = sa.Column(sa.String(16), nullable=False)
    weight = sa.Column(sa.Double, nullable=False)
    value = sa.Column(sa.Double, nullable=False)
    at = sa.Column(Timestamp, nullable=False)


class Cycle(Base):
    """The last evaluation of an aggregate: when it began and ended, and what it found.

    ``outcome`` and ``report`` are of the last one that ended. ``imbalanced_cycles`` counts how many
    in a row found an imbalance above its threshold. ``failures`` counts how many in a row did not
    end, because their process did not; the next one begins at ``not_before`` or later.
    """

    __tablename__ = 'cycles'

    aggregate = sa.Column(sa.String(255), primary_key=True)
    started_at = sa.Column(Timestamp, nullable=False)
    finished_at = sa.Column(Timestamp)
    worker = sa.Column(sa.String(255), nullable=False)
    outcome = sa.Column(sa.String(16))
    imbalanced_cycles = sa.Column(sa.Integer, nullable=False, default=0)
    report = sa.Column(Text)
    failures = sa.Column(sa.Integer, nullable=False, default=0, server_default='0')
    not_before = sa.Column(Timestamp)


class Worker(Base):
    """A process and when it last said that it lives. ``role`` is ``executor``, which carries out
    moves, or ``engine``, which only plans."""

    __tablename__ = 'workers'

    name = sa.Column(sa.String(255), primary_key=True)
    heartbeat_at = sa.Column(Timestamp, nullable=False)
    role = sa.Column(sa.String(16), nullable=False, default='executor', server_default='executor')


class SerializationLock(Base):
    """One row that is written first by every transaction that must not run beside another of its
    kind."""

    __tablename__ = 'gates'

    name = sa.Column(sa.String(64), primary_key=True)
    passed = sa.Column(sa.Integer, nullable=False, default=0)


class Repair(Base):
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


class Task(Base):
    """A live migration task in a conductor worker, and when that last said that it lives."""

    __tablename__ = 'tasks'

    migration_uuid = sa.Column(sa.String(36), primary_key=True)
    instance_uuid = sa.Column(sa.String(36), nullable=False)
    worker = sa.Column(sa.String(255), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    beat_at = sa.Column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('tasks_worker_idx', 'worker'),)


class _Switched:
    """What a command set: a level or a pause, of an aggregate or of every one (``*``)."""

    value = sa.Column(sa.String(16), nullable=False)
    set_at = sa.Column(Timestamp, nullable=False)
    set_by = sa.Column(sa.String(255), nullable=False)
    reason = sa.Column(Text, nullable=False)


class Switch(_Switched, Base):
    """A level or a pause as it is now."""

    __tablename__ = 'switches'

    kind = sa.Column(sa.String(16), primary_key=True)
    aggregate = sa.Column(sa.String(255), primary_key=True)


class SwitchEvent(_Switched, Base):
    """What was set, or with an empty ``value`` taken away. Only ever added to."""

    __tablename__ = 'switch_events'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    kind = sa.Column(sa.String(16), nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)


class ServerName(Base):
    """How a server that a plan speaks of was called when that was last read."""

    __tablename__ = 'server_names'

    uuid = sa.Column(sa.String(36), primary_key=True)
    name = sa.Column(sa.String(255), nullable=False)
    seen_at = sa.Column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('server_names_seen_at_idx', 'seen_at'),)
