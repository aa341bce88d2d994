"""The expected start and duration of each move of a plan."""

import dataclasses
import functools
import math
import statistics
import sys
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cycle.metrics import NOTHING
from kronos_nova.cycle.metrics import MeasuredGuests
from kronos_nova.cycle.options import PaceOptions
from kronos_nova.cycle.solve import Chosen
from kronos_nova.cycle.solve import without
from kronos_nova.model import Problem
from kronos_nova.objects import plan
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.pacing.migration_history import Guest
from kronos_nova.pacing.migration_history import MigrationHistory
from kronos_nova.pacing.precopy import MigrationForecast
from kronos_nova.pacing.schedule import Job
from kronos_nova.pacing.schedule import Links
from kronos_nova.pacing.schedule import best
from kronos_nova.planners.base import Cut
from kronos_nova.planners.base import Limits
from kronos_nova.units import MIB_PER_GIB

BEFORE = {plan.EVACUATE: 3.0, plan.AFFINITY: 2.0, plan.RELIEVE: 1.0}
"""Priority (no unit) of moves by their phase. Moves with a higher priority start first. Moves of
one phase start in the order of the load of their source hosts, the most loaded first. Phases that
are not listed have priority 0. Fixed: the load of the source host, between 0 and 1, is added to the
priority, so the priorities of two phases differ by at least 1."""
MIGRATING = 'migrating'
ROUNDS = 5
"""Maximum number of plans that one evaluation makes for an aggregate, each with another number of
moves. The evaluation seeks a plan whose moves all start within ``stale_plan_age``. For a move that
starts later, the load by which the move was chosen is out of date. Raised, an evaluation takes
longer; lowered, moves that start after this time have to be removed from more plans. Chosen above
two plans, which are mostly enough. More plans are needed only where many moves wait for each other
on one host."""
SURE = 0.94
"""Factor (0 to 1) that gives the maximum number of moves of the second and each later plan that an
evaluation makes for an aggregate. From the previous plan, the evaluation estimates how many moves
can start within ``stale_plan_age``. The maximum is this estimate times the factor. The factor is
below 1 because the moves of the next plan may take longer. Raised, further plans more often have
moves that start after ``stale_plan_age``; lowered, less of this time is used. Measured with 100
hosts and budgets of 400 and 800 moves: with 0.98, up to three further plans are needed in place of
one or two."""
LARGER = 1.04
"""Factor that decides whether one more plan is made for an aggregate. One more plan is made only if
it may have at least this many times as many moves as the best plan so far. The best plan is chosen
from the plans whose moves all start within ``stale_plan_age``. Raised, more moves that could start
within this time are left out; lowered, plans are made for few additional moves. Not measured.
"""
SEARCH_SHARE = 0.35
"""Share (0 to 1) of the remaining planning time that the search for one plan may use, if the plan
may have so many moves that some would start after ``stale_plan_age``. Plans with fewer moves are
then made in the rest of the time. The planning time is limited by ``planning_time_limit``. Raised,
plans with fewer moves are worse; lowered, the first plan is worse. Measured with 100 hosts, a
budget of 400 moves and a busy processor: with 0.6, too little time is left for the third plan, and
its imbalance is 0.10 in place of 0.01."""
SAMPLED = 256
"""Approximate number of instances whose migration times are predicted, to estimate how many moves
can start within ``stale_plan_age``. Raised, the estimate takes longer; lowered, the estimate is
less exact. Not measured."""
MOST_SCHEDULED = 2000
"""Maximum number of moves of a plan for which start times are predicted. The moves of a longer plan
start in the order in which the search found the moves. Raised, the prediction takes longer, in
proportion to the square of the number; lowered, more plans have a worse order. Chosen above the
number of moves that fit into one night."""


