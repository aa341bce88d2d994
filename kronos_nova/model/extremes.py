"""The imbalances after each of many moves, computed only from the hosts with the highest and lowest
scores."""

from collections.abc import Sequence

import numpy as np

from kronos_nova.model import spans
from kronos_nova.model.arrays import Index
from kronos_nova.model.arrays import Move
from kronos_nova.model.problem import TOLERANCE
from kronos_nova.model.problem import Problem

Change = tuple[Index, Index, int]
"""A change of the instances on hosts: (hosts, instances, 1 if the instances arrive or -1 if they
leave)."""
Shift = tuple[Index, np.ndarray]
"""A change of scores: (hosts, changes of their scores)."""


class Extremes:
    """The most and the least loaded hosts of each policy.

    A move changes the scores of two hosts. The highest score after the move is the score of one of
    these two hosts, or the highest score of the other hosts. So the three highest and the three
    lowest hosts of a policy are enough to compute its imbalance after a move. For k moves made
    together, 2k + 1 hosts at each end are enough. A policy may leave its most and its least loaded
    hosts out of its imbalance. These hosts are kept in addition.

    imbalances : float64 (P,), imbalance of each policy before any move
    left_out : list with the number of hosts that each policy leaves out at each end
    tops : for each policy intp (n,), the hosts with the highest scores, the highest first
    bottoms : for each policy intp (n,), the hosts with the lowest scores, the lowest first
    """

    def __init__(self, problem: Problem, scores: np.ndarray, vm_host: np.ndarray, count: int):
        self.problem, self.scores, self.vm_host = problem, scores, vm_host
        hosts = np.flatnonzero(problem.available)
        counted = scores[hosts]
        self.left_out = ([0] * counted.shape[1] if problem.left_out is None
                         else problem.left_out.tolist())
        self.tops, self.bottoms = (
            [hosts[smallest(sign * column, count + beyond)]
             for column, beyond in zip(counted.T, self.left_out, strict=True)]
            for sign in (-1, 1))
        self.imbalances = (np.array([
            scores[top[0], p] - scores[bottom[0], p] if len(hosts) else 0.0
            for p, (top, bottom) in enumerate(zip(self.tops, self.bottoms, strict=True))])
            if problem.left_out is None else spans.imbalances(counted.T, problem.left_out))
        self.combined = float(self.imbalances @ problem.policy_weights)

    @property
    def is_balanced(self) -> bool:
        """Return whether every policy is at or below its threshold."""
        return bool((self.imbalances <= self.problem.thresholds + TOLERANCE).all())

    @property
    def low_ends(self) -> np.ndarray:
        """intp: the two least loaded hosts of each policy, in one array without duplicates. If a
        policy leaves out the n lowest scores (``imbalance_over``), the array has the n + 2 least
        loaded hosts of this policy."""
        return np.array(sorted({
            int(host) for hosts, beyond in zip(self.bottoms, self.left_out, strict=True)
            for host in hosts[:2 + beyond]}), dtype=np.intp)

    def counting(self, ends: list[np.ndarray]) -> list[np.ndarray]:
        """Return a list with an intp array for each policy: the outermost hosts at one end of the
        scores. These are the hosts that the policy leaves out of its imbalance at this end, and the
        next host, whose score counts. A move can lower the imbalance at this end only if it changes
        the score of one of these hosts.

        :param ends: :attr:`tops` or :attr:`bottoms`
        """
        return [hosts[:1 + beyond] for hosts, beyond in zip(ends, self.left_out, strict=True)]

    def after(self, *moves: Move) -> np.ndarray:
        """Return float64 (..., P): the imbalances after moves that are made together."""
        return self._after([change for vms, hosts in moves
                            for change in ((self.vm_host[vms], vms, -1), (hosts, vms, 1))])

    def at_best(self, vms: np.ndarray) -> np.ndarray:
        """Return float64 (instances, P): a lower bound of the imbalance of each policy after one
        move of each of ``vms``. The bound holds for every destination that is not in
        :attr:`low_ends`."""
        return self._after([(self.vm_host[vms], vms, -1)])

    def _after(self, changes: Sequence[Change]) -> np.ndarray:
        # Arrays are broadcast as late as possible, so that one instance and all hosts are fast.
        shape = np.broadcast_shapes(*(np.broadcast(*change).shape for change in changes))
        result = np.empty((*shape, len(self.problem.policies)))
        for policy in range(result.shape[-1]):
            result[..., policy] = self._in_policy(policy, changes)
        return result

    def _in_policy(self, policy: int, changes: Sequence[Change]) -> np.ndarray:
        problem, scores = self.problem, self.scores[:, policy]
        shifts = [(hosts, sign * problem.weights[vms, policy] * problem.host_scale[hosts, policy])
                  for hosts, vms, sign in changes]
        if self.left_out[policy]:
            return self._between(policy, shifts)
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

    def _between(self, policy: int, shifts: Sequence[Shift]) -> np.ndarray:
        """Return float64 (...): the imbalance after moves, for a policy that leaves some hosts out
        of its imbalance.

        :param shifts: pairs (hosts, changes of their scores by the moves)
        """
        scores, beyond = self.scores[:, policy], self.left_out[policy]
        if np.count_nonzero(self.problem.available) - 2 * beyond < 2:
            return np.zeros(())
        touched: list[tuple[Index, np.ndarray]] = []
        values = []
        for hosts, _ in shifts:
            counts = self.problem.available[hosts]
            for others, _ in touched:    # a host that several moves touch counts once
                counts = counts & (others != hosts)
            touched.append((hosts, counts))
            values.append(scores[hosts] + sum(np.where(there == hosts, change, 0.0)
                                              for there, change in shifts))
        high = _after_changes(self.tops[policy], scores, touched, values, beyond)
        low = -_after_changes(self.bottoms[policy], -scores, touched,
                              [-value for value in values], beyond)
        return high - low

    @staticmethod
    def _beyond(ends: np.ndarray, scores: np.ndarray, default: float,
                touched: Sequence[Index]) -> np.ndarray:
        """Return float64 (...): the score of the first host of ``ends`` whose score the moves do
        not change.

        :param ends: hosts at one end of the scores, the most extreme first
        :param scores: float64 (H,), scores of the hosts before the moves
        :param default: result if the moves change the scores of all hosts of ``ends``
        :param touched: the hosts whose scores the moves change
        """
        result = np.asarray(default)
        for host in ends[::-1]:
            untouched = touched[0] != host
            for hosts in touched[1:]:
                untouched = untouched & (hosts != host)
            result = np.where(untouched, scores[host], result)
        return result

    def accepts(self, after: np.ndarray) -> np.ndarray:
        """Return bool (...): true if the imbalance of every policy either does not rise or ends at
        or below the threshold.

        :param after: float64 (..., P), the imbalances after moves
        """
        worse = after > self.imbalances + TOLERANCE
        return ~np.any(worse & (after > self.problem.thresholds + TOLERANCE), axis=-1)

    def decrease(self, after: np.ndarray) -> np.ndarray:
        """Return float64 (...): the decrease of the combined imbalance by moves.

        :param after: float64 (..., P), the imbalances after the moves
        """
        return self.combined - after @ self.problem.policy_weights


