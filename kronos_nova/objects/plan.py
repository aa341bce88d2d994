"""Plans, the reports of evaluations, and the records of plans in the journal.

A report has the planned moves with their reasons, and the instances that stay on their hosts. An
evaluation is also called a cycle.
"""

import dataclasses
import datetime
import json
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import field
from typing import Any

# Phases, in the order in which they share one budget.
EVACUATE = 'evacuate'
AFFINITY = 'affinity'
RELIEVE = 'relieve'
SPREAD = 'spread'
PACK = 'pack'
MAKE_ROOM = 'make_room'
BY_LOAD = (RELIEVE, SPREAD, PACK)
"""Phases of planning that are only possible if load metrics are known."""

# Outcomes of an aggregate in a cycle.
PLANNED = 'planned'
BALANCED = 'balanced'
COOLING = 'cooling'
NO_DATA = 'no_data'
NO_MOVE = 'no_move'
DRAINING = 'draining'
"""Outcome of an evaluation while hosts of the aggregate are being emptied. Only the record of the
last evaluation has this outcome."""
FAILED = 'failed'
BLIND = (NO_DATA, FAILED)
"""Outcomes of evaluations in which it remained unknown whether instances should move."""
OUTCOMES = (PLANNED, BALANCED, COOLING, NO_DATA, NO_MOVE, FAILED)

HOT_SCORE = 0.9
"""Load, as a fraction of the host, above which a host counts as hot. Raised, fewer hosts count as
hot; lowered, hosts with unused capacity count as hot. Fixed by the definition of a hot host in
reports and in ``bench days``."""

FULL = 1.0
"""Lowest load, as a fraction of the host, with which a host counts as full. The servers on a full
host use all of its capacity, and may need more. Raised, full hosts are not found with a metric that
never exceeds 1; lowered, hosts with free capacity count as full. Fixed: a load of 1 is the whole
host."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """The number of hot hosts in an aggregate, and the number of servers on full hosts. A host is
    hot if its score in any policy is above :data:`HOT_SCORE`. A host is full if its score in any
    policy is at least :data:`FULL`."""

    hot_hosts: int
    contended_servers: int

    @classmethod
    def of_hosts(cls, hosts: Iterable[tuple[int, float]]) -> 'Contention':
        """Count the hot hosts, and the servers on full hosts.

        :param hosts: (number of servers, highest score in any policy) of each host
        """
        known = tuple(hosts)
        return cls(hot_hosts=sum(score > HOT_SCORE for _servers, score in known),
                   contended_servers=sum(servers for servers, score in known if score >= FULL))


REPLAYED = datetime.timedelta(days=28)
"""Maximum age, in days, of the moves that Kronos treats as not made when it estimates the load
without its moves. Raised, the estimate also leaves out moves that would have become necessary for
other reasons; lowered, the estimate includes older moves that still have an effect. Chosen because
four weeks have every weekday equally often. By default, the journal keeps single moves for longer
than that."""


# Reasons why an instance stayed.
SKIP_REASONS = ('cooldown', 'quarantine', 'locked', 'excluded', 'busy', 'not_active', 'no_profile',
                'group', 'capacity', 'zone', 'isolation', 'reserve', 'failover', 'returning',
                'rule', 'refused', 'endless', 'cap', 'unrepaired', 'threshold', 'no_gain', 'budget',
                'late')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NextBest:
    """The best alternative to a planned move. ``combined_after`` is the combined imbalance if the
    alternative is made instead of the planned move."""

    instance_uuid: str
    destination: str
    memory_mb: int
    combined_after: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """One live migration of a plan.

    ``order`` is the position of the move in the plan, from 1. If moves run in this order, every
    hard constraint holds after each move. ``depends_on`` are the ``order`` numbers of the moves
    that must have succeeded before this move may start. ``group`` is the number of the group to
    which the move belongs. The moves of a group are useful only if all of them are made. ``group``
    is None for a move that is useful alone. ``only_makes_room`` is True if the move serves nothing
    but moves that depend on it.

    ``combined_after`` is the combined imbalance after this move; None for a move that was planned
    without load metrics. ``project_id`` is the project of the instance. ``caused_by`` is the uuid
    of another instance whose load caused the move; '' if no other instance caused it. ``benefits``
    are the projects with servers on the host that the move relieves, the project with the most load
    first; empty if the move relieves no host. ``next_best`` is the best alternative to this move;
    None if no other move was permitted.

    ``begins_after`` is the expected time between the start of the plan and the start of the move.
    ``expected_seconds`` is the expected duration of the move. ``expected_downtime`` is the expected
    time for which the guest is stopped. All three are in seconds, and None if they were not
    computed.
    """

    order: int
    phase: str
    instance_uuid: str
    source: str
    destination: str
    memory_mb: int
    combined_after: float | None
    reason: str
    depends_on: tuple[int, ...] = ()
    group: int | None = None
    only_makes_room: bool = False
    project_id: str = ''
    caused_by: str = ''
    benefits: tuple[str, ...] = ()
    next_best: NextBest | None = None
    begins_after: float | None = None
    expected_seconds: float | None = None
    expected_downtime: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """The instances that stayed on their hosts for one ``reason``. The reason is one of
    :data:`SKIP_REASONS`. ``count`` is the number of these instances; short reports have only this
    number. ``details`` are (uuid, additional text) of some of these instances."""

    reason: str
    instances: tuple[str, ...] = ()
    count: int | None = None
    details: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.count is None:
            object.__setattr__(self, 'count', len(self.instances))
        object.__setattr__(self, 'details', tuple(map(tuple, self.details)))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An instance that Nova refused to move to ``hosts``. ``reason`` is the reason of the last
    refusal. ``is_final`` is True if no other hosts will be tried."""

    instance_uuid: str
    hosts: tuple[str, ...]
    reason: str
    is_final: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Immovable:
    """An instance that Nova cannot migrate live, whatever the status of the instance. ``can`` is
    ``cold`` if Nova can migrate it cold, and ``no`` if Nova cannot move it at all. ``why`` is
    Nova's reason."""

    instance_uuid: str
    can: str
    why: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """An instance that has to leave its host, and for which no destination was found. ``is_proven``
    is True if it is proven that no plan can move all instances that have to leave their hosts.
    ``is_proven`` is False if a search found no such plan, but such a plan may exist."""

    instance_uuid: str
    why: str
    is_proven: bool


