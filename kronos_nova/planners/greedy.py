"""``greedy``: the best single move, again and again.

Gives exactly the plan that trying every pair gives, without trying them. A move lowers an imbalance
only if it leaves the one host at a policy's top or enters the one at its bottom, and then by no
more than the gap to the next host. So moves come in a few classes, by which end hosts they touch,
each with a bound on what it can gain; a class whose bound is below what was found already is
passed over.
"""

import dataclasses

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.objects.plan import SPREAD
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Step
from kronos_nova.planners.outcome import Outlook
from kronos_nova.planners.outcome import take
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    """Permitted moves as parallel arrays."""

    vms: np.ndarray
    destinations: np.ndarray
    gains: np.ndarray


class Greedy:
    phase = SPREAD

    def plan(self, state: State, constraints: Constraints, limits: Limits) -> list[Step]:
        steps = []
        while len(steps) < limits.budget and not limits.is_over:
            outlook = Outlook(state)
            if outlook.is_balanced:
                break
            pair = best_pair(outlook, constraints)
            if pair is None:
                break
            steps.append(take(outlook, *pair, 'evens the load'))
        return steps


def best_pair(outlook: Outlook, constraints: Constraints) -> tuple[int, int] | None:
    """The move that lowers the combined imbalance most, as (instance, destination).

    Of moves within the tolerance of the best, the smallest memory, then uuid, then destination
    name decides. None if no permitted move lowers it.
    """
    search = _Search(outlook, constraints)
    for bound, look in search.classes():
        if bound < search.worthwhile - TOLERANCE / 2:  # half of it is room for rounding
            break
        look()
    return search.first_of_the_best()


class _Search:
    """One round. ``best`` is the largest permitted decrease so far."""

    def __init__(self, outlook, constraints):
        self.outlook, self.constraints = outlook, constraints
        self.state, self.problem = outlook.state, outlook.problem
        self.best = 0.0
        self.found = []

    @property
    def worthwhile(self):
        """What a move must gain to matter still."""
        return max(TOLERANCE, self.best - TOLERANCE)

    def classes(self):
        """(bound, search) of every class of moves, the most promising first."""
        top, bottom = self._gaps(self.outlook.tops), self._gaps(self.outlook.bottoms)
        classes = [(top[s] + bottom[d], 0, s, d) for s in top for d in bottom if s != d]
        classes += [(gap, 1, s, None) for s, gap in top.items()]
        classes += [(gap, 2, None, d) for d, gap in bottom.items()]
        kinds = (self._between, lambda s, _d: self._leaving(s, bottom),
                 lambda _s, d: self._entering(d, top))
        for bound, kind, source, destination in sorted(
                classes, key=lambda c: (-c[0], *c[1:2])):
            yield bound, lambda k=kinds[kind], s=source, d=destination: k(s, d)

    def _gaps(self, ends):
        """End host to the most that a move touching it can gain at that end of all policies."""
        gaps = {}
        for policy, hosts in enumerate(ends):
            if len(hosts) > 1:
                first, second = self.state.scores[hosts[:2], policy]
                gain = abs(first - second) * self.problem.policy_weights[policy]
                gaps[int(hosts[0])] = gaps.get(int(hosts[0]), 0.0) + gain
        return gaps

    def _between(self, source, destination):
        vms = self._movable_on(source)
        self._look(vms[:, None], np.array([[destination]]))

    def _leaving(self, source, bottom):
        others = self.problem.available.copy()
        others[list(bottom)] = False
        vms = self._movable_on(source)
        self._look(vms[:, None], np.flatnonzero(others)[None, :])

    def _entering(self, destination, top):
        elsewhere = self.problem.movable & (self.state.vm_host != destination)
        for source in top:
            elsewhere &= self.state.vm_host != source
        self._look(np.flatnonzero(elsewhere)[:, None], np.array([[destination]]))

    def _movable_on(self, host):
        return np.flatnonzero((self.state.vm_host == host) & self.problem.movable)

    def _look(self, vms, destinations):
        """Add the permitted moves that matter; ``vms`` (n, 1), ``destinations`` (1, m)."""
        if not vms.size or not destinations.size:
            return
        after = self.outlook.after(vms, destinations)
        gains = np.where(self.outlook.accepts(after), self.outlook.decrease(after), -np.inf)
        hosts = destinations[0]
        if len(hosts) == 1:
            self._keep_column(vms[:, 0], int(hosts[0]), gains[:, 0])
        else:
            self._keep_rows(vms[:, 0], hosts, gains)

    def _keep_column(self, vms, host, gains):
        if gains.max() < self.worthwhile:
            return
        gains = np.where(self.constraints.column(self.state, host)[vms], gains, -np.inf)
        self._keep(vms, np.full(len(vms), host), gains)

    def _keep_rows(self, vms, hosts, gains):
        most = gains.max(axis=1)
        for row in np.argsort(-most, kind='stable'):
            if most[row] < self.worthwhile:
                return
            permitted = self.constraints.mask(self.state, int(vms[row]))[hosts]
            self._keep(np.full(len(hosts), vms[row]), hosts,
                       np.where(permitted, gains[row], -np.inf))

    def _keep(self, vms, destinations, gains):
        self.best = max(self.best, float(gains.max(initial=0.0)))
        chosen = gains >= self.worthwhile
        chosen &= gains > TOLERANCE
        self.found.append(_Found(vms[chosen], destinations[chosen], gains[chosen]))

    def first_of_the_best(self):
        if self.best <= TOLERANCE:
            return None
        vms, destinations, gains = (
            np.concatenate([getattr(found, name) for found in self.found])
            for name in ('vms', 'destinations', 'gains'))
        tied = gains >= self.best - TOLERANCE
        vms, destinations = vms[tied], destinations[tied]
        first = np.lexsort((destinations, vms, self.problem.memory_mb[vms]))[0]
        return int(vms[first]), int(destinations[first])


