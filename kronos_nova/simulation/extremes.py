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
        self.tops = [hosts[smallest(-column, count)] for column in counted.T]
        self.bottoms = [hosts[smallest(column, count)] for column in counted.T]
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
        return self._after([change for vms, hosts in moves
                            for change in ((self.vm_host[vms], vms, -1), (hosts, vms, 1))])

    def at_best(self, vms: np.ndarray) -> np.ndarray:
        """float64 (n, P): no move of these instances leaves less imbalance, unless to one of
        :attr:`low_ends`."""
        return self._after([(self.vm_host[vms], vms, -1)])

    def _after(self, changes):
        """:param changes: (hosts, instances, whether these arrive, 1, or leave, -1)"""
        # Nothing is broadcast before it must be: one instance and all hosts are quickly asked.
        shape = np.broadcast_shapes(*(np.broadcast(*change).shape for change in changes))
        result = np.empty((*shape, len(self.problem.policies)))
        for policy in range(result.shape[-1]):
            result[..., policy] = self._in_policy(policy, changes)
        return result

    def _in_policy(self, policy, changes):
        problem, scores = self.problem, self.scores[:, policy]
        shifts = [(hosts, sign * problem.weights[vms, policy] * problem.host_scale[hosts, policy])
                  for hosts, vms, sign in changes]
        touched = [hosts for hosts, _ in shifts]
        high = self._beyond(self.tops[policy], scores, -np.inf, touched)
        low = self._beyond(self.bottoms[policy], scores, np.inf, touched)
        for number, (hosts, shift) in enumerate(shifts):
            value = scores[hosts] + shift
            if len(shifts) > 2:
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

    def accepts(self, after) -> np.ndarray:
        """bool (...): no policy gets worse and ends above its threshold."""
        worse = after > self.imbalances + TOLERANCE
        return ~(worse & (after > self.problem.thresholds + TOLERANCE)).any(axis=-1)

    def decrease(self, after) -> np.ndarray:
        """float64 (...): by how much the combined imbalance falls."""
        return self.combined - after @ self.problem.policy_weights


def smallest(keys: np.ndarray, count: int) -> np.ndarray:
    """Indexes of the smallest keys, the smallest first; of equal ones, the first."""
    few = np.arange(len(keys))
    if count < len(keys):
        few = np.flatnonzero(keys <= np.partition(keys, count - 1)[count - 1])
    return few[np.argsort(keys[few], kind='stable')][:count]
