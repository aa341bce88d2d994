"""How spread searches: ruin and recreate, over and over, in many placements side by side.

Some moves of the best plans are taken back, and what lowers the softened maximum most is done until
nothing does; then the placement is begun anew, whatever the others are at: large neighbourhood
search (Shaw 1998), also called ruin and recreate (Schrimpf et al. 2000), of the family that won
machine reassignment (ROADEF 2012).
"""

import numpy as np

from kronos_nova.planners.base import Limits
from kronos_nova.planners.incumbents import End
from kronos_nova.planners.incumbents import Incumbents
from kronos_nova.planners.incumbents import Plan
from kronos_nova.planners.placements import PARTNERS
from kronos_nova.planners.placements import Placements
from kronos_nova.planners.softened_max import SoftenedMax
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation.space import NEVER
from kronos_nova.simulation.space import SearchSpace

EFFORT, PER_MOVE, PER_THING = 5e7, 3e6, 8e4
"""What the search costs, and beside for each move of the budget and each instance and host, in
about nanoseconds. A tenth of it finds most, in clusters of any size; longer plans take more
exchanges, and more things take longer to look at."""
TINY, LITTLE, LEAST = 200, 0.2, 1.6e8
"""With no more pairs of instance and host than that, so much of the effort is enough, and
:mod:`spread` searches for one budget after the other; with few hosts otherwise it is no less than
that, as the best plan there is may be found."""
MOST_TIMES, LONGER, WORTHWHILE = {True: 1.2, False: 4.0}, 2.5, 0.01
"""It is gone on with, up to so many times the effort, for so many times as long as it took to find
an end that is better than the one before by this part; with many hosts (True) there is always such
an end, and with few it tells that the best plan has not been found."""
STEP, RESTART, THING, PAIR = 9e5, 1e4, 60, 15
"""What a round of exchanges costs, beginning a placement anew, finding where one thing is, and
rating a pair, in about nanoseconds."""
MOST_SIDE_BY_SIDE = 48
"""Placements. Where hosts are few numpy costs little more for one than for some dozens; with more
the arrays grow out of a processor's cache."""
ROUNDS, TIMES = 50, 3
"""How many rounds, and how many times the length of a plan, the effort is to last for; with more
placements side by side than that allows none would get far."""
FEW_MOVES = (0.035, 0.08, 0.02, 0.15)
"""Temperatures of the turns, as parts of the imbalance that is left: with fewer moves than hosts
only the ends can be mended, and hosts further inside must not count."""
MANY_MOVES = (0.1, 0.03, 0.2, 0.06)
"""The same for as many moves as hosts, where the whole cluster can be evened."""
FEW_HOSTS = (0.3, 0.2, 0.1, 0.05)
"""The same on few hosts, with any budget: each of them is soon an end, and good plans have little
in common, so that it takes hotter ones to come from one to another."""
COOLED = 0.8
"""Tables are made again once the temperature has changed by a fifth: less is not seen in plans."""
POOL = 16
"""Best plans that are gone on from; one for every two placements at most. Half as many in a small
cluster soon all come from one, and a long search finds no better one."""
TAKEN_BACK, PARTS = 5, (0.05, 0.15, 0.02)
"""Fewer moves than that of a plan are taken back, and these parts of it beside: the more, the
further from what was found."""
KICKS = 2
"""Every so many turns plans are also given a move to anywhere. More seldom, all that small clusters
go on from is soon alike; every time, nothing is gone on with for long enough."""
DRAWN = 1000
"""Pairs that are drawn at a time. On few hosts they are of large instances more often, by what
these weigh, and such a one stays until others have made up for it: no exchange of two leads to
where a large instance moves and several small ones make room. With more hosts there is not the
time for that, and plans end worse."""
MANY_HOSTS = 20
"""With no more than that hosts are few. With more and fewer moves than hosts, exchanges of two
instances that are at home are left out: there is not the time to rate all pairs, and on fewer hosts
some clusters end worse without."""


