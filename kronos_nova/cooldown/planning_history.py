"""The history that a cycle reads before it plans: earlier moves, cooldowns and results of earlier
cycles."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import field

from kronos_nova.load import LoadStats
from kronos_nova.objects.plan import AggregateReport

INDEFINITE = -1
"""Value (no unit) that stands in place of the seconds left of a quarantine that has no end. A
server in quarantine is not moved. Fixed: the seconds left of other quarantines are never
negative."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PastMove:
    """A completed live migration.

    ended_at : end of the migration, in Unix seconds
    has_emptied : whether Kronos requested the migration to empty the source. An instance may return
        to a source that was emptied, once the source takes servers again
    is_own : whether Kronos requested the migration
    """

    instance_uuid: str
    source: str
    destination: str
    ended_at: float
    has_emptied: bool = False
    is_own: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PastTry:
    """A move of Kronos that completed or failed.

    lasted : seconds from the request to the end; None if not known
    seconds : ``lasted`` of a completed move; None for a failed move
    processed_mb : MiB of memory that the migration copied, plus MiB that were left to copy at the
        end. A page that was copied twice counts twice. None if not known
    sharing : number of Kronos' moves on a network link, including this move, averaged over the
        duration of this move. There are two such numbers: of the moves that left the same source,
        and of the moves that went to the same destination. The larger number is stored
    expected : duration in seconds that the plan predicted; None without a prediction
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
    """The cooldowns, quarantines and recent moves that a cycle reads before it plans.

    under_way : {aggregate: text about its plan} for each plan that is approved or in progress
    proposals : {aggregate: AggregateReport} for each plan that waits for approval
    aggregates, instances : {name of an aggregate, or uuid of an instance: seconds left of its
        cooldown}; the cooldown is over at 0 or less
    spread : {aggregate: seconds until moves that spread its load may be planned again}; at 0 or
        less, these moves may be planned now
    refused : {uuid of an instance: seconds for which the instance is not moved, because Nova
        refused every host that was tested}
    refused_hosts : {uuid of an instance: {destination: error}} of moves that Nova refused to begin
    quarantines : {uuid of an instance: seconds left of its quarantine, or :data:`INDEFINITE`}
    imbalanced : {aggregate: number of cycles in a row, up to the last cycle, in which the aggregate
        was imbalanced}
    moves : completed live migrations within the longer of ``no_return_window`` and ``server_grace``
    tries : moves of Kronos that ended within ``experience_window``, from which durations are learnt
    projects_moved : {project: number of moves of its instances in the last 24 hours}, without moves
        that emptied hosts
    instances_moved : {uuid of an instance: number of its moves in the last week}, without moves
        that emptied hosts
    instances_moved_today : {uuid of an instance: number of its moves in the last 24 hours}, without
        moves that emptied hosts
    load_stats : {aggregate: {policy: LoadStats of the aggregate's instances}}
    endless : uuids of instances that write memory too fast for a live migration to end
    doubted : {aggregate: pairs (policy, host) whose score failed a check of
        :mod:`kronos_nova.load.belief` in the last evaluation}
    caused : {uuid of an instance: number of moves of other instances in the last 24 hours that were
        planned because of the load of this instance}
    homes : {uuid of an instance: (its present host, its host if Kronos had made no moves that
        relieve, spread or pack hosts)}, for instances whose two hosts differ. None in place of the
        mapping if the earlier moves are not known
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
    load_stats: Mapping[str, Mapping[str, LoadStats]] = field(default_factory=dict)
    doubted: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    homes: Mapping[str, tuple[str, str]] | None = None

    def clamped(self, aggregate: float, instance: float, quarantine: float) -> 'PlanningHistory':
        """Return a copy whose cooldowns and quarantines are not longer than the present options
        permit. A quarantine that has no end is not shortened.

        :param aggregate: longest cooldown of an aggregate, in seconds
        :param instance: longest cooldown of an instance, in seconds
        :param quarantine: longest quarantine, in seconds; :data:`INDEFINITE` for no limit
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
        """Return the reason why an instance may not be moved now; None if the history permits a
        move.

        The reason is ``quarantine``, ``cooldown``, ``refused`` or ``endless``, as explained in
        :mod:`kronos_client.contract.reasons`.
        """
        left = self.quarantines.get(instance_uuid, 0)
        if left > 0 or left == INDEFINITE:
            return 'quarantine'
        if self.instances.get(instance_uuid, 0) > 0:
            return 'cooldown'
        if self.refused.get(instance_uuid, 0) > 0:
            return 'refused'
        return 'endless' if instance_uuid in self.endless else None


def growing(seconds: float, factor: float, longest: float, times: int) -> float:
    """Return the seconds of the next cooldown of an instance that was part of ``times`` plans
    before.

    The first cooldown (``times`` is 0) lasts ``seconds``. Each earlier plan multiplies the length
    by ``factor``, up to ``longest``.

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
    """Return the pairs (instance uuid, source) of the moves that ended at ``since`` or later. Moves
    that emptied a host are left out.

    An instance should not return to the source of its move, because the return would undo the move.
    Instances of an emptied host may return.

    :param since: a time, in Unix seconds
    """
    return frozenset((move.instance_uuid, move.source) for move in moves
                     if move.ended_at >= since and not move.has_emptied)
