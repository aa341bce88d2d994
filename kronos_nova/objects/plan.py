"""Plans and the report of a cycle: moves with their reasons, and instances that stayed."""

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
"""Phases that are only possible where the load is known."""

# Outcomes of an aggregate in a cycle.
PLANNED = 'planned'
BALANCED = 'balanced'
COOLING = 'cooling'
NO_DATA = 'no_data'
NO_MOVE = 'no_move'
DRAINING = 'draining'
"""Hosts of the aggregate are being emptied. This outcome is only in the record of the last
evaluation."""
FAILED = 'failed'
BLIND = (NO_DATA, FAILED)
"""Outcomes of an evaluation that leave open whether instances should move."""
OUTCOMES = (PLANNED, BALANCED, COOLING, NO_DATA, NO_MOVE, FAILED)

HOT_SCORE = 0.9
"""Load, as a fraction of a host, above which the host counts as hot. Raised, fewer hosts count as
hot; lowered, hosts with unused capacity count as hot. Fixed by the definition of a hot host in
reports and in ``bench days``."""

FULL = 1.0
"""Load, as a fraction of a host, from which the host counts as full. Its servers use all that the
host has, and may need more. Raised, full hosts are not noticed where the metric is never above 1;
lowered, hosts that are merely hot count as full. Fixed by the definition of a fraction."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """The number of an aggregate's hosts that are hot in some policy, and of servers on hosts that
    are full in some policy."""

    hot_hosts: int
    contended_servers: int

    @classmethod
    def of_hosts(cls, hosts: Iterable[tuple[int, float]]) -> 'Contention':
        """Count hot hosts and servers on full hosts.

        :param hosts: (number of servers, highest score in any policy) of each host
        """
        known = tuple(hosts)
        return cls(hot_hosts=sum(score > HOT_SCORE for _servers, score in known),
                   contended_servers=sum(servers for servers, score in known if score >= FULL))


REPLAYED = datetime.timedelta(days=28)
"""Age up to which the moves of Kronos are undone in the estimate of the load without moves. Raised,
the estimate has servers on hosts that they would have left for other reasons; lowered, the estimate
forgets moves with a lasting gain. Chosen because four weeks have every weekday equally often, and
the journal keeps single moves for longer by default."""


# Reasons why an instance stayed.
SKIP_REASONS = ('cooldown', 'quarantine', 'locked', 'excluded', 'busy', 'not_active', 'no_profile',
                'group', 'capacity', 'zone', 'isolation', 'reserve', 'failover', 'returning',
                'rule', 'refused', 'endless', 'cap', 'threshold', 'no_gain', 'budget', 'late')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NextBest:
    """The best alternative to a planned move. ``combined_after`` is the combined imbalance after
    the alternative, made in place of the planned move."""

    instance_uuid: str
    destination: str
    memory_mb: int
    combined_after: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """One live migration of a plan.

    ``order`` is the position in the plan, from 1; in this order every hard constraint holds after
    every move. ``group`` is a number that is equal for moves that help only together; None for a
    move that helps alone. ``depends_on`` are the numbers (``order``) of the moves that must have
    succeeded before this move may start. ``combined_after`` is the combined imbalance after this
    move; None for a move that was planned without load. ``project_id`` is the project of the
    instance. ``caused_by`` is the uuid of another instance whose load caused the move; '' for none.
    ``benefits`` are the projects with servers on the host that the move relieves, the projects with
    most load first; empty where the move relieves no host. ``next_best`` is None where no other
    move was permitted.

    ``begins_after`` is the expected time from the start of the plan to the start of the move,
    ``expected_seconds`` the expected duration of the move, and ``expected_downtime`` the time for
    which the guest is expected to be stopped. All three are in seconds, and None where they were
    not computed.
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
    project_id: str = ''
    caused_by: str = ''
    benefits: tuple[str, ...] = ()
    next_best: NextBest | None = None
    begins_after: float | None = None
    expected_seconds: float | None = None
    expected_downtime: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Instances that stayed for the same ``reason`` (one of :data:`SKIP_REASONS`). ``count`` is the
    number of these instances; short reports have no other figures of them. ``details`` are (uuid,
    additional text) of some of these instances."""

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
    """An instance whose move to some hosts Nova refused, and the reason of the last refusal.
    ``is_final`` is True if no further hosts were tried."""

    instance_uuid: str
    hosts: tuple[str, ...]
    reason: str
    is_final: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Immovable:
    """An instance that Nova does not migrate live in any status. ``can`` is ``cold`` if Nova
    migrates it cold, and ``no`` if Nova does not move it at all. ``why`` is Nova's reason."""

    instance_uuid: str
    can: str
    why: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """An instance that has to leave its host and finds no place. ``is_proven`` is True if it is
    proven that no plan could move all instances that have to leave; otherwise no such plan was
    found."""

    instance_uuid: str
    why: str
    is_proven: bool


