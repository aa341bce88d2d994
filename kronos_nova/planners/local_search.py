"""The local search of the planner ``spread``, which improves many assignments at the same time.

An assignment gives each instance a host. The *value* of an assignment is a smooth approximation of
its combined imbalance (see :class:`.population.SoftenedMax`). Each assignment starts from one of
the best plans known, without some of the moves of this plan. Each step makes the swap that lowers
the value most. Once no swap lowers the value, the assignment is replaced by a new assignment (a
restart). The other assignments are not affected.

The method is large neighbourhood search (Shaw 1998), also called ruin and recreate (Schrimpf et al.
2000). A search of this family won the machine reassignment challenge (ROADEF 2012).
"""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

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

FEW_HOSTS = 20
"""Largest number of hosts with which a cluster counts as small. Searches in small clusters may take
longer, as set by the parameters :data:`SMALL`. Raised, plans for more clusters take longer;
lowered, the best possible plan is found for fewer clusters. Not measured."""
CHANCY = range(3, 27)
"""Numbers of permitted moves, from 3 to 26, with which the search for a plan in a small cluster is
repeated from the start. With these numbers, chance decides whether one search finds the best plan.
With the upper end raised, more plans take longer without being better; with the upper end lowered,
the best plan is missed more often. Chosen because one search finds the best plans of up to two
moves, and good plans of 27 or more moves."""


class Nanoseconds(NamedTuple):
    """Estimated nanoseconds of processor time of the parts of a search, for one core of a server. A
    search ends when the estimates of its steps add up to its effort. The time is estimated and not
    measured, because plans must not depend on the speed of the machine.

    step : a step, without the parts that depend on the cluster
    item : a step, for each pair of an instance and an assignment
    pair : the rating of one swap of two instances
    restart : the replacement of an assignment that no swap can improve
    """

    step: float = 4e5
    item: float = 60
    pair: float = 15
    restart: float = 1e4