UNBELIEVED = 'score', 'profile'
"""Kinds of load metrics that a plausibility check can reject: the score of a host, and the profile,
which is the load of each of its servers."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UnbelievedHost:
    """A host whose metrics in one policy failed a plausibility check.

    If ``what`` is ``score``, the score of the host is not used: no server is moved to the host, and
    its servers are moved only in drains. If ``what`` is ``profile``, the loads of the host's
    servers are not used: the servers are not moved, and the score of the host is still used.
    ``is_failing`` is True if the check failed in this evaluation, and False if the check failed
    only in the previous evaluation.
    """

    host: str
    policy: str
    what: str
    reason: str
    is_failing: bool = True


FORECAST_USED, FORECAST_NOT_USED = 'used', 'not_used'
"""States of a policy's forecast. ``used``: plans consider the load in the hours to come.
``not_used``: plans consider only the present load."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForecastReport:
    """The result of a policy's load forecast. ``detail`` is the reason why the forecast is not
    used; '' if it is used.

    ``error`` is the mean error of the forecast scores of hosts during the last day.
    ``present_error`` is the mean error that a forecast of unchanged scores would have had during
    the last day. Both errors are None if unknown. ``imbalance`` is the highest imbalance that is
    forecast for the hours to come, without any moves; None if the forecast is not used.
    """

    state: str
    detail: str = ''
    error: float | None = None
    present_error: float | None = None
    imbalance: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReport:
    """The result of a policy in an aggregate. ``state`` is ``ok`` or ``no_data``. If ``state`` is
    ``no_data``, ``detail`` is the reason, and the imbalances are None.

    ``coverage`` is the fraction of available hosts that have a sample. ``sample_age`` is the age of
    the oldest sample in seconds, at least 0; None if there are no samples, or if the age is not
    known. ``noise`` is the imbalance that chance alone causes on average between hosts with equal
    expected loads; None if the variances of the loads are unknown.
    """

    name: str
    state: str
    weight: float
    threshold: float
    detail: str = ''
    imbalance_before: float | None = None
    imbalance_after: float | None = None
    coverage: float = 0.0
    sample_age: float | None = None
    forecast: ForecastReport | None = None
    noise: float | None = None

    @property
    def is_below_noise(self) -> bool:
        """True if the threshold is lower than ``noise``; else False. With such a threshold, the
        imbalance exceeds the threshold by chance, even among hosts with equal expected loads."""
        return self.noise is not None and self.noise > self.threshold

    @property
    def is_above_threshold(self) -> bool:
        """True if the imbalance exceeds the threshold, now or in one of the forecast hours; else
        False."""
        ahead = self.forecast and self.forecast.imbalance
        return max(self.imbalance_before or 0.0, ahead or 0.0) > self.threshold


