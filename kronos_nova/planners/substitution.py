"""Which instances make the moves of a plan, given between which hosts they go.

A neighbourhood of its own: one or two instances of a plan change places with others of the same
hosts that are not in it. The flows between hosts stay, and so does the number of moves; but a few
dozen instances a host can realise the same flows in thousands of ways, and these decide the last
digits of the objective. All pairs are rated at once: very large-scale neighbourhood search (Ahuja
et al. 2002), with the swap moves of machine reassignment (ROADEF 2012).
"""

import numpy as np

from kronos_nova.planners.base import Limits
from kronos_nova.planners.incumbents import End
from kronos_nova.planners.incumbents import Incumbents
from kronos_nova.planners.incumbents import Plan
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation.space import SearchSpace

RATED = 150_000
"""Pairs of substitutions times hosts that are rated at once: a millisecond or two, and on ten hosts
all there are for a plan of ten moves."""
CHECKED = 8
"""Of the best pairs so many are looked at more closely; nearly always the first is possible."""


def substitute(space: SearchSpace, found: Incumbents, end: End, limits: Limits) -> None:
    """Descend from an end state to a local optimum, and keep every better end on the way."""
    while end is not None and end.plan and not limits.is_over:
        end = _Substitutions(space, end).best()
        if end is not None:
            found.keep(end)


class _Substitutions:
    """m ways to have another instance make a move.

    slot, vm : intp (m,), which move of the plan, and who makes it instead
    effect : float64 (m, h, P), what that adds to the scores
    """

    def __init__(self, space: SearchSpace, end: End):
        self.space, self.end = space, end
        self.scores = space.after([end.plan])[0][:, :, 0]
        pairs = [(slot, vm) for slot, move in enumerate(end.plan) for vm in self._others(*move)]
        self.slot, self.vm = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        vms, hosts = np.array(end.plan, dtype=np.intp).T
        old, self.there = vms[self.slot], hosts[self.slot]
        self.price = space.prices(self.vm, self.there) - space.prices(old, self.there)
        self.effect = np.zeros((len(self.vm), *self.scores.shape))
        every, more = np.arange(len(self.vm)), space.weights[self.vm] - space.weights[old]
        for place, sign in ((space.home[self.vm], -1), (self.there, 1)):
            self.effect[every, place] += sign * more * space.scale[place]

    def _others(self, vm: int, host: int) -> list[int]:
        residents = self.space.residents[self.space.home[vm]]
        residents = residents[self.space.may_go(residents, host)]
        planned = {vm for vm, _host in self.end.plan}
        return [other for other in residents.tolist() if other not in planned]

    def best(self) -> End | None:
        """The best end that one or two substitutions lead to, if it costs less than this one."""
        paid = self.end.cost - float(self.space.combined(self.scores[:, :, None])[0])
        single = self._combined(self.scores + self.effect) + self.price + paid
        few = np.argsort(single, kind='stable')[:int((2 * RATED / len(self.scores)) ** 0.5)]
        first, second = few[np.array(np.triu_indices(len(few), 1))]
        apart = (self.slot[first] != self.slot[second]) & (self.vm[first] != self.vm[second])
        first, second = np.append(few, first[apart]), np.append(few, second[apart])
        double = self._combined(self.scores + self.effect[first[len(few):]]
                                + self.effect[second[len(few):]])
        double += (self.price[first] + self.price[second])[len(few):] + paid
        costs = np.append(single[few], double)
        good = np.flatnonzero(costs < self.end.cost - TOLERANCE)
        for n in good[np.argsort(costs[good], kind='stable')][:CHECKED]:
            which = sorted({int(first[n]), int(second[n])})
            plan = self._with(which)
            if self._is_possible(plan, which):
                return End(float(costs[n]), plan)
        return None

    def _combined(self, scores) -> np.ndarray:
        """float64 (n,): combined imbalances of float64 (n, h, P)."""
        return (scores.max(axis=1) - scores.min(axis=1)) @ self.space.policy_weights

    def _with(self, which: list[int]) -> Plan:
        plan = list(self.end.plan)
        for n in which:
            plan[self.slot[n]] = int(self.vm[n]), int(self.there[n])
        return plan

    def _is_possible(self, plan: Plan, which: list[int]) -> bool:
        space = self.space
        scores, free = space.after([plan])
        place = space.place_of(plan)
        return bool(space.is_legal(scores.max(axis=0), scores.min(axis=0), free)[0]) and all(
            space.keeps_apart(int(self.vm[n]), int(self.there[n]), place) for n in which)