COST = Nanoseconds()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Parameters of a local search, which depend on the size of the cluster and on the budget of
    moves. An assignment gives each instance a host. The search improves several assignments at the
    same time, each by at most one swap in a step. An assignment that cannot be improved further is
    replaced by a new one; this is a restart. A round is as many restarts as there are assignments.

    Measured: with a tenth of the total effort, the search already finds most of the improvement, in
    clusters of any size. Only ``taken_share`` was measured separately.

    effort : time that a search may take, in estimated nanoseconds of processor time
    per_move : further effort for each move of the budget
    per_item : further effort for each instance and each host
    longer : factor that gives a search more time when it finds a better plan. The time that it may
        take becomes this factor times the time that it has used so far, unless it is longer already
    longest : largest factor by which the effort is raised while the search finds better plans
    worthwhile : share by which the cost of the best plan must fall before a search gets more time
    alike : number of searches that must find equally good plans before a search is not repeated.
        With 1, no search is repeated
    enough : estimated nanoseconds of all searches together after which none is repeated
    most : maximum number of assignments. With more, the arrays exceed a processor's cache
    rounds : minimum number of steps, for which the search improves fewer assignments if need be
    rounds_of_move : minimum number of steps for each move of the budget
    cooled : factor by which the temperature may fall before the tables that rate swaps are computed
        again. They are exact only for the temperature for which they were computed
    pool : maximum number of known plans, the best ones, from which new assignments are made; half
        as many as there are assignments, if that is fewer
    taken_back : number of moves; a smaller random number of moves is removed from a good plan
    taken_share : share of the moves that is removed in addition. Measured on 35 random clouds: with
        0, four of six plans for policies that leave hosts out end with 2 to 29 % more imbalance;
        with 0.15, three plans of ten change, and end with 2 % more on average
    kicks : number of rounds from one round with kicks to the next. A kick is a random move that is
        added to a new assignment
    temperatures : temperatures of the search (see
        :class:`~kronos_nova.planners.population.SoftenedMax`), as fractions of the mean combined
        imbalance of the assignments. The temperatures are used in turn, each for one round
    cooling : exponent. Temperatures are divided by the number of hosts to the power of ``cooling``
    skips : whether the search leaves out swaps of two instances that are both on their original
        hosts
    """

    effort: float = 6e7
    per_move: float = 2.1e6
    per_item: float = 1.1e5
    longer: float = 2.5
    longest: float = 1.2
    worthwhile: float = 0.01
    alike: int = 1
    enough: float = 1.7e9
    most: int = 48
    rounds: int = 50
    rounds_of_move: int = 3
    cooled: float = 0.8
    pool: int = 16
    taken_back: int = 5
    taken_share: float = 0.05
    kicks: int = 2
    temperatures: tuple[float, ...] = (0.3, 0.2, 0.1, 0.05)
    cooling: float = 0.0
    skips: bool = False


SMALL = Tuning(longest=2.7, alike=5)
"""Parameters of the search in small clusters. Good plans of a small cluster have little in common,
so a search takes longer to get from one good plan to another. Because the best possible plan can be
found in a small cluster, a search continues longer while it finds better plans."""
SHORT = Tuning(temperatures=(0.18, 0.4, 0.1, 0.8), cooling=0.5, skips=True)
"""Parameters of the search where a plan may have fewer moves than there are hosts. A plan with so
few moves can improve only the most and the least loaded hosts. The temperature is lower the more
hosts there are. So the other hosts hardly count in the value of an assignment, although the loads
of many hosts are close together. There is no time to rate all pairs, so swaps of two instances on
their original hosts are skipped."""
LONG = Tuning(temperatures=(0.1, 0.03, 0.2, 0.06))
"""Parameters of the search where a plan may have at least as many moves as there are hosts. Such a
plan can even out the load of the whole cluster."""


def tuning(space: SearchSpace, budget: int) -> Tuning:
    """Return the parameters of a search, chosen by the size of the cluster and the budget of
    moves."""
    hosts = len(space.hosts)
    if hosts <= FEW_HOSTS:
        return SMALL
    return SHORT if budget < hosts else LONG


def found_once(space: SearchSpace, limits: Limits) -> Incumbents:
    """Search a space once, from its present state only, and return the end states found."""
    found = Incumbents([End(space.state.objective(), [])])
    next(searches(space, found, limits))
    return found


def searches(space: SearchSpace, found: Incumbents, limits: Limits) -> Iterator[None]:
    """Search a space once or several times, add the found end states to ``found``, and yield after
    each search.

    Each search starts from the known end states whose number of moves the budget permits. The
    search is repeated only in small clusters, and only if the budget is in :data:`CHANCY`. It is
    repeated until ``alike`` searches have found equally good plans, or the searches together have
    used the time ``enough`` (see :class:`Tuning`).
    """
    costs: list[float] = []
    known = [end for end in found.kept if len(end.plan) <= limits.budget]
    known = known or [End(space.state.objective(), [])]
    spent = 0.0
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
        if not one.is_chance or limits.is_over or (
                alike >= one.tuning.alike or spent >= one.tuning.enough):
            return


class LocalSearch:
    """One local search, which starts from known plans.

    :param found: the known end states; the search adds the end states that it finds
    :param number: number of the search, which is the seed of its random numbers
    """

    def __init__(self, space: SearchSpace, found: Incumbents, limits: Limits, number: int = 0):
        self.space, self.found, self.limits = space, found, limits
        self.chance = np.random.default_rng(number)
        hosts, items = len(space.hosts), len(space.vms) + len(space.hosts)
        # A plan has at most as many moves as there are instances.
        self.budget = min(limits.budget, len(space.vms))
        self.tuning = own = tuning(space, self.budget)
        self.is_chance = own.alike > 1 and self.budget in CHANCY
        self.effort = own.effort + own.per_move * self.budget + own.per_item * items
        self.longest = self.effort * own.longest
        self.worthwhile, self.spent, self.turns = found.best.cost, 0.0, 0
        on_each = items / hosts + 1
        rated = on_each * (1.5 if own.skips else on_each) * min(hosts, PARTNERS)
        step = self.effort / max(own.rounds, own.rounds_of_move * self.budget) - COST.step
        self.count = int(np.clip(step / (COST.item * items + COST.pair * rated), 1, own.most))

    def run(self) -> None:
        starts = [self._kicked([]) if number % 2 else [] for number in range(self.count)]
        population, softened = Population(self.space, self.budget, starts), None
        temperatures, cooled = self.tuning.temperatures, self.tuning.cooled
        colder = len(self.space.hosts) ** -self.tuning.cooling
        while self.spent < self.effort and not self.limits.is_over:
            part = temperatures[self.turns // self.count % len(temperatures)]
            temperature = part * colder * float(
                (self.space.imbalances(population.scores) @ self.space.policy_weights).mean())
            if softened is None or not cooled < temperature / softened.temperature < 1 / cooled:
                softened = SoftenedMax(self.space, temperature)
            optimal, rated = population.improve(softened, self.chance, self.tuning.skips)
            self.spent += (COST.step + COST.item * self.count * population.home.size
                           + COST.pair * rated)
            if len(optimal):
                self.spent += COST.restart * len(optimal)
                self._add(population.ends(optimal, self.found.worst))
                population.restart(optimal, [self._another() for _ in optimal])
        self._add(population.ends(np.arange(self.count), self.found.worst))

    def _add(self, ends: list[End]) -> None:
        for end in ends:
            self.found.add(end)
        if self.found.best.cost < (1 - self.tuning.worthwhile) * self.worthwhile:
            self.worthwhile = self.found.best.cost
            self.effort = max(self.effort, min(self.longest, self.tuning.longer * self.spent))

    def _another(self) -> Plan:
        """Return a plan from which a new assignment of instances to hosts is made. The plan is a
        changed copy of one of the best plans: some of its moves are removed, or a random move is
        added (a kick), or both."""
        turn, number = divmod(self.turns, self.count)
        self.turns += 1
        pool = self.found.kept[:max(1, min(self.tuning.pool, self.count // 2))]
        plan = pool[number % len(pool)].plan
        if turn % self.tuning.kicks < self.tuning.kicks - 1:
            return self._ruined(plan)
        is_short = number % 2 and len(plan) < self.budget
        return self._kicked(plan if is_short else self._ruined(plan))

    def _ruined(self, plan: Plan) -> Plan:
        """Return a plan without some of its moves. The remaining moves have the same order."""
        count = len(plan)
        if not count:
            return []
        taken = int(self.chance.integers(1, min(self.tuning.taken_back, count + 1)))
        taken = min(count, taken + int(self.tuning.taken_share * count))
        gone = set(self.chance.permutation(count)[:taken].tolist())
        return [move for n, move in enumerate(plan) if n not in gone]

    def _kicked(self, plan: Plan) -> Plan:
        """Return a plan with one more random move (a kick). Return the plan itself if the random
        move is not allowed. A kick alone seldom improves a plan, but may free room for a better
        move."""
        vm, host = self.chance.integers((len(self.space.vms), len(self.space.hosts))).tolist()
        home = self.space.home[vm]
        if (len(plan) >= self.budget or vm in dict(plan) or host == home
                or self.space.price_change(vm, home, host) >= NEVER):
            return plan
        return [*plan, (vm, host)]