class LocalSearch:
    """Searches a space from one plan or none on, and tells what it found.

    :param found: the plans that are known, and all that is found
    """

    def __init__(self, space: SearchSpace, found: Incumbents, limits: Limits):
        self.space, self.found, self.limits = space, found, limits
        self.chance, self.kicks = np.random.default_rng(0), []
        hosts, things = len(space.hosts), len(space.vms) + len(space.hosts)
        # No plan has more moves than there are instances, however many it may have.
        self.budget = min(limits.budget, len(space.vms))
        is_tiny = len(space.vms) * hosts <= TINY
        self.effort = EFFORT + PER_MOVE * self.budget + PER_THING * things
        are_many = hosts > MANY_HOSTS
        weights = space.weights[:len(space.vms)] @ space.policy_weights + TOLERANCE
        self.odds = (None if are_many or is_tiny
                     else np.repeat(weights / weights.sum() / hosts, hosts))
        if is_tiny:
            self.effort *= LITTLE
        elif not are_many:
            self.effort = max(self.effort, LEAST)
        self.most = self.effort * (1 if is_tiny else MOST_TIMES[are_many])
        self.worthwhile, self.spent, self.turns = found.best.cost, 0.0, 0
        self.are_few = self.budget < hosts and are_many
        self.parts = FEW_HOSTS
        if are_many:
            self.parts = FEW_MOVES if self.budget < hosts else MANY_MOVES
        on_each = things / hosts + 1
        rated = on_each * (1.5 if self.are_few else on_each) * min(hosts, PARTNERS)
        nanoseconds = min(self.effort, 1e9 * (limits.deadline - limits.clock()))
        round_ = nanoseconds / max(ROUNDS, TIMES * self.budget) - STEP
        self.count = MOST_SIDE_BY_SIDE if is_tiny else int(np.clip(
            round_ / (THING * things + PAIR * rated), 1, MOST_SIDE_BY_SIDE))

    def run(self) -> None:
        starts = [self._kicked([]) if number % 2 else ([], -1) for number in range(self.count)]
        placements, smooth = Placements(self.space, self.budget, *zip(*starts, strict=True)), None
        while not self._is_over:
            part = self.parts[self.turns // self.count % len(self.parts)]
            temperature = part * float(
                (np.ptp(placements.scores, axis=2) @ self.space.policy_weights).mean())
            if smooth is None or not COOLED < temperature / smooth.temperature < 1 / COOLED:
                smooth = SoftenedMax(self.space, temperature)
            optimal, rated = placements.improve(smooth, self.chance, self.are_few)
            self.spent += STEP + THING * self.count * placements.home.size + PAIR * rated
            if len(optimal):
                self.spent += RESTART * len(optimal)
                self._keep(placements.ends(optimal, self.found.worst))
                starts = [self._another() for _ in optimal]
                placements.restart(optimal, *zip(*starts, strict=True))
        self._keep(placements.ends(np.arange(self.count), self.found.worst))

    @property
    def _is_over(self) -> bool:
        return self.spent >= self.effort or self.limits.is_over

    def _keep(self, ends: list[End]) -> None:
        for end in ends:
            self.found.keep(end)
        if self.found.best.cost < (1 - WORTHWHILE) * self.worthwhile:
            self.worthwhile = self.found.best.cost
            self.effort = max(self.effort, min(self.most, LONGER * self.spent))

    def _another(self) -> tuple[Plan, int]:
        """A plan to go on from, one of the best, a little spoilt; and the instance that is held, -1
        for none."""
        turn, number = divmod(self.turns, self.count)
        self.turns += 1
        pool = self.found.kept[:max(1, min(POOL, self.count // 2))]
        plan = pool[number % len(pool)].plan
        if turn % KICKS < KICKS - 1:
            return self._ruined(plan, turn), -1
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

    def _kicked(self, plan: Plan) -> tuple[Plan, int]:
        """A plan with a move to anywhere, which by itself is of no use: another may need the room
        that it leaves."""
        if not self.kicks:
            pairs = len(self.space.vms) * len(self.space.hosts)
            self.kicks = self.chance.choice(pairs, min(pairs, DRAWN), p=self.odds,
                                            replace=self.odds is not None).tolist()
        vm, host = divmod(self.kicks.pop(), len(self.space.hosts))
        home = self.space.home[vm]
        if (len(plan) >= self.budget or vm in dict(plan) or host == home
                or self.space.price_change(vm, home, host) >= NEVER):
            return plan, -1
        return [*plan, (vm, host)], -1 if self.odds is None else vm
