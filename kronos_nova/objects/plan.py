"""Decisions and their reasons: plans, moves, instances that stayed, and the report of a cycle."""

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
"""Phases that make no sense without knowing the load."""

# Outcomes of an aggregate in a cycle.
PLANNED = 'planned'
BALANCED = 'balanced'
COOLING = 'cooling'
NO_DATA = 'no_data'
NO_MOVE = 'no_move'
DRAINING = 'draining'
"""Only in the record of the last evaluation: hosts of the aggregate are being emptied."""
FAILED = 'failed'
BLIND = (NO_DATA, FAILED)
"""Outcomes after which it is not known whether something should move."""
OUTCOMES = (PLANNED, BALANCED, COOLING, NO_DATA, NO_MOVE, FAILED)

HOT_SCORE = 0.9
"""Load of a host, as a fraction, above which the host is hot. Raised, fewer hosts count as hot;
lowered, hosts with room do. Fixed by the definition of a hot host in reports and in ``bench
days``."""

FULL = 1.0
"""Load of a host, as a fraction, from which its servers use all that it has or lack more. Raised,
contention on hosts whose metric ends at 1 is not seen; lowered, hosts that are merely hot count
too. Fixed by the definition of a fraction."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Numbers of hosts of an aggregate that are hot in a policy, and of servers on hosts that are
    full in one."""

    hot_hosts: int
    contended_servers: int

    @classmethod
    def of_hosts(cls, hosts: Iterable[tuple[int, float]]) -> 'Contention':
        """Count both.

        :param hosts: the servers of each host, and its highest score of all policies
        """
        known = tuple(hosts)
        return cls(hot_hosts=sum(score > HOT_SCORE for _servers, score in known),
                   contended_servers=sum(servers for servers, score in known if score >= FULL))


REPLAYED = datetime.timedelta(days=28)
"""Time whose moves are undone in a comparison with no moves. Raised, servers are compared with
places that they would have left for other reasons; lowered, a move whose gain lasts is forgotten.
Chosen: four weeks have each day of a week as often, and moves are kept singly for longer by
default."""


# Why an instance stayed.
SKIP_REASONS = ('cooldown', 'quarantine', 'locked', 'excluded', 'busy', 'not_active', 'no_profile',
                'group', 'capacity', 'zone', 'isolation', 'reserve', 'failover', 'returning',
                'rule', 'refused', 'endless', 'cap', 'threshold', 'no_gain', 'budget', 'late')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NextBest:
    """The move that would have been made in the place of another, had that one not been there:
    after it alone the combined imbalance is ``combined_after``."""

    instance_uuid: str
    destination: str
    memory_mb: int
    combined_after: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """One live migration of a plan.

    ``order`` counts from 1: taken one after the other in this order, every hard constraint holds
    after every move. ``group`` is a number that it shares with the moves without which it does not
    help, None where it helps alone. ``depends_on`` are the orders of the moves that must have ended
    well before this one may start. ``combined_after`` is the combined imbalance once it is done,
    None for a move that was planned without looking at load.
    ``project_id`` is whose instance is moved, ``caused_by`` the uuid of another instance whose load
    the move is put down to, or ''. ``benefits`` are the projects of what stays on the host that the
    move relieves, those with most load first; none where it does not relieve one.
    ``next_best`` is None where nothing else was permitted.

    ``begins_after`` is when it is its turn, in seconds from the start of the plan,
    ``expected_seconds`` what it then takes, and ``expected_downtime`` for how many of them the
    guest is stopped; None where it was not computed.
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
    """Instances that were considered and stayed, all for the same ``reason`` (one of
    :data:`SKIP_REASONS`). ``count`` is how many; a report that is kept short has no more.
    ``details`` are (uuid, line for a person) of those of which more is to be said."""

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
    """An instance whose move to some hosts Nova refused, and the reason for the last host.
    ``is_final`` tells that no other host was tried then."""

    instance_uuid: str
    hosts: tuple[str, ...]
    reason: str
    is_final: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Immovable:
    """An instance that Nova does not migrate live whatever its status: ``can`` is ``cold`` or
    ``no``, ``why`` is Nova's reason."""

    instance_uuid: str
    can: str
    why: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """An instance that has to leave its host and for which there is no place. ``is_proven``: there
    is no plan that moves it and all others; otherwise none was found."""

    instance_uuid: str
    why: str
    is_proven: bool


