"""What moves would do to the imbalances, for many moves at once."""

import numpy as np

from kronos_nova.simulation.problem import TOLERANCE
from kronos_nova.simulation.problem import Problem


class Extremes:
    """The hosts at both ends of each policy's scores.

    A move changes two hosts, so the highest score afterwards is that of one of the two or else the
    highest of three that is neither: three hosts from each end of a policy are all one needs; of
    k moves together, 2k + 1.

    imbalances : float64 (P,), now
    tops, bottoms : for each policy intp (count,), the hosts with the highest (lowest) scores, the
        furthest first; fewer if there are fewer
    """

    def __init__(self, problem: Problem, scores: np.ndarray, vm_host: np.ndarray, count: int):
        self.problem, self.scores, self.vm_host = problem, scores, vm_host
        hosts = np.flatnonzero(problem.available)
        counted = scores[hosts]
        self.tops = [hosts[_least(-column, count)] for column in counted.T]
        self.bottoms = [hosts[_least(column, count)] for column in counted.T]
        self.imbalances = np.array([
            scores[top[0], p] - scores[bottom[0], p] if len(hosts) else 0.0
            for p, (top, bottom) in enumerate(zip(self.tops, self.bottoms, strict=True))])
        self.combined = float(self.imbalances @ problem.policy_weights)

    @property
    def is_balanced(self) -> bool:
        """Whether every policy is at or below its threshold."""
        return bool((self.imbalances <= self.problem.thresholds + TOLERANCE).all())

    @property
    def low_ends(self) -> np.ndarray:
        """intp: the hosts that are at the bottom of some policy once any one host is not."""
        return np.array(sorted({int(host) for hosts in self.bottoms for host in hosts[:2]}),
                        dtype=np.intp)

    def after(self, *moves: tuple) -> np.ndarray:
        """float64 (..., P): the imbalances after moves, as in :meth:`State.delta`."""
        moves = [np.broadcast_arrays(*pair) for pair in moves]
        shape = np.broadcast_shapes(*(vms.shape for vms, _ in moves))
        result = np.empty((*shape, len(self.problem.policies)))
        for policy in range(result.shape[-1]):
            result[..., policy] = self._after(policy, moves)
        return result

    def _after(self, policy, moves):
        problem, scores = self.problem, self.scores[:, policy]
        shifts = []
        for vms, hosts in moves:
            weight = problem.weights[vms, policy]
            sources = self.vm_host[vms]
            shifts += [(sources, -weight * problem.host_scale[sources, policy]),
                       (hosts, weight * problem.host_scale[hosts, policy])]
        touched = [hosts for hosts, _ in shifts]
        high = self._beyond(self.tops[policy], scores, -np.inf, touched)
        low = self._beyond(self.bottoms[policy], scores, np.inf, touched)
        for number, (hosts, shift) in enumerate(shifts):
            value = scores[hosts] + shift
            if len(moves) > 1:
                value = value + sum(np.where(there == hosts, change, 0.0)
                                    for other, (there, change) in enumerate(shifts)
                                    if other != number)
            counts = problem.available[hosts]
            high = np.maximum(high, np.where(counts, value, -np.inf))
            low = np.minimum(low, np.where(counts, value, np.inf))
        return np.where(high >= low, high - low, 0.0)

    @staticmethod
    def _beyond(ends, scores, nothing, touched):
        """The first of the ends that no move touches."""
        result = nothing
        for host in ends[::-1]:
            untouched = touched[0] != host
            for hosts in touched[1:]:
                untouched = untouched & (hosts != host)
            result = np.where(untouched, scores[host], result)
        return result

    def row(self, vm: int) -> np.ndarray:
        """float64 (H, P): the imbalances after the instance's move to each host. What it says of
        its own host, and of hosts that are not available, means nothing."""
        problem, vms = self.problem, np.array([vm])
        entered = self.scores + problem.weights[vm] * problem.host_scale
        high, low = self._without(vms)
        after = np.maximum(high, entered)
        after -= np.minimum(low, entered)
        ends = self.low_ends
        after[ends] = self.after((vm, ends))
        return after

    def at_best(self, vms: np.ndarray) -> np.ndarray:
        """float64 (n, P): no move of these instances leaves less imbalance, unless to one of
        :attr:`low_ends`."""
        high, low = self._without(vms)
        return high - low

    def _without(self, vms):
        """float64 (n, P), twice: how far up and down the scores reach once an instance left its
        host, but for the host it enters."""
        problem, sources = self.problem, self.vm_host[vms]
        left = self.scores[sources] - problem.weights[vms] * problem.host_scale[sources]
        counts = problem.available[sources][:, None]
        high, low = (np.column_stack([self._beyond(hosts[:2], self.scores[:, p], nothing,
                                                   [sources]) * np.ones(len(vms))
                                      for p, hosts in enumerate(ends)])
                     for ends, nothing in ((self.tops, -np.inf), (self.bottoms, np.inf)))
        return (np.where(counts, np.maximum(high, left), high),
                np.where(counts, np.minimum(low, left), low))

    def accepts(self, after) -> np.ndarray:
        """bool (...): no policy gets worse and ends above its threshold."""
        worse = after > self.imbalances + TOLERANCE
        return ~(worse & (after > self.problem.thresholds + TOLERANCE)).any(axis=-1)

    def decrease(self, after) -> np.ndarray:
        """float64 (...): by how much the combined imbalance falls."""
        return self.combined - after @ self.problem.policy_weights


def _least(keys, count):
    """Indexes of the smallest keys, the smallest first."""
    few = np.argpartition(keys, count - 1)[:count] if len(keys) > count else np.arange(len(keys))
    return few[np.argsort(keys[few], kind='stable')]
