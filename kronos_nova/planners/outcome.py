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
        problem, vms = self.problem, np.array([vm])
        entered = self.state.scores + problem.weights[vm] * problem.host_scale
        after = np.maximum(self._high_without(vms), entered)
        after -= np.minimum(self._low_without(vms), entered)
        ends = self.low_ends
        after[ends] = self.after(vm, ends)
        return after

    def at_best(self, vms: np.ndarray) -> np.ndarray:
        """float64 (n, P): no move of these instances leaves less imbalance, unless to one of
        :attr:`low_ends`."""
        return self._high_without(vms) - self._low_without(vms)

    @property
    def low_ends(self) -> np.ndarray:
        """intp: the hosts that are at the bottom of some policy once any one host is not."""
        return np.array(sorted({int(host) for hosts in self.bottoms for host in hosts[:2]}),
                        dtype=np.intp)

    def _high_without(self, vms):
        return self._end_without(vms, self.tops, np.maximum, -np.inf)

    def _low_without(self, vms):
        return self._end_without(vms, self.bottoms, np.minimum, np.inf)

    def _end_without(self, vms, ends, further, nothing):
        """float64 (n, P): how far the scores reach once an instance left its host, but for the host
        it enters."""
        problem, scores = self.problem, self.state.scores
        sources = self.state.vm_host[vms]
        others = np.column_stack([
            self._beyond(hosts[:2], scores[:, policy], nothing, sources, sources)
            for policy, hosts in enumerate(ends)])
        left = scores[sources] - problem.weights[vms] * problem.host_scale[sources]
        counts = problem.available[sources][:, None]
        return np.where(counts, further(others, left), others)

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


class Teller:
    """Makes moves one after the other, and tells of each what it does to every policy."""

    def __init__(self, state: State):
        self.state = state
        self.imbalances = state.imbalances()

    def take(self, vm: int, destination: int, why: str) -> Step:
        problem, before = self.state.problem, self.imbalances
        source = self.state.move(vm, destination)
        self.imbalances = self.state.imbalances()
        effect = ', '.join(f'{name} {old:.3f} to {new:.3f}' for name, old, new in
                           zip(problem.policies, before, self.imbalances, strict=True))
        return Step(vm=vm, source=source, destination=destination,
                    combined_after=float(self.imbalances @ problem.policy_weights),
                    reason=f'{why}: imbalance {effect}')