@dataclasses.dataclass(frozen=True, slots=True)
class HostScore:
    """The score of a host in a policy. ``value`` is the score before any move, and ``after`` is the
    expected score after all moves."""

    host: str
    policy: str
    value: float
    after: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BufferRoom:
    """The state of a buffer before any move. A buffer is room that is kept free for further servers
    of a flavor. ``wanted`` is the number of servers that should fit, and ``found`` the number of
    servers that fit."""

    name: str
    flavor: str
    wanted: int
    found: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LossReport:
    """The consequences of losses of hosts, or of failure domains, of an aggregate. The loss of each
    host or domain is examined separately, and the losses are counted by their consequences.
    ``level`` is the level of the failure domains; '' if single hosts are lost.

    The first check examines whether all servers can restart elsewhere. Each loss is counted in one
    of four fields:

    fits : all servers can restart
    does_not_fit : some servers cannot restart
    not_found : it is not proven whether all servers can restart
    not_judged : the loss was not examined for lack of time

    For losses in ``fits``, a second check places the servers one after the other, as Nova does. A
    loss without the second check is in neither of these numbers:

    in_order : number of losses after which every server finds a host
    not_in_order : number of losses after which some server finds no host

    ``worst`` is the name of the loss with the worst result of the first check. ``why`` has the
    number of servers that cannot restart after this loss, and the reason for one of them. Both are
    '' if all servers can restart after every examined loss. ``judged_at`` is the time of the result
    in Unix seconds.
    """

    level: str
    fits: int = 0
    does_not_fit: int = 0
    not_found: int = 0
    not_judged: int = 0
    in_order: int = 0
    not_in_order: int = 0
    worst: str = ''
    why: str = ''
    judged_at: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlotReport:
    """The number of further servers of a flavor that fit into an aggregate. ``now`` is the number
    at present. ``after_loss`` is the number that can still fit after the loss of any one host, once
    the servers of the lost host have restarted on other hosts. ``after_loss`` is None if the
    servers of some host could not all restart, or if this is unknown."""

    flavor: str
    now: int
    after_loss: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AggregateReport:
    """The result of an evaluation for one aggregate, or for the pool of hosts that are in no
    aggregate.

    broken_groups : number of server groups whose hard policy was violated before the evaluation
    intended : number of warnings at the beginning of ``warnings`` that require no action, because
        an operator or an option has requested what they describe
    notes : further texts about the plan; none of them requires an action
    unbelieved : hosts with metrics that failed a plausibility check
    immovable : instances that Nova cannot migrate live
    without_moves : estimate of the contention (numbers of hot hosts, and of servers on full hosts)
        that there would be now if Kronos had made no moves to balance load in the last weeks; None
        if unknown
    purpose : purpose of the plan: ``balance``, or ``repair`` for a plan that only repairs violated
        rules
    domains : (level, number of failure domains that contain hosts of the aggregate), the largest
        domains first
    losses : consequences of the loss of hosts; empty if they were not examined
    slots : numbers of further servers that fit, for each flavor of the option ``slot_flavors``
    """

    name: str
    outcome: str
    mode: str
    planner: str
    policies: tuple[PolicyReport, ...] = ()
    combined_before: float | None = None
    combined_after: float | None = None
    hosts_emptied: tuple[str, ...] = ()
    moves: tuple[PlannedMove, ...] = ()
    not_moved: tuple[Skip, ...] = ()
    warnings: tuple[str, ...] = ()
    intended: int = 0
    notes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    host_scores: tuple[HostScore, ...] = ()
    broken_groups: int = 0
    unbelieved: tuple[UnbelievedHost, ...] = ()
    immovable: tuple[Immovable, ...] = ()
    without_moves: Contention | None = None
    buffers: tuple[BufferRoom, ...] = ()
    purpose: str = 'balance'
    domains: tuple[tuple[str, int], ...] = ()
    losses: tuple[LossReport, ...] = ()
    slots: tuple[SlotReport, ...] = ()

    def to_json(self) -> str:
        """Return the report as JSON for the record of the last evaluation. In place of the scores
        of hosts, the JSON has two counts: ``hosts``, the number of hosts with scores, and
        ``hot_hosts``, the number of hot hosts."""
        kept = dataclasses.asdict(dataclasses.replace(self, host_scores=(), without_moves=None))
        return json.dumps(kept | hosts_of(self.host_scores), sort_keys=True)

    def to_summary_json(self) -> str:
        """Return the report as JSON for the record of its plan. The JSON has no scores of hosts.
        The instances that stayed on their hosts are not named; the JSON only has their number for
        each reason."""
        short = dataclasses.asdict(dataclasses.replace(
            self, host_scores=(), not_moved=(), immovable=(), without_moves=None))
        counted = [{'reason': skip.reason, 'count': skip.count}
                   for skip in self.not_moved]
        return json.dumps({**short, 'not_moved': counted}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> 'AggregateReport':
        """Read a report that :meth:`to_json` wrote, in this or another release. Unknown keys are
        ignored, and missing keys get their defaults."""
        raw = json.loads(text)
        parts = {name: tuple(_built(part, row) for row in raw.get(name, ()))
                 for name, part in _PARTS.items()}
        return _built(cls, raw | parts)


def counts_in(text: str) -> dict[str, int]:
    """Return five counts from a report that :meth:`AggregateReport.to_json` wrote. The keys are
    ``hosts``, ``hot_hosts``, ``broken_groups``, ``unbelieved`` (hosts with rejected metrics) and
    ``immovable`` (instances). A count is 0 if another release wrote the report without this count.
    """
    raw = json.loads(text)
    counts = {name: raw.get(name, 0) for name in ('hosts', 'hot_hosts', 'broken_groups')}
    return counts | {'unbelieved': len({each['host'] for each in raw.get('unbelieved', ())}),
                     'immovable': len(raw.get('immovable', ()))}


def servers_of(moves: Iterable[PlannedMove]) -> set[str]:
    """Return the uuids of the servers that are moved by ``moves`` or by the best alternatives to
    these moves."""
    return {each.instance_uuid for move in moves for each in (move, move.next_best) if each}


def hosts_of(scores: Iterable[HostScore]) -> dict[str, int]:
    """Return a dict with two counts: ``hosts`` is the number of hosts with scores, and
    ``hot_hosts`` is the number of hosts that are hot in at least one policy."""
    return {'hosts': len({score.host for score in scores}),
            'hot_hosts': len({score.host for score in scores if score.value > HOT_SCORE})}


_OPTIONAL_PARTS = {'next_best': NextBest, 'forecast': ForecastReport}
_PARTS = {'policies': PolicyReport, 'moves': PlannedMove, 'not_moved': Skip, 'refusals': Refusal,
          'unplaced': Unplaced, 'unbelieved': UnbelievedHost, 'immovable': Immovable,
          'buffers': BufferRoom, 'losses': LossReport, 'slots': SlotReport}


def _built(cls: type, raw: Mapping[str, Any]) -> Any:
    known = {field.name for field in dataclasses.fields(cls)}
    return cls(**{name: _value(name, value) for name, value in raw.items() if name in known})


def _value(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _built(_OPTIONAL_PARTS[name], value)
    return tuple(value) if isinstance(value, list) else value


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """The report of one evaluation of all aggregates in scope. ``planning_seconds`` does not
    include the time for reading the cloud."""

    planning_seconds: float
    aggregates: tuple[AggregateReport, ...] = field(default_factory=tuple)


# States of a plan in the journal.
OBSERVED = 'observed'
PROPOSED = 'proposed'
APPROVED = 'approved'
EXECUTING = 'executing'
DONE = 'done'
EXPIRED = 'expired'
REJECTED = 'rejected'
VOID = 'void'
"""State of a plan that is given up, for a recorded reason. None of its moves can be made any more,
or its aggregate has the level off."""
SUPERSEDED = 'superseded'
"""State of a plan that was withdrawn before it started. Another plan is better, no plan is needed
any more, or a drain takes precedence."""
STOPPED = 'stopped'
"""State of a plan that was not started because an operator stopped Kronos."""

APPROVABLE = (PROPOSED, OBSERVED)
"""States of plans that can be approved."""
OPEN = (PROPOSED, APPROVED, EXECUTING)
"""States of a plan that prevent a new plan for its aggregate."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """The record of a plan in the journal.

    ``report`` is the report of the aggregate as JSON, by :meth:`AggregateReport.to_summary_json`;
    None if the report is no longer kept. ``detail`` is the reason why an approved plan is not
    started yet. At level ``observe``, several evaluations may make the same plan. ``times_seen`` is
    the number of these evaluations, and ``last_seen_at`` is the time of the last one.
    """

    uuid: str
    aggregate: str
    mode: str
    planner: str
    state: str
    created_at: datetime.datetime
    expires_at: datetime.datetime
    report: str | None
    move_count: int = 0
    last_seen_at: datetime.datetime | None = None
    times_seen: int = 1
    finished_at: datetime.datetime | None = None
    approved_at: datetime.datetime | None = None
    approved_by: str | None = None
    purpose: str = 'balance'
    ended_because: str | None = None
    combined_before: float | None = None
    combined_after: float | None = None
    detail: str | None = None
    combined_now: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunningPlan:
    """The facts that decide whether moves of a plan may be started. ``purpose`` is ``balance``,
    ``repair``, ``drain`` or ``make_room``."""

    uuid: str
    aggregate: str
    purpose: str
    is_approved: bool