class Pace:
    """A predictor of when each move of a plan starts, and how long it takes.

    :param tries: past moves of Kronos, from which durations are learnt
    :param snapshot: the cloud, with its moves in progress
    :param measured: measured memory writes and memory sizes of instances, and speeds of links
    """

    def __init__(self, options: PaceOptions, tries: Iterable[PastTry], snapshot: Snapshot,
                 measured: MeasuredGuests = NOTHING):
        self._options, self._measured = options, measured
        self._history = MigrationHistory(tries, options.assumed)
        stream = self._history.bandwidth
        self._links = Links(stream=stream, default=options.link or stream,
                            hosts=dict(measured.links))
        self._instances = {instance.uuid: instance for instance in snapshot.instances}
        self._under_way = [
            self._job(move, is_running=True) for move in snapshot.moves_under_way
            if move.instance_uuid in self._instances
            and self._instances[move.instance_uuid].task_state == MIGRATING]

    def endless(self) -> frozenset[str]:
        """Return the uuids of the instances whose live migration would not converge. The result is
        empty if ``timeout_action`` forces migrations to complete."""
        if self._options.forces:
            return frozenset()
        return self._history.endless(map(self._guest, self._instances))

    def seconds(self, uuid: str) -> float:
        """Return the expected seconds of a move of an instance, between two hosts without past
        moves."""
        return self._history.seconds(self._guest(uuid))

    def most_moves(self) -> int:
        """Return an estimate of the number of moves that can begin within ``stale_plan_age`` if as
        many moves as permitted always run."""
        return int(min(self._options.caps.total * self._one_by_one, sys.maxsize))

    def is_timely(self, moves: int) -> bool:
        """Return True if so many moves can begin within ``stale_plan_age`` even if they are made
        one after the other; False otherwise. The answer is an estimate."""
        return moves <= self._one_by_one

    @functools.cached_property
    def _one_by_one(self) -> float:
        """The number of moves that can begin within ``stale_plan_age`` if they are made one after
        the other. The number is estimated from the median duration."""
        uuids = sorted(self._instances)[::max(1, len(self._instances) // SAMPLED)]
        if not uuids:
            return math.inf
        return 1 + self._options.stale_plan_age / statistics.median(map(self.seconds, uuids))

    def slowness(self, source: str, destination: str) -> float:
        """Return the factor by which moves between two hosts take longer than moves between other
        hosts do."""
        return self._history.slowness(source, destination)

    def paced(self, moves: Sequence[PlannedMove],
              scores: Mapping[str, float]) -> tuple[PlannedMove, ...]:
        """Return the moves of a plan, each with its expected beginning and duration.

        :param scores: {host: its highest score}, for hosts whose load is known
        """
        if len(moves) > MOST_SCHEDULED:
            return tuple(map(self._unscheduled, moves))
        first = len(self._under_way)
        jobs = self._under_way + self._jobs(moves, scores, first)
        found = best(jobs, self._options.caps, self._links)
        return tuple(
            dataclasses.replace(
                move, begins_after=round(float(begin), 1),
                expected_seconds=round(float(end - begin), 1),
                expected_downtime=round(self._forecast(job).downtime, 3))
            for move, job, begin, end in zip(
                moves, jobs[first:], found.begins[first:], found.ends[first:], strict=True))

    def mark_endless(self, moves: Iterable[PlannedMove]) -> tuple[PlannedMove, ...]:
        """Return the moves of a plan. If a migration is not expected to converge, the ``reason`` of
        the move says so."""
        return tuple(map(self._doubted, moves))

    def late(self, moves: Sequence[PlannedMove]) -> frozenset[int]:
        """Return the numbers (``order``) of the moves that would begin after ``stale_plan_age``.
        Moves that empty hosts are never late, because they do not depend on a changing load."""
        return frozenset(move.order for move in moves if move.phase != plan.EVACUATE
                         and (move.begins_after or 0.0) > self._options.stale_plan_age)

    def room(self, moves: Sequence[PlannedMove]) -> float:
        """Return the factor by which the number of moves could grow until the last move begins
        ``stale_plan_age`` after the start of the plan. The factor is an estimate. If every move
        begins immediately, no estimate is possible, and 1 is returned. Moves that empty hosts are
        not considered. If the plan has no other moves, infinity is returned."""
        begins = [move.begins_after or 0.0 for move in moves if move.phase != plan.EVACUATE]
        if moves and not begins:
            return math.inf
        return self._options.stale_plan_age / max(begins, default=0.0) if any(begins) else 1.0

    def _unscheduled(self, move: PlannedMove) -> PlannedMove:
        found = self._forecast(self._job(move))
        return dataclasses.replace(move, expected_seconds=round(found.seconds, 1),
                                   expected_downtime=round(found.downtime, 3))

    def _jobs(self, moves: Sequence[PlannedMove], scores: Mapping[str, float],
              first: int) -> list[Job]:
        position = {move.order: first + n for n, move in enumerate(moves)}
        by_load = any(move.phase in (plan.RELIEVE, plan.SPREAD) for move in moves)
        return [self._job(
            move, after=tuple(position[order] for order in move.depends_on),
            due=self._options.due.get(move.source, np.inf),
            heat=BEFORE.get(move.phase, 0.0) + scores.get(move.source, 0.0) if by_load else 0.0)
            for move in moves]

    def _job(self, move: PlannedMove | MoveUnderWay, **more: Any) -> Job:
        return Job(instance=move.instance_uuid, source=move.source, destination=move.destination,
                   copy=self._history.copy(self._guest(move.instance_uuid), move.source,
                                              move.destination), **more)

    def _guest(self, uuid: str) -> Guest:
        instance = self._instances[uuid]
        disk = instance.resources.get('DISK_GB', 0) if self._options.copies_local_disks else 0
        return Guest(uuid=uuid, memory_mb=instance.memory_mb, disk_mb=disk * MIB_PER_GIB,
                     used_mb=self._measured.used.get(uuid),
                     dirty_mb_s=self._measured.dirty.get(uuid))

    def _doubted(self, move: PlannedMove) -> PlannedMove:
        job = self._job(move)
        if self._forecast(job).converges:
            return move
        return dataclasses.replace(move, reason=(
            f'{move.reason}; its migration is not expected to end by itself: it writes '
            f'{job.copy.dirty_mb_s:.0f} MiB a second, and {self._bandwidth(job):.0f} can be '
            'copied'))

    def _forecast(self, job: Job) -> MigrationForecast:
        return job.copy.forecast(self._bandwidth(job))

    def _bandwidth(self, job: Job) -> float:
        """Return the bandwidth of a move, in MiB a second, while no other move runs."""
        return min(self._links.stream, self._links.of_host(job.source),
                   self._links.of_host(job.destination))


@dataclasses.dataclass(frozen=True, slots=True)
class TimelyPlan:
    """A plan whose moves begin within ``stale_plan_age``. Moves that empty hosts may begin later.

    moves : the moves with their times, by :meth:`Pace.paced`
    is_short : True if the plan has fewer moves than its budget, because further moves would begin
        after ``stale_plan_age``
    kept_back : {index of an instance whose move was left out of the plan: reason}. The reason names
        a host or failure domain whose servers could not restart elsewhere after the move
    """

    chosen: Chosen
    moves: tuple[PlannedMove, ...]
    is_short: bool
    kept_back: Mapping[int, str] = dataclasses.field(default_factory=dict)


def timely(pace: Pace, choose: Callable[[Limits], Chosen], scores: Mapping[str, float],
           limits: Limits) -> TimelyPlan:
    """Return a plan whose moves can all begin within ``stale_plan_age``.

    A plan is made for a budget of moves, and its moves are scheduled. Moves that begin later are
    not simply dropped, because other moves of the plan may depend on them. Instead another plan is
    made, whose budget is the number of moves that begin within this time. If a plan that uses its
    whole budget leaves time unused, a plan for a larger budget is tried. The best of the plans
    whose moves all begin within this time is returned. If the planning time does not suffice for
    such a plan, moves that begin later are dropped from the plan that has the fewest of them.
    """
    def scheduled(moves: int) -> _Scheduled:
        own = _of_one_plan(limits, moves, 1.0 if pace.is_timely(moves) else SEARCH_SHARE)
        chosen = choose(own)
        paced = pace.paced(chosen.moves(), scores)
        return _Scheduled(own, chosen, paced, pace.late(paced))

    budget, too_large = min(limits.budget, pace.most_moves()), limits.budget + 1
    fitting: list[_Scheduled] = []
    late: list[_Scheduled] = []
    while True:
        found = scheduled(budget)
        count = len(found.moves)
        if found.late:
            late.append(found)
            too_large = count    # a budget of as many moves gives the same plan
            budget = max(1, int(SURE * (count - len(found.late))))
        else:
            fitting.append(found)
            budget = int(min(SURE * pace.room(found.moves) * count, limits.budget))
        best = min(fitting, key=lambda each: each.rank, default=None)
        if best:
            if not late and count < found.limits.budget or _is_short_of_time(found):
                break  # A larger budget is of no use.
            least = max(1, math.ceil(LARGER * fitting[-1].limits.budget))
            if least >= too_large:
                break
            budget = max(budget, least)
        budget = min(budget, too_large - 1)
        if len(fitting) + len(late) == ROUNDS or limits.is_past:
            break
    if late and (best is None or _is_short_of_time(best)):
        closest = min(late, key=lambda each: len(each.late))
        chosen = without(closest.chosen, closest.late, limits)
        rest = dataclasses.replace(
            closest, chosen=chosen, moves=pace.paced(chosen.moves(), scores))
        best = min(best or rest, rest, key=lambda each: each.rank)
    assert best is not None
    limits.cut.happened |= best.limits.cut.happened
    limits.unplaced.clear()
    limits.unplaced.update(best.limits.unplaced)
    return TimelyPlan(best.chosen, best.moves, is_short=bool(best.late) or (
        len(best.moves) >= best.limits.budget < limits.budget))


def _is_short_of_time(plan: '_Scheduled') -> bool:
    """Return True if the deadline stopped the search for a plan before the plan had as many moves
    as its budget permits; False otherwise."""
    return plan.limits.cut.happened and len(plan.moves) < plan.limits.budget


def _of_one_plan(limits: Limits, moves: int, share: float) -> Limits:
    """Return the limits of one of several plans, with records of its own.

    :param limits: limits of all plans together
    :param moves: maximum number of moves of the plan
    :param share: share (0 to 1) of the remaining time that the search may use
    """
    now = limits.clock()
    return dataclasses.replace(limits, budget=moves, cut=Cut(), unplaced={},
                               deadline=now + share * (limits.deadline - now))


@dataclasses.dataclass(frozen=True, slots=True)
class _Scheduled:
    """A plan within ``limits``, with the start times of its moves. ``late`` has the numbers
    (``order``) of the moves that begin after ``stale_plan_age``."""

    limits: Limits
    chosen: Chosen
    moves: tuple[PlannedMove, ...]
    late: frozenset[int]

    @property
    def rank(self) -> tuple[bool, float, int, int]:
        """The rank of the plan; a smaller rank is better. The rank has four parts: False if the
        plan has moves that spread load, otherwise True; the combined imbalance at the end of the
        plan, or 0 if no move spreads load; minus the number of hosts that packing moves empty; and
        minus the number of moves."""
        spreads = any(move.phase == plan.SPREAD for move in self.moves)
        end = (self.moves[-1].combined_after or 0.0) if spreads else 0.0
        packs = any(move.phase == plan.PACK for move in self.moves)
        return not spreads, end, -len(self.chosen.emptied) if packs else 0, -len(self.moves)


def highest(problem: Problem) -> dict[str, float]:
    """Return {host: its highest score in any policy}."""
    return dict(zip(problem.hosts, problem.scores.max(axis=1, initial=0.0).tolist(), strict=True))
