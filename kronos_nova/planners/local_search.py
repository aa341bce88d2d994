"""How spread searches: ruin and recreate, over and over, in many assignments side by side.

Some moves of the best plans are taken back, and what lowers the softened maximum most is done until
nothing does; then the assignment is restarted, whatever the others are at: large neighbourhood
search (Shaw 1998), also called ruin and recreate (Schrimpf et al. 2000), of the family that won
machine reassignment (ROADEF 2012).
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model.space import NEVER
from kronos_nova.model.space import SearchSpace
from kronos_nova.planners.base import Limits
from kronos_nova.planners.population import PARTNERS
from kronos_nova.planners.population import End
from kronos_nova.planners.population import Incumbents
from kronos_nova.planners.population import Plan
from kronos_nova.planners.population import Population
from kronos_nova.planners.population import SoftenedMax

EFFORT, PER_MOVE, PER_ITEM = 6e7, 2.1e6, 1.1e5
"""Search budget in estimated nanoseconds: a base, a share for each move of the budget, and a share
for each instance and host. Measured: a tenth of it finds most of the improvement in clusters of any
size. Longer plans take more swaps, and more items take longer to rate."""
LONGER, WORTHWHILE = 2.5, 0.01
"""The search continues for this many times as long as it took to find an end that is better than
the one before by this part."""
CHANCY, ALIKE, ENOUGH = range(3, 27), 5, 1.7e9
"""Restart policy for small clusters and budgets of 3 to 26 moves: restart until 5 searches agree on
the best cost, or 1.7 s of the budget are used. A single search of the same length misses the best
plan more often. Plans of two moves are found at once, and longer ones end well without restarts."""
STEP, RESTART, ITEM, PAIR = 4e5, 1e4, 60, 15
"""Estimated nanoseconds of a round of swaps, of restarting an assignment, of finding an item, and
of rating a pair."""
MOST_SIDE_BY_SIDE = 48
"""Most assignments in a population. With few hosts, numpy costs little more for some dozens than
for one; with more assignments the arrays grow out of a processor's cache."""
ROUNDS, TIMES = 50, 3
"""How many rounds, and how many times the length of a plan, the effort is to last for; with more
assignments side by side than that allows none would get far."""
COOLED = 0.8
"""Tables are made again once the temperature has changed by a fifth: less is not seen in plans."""
POOL = 16
"""Best plans that are gone on from; one for every two assignments at most. Half as many in a small
cluster soon all come from one, and a long search finds no better one."""
TAKEN_BACK, PARTS = 5, (0.05, 0.15, 0.02)
"""Fewer moves than that of a plan are taken back, and these parts of it beside: the more, the
further from what was found."""
KICKS = 2
"""Every second restart adds one random move (a "kick"). Less often, small clusters converge to one
local optimum; more often, no plan is refined long enough."""
TINY_PAIRS, FEW_HOSTS = 200, 20
"""Up to so many pairs of instance and host a cluster is tiny, and up to so many hosts small."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Parameters that depend on the size of a cluster.

    times, least, longest : the effort, the least that it is, and up to how many times it may become
    temperatures : of the turns, as parts of the imbalance that is left; to be divided by that power
        of the number of hosts that is called ``cooling``
    skips : leave out swaps of two instances that are at home
    """

    times: float = 1.0
    least: float = 0.0
    longest: float = 1.0
    temperatures: tuple[float, ...] = (0.3, 0.2, 0.1, 0.05)
    cooling: float = 0.0
    skips: bool = False


TINY = Tuning(times=0.2)
"""A fifth is enough, and :mod:`spread` searches for one budget after the other."""
SMALL = Tuning(least=2e8, longest=2.7)
"""Each host is soon an end, and good plans have little in common, so that it takes hotter turns to
come from one to another, and the best plan there is may be found: an end that is so much better
tells that it has not been."""
SHORT = Tuning(longest=1.2, temperatures=(0.18, 0.4, 0.1, 0.8), cooling=0.5, skips=True)
"""Many hosts, and fewer moves: only the ends can be improved, and hosts further inside must not
count: the more there are, the denser they are at the ends. There is not the time to rate all pairs,
and there always is a better end."""
LONG = Tuning(longest=1.2, temperatures=(0.1, 0.03, 0.2, 0.06))
"""As many moves as hosts, so that the whole cluster can be evened."""


def tuning(space: SearchSpace, budget: int) -> Tuning:
    """The parameters of a search."""
    hosts = len(space.hosts)
    if len(space.vms) * hosts <= TINY_PAIRS:
        return TINY
    if hosts <= FEW_HOSTS:
        return SMALL
    return SHORT if budget < hosts else LONG


