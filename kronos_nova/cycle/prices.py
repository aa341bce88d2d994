"""The prices of moves: a move has to gain at least its price."""

import collections
import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.load import LoadStats
from kronos_nova.model import TOLERANCE
from kronos_nova.model import Prices
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.prices import Preferences
from kronos_nova.planners import level
from kronos_nova.planners.base import Step
from kronos_nova.planners.risk import risk
from kronos_nova.units import HOUR
from kronos_nova.units import MIB_PER_GIB

COPY_CORES = 2.0
"""Number of CPU cores that a live migration keeps busy, one on each of its two hosts. The cost of a
move is the time of its migration multiplied by these cores. Optional moves, which are not needed to
keep an imbalance near its threshold, are made only if their gain is at least their cost. Raised,
fewer moves are made; lowered, more moves are made. An estimate; not measured."""
FULL_HOST = 4.0
"""Estimated CPU time, as a number of core-hours, that the servers of a host lose together each time
the host becomes full. A host counts as full if its load is above 0.9. A move that keeps a host from
becoming full gains this time. The cost of the move is the CPU time of its migration. Raised, more
moves are worth their cost; lowered, fewer moves are worth their cost. Chosen by ``bench days``,
which adds up the minutes in which hosts are full.

Measured in 17 runs, each of a cloud and a day: with 4 core-hours, there are 2 % more of these
minutes than with planning without costs, and 39 % less memory is copied.

Two other values were compared only with each other, in another set-up: 20 hosts, the day 20110412
of PlanetLab, and costs without the factor of :data:`SEEN`. The larger value was not better:

* 2 core-hours: 246 minutes, 626 GiB copied
* 6 core-hours: 252 minutes, 1,282 GiB copied"""
SEEN, SEEN_LEAST = 3 * HOUR, 300.0
"""Two times in seconds that raise the cost of moving instances whose load is known for a short time
only. The gain of such a move may be chance. The cost of a move is multiplied by 1 + ``SEEN`` / T,
where T is the time for which the load of the instance is known.

* ``SEEN``: the time T for which the cost is doubled. Raised, fewer new instances are moved;
  lowered, more new instances are moved.
* ``SEEN_LEAST``: lower bound of T. Raised, moves of new instances cost less; lowered, moves of new
  instances cost more.

Measured by ``bench days`` on the day 20110412 of PlanetLab, in comparison with costs without this
factor. With 20 hosts, 29 % less memory is copied, and hosts are loaded above 0.9 for 17 % fewer
minutes. With 100 hosts, 12 % less memory is copied, and hosts are loaded above 0.9 for 2 % fewer
minutes."""
CopyPrices = Callable[[np.ndarray], np.ndarray]
"""A function from indexes of instances (n,) to the price of copying each of them, float64 (n,)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MinGain:
    """The least decrease of the combined imbalance that a move must bring. This decrease is the sum
    of four amounts:

    * an amount for the move
    * an amount for each GiB of memory that the move copies
    * an amount for each minute of the expected duration of the move
    * an amount for each past failure of a move of the same instance, or between the same two hosts
    """

    per_move: float = 0.0
    per_gib: float = 0.0
    per_minute: float = 0.0
    per_failure: float = 0.0

    def of_sizes(self, memory_mb: np.ndarray) -> np.ndarray:
        """Return float64 (n,): the price of moving instances of the given memory sizes, without
        durations and failures."""
        return self.per_move + self.per_gib * memory_mb / MIB_PER_GIB


class ExpectedDurations(Protocol):
    """The expected durations of moves, in seconds; see :class:`kronos_nova.cycle.schedule.Pace`."""

    def seconds(self, uuid: str) -> float:
        ...

    def slowness(self, source: str, destination: str) -> float:
        ...


def prices(problem: Problem, min_gain: MinGain, tries: Iterable[PastTry],
           pace: ExpectedDurations, soft_group_cost: float | None = None,
           preferences: Preferences | None = None) -> Prices:
    """Return the prices of moves. One part of a price depends on the instance: on its size, on the
    expected duration of its move, and on its past failures. Another part depends on the source and
    the destination: on the past failures of moves between these two hosts, and on how much longer
    such moves take than other moves."""
    failures = _failures(tries)
    seconds = np.array([pace.seconds(uuid) if min_gain.per_minute else 0.0 for uuid in problem.vms])
    vms = min_gain.of_sizes(problem.memory_mb) + (
        min_gain.per_minute * seconds / 60
        + min_gain.per_failure * np.array([failures[uuid] for uuid in problem.vms], dtype=float))
    usual = float(seconds.mean()) if len(seconds) else 0.0
    host = {name: n for n, name in enumerate(problem.hosts)}
    pairs = {(host[source], host[destination]):
             min_gain.per_minute * usual * max(0.0, pace.slowness(source, destination) - 1) / 60
             + min_gain.per_failure * failures[source, destination]
             for source, destination in {(past.source, past.destination) for past in tries}
             if source in host and destination in host}
    pairs = {pair: amount for pair, amount in pairs.items() if amount}
    return Prices(vms=vms if vms.any() else None, pairs=pairs, soft_group_cost=soft_group_cost,
                  preferences=preferences)


def _failures(tries: Iterable[PastTry]) -> 'collections.Counter[str | tuple[str, str]]':
    """Return {key: number of failed tries}. A key is the uuid of an instance, or a pair of hosts
    (source, destination)."""
    failed = [past for past in tries if past.failed]
    found: collections.Counter[str | tuple[str, str]] = collections.Counter(
        past.instance_uuid for past in failed)
    found.update((past.source, past.destination) for past in failed)
    return found


def copy_prices(problem: Problem, pace: ExpectedDurations, amount: float,
                load_stats: Mapping[str, LoadStats]) -> CopyPrices:
    """Return a function of instances, which returns the price of an optional move of each instance.
    A price is the amount by which a move has to lower the expected number of full hosts.

    The price of a move is the CPU time of its live migration, divided by the CPU time that the
    servers of one full host are expected to lose (:data:`FULL_HOST` core-hours). The price is
    higher for an instance whose load was measured for a short time only, because a few samples may
    be exceptional.

    :param amount: factor on all prices
    :param load_stats: {policy: statistics of the instances' loads}
    """
    known = np.max([stats.known_seconds(problem.vms) for stats in load_stats.values()],
                   axis=0, initial=SEEN_LEAST)
    doubt = 1.0 + SEEN / np.broadcast_to(known, len(problem.vms))

    @functools.cache
    def price(vm: int) -> float:
        return amount * doubt[vm] * COPY_CORES * pace.seconds(problem.vms[vm]) / HOUR / FULL_HOST

    return lambda vms: np.array([price(vm) for vm in vms.tolist()], dtype=float)


def worthwhile(before: State, after: State, steps: list[Step]) -> list[Step]:
    """Return the longest prefix of a plan (its first steps) whose steps together gain at least the
    price of their moves, and make no policy worse. A planner orders its moves by gain, so the later
    steps gain least.

    :param before: the state before the plan
    :param after: the state after the plan; the steps that are not returned are undone in this state
    """
    gain, keep = Gain(before), len(steps)
    while keep and not (gain.value(after) + TOLERANCE >= after.price()
                        and spoils_nothing(before, after)):
        keep -= 1
        after.move(steps[keep].vm, steps[keep].source)
    return steps[:keep]


def still_gains(before: State, steps: list[Step]) -> list[Step]:
    """Return the longest prefix of a plan (its first steps) whose steps together still gain at
    least the price of their moves.

    :param before: the state before the steps
    :param steps: steps that spread load; they were chosen at another time, or together with other
        steps
    """
    before = before.copy()
    before.settle()
    if before.is_balanced:
        return []
    after = before.copy()
    for step in steps:
        after.move(step.vm, step.destination)
    kept = worthwhile(before, after, steps)
    return kept if Gain(before).value(after) > TOLERANCE else []


class Gain:
    """The gain of the moves that lead from one state to another.

    The gain is the sum of two amounts: the decrease of the combined imbalance, and the decrease of
    the expected number of full hosts.

    With restraint, the first amount is the larger of two decreases: that of the combined imbalance,
    and that of the excess. The excess is the load of hosts outside the target range of loads
    (:mod:`kronos_nova.planners.level`). If several plans are needed, the first one may lower only
    the excess, and not yet the combined imbalance. If the excess increases, the gain is minus
    infinity, because later plans would undo the moves.
    """

    def __init__(self, before: State):
        self._before = before.combined(), risk(before)
        self._band = level.band_of(before) if is_restrained(before.problem) else None
        self._excess = 0.0 if self._band is None else level.excess(before, self._band)

    def value(self, after: State) -> float:
        combined, full = self._before
        less = self._less_excess(after)
        if less < -TOLERANCE:
            # A move that adds excess is worth nothing: the next plan would undo it, and the one
            # after that repeat it.
            return -np.inf
        return max(combined - after.combined(), less) + full - risk(after)

    def _less_excess(self, after: State) -> float:
        if self._band is None:
            return 0.0
        now = min(level.excess(after, band) for band in (self._band, level.band_of(after)))
        return self._excess - now


def is_restrained(problem: Problem) -> bool:
    """Return True if the problem was made with restraint: its loads are likely loads with
    variances. Return False if its loads are measured."""
    return problem.variances is not None


def spoils_nothing(before: State, after: State) -> bool:
    """Return False if a policy is above its threshold in ``after`` and has a larger imbalance than
    in ``before``. Return True if there is no such policy."""
    old, new = before.imbalances(), after.imbalances()
    return not ((new > old + TOLERANCE) & (new > before.problem.thresholds + TOLERANCE)).any()
