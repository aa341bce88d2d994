"""The last move of a plan, exactly.

One move takes load off one host and brings it to one other. So afterwards the highest score is at
least that of the highest host which is not its source, and the lowest at most that of the lowest
which is not its destination. Few of many half-done plans can be finished well by a single move, and
of their hosts only few pairs come into question; these are looked at one by one: the bound of
branch and bound (Land and Doig 1960) over the last level.
"""

import dataclasses

import numpy as np

from kronos_nova.planners.generation import Generation
from kronos_nova.simulation.space import SearchSpace

MOST_PLANS = 60
MOST_MOVES = 20000
MOST_TRIED = 60


def last_moves(space: SearchSpace, ends: Generation, wanted: np.ndarray, below: float,
           most: int) -> list[tuple[int, tuple[int, int], float]]:
    """Moves after which one of n plans ends legally and costs less than ``below``, the best first,
    as (row, (instance, destination), cost); not more than ``most``.

    :param wanted: bool (n,), the plans that may have one more move
    """
    tops = _Ends(ends.scores, space.policy_weights, 1)
    bottoms = _Ends(ends.scores, space.policy_weights, -1)
    level = tops.level + bottoms.level + ends.price
    least = level - tops.gain.max(axis=0) - bottoms.gain.max(axis=0)
    rows = np.flatnonzero(wanted & (least < below))
    rows = rows[np.argsort(least[rows], kind='stable')[:MOST_PLANS]]
    pairs = tops.gain[:, None, rows] + bottoms.gain[None, :, rows] > level[rows] - below
    pairs &= _could_fit(space, ends.free[:, :, rows])[:, None, :]
    moves = _moves(space, pairs, rows)
    cost = _costs(space, ends, moves, tops, bottoms)
    good = np.flatnonzero(cost < below)
    found = []
    for n in good[np.argsort(cost[good], kind='stable')][:MOST_TRIED]:
        if len(found) < most and _is_possible(space, ends, moves, n):
            move = int(moves.vm[n]), int(moves.host[n])
            found.append((int(moves.row[n]), move, float(cost[n])))
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Moves:
    """m moves, each of a plan."""

    row: np.ndarray
    vm: np.ndarray
    source: np.ndarray
    host: np.ndarray


class _Ends:
    """The highest (sign 1) or lowest (-1) hosts of n end states.

    level : float64 (n,), sign × Σ weight × score of the end
    gain : float64 (h, n), by how much that falls if a host is not counted
    """

    def __init__(self, scores: np.ndarray, policy_weights: np.ndarray, sign: int):
        self.sign = sign
        hosts, _policies, count = scores.shape
        every = np.arange(count)
        self.level, self.gain = np.zeros(count), np.zeros((hosts, count))
        self._ends = []
        for p, weight in enumerate(policy_weights):
            column = scores[:, p] * sign
            first = column.argmax(axis=0)
            value = column[first, every]
            column[first, every] = -np.inf
            second = column.max(axis=0)
            self.gain[first, every] += weight * (value - second)
            self.level += weight * value
            self._ends.append((first, value, second))

    def without(self, p: int, rows: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """float64 (m,): the score at the end if a host is not counted."""
        first, value, second = self._ends[p]
        return self.sign * np.where(first[rows] == hosts, second[rows], value[rows])


def _could_fit(space: SearchSpace, free: np.ndarray) -> np.ndarray:
    """bool (h, n): whether no host is too full once something has left this one."""
    over = (free < space.floor[:, :, None]).any(axis=1)
    count = over.sum(axis=0)
    return (count == 0) | ((count == 1) & over)


def _moves(space: SearchSpace, pairs: np.ndarray, rows: np.ndarray) -> _Moves:
    """All instances of the sources.

    :param pairs: bool (h, h, n), sources and destinations to look at
    """
    source, host, n = np.nonzero(pairs)
    count = space.population[source]
    few = (np.cumsum(count) <= MOST_MOVES) & (source != host)
    source, host, n, count = source[few], host[few], n[few], count[few]
    begin = np.repeat(np.cumsum(count) - count, count)
    pair = np.repeat(np.arange(len(n)), count)
    vm = space.by_home[space.first[source[pair]] + np.arange(len(pair)) - begin]
    return _Moves(rows[n[pair]], vm, source[pair], host[pair])


def _costs(space: SearchSpace, ends: Generation, moves: _Moves, tops: _Ends, bottoms: _Ends):
    """float64 (m,): what the plans cost with these moves; inf if they spoil a policy."""
    cost = ends.price[moves.row] + space.prices(moves.vm, moves.host)
    for p, weight in enumerate(space.policy_weights):
        amount = space.weights[moves.vm, p]
        left = ends.scores[moves.source, p, moves.row] - amount * space.scale[moves.source, p]
        entered = ends.scores[moves.host, p, moves.row] + amount * space.scale[moves.host, p]
        high = np.maximum(tops.without(p, moves.row, moves.source), np.maximum(left, entered))
        low = np.minimum(bottoms.without(p, moves.row, moves.host), np.minimum(left, entered))
        cost += weight * (high - low)
        cost[high - low > space.worst[p]] = np.inf
    return cost


def _is_possible(space: SearchSpace, ends: Generation, moves: _Moves, n: int) -> bool:
    row, vm = moves.row[n], moves.vm[n]
    source, host, plan = moves.source[n], moves.host[n], ends.moves[row]
    if (plan[:, 0] == vm).any() or not np.isfinite(space.column(int(host))[vm]):
        return False
    demand, free = space.sizes[vm], ends.free[:, :, row]
    if (free[host] - demand < space.floor[host]).any() or (
            free[source] + demand < space.floor[source]).any():
        return False
    return not space.meets(np.array([vm]), np.array([host]), plan[None])[0]
