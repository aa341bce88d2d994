"""The results of earlier cycles that a cycle depends on."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import field

from kronos_nova.objects.plan import AggregateReport

INDEFINITE = -1
"""Seconds of a quarantine without an end. Fixed: no quarantine has negative seconds."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PastMove:
    """A completed migration; ``ended_at`` in Unix seconds. ``has_emptied``: Kronos emptied the
    source with it, so that the instance may return once the source takes servers again. ``is_own``:
    Kronos asked for it, whatever its end in the journal."""

    instance_uuid: str
    source: str
    destination: str
    ended_at: float
    has_emptied: bool = False
    is_own: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PastTry:
    """A move of Kronos that has ended, completed or failed.

    seconds : duration from the request to the end; None if the move failed or the time is not known
    lasted : the same duration, also of a failed move; None if not known
    processed_mb : MiB of memory that were copied, including repeated copies, and that were left to
        copy; None if not known
    sharing : mean number of moves of Kronos on the busier of the two links while it lasted
    expected : seconds that the plan predicted; None without a prediction
    """

    instance_uuid: str
    source: str
    destination: str
    memory_mb: int
    seconds: float | None
    failed: bool
    lasted: float | None = None
    processed_mb: float | None = None
    sharing: float = 1.0
    expected: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanningHistory:
    """The cooldowns in force, and the recent past.

    under_way : aggregate to the words for a plan that is approved or runs there
    proposals : aggregate to the AggregateReport of the plan that waits for approval there
    aggregates, instances : name or uuid to the seconds of cooldown left; 0 and less is over
    spread : aggregate to the seconds for which its load is not spread again; 0 and less is over
    refused : uuid to seconds left, of instances that Nova lets go nowhere
    refused_hosts : uuid to host to the error, of moves that failed because they were refused before
        they began
    quarantines : uuid to seconds left, or :data:`INDEFINITE`
    imbalanced : aggregate to how many cycles in a row before this one found it imbalanced
    moves : migrations that ended within the longest window one looks back
    tries : moves of Kronos that ended within the window that tells what a move costs
    projects_moved : project to the number of moves of its instances in the last day, without moves
        that emptied hosts
    instances_moved : instance uuid to the number of its moves in the last week, without moves that
        emptied hosts
    instances_moved_today : as ``instances_moved``, in the last day
    load_stats : aggregate to policy to the LoadStats of its instances
    endless : uuids of instances whose live migration would not end
    doubted : aggregate to (policy, host) of what failed in the evaluation before this one; see
        :mod:`kronos_nova.load.belief`
    caused : uuid of an instance to the number of moves of other instances in the last day that its
        load caused
    homes : instance uuid to its host and the one on which it would be without moves for load; None
        where that is not known
    """

    under_way: Mapping[str, str] = field(default_factory=dict)
    aggregates: Mapping[str, float] = field(default_factory=dict)
    instances: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    quarantines: Mapping[str, float] = field(default_factory=dict)
    refused: Mapping[str, float] = field(default_factory=dict)
    refused_hosts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    imbalanced: Mapping[str, int] = field(default_factory=dict)
    moves: tuple[PastMove, ...] = ()
    tries: tuple[PastTry, ...] = ()
    projects_moved: Mapping[str, int] = field(default_factory=dict)
    caused: Mapping[str, int] = field(default_factory=dict)
    proposals: Mapping[str, AggregateReport] = field(default_factory=dict)
    instances_moved: Mapping[str, int] = field(default_factory=dict)
    instances_moved_today: Mapping[str, int] = field(default_factory=dict)
    endless: frozenset[str] = frozenset()
    load_stats: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    doubted: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    homes: Mapping[str, tuple[str, str]] | None = None

    def clamped(self, aggregate: float, instance: float, quarantine: float) -> 'PlanningHistory':
        """Return a copy in which nothing lasts longer than the durations (seconds) that are
        configured now.

        :param quarantine: -1 lets any duration stand; an indefinite quarantine always stands
        """
        return dataclasses.replace(
            self,
            aggregates={k: min(v, aggregate) for k, v in self.aggregates.items()},
            instances={k: min(v, instance) for k, v in self.instances.items()},
            quarantines={k: v if INDEFINITE in (v, quarantine) else min(v, quarantine)
                         for k, v in self.quarantines.items()})

    def is_cooling(self, aggregate: str) -> bool:
        return self.aggregates.get(aggregate, 0) > 0

    def hold_on(self, instance_uuid: str) -> str | None:
        """Return ``quarantine``, ``cooldown``, ``refused`` or ``endless`` where one of them applies
        to the instance; None otherwise."""
        left = self.quarantines.get(instance_uuid, 0)
        if left > 0 or left == INDEFINITE:
            return 'quarantine'
        if self.instances.get(instance_uuid, 0) > 0:
            return 'cooldown'
        if self.refused.get(instance_uuid, 0) > 0:
            return 'refused'
        return 'endless' if instance_uuid in self.endless else None


def growing(seconds: float, factor: float, longest: float, times: int) -> float:
    """Return the cooldown of an instance that was part of ``times`` plans before: ``seconds`` for
    none, ``factor`` times longer for each, ``longest`` at most.

    >>> [growing(60, 2, 300, times) for times in range(4)]
    [60, 120, 240, 300]
    """
    if factor <= 1 or seconds <= 0:
        return seconds
    length = seconds
    for _time in range(times):
        length *= factor
        if length >= longest:
            return max(longest, seconds)
    return length


def left(moves: Iterable[PastMove], since: float) -> frozenset[tuple[str, str]]:
    """Return (instance uuid, host) of each move since a time (Unix seconds) that left a host.

    A return would undo the move (A to B to A), or close a longer circle. Instances that left
    because their host was emptied may return, and are not in the result.
    """
    return frozenset((move.instance_uuid, move.source) for move in moves
                     if move.ended_at >= since and not move.has_emptied)
