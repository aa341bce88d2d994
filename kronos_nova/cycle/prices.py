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
"""Number of CPU cores that a live migration keeps busy, one on each of its two hosts. The CPU time
of a migration is the cost of a move, and a move is made only if its gain exceeds its cost. Raised,
fewer moves are made; lowered, more moves are made. An estimate; not measured."""
FULL_HOST = 4.0
"""Core-hours of CPU time that the servers of one full host are expected to lose. A move that keeps
a host from becoming full gains these core-hours. The cost of the move is the CPU time of its
migration. Raised, more moves are worth their cost; lowered, fewer moves are worth their cost.
Chosen by ``bench days``, which adds up the minutes in which hosts are loaded above 0.9.

Mean of 17 pairs of a cloud and a day, compared with plans whose moves cost nothing: 1.02 times the
minutes, .61 times the copied GiB. Other values on 20 hosts, for the day 20110412 of PlanetLab and
without :data:`SEEN`: 246 minutes and 626 GiB with 2 core-hours, 252 minutes and 1,282 GiB with
6."""
SEEN, SEEN_LEAST = 3 * HOUR, 300.0
"""Seconds of known load, as parameters of the cost of moving an instance. The cost is multiplied by
1 + ``SEEN`` / known seconds, where the known seconds are at least ``SEEN_LEAST``. A move costs more
if the load is known for a short time, because its gain may then be chance. With ``SEEN`` raised,
fewer instances with little known load are moved; lowered, more of these instances are moved. With
``SEEN_LEAST`` raised, moves of new instances cost less; lowered, these moves cost more. Measured by
``bench days`` on the day 20110412 of PlanetLab, against costs that do not depend on the known
seconds. With 20 hosts, .71 times the memory is copied, and hosts are loaded above 0.9 for .83 times
the minutes; with 100 hosts, the factors are .88 and .98."""
CopyPrices = Callable[[np.ndarray], np.ndarray]
"""A function from indexes of instances (n,) to the price of copying each of them, float64 (n,)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MinGain:
    """The least decrease of the combined imbalance that a move must bring. It is the sum of four
    amounts. One is for the move, one for each GiB of memory that the move copies, and one for each
    minute of its expected duration. One is for each past failure: of a move of the instance, or of
    a move between the two hosts."""

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
    """Return the prices of moves. The price of an instance depends on its size, expected duration
    and past failures. The price of a pair of hosts depends on the additional duration and the past
    failures of moves between the two hosts."""
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
    """Count failed tries. The keys are uuids of instances, and pairs (source, destination)."""
    failed = [past for past in tries if past.failed]
    found: collections.Counter[str | tuple[str, str]] = collections.Counter(
        past.instance_uuid for past in failed)
    found.update((past.source, past.destination) for past in failed)
    return found


def copy_prices(problem: Problem, pace: ExpectedDurations, amount: float,
                load_stats: Mapping[str, LoadStats]) -> CopyPrices:
    """Return a function that gives the prices of optional moves, one for each given instance. A
    price is the amount by which a move has to lower the expected number of full hosts.

    The price of a move is proportional to the cost of copying the instance. A copy takes a core of
    each of two hosts for its duration. A full host takes :data:`FULL_HOST` core-hours from its
    servers. The price is higher for an instance that is known for a short time, because its
    statistics are mostly chance.

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
    """Return the first steps of a plan, as many as possible, that together gain at least the price
    of their moves and make no policy worse.

    All later steps are undone in ``after``. A planner orders its moves by gain, so the later steps
    gain least.

    :param before: the state before the plan; the prices of ``after`` count from this state
    :param after: the state after the plan; it is changed
    """
    gain, keep = Gain(before), len(steps)
    while keep and not (gain.value(after) + TOLERANCE >= after.price()
                        and spoils_nothing(before, after)):
        keep -= 1
        after.move(steps[keep].vm, steps[keep].source)
    return steps[:keep]


def still_gains(before: State, steps: list[Step]) -> list[Step]:
    """Return the first steps of a plan, as many as possible, that together still gain their price.

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
    """The gain of moves that start from a state.

    The gain has two parts, which are added. One is the decrease of the combined imbalance. The
    other is the decrease of the expected number of full hosts.

    With restraint, a plan may be the first of several. The combined imbalance falls only when all
    of the most or least loaded hosts are improved, which may need several plans. So the decrease of
    the hosts' excess (:mod:`kronos_nova.planners.level`) replaces the decrease of the combined
    imbalance if it is larger. A plan that increases the excess has a gain of minus infinity.
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
    """Return True if the loads of a problem are likely loads with variances; False if they are
    measured loads."""
    return problem.variances is not None


def spoils_nothing(before: State, after: State) -> bool:
    """Return True if no policy above its threshold is worse than before; False if a policy above
    its threshold is worse than before."""
    old, new = before.imbalances(), after.imbalances()
    return not ((new > old + TOLERANCE) & (new > before.problem.thresholds + TOLERANCE)).any()