def searches(space: SearchSpace, found: Incumbents, limits: Limits) -> Iterator[None]:
    """Search a space, as many times as that is worth it, and add what is found to what is known."""
    costs: list[float] = []
    spent, known = 0.0, found.kept.copy()
    while True:
        own = Incumbents(known)
        one = LocalSearch(space, own, limits, len(costs))
        one.run()
        for end in own.kept:
            found.add(end)
        yield
        costs.append(own.best.cost)
        spent += one.spent
        alike = np.count_nonzero(np.array(costs) <= min(costs) + TOLERANCE)
        if not one.is_chance or alike >= ALIKE or spent >= ENOUGH or limits.is_over:
            return


class LocalSearch:
    """One search from the plans that are known.

    :param found: these, and all that is found
    :param number: of the search; each goes another way
    """

    def __init__(self, space: SearchSpace, found: Incumbents, limits: Limits, number: int = 0):
        self.space, self.found, self.limits = space, found, limits
        self.chance = np.random.default_rng(number)
        hosts, items = len(space.hosts), len(space.vms) + len(space.hosts)
        # No plan has more moves than there are instances, however many it may have.
        self.budget = min(limits.budget, len(space.vms))
        self.tuning = tuning(space, self.budget)
        effort = self.tuning.times * (EFFORT + PER_MOVE * self.budget + PER_ITEM * items)
        self.is_chance = bool(self.tuning.least) and self.budget in CHANCY
        self.effort = max(effort, self.is_chance * self.tuning.least)
        self.longest = self.effort * self.tuning.longest
        self.worthwhile, self.spent, self.turns = found.best.cost, 0.0, 0
        on_each = items / hosts + 1
        rated = on_each * (1.5 if self.tuning.skips else on_each) * min(hosts, PARTNERS)
        round_ = self.effort / max(ROUNDS, TIMES * self.budget) - STEP
        self.count = MOST_SIDE_BY_SIDE if self.tuning is TINY else int(np.clip(
            round_ / (ITEM * items + PAIR * rated), 1, MOST_SIDE_BY_SIDE))

    def run(self) -> None:
        starts = [self._kicked([]) if number % 2 else [] for number in range(self.count)]
        population, softened = Population(self.space, self.budget, starts), None
        temperatures = self.tuning.temperatures
        colder = len(self.space.hosts) ** -self.tuning.cooling
        while self.spent < self.effort and not self.limits.is_over:
            part = temperatures[self.turns // self.count % len(temperatures)]
            temperature = part * colder * float(
                (self.space.imbalances(population.scores) @ self.space.policy_weights).mean())
            if softened is None or not COOLED < temperature / softened.temperature < 1 / COOLED:
                softened = SoftenedMax(self.space, temperature)
            optimal, rated = population.improve(softened, self.chance, self.tuning.skips)
            self.spent += STEP + ITEM * self.count * population.home.size + PAIR * rated
            if len(optimal):
                self.spent += RESTART * len(optimal)
                self._add(population.ends(optimal, self.found.worst))
                population.restart(optimal, [self._another() for _ in optimal])
        self._add(population.ends(np.arange(self.count), self.found.worst))

    def _add(self, ends: list[End]) -> None:
        for end in ends:
            self.found.add(end)
        if self.found.best.cost < (1 - WORTHWHILE) * self.worthwhile:
            self.worthwhile = self.found.best.cost
            self.effort = max(self.effort, min(self.longest, LONGER * self.spent))

    def _another(self) -> Plan:
        """A plan to go on from: one of the best, a little spoilt."""
        turn, number = divmod(self.turns, self.count)
        self.turns += 1
        pool = self.found.kept[:max(1, min(POOL, self.count // 2))]
        plan = pool[number % len(pool)].plan
        if turn % KICKS < KICKS - 1:
            return self._ruined(plan, turn)
        is_short = number % 2 and len(plan) < self.budget
        return self._kicked(plan if is_short else self._ruined(plan, turn))

    def _ruined(self, plan: Plan, turn: int) -> Plan:
        """A plan without some of its moves, in their order."""
        count = len(plan)
        if not count:
            return []
        taken = int(self.chance.integers(1, min(TAKEN_BACK, count + 1)))
        taken = min(count, taken + int(PARTS[turn % len(PARTS)] * count))
        gone = set(self.chance.permutation(count)[:taken].tolist())
        return [move for n, move in enumerate(plan) if n not in gone]

    def _kicked(self, plan: Plan) -> Plan:
        """A plan with a move to anywhere, which by itself is of no use: another may need the room
        that it leaves."""
        vm, host = self.chance.integers((len(self.space.vms), len(self.space.hosts))).tolist()
        home = self.space.home[vm]
        if (len(plan) >= self.budget or vm in dict(plan) or host == home
                or self.space.price_change(vm, home, host) >= NEVER):
            return plan
        return [*plan, (vm, host)]
