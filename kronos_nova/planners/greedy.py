"""``greedy``: the best single move, again and again.

Gives exactly the plan that trying every pair gives, without trying them. A move lowers an imbalance
only if it leaves the one host at a policy's top or enters the one at its bottom, and then by no
more than the gap to the next host. So few instances matter: those on a top host, each of which is
bounded by what it could gain at best, and those that may enter a bottom host. Only what may still
beat the best move found so far is looked at closely.
"""

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.outcome import Outlook
from kronos_nova.planners.outcome import take
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State

ROUNDING = 1e-13
"""Two ways to compute the same gain may differ by this much."""

FIRST_LOOK = 2048
"""How many instances are tried at a bottom host before more are, four times as many."""

FEW = 64
"""So many pairs are checked one by one; more are worth a whole column."""


class Greedy:
    phase = SPREAD

    def plan(self, state: State, constraints: Constraints, limits: Limits) -> list[Step]:
        steps = []
        by_cost = np.argsort(state.problem.memory_mb, kind='stable')
        rank = np.empty_like(by_cost)
        rank[by_cost] = np.arange(len(by_cost))
        while len(steps) < limits.budget and not limits.is_over:
            outlook = Outlook(state)
            if outlook.is_balanced:
                break
            pair = _Round(outlook, constraints, by_cost, rank).best_move()
            if pair is None:
                break
            steps.append(take(outlook, *pair, 'evens the load'))
        return steps


class _Round:
    """The search for one move.

    Candidates are (bound, instance, host). A host of -1 stands for every host: the bound is what
    the instance could gain at best, and its row has to be computed. Otherwise the bound is the
    gain, accepted by every policy.

    by_cost : the instances, smallest memory and then uuid first; ``rank`` is its inverse
    best : the largest gain of a permitted move so far
    """

    def __init__(self, outlook: Outlook, constraints: Constraints, by_cost, rank):
        self.outlook, self.constraints = outlook, constraints
        self.state, self.problem = outlook.state, outlook.problem
        self.by_cost, self.rank = by_cost, rank
        self.tops = self._gaps(outlook.tops)
        self.bottoms = self._gaps(outlook.bottoms)
        self.best = 0.0
        self.candidates = []
        self.rows, self.columns = {}, {}

    def best_move(self) -> tuple[int, int] | None:
        """The (instance, destination) that lowers the combined imbalance most, or None.

        Of moves within the tolerance of the best, the smallest memory, then uuid, then destination
        name decides.
        """
        for bound, collect, host in self._classes():
            if bound < self._worthwhile - TOLERANCE / 2:  # half of it is room for rounding
                break
            collect(host)
        return self._first_of_the_best() if self.best > TOLERANCE else None

    @property
    def _worthwhile(self):
        return max(TOLERANCE, self.best - TOLERANCE)

    def _gaps(self, ends):
        """End host to the most that a move touching it can gain there, over all policies."""
        gaps = {}
        for policy, hosts in enumerate(ends):
            if len(hosts) > 1:
                first, second = self.state.scores[hosts[:2], policy]
                gain = abs(float(first - second)) * self.problem.policy_weights[policy]
                gaps[int(hosts[0])] = gaps.get(int(hosts[0]), 0.0) + gain
        return gaps

    def _classes(self):
        """(bound, how to collect, host) of every class of moves, the most promising first."""
        lift = max(self.bottoms.values(), default=0.0)
        classes = [(gap + lift, self._leaving, host) for host, gap in self.tops.items()]
        classes += [(gap, self._entering, host) for host, gap in self.bottoms.items()]
        return sorted(classes, key=lambda found: -found[0])

    def _leaving(self, source):
        """Instances on a top host, to anywhere."""
        vms = np.flatnonzero((self.state.vm_host == source) & self.problem.movable)
        if not len(vms):
            return
        bounds = self.outlook.decrease(self.outlook.at_best(source, vms))
        ends = np.array([host for host in self.outlook.lowest_but(source)], dtype=np.intp)
        after = self.outlook.after(vms[:, None], ends[None, :])
        gains = np.where(self.outlook.accepts(after), self.outlook.decrease(after), -np.inf)
        self._weigh(np.maximum(bounds, gains.max(axis=1, initial=-np.inf)), vms, -1)

    def _entering(self, host):
        """Instances that are not on a top host, to a bottom host.

        In the order in which ties are decided: once one gains all that there is to gain, no later
        one can be chosen.
        """
        start, size = 0, FIRST_LOOK
        while start < len(self.by_cost):
            vms = self.by_cost[start:start + size]
            on = self.state.vm_host[vms]
            inside = self.problem.movable[vms] & (on != host)
            for top in self.tops:
                inside &= on != top
            vms = vms[inside]
            after = self.outlook.after(vms, np.full(len(vms), host))
            gains = np.where(self.outlook.accepts(after), self.outlook.decrease(after), -np.inf)
            self._weigh(gains, vms, host)
            if self.best >= self.bottoms[host] - ROUNDING:
                return
            start, size = start + size, size * 4

    def _weigh(self, bounds, vms, host):
        """Keep what may matter, and find the best permitted among it."""
        near = bounds >= self._worthwhile
        if host != -1 and near.sum() > FEW:
            near &= self._column(host)[vms]
        bounds, vms = bounds[near], vms[near]
        order = np.argsort(-bounds, kind='stable')
        bounds, vms = bounds[order], vms[order]
        for bound, vm in zip(bounds, vms, strict=True):
            if bound <= max(self.best + ROUNDING, TOLERANCE):
                break
            if host == -1:
                self.best = max(self.best, float(self._row(int(vm)).max()))
            elif self.constraints.permits(self.state, int(vm), host):
                self.best = max(self.best, float(bound))
        self.candidates.append((bounds, vms, np.full(len(vms), host)))

    def _row(self, vm):
        """float64 (H,): what the instance gains at each host, -inf where it may not go."""
        if vm not in self.rows:
            after = self.outlook.row(vm)
            permitted = self.constraints.mask(self.state, vm) & self.outlook.accepts(after)
            self.rows[vm] = np.where(permitted, self.outlook.decrease(after), -np.inf)
        return self.rows[vm]

    def _column(self, host):
        """bool (V,): the instances that may go to the host."""
        if host not in self.columns:
            self.columns[host] = self.constraints.column(self.state, host)
        return self.columns[host]

    def _first_of_the_best(self):
        bounds, vms, hosts = (np.concatenate(column)
                              for column in zip(*self.candidates, strict=True))
        tied = bounds >= self.best - TOLERANCE
        vms, hosts = vms[tied], hosts[tied]
        for position in np.lexsort((hosts, self.rank[vms])):
            vm, host = int(vms[position]), int(hosts[position])
            if host == -1:
                there = np.flatnonzero(self._row(vm) >= self._worthwhile)
                if len(there):
                    return vm, int(there[0])
            elif self.constraints.permits(self.state, vm, host):
                return vm, host
        raise AssertionError('the best move is one of the candidates')
