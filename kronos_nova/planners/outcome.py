"""What a move would do to the imbalances, for many moves at once."""

import numpy as np

from kronos_nova.planners.base import Step
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State


class Outlook:
    """Answers for one state; made anew once it has changed.

    A move changes two hosts, so the highest score afterwards is that of one of the two or else the
    highest of three that is neither: three hosts from each end of a policy are all one needs.
    """

    def __init__(self, state: State):
        self.state = state
        self.problem = state.problem
        self._hosts = np.flatnonzero(self.problem.available)
        counted = state.scores[self._hosts]
        self.imbalances = state.imbalances()
        self.tops = [self._ends(-counted[:, p]) for p in range(counted.shape[1])]
        self.bottoms = [self._ends(counted[:, p]) for p in range(counted.shape[1])]

    def _ends(self, keys):
        """Indexes of the three hosts with the smallest keys, in that order."""
        few = np.argpartition(keys, 2)[:3] if len(keys) > 3 else np.arange(len(keys))
        return self._hosts[few[np.argsort(keys[few], kind='stable')]]

    def row(self, vm: int) -> np.ndarray:
        """float64 (H, P): the imbalances after the instance's move to each host. What it says of
        its own host, and of hosts that are not available, means nothing."""
        problem, source = self.problem, self.state.vm_host[vm]
        entered = self.state.scores + problem.weights[vm] * problem.host_scale
        after = np.maximum(self._highest_but(source, [vm]), entered)
        after -= np.minimum(self._low_but(source, [vm]), entered)
        for host in self.lowest_but(source):
            after[host] = self.after(vm, host)
        return after

    def at_best(self, source: int, vms: np.ndarray) -> np.ndarray:
        """float64 (n, P): no move of these instances off ``source`` leaves less imbalance, unless
        to one of :meth:`lowest_but`."""
        return self._highest_but(source, vms) - self._low_but(source, vms)

    def lowest_but(self, source: int) -> list[int]:
        """The hosts at the bottom of each policy were it not for ``source``."""
        firsts = ([host for host in hosts if host != source][:1] for hosts in self.bottoms)
        return sorted({int(host) for first in firsts for host in first})

    def _highest_but(self, source, vms):
        return self._end_but(source, vms, self.tops, np.maximum, -np.inf)

    def _low_but(self, source, vms):
        return self._end_but(source, vms, self.bottoms, np.minimum, np.inf)

    def _end_but(self, source, vms, ends, further, nothing):
        """float64 (n, P): how far the scores reach once an instance left ``source``, but for the
        host it enters."""
        scores, problem = self.state.scores, self.problem
        others = np.array([
            next((scores[host, policy] for host in hosts if host != source), nothing)
            for policy, hosts in enumerate(ends)])
        if not problem.available[source]:
            return np.broadcast_to(others, (len(vms), len(others)))
        return further(others, scores[source] - problem.weights[vms] * problem.host_scale[source])

    @property
    def combined(self) -> float:
        return float(self.imbalances @ self.problem.policy_weights)

    @property
    def is_balanced(self) -> bool:
        """Whether every policy is at or below its threshold."""
        return bool((self.imbalances <= self.problem.thresholds + TOLERANCE).all())

    def after(self, vms, destinations) -> np.ndarray:
        """float64 (..., P): the imbalances after each move; both arguments broadcast."""
        vms, destinations = np.broadcast_arrays(vms, destinations)
        sources = self.state.vm_host[vms]
        result = np.empty((*vms.shape, len(self.problem.policies)))
        for policy in range(result.shape[-1]):
            result[..., policy] = self._after(policy, vms, sources, destinations)
        return result

    def _after(self, policy, vms, sources, destinations):
        problem, scores = self.problem, self.state.scores[:, policy]
        weight = problem.weights[vms, policy]
        left = scores[sources] - weight * problem.host_scale[sources, policy]
        entered = scores[destinations] + weight * problem.host_scale[destinations, policy]
        counts = problem.available[sources]
        counts_too = problem.available[destinations]
        high = self._beyond(self.tops[policy], scores, -np.inf, sources, destinations)
        low = self._beyond(self.bottoms[policy], scores, np.inf, sources, destinations)
        for values, counted in ((left, counts), (entered, counts_too)):
            high = np.maximum(high, np.where(counted, values, -np.inf))
            low = np.minimum(low, np.where(counted, values, np.inf))
        return np.where(high >= low, high - low, 0.0)

    @staticmethod
    def _beyond(ends, scores, nothing, sources, destinations):
        """The first of the ends that is neither source nor destination."""
        result = np.full(sources.shape, nothing)
        for host in ends[::-1]:
            untouched = (sources != host) & (destinations != host)
            result = np.where(untouched, scores[host], result)
        return result

    def accepts(self, after) -> np.ndarray:
        """bool (...): no policy gets worse and ends above its threshold."""
        worse = after > self.imbalances + TOLERANCE
        return ~(worse & (after > self.problem.thresholds + TOLERANCE)).any(axis=-1)

    def decrease(self, after) -> np.ndarray:
        """float64 (...): by how much the combined imbalance falls."""
        return self.combined - after @ self.problem.policy_weights


def take(outlook: Outlook, vm: int, destination: int, why: str) -> Step:
    """Make a move, and tell what it does to every policy."""
    state = outlook.state
    source = state.move(vm, destination)
    effect = ', '.join(
        f'{name} {before:.3f} to {after:.3f}' for name, before, after in
        zip(state.problem.policies, outlook.imbalances, state.imbalances(), strict=True))
    return Step(vm=vm, source=source, destination=destination, combined_after=state.combined(),
                reason=f'{why}: imbalance {effect}')