UNBELIEVED = 'score', 'profile'
"""The parts of a host's metrics that may not be believed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UnbelievedHost:
    """A host whose metrics a policy does not believe.

    Where ``what`` is ``score``, the host is no destination, and servers leave the host only in
    drains. Where ``what`` is ``profile``, the score of the host is used, and its servers are not
    moved. ``is_failing`` is True if a check failed in this evaluation, and False if a check failed
    in the evaluation before.
    """

    host: str
    policy: str
    what: str
    reason: str
    is_failing: bool = True


FORECAST_USED, FORECAST_NOT_USED = 'used', 'not_used'
"""States of a forecast: plans consider the hours to come, or only the present."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForecastReport:
    """The result of a policy's forecast. ``detail`` is the reason why the forecast is not used.

    ``error`` is the mean error of the forecast of hosts' scores during the last day.
    ``present_error`` is the mean error of a forecast that the scores do not change. Both are None
    where they are not known. ``imbalance`` is the highest imbalance in the hours to come if no move
    is made; None where the forecast is not used.
    """

    state: str
    detail: str = ''
    error: float | None = None
    present_error: float | None = None
    imbalance: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReport:
    """The result of a policy in an aggregate. ``state`` is ``ok`` or ``no_data``; with ``no_data``,
    ``detail`` says why and the imbalances are None.

    ``coverage`` is the fraction of the available hosts with a sample, ``sample_age`` the age of the
    oldest of these samples in seconds; None without samples. ``noise`` is the expected imbalance of
    hosts with equal likely loads; None where variances are not known.
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
        """Return whether the threshold is so low that noise exceeds it even where hosts have equal
        likely loads."""
        return self.noise is not None and self.noise > self.threshold

    @property
    def is_above_threshold(self) -> bool:
        """True where the policy is above its threshold now, or in one of the forecast hours."""
        ahead = self.forecast and self.forecast.imbalance
        return max(self.imbalance_before or 0.0, ahead or 0.0) > self.threshold


@dataclasses.dataclass(frozen=True, slots=True)
class HostScore:
    """The score of a host in a policy before any move, and the expected score after all moves."""

    host: str
    policy: str
    value: float
    after: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BufferRoom:
    """A buffer before any move: the number of servers of its flavor that should fit, and the number
    that fit."""

    name: str
    flavor: str
    wanted: int
    found: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LossReport:
    """The verdicts on the loss of each host of an aggregate, or of each failure domain, as counts.

    ``level`` is the level of the failure domains, '' for single hosts. ``fits`` counts the losses
    after which all servers can restart elsewhere, ``does_not_fit`` those after which some servers
    cannot, ``not_found`` those for which neither was found, and ``not_judged`` those that were not
    examined for lack of time. Of the losses in ``fits``, ``in_order`` counts those after which the
    servers also find hosts in the order in which Nova restarts them, ``not_in_order`` those after
    which some do not; the rest was not examined for this. ``worst`` names the loss after which the
    most servers find no host, and ``why`` says which servers; '' for none. ``judged_at`` is in Unix
    seconds.
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
    """The number of further servers of a flavor that fit. ``now`` is the number in the present
    cloud. ``after_loss`` is the least number after the loss of one host, once the servers of the
    host have restarted elsewhere; None where some of them do not restart, or where this is not
    known."""

    flavor: str
    now: int
    after_loss: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AggregateReport:
    """The result of a cycle for one aggregate, or for the pool of hosts in none.

    broken_groups : number of hard server groups that were broken before the cycle
    notes : additional texts about the plan; in contrast to ``warnings`` they require no action
    unbelieved : hosts whose metrics are not believed
    immovable : instances that Nova does not migrate live
    without_moves : estimate of the contention without the moves for load of the last weeks; None
        where not known
    purpose : purpose of the plan: ``balance``, or ``repair`` for a plan that only repairs violated
        rules
    domains : (level, number of failure domains) of its hosts, the largest domains first
    losses : verdicts on the loss of its hosts; empty where they were not judged
    slots : slots of the flavors that ``slot_flavors`` names
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
        """Return the report as JSON for the record of the last evaluation, with the numbers of
        ``hosts`` and ``hot_hosts`` instead of scores."""
        kept = dataclasses.asdict(dataclasses.replace(self, host_scores=(), without_moves=None))
        return json.dumps(kept | hosts_of(self.host_scores), sort_keys=True)

    def to_summary_json(self) -> str:
        """Return the report as JSON for the record of its plan, with the number of instances that
        stayed by reason."""
        short = dataclasses.asdict(dataclasses.replace(
            self, host_scores=(), not_moved=(), immovable=(), without_moves=None))
        counted = [{'reason': skip.reason, 'count': skip.count}
                   for skip in self.not_moved]
        return json.dumps({**short, 'not_moved': counted}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> 'AggregateReport':
        """Read a report that :meth:`to_json` of this or another release wrote. Unknown keys are
        ignored, and missing keys get their defaults."""
        raw = json.loads(text)
        parts = {name: tuple(_built(part, row) for row in raw.get(name, ()))
                 for name, part in _PARTS.items()}
        return _built(cls, raw | parts)


def counts_in(text: str) -> dict[str, int]:
    """Return five counts of a text that :meth:`AggregateReport.to_json` wrote, by their keys:
    ``hosts``, ``hot_hosts``, ``broken_groups``, ``unbelieved`` hosts and ``immovable`` instances. A
    count that another release did not write is 0."""
    raw = json.loads(text)
    counts = {name: raw.get(name, 0) for name in ('hosts', 'hot_hosts', 'broken_groups')}
    return counts | {'unbelieved': len({each['host'] for each in raw.get('unbelieved', ())}),
                     'immovable': len(raw.get('immovable', ()))}


def servers_of(moves: Iterable[PlannedMove]) -> set[str]:
    """Return the uuids of all servers that moves name: the servers that move, and their
    alternatives."""
    return {each.instance_uuid for move in moves for each in (move, move.next_best) if each}


def hosts_of(scores: Iterable[HostScore]) -> dict[str, int]:
    """Return two numbers by key: the number of hosts that have scores (``hosts``), and the number
    of hosts that are hot in some policy (``hot_hosts``)."""
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
    """The report of one evaluation of every aggregate in scope. ``planning_seconds`` does not
    include reading the cloud."""

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
"""State of a plan of which no move can be made any more, or whose aggregate is off. The reason is
recorded."""
SUPERSEDED = 'superseded'
"""State of a plan that was withdrawn because another plan is better, none is needed any more, or a
drain goes first."""
STOPPED = 'stopped'
"""State of a plan that was not started because an operator stopped Kronos."""

APPROVABLE = (PROPOSED, OBSERVED)
"""States of plans that can be approved."""
OPEN = (PROPOSED, APPROVED, EXECUTING)
"""States of a plan during which its aggregate is not planned again."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A plan in the journal.

    ``report`` is the AggregateReport as JSON, by :meth:`AggregateReport.to_summary_json`; None
    where it is no longer kept. ``detail`` is the reason why an approved plan is not started yet.
    Evaluations at level ``observe`` make the same plan again: ``times_seen`` counts how often the
    plan was made, and ``last_seen_at`` is the last time.
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
    """The facts that decide whether the moves of a plan may be started. ``purpose`` is ``balance``,
    ``repair`` or ``drain``."""

    uuid: str
    aggregate: str
    purpose: str
    is_approved: bool