def _after_changes(ends: np.ndarray, scores: np.ndarray,
                   touched: Sequence[tuple[Index, np.ndarray]], values: Sequence[np.ndarray],
                   beyond: int) -> np.ndarray:
    """Return float64 (...): the score at position ``beyond``, in descending order, after some hosts
    get new scores. Position 0 is the highest score.

    Let ``x`` be the new scores, and ``r`` the scores of all other hosts, both in descending order.
    The ``beyond + 1`` highest scores of ``x`` and ``r`` together are the first ``j`` scores of
    ``x`` and the first ``beyond + 1 - j`` scores of ``r``, for some number ``j``. The wanted score
    is the lowest of them: min(x[j - 1], r[beyond - j]). The right ``j`` is not known, but no other
    ``j`` gives a larger minimum. So the result is the largest minimum over all ``j``. A score that
    does not exist counts as infinite.

    :param ends: the hosts with the highest scores, in descending order
    :param touched: for each change, a pair of the changed hosts, and bool that is true for hosts
        that count in the imbalance
    :param values: the new scores of the hosts of each change
    """
    never = len(scores)
    rank = np.full(len(scores), never)
    rank[ends] = np.arange(len(ends))
    gone = _ascending([np.where(counts, rank[hosts], never) for hosts, counts in touched])
    new = _ascending([np.where(counts, -value, np.inf)
                      for (_, counts), value in zip(touched, values, strict=True)])
    rest = np.append(scores[ends], np.full(len(touched), -np.inf))
    result = np.asarray(-np.inf)
    for more in range(len(new) + 1):
        value = np.asarray(np.inf)
        if more <= beyond:
            index = np.asarray(beyond - more)
            for each in gone:
                index = index + (each <= index)
            value = rest[index]
        result = np.maximum(result, np.minimum(value, -new[more - 1]) if more else value)
    return result


def _ascending(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Sort arrays at each position, after they are broadcast to one shape. In the result, the first
    array has the smallest value at each position, the second array the second smallest value, and
    so on."""
    for last in range(len(parts) - 1, 0, -1):
        for n in range(last):
            parts[n:n + 2] = np.minimum(*parts[n:n + 2]), np.maximum(*parts[n:n + 2])
    return parts


def smallest(keys: np.ndarray, count: int) -> np.ndarray:
    """Return the indexes of the ``count`` smallest keys, the smallest key first. Of equal keys, the
    key with the lowest index comes first."""
    few = np.arange(len(keys))
    if count < len(keys):
        few = np.flatnonzero(keys <= np.partition(keys, count - 1)[count - 1])
    return few[np.argsort(keys[few], kind='stable')][:count]