UNBELIEVED = 'score', 'profile'
"""The parts of a host's metrics that may not be believed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UnbelievedHost:
    """A host whose metrics a policy does not believe.

    ``what`` is ``score`` where the host is neither a destination nor a source, but for drains;
    ``profile`` where its score stays in force and only its servers are not moved.
    ``is_failing`` tells that this evaluation found it so; else one before did.
    """

    host: str
    policy: str
    what: str
    reason: str
    is_failing: bool = True


FORECAST_USED, FORECAST_NOT_USED = 'used', 'not_used'
"""States of a forecast: the hours to come are planned for, or the present alone."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForecastReport:
    """The result of a policy's forecast. ``detail`` says why it is not used.

    ``error`` is by how much the scores of hosts were off during the last day, on average,
    ``present_error`` by how much they were off the present; both None where that is not known.
    ``imbalance`` is the highest of the hours to come before any move, None where it is not used.
    """

    state: str
    detail: str = ''
    error: float | None = None
    present_error: float | None = None
    imbalance: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReport:
    """A policy in an aggregate. ``state`` is ``ok`` or ``no_data``; then ``detail`` says why and
    the figures are None.

    ``coverage`` is the fraction of the available hosts with a sample, ``sample_age`` how many
    seconds old the oldest of these was, None where there was none. ``noise`` is the imbalance that
    is to be expected of these hosts where what lasts is equal on all of them, None where it is not
    known how much loads vary.
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
        """Return whether the threshold cannot be kept to, however even the hosts are."""
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
    """A buffer before any move: how many servers of its flavor were to fit, and how many did."""

    name: str
    flavor: str
    wanted: int
    found: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LossReport:
    """Hosts of an aggregate, or the failure domains that they are in, by what became of their
    servers if each were lost alone.

    ``level`` is that of the failure domains, or '' for single hosts. All servers restart
    elsewhere (``fits``), do not (``does_not_fit``), or it is not known (``not_found``); of
    ``not_judged`` nothing was asked, for lack of time. Of those that fit, ``in_order`` also do
    in Nova's own order and ``not_in_order`` do not; of the rest that was not asked. ``worst`` names
    the loss after which most servers restart nowhere, ``why`` says which; '' where there is none.
    ``judged_at`` is in Unix seconds.
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
    """Numbers of further servers of a flavor that fit: ``now``, and at least ``after_loss`` of any
    one host once its servers have restarted, None where these do not all restart or that is not
    known."""

    flavor: str
    now: int
    after_loss: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AggregateReport:
    """The result of a cycle for one aggregate (or the pool of hosts in none).
    ``broken_groups`` counts the server groups with a hard policy that were broken before it.
    ``notes`` say more about the plan; in contrast to ``warnings`` they ask nothing of an operator.
    ``unbelieved`` are the hosts whose metrics are not believed, ``immovable`` the instances that
    Nova does not migrate live. ``without_moves`` is the contention that there would be without the
    moves of the last weeks, None where that is not known. ``purpose`` is that of its plan:
    ``balance``, or ``repair`` of violated rules alone. ``domains`` are (level, number of failure
    domains) of its hosts, the largest domains first. ``losses`` are the verdicts on the loss of its
    hosts, none where these were not judged; ``slots`` are those of the flavors that are watched.
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
        """Return the latest report as it is stored: every reason, but of the scores only the
        numbers of ``hosts`` and of ``hot_hosts``."""
        kept = dataclasses.asdict(dataclasses.replace(self, host_scores=(), without_moves=None))
        return json.dumps(kept | hosts_of(self.host_scores), sort_keys=True)

    def to_summary_json(self) -> str:
        """Return the report as it is stored with its plan. Of the instances that stayed, only the
        number by reason is stored."""
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
    """Return the counts of :meth:`AggregateReport.to_json`: ``hosts``, ``hot_hosts``,
    ``broken_groups``, ``unbelieved`` hosts and ``immovable`` instances. A count that another
    release did not write is 0."""
    raw = json.loads(text)
    counts = {name: raw.get(name, 0) for name in ('hosts', 'hot_hosts', 'broken_groups')}
    return counts | {'unbelieved': len({each['host'] for each in raw.get('unbelieved', ())}),
                     'immovable': len(raw.get('immovable', ()))}


def servers_of(moves: Iterable[PlannedMove]) -> set[str]:
    """Return the uuids of all servers that moves name: the servers that move, and their
    alternatives."""
    return {each.instance_uuid for move in moves for each in (move, move.next_best) if each}


def hosts_of(scores: Iterable[HostScore]) -> dict[str, int]:
    """Return how many ``hosts`` scores are of, and how many of these are hot in a policy."""
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
    """One evaluation of every aggregate in scope. ``planning_seconds`` leaves out the reading."""

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
"""Nothing of it can be done any more, or its aggregate is off; the reason is kept."""
SUPERSEDED = 'superseded'
"""The cloud has changed so that another plan is better, none is needed, or a drain goes first."""
STOPPED = 'stopped'
"""An operator stopped Kronos before it was started."""

APPROVABLE = (PROPOSED, OBSERVED)
"""States of plans that can be approved."""
OPEN = (PROPOSED, APPROVED, EXECUTING)
"""A plan in one of these keeps its aggregate from being planned again."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A plan as the journal has it.

    ``report`` is the AggregateReport as JSON, with what stayed counted by reason; None where it is
    no longer kept. ``detail`` is why an approved plan is not started yet. An observed plan was made
    ``times_seen`` times, at ``last_seen_at`` last.
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
