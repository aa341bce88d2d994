"""A strategy that knows the whole day, and copies little memory for few hot minutes. It is an upper
bound of the least GiB for these hot minutes; :mod:`bench.days.bounds` has a lower bound."""

import numpy as np

from bench.days import rivals
from bench.days import scenario as scenarios
from bench.days import summary
from bench.days.tally import HOT

AIM = 0.97
"""Share of the permitted hot minutes that the placement may leave. The remaining share is for the
first minutes of the day, in which servers are copied. Raised, less memory is copied, and more hot
minutes than permitted may remain; lowered, more memory is copied. Chosen because the copies of a
cluster of 100 hosts take ten minutes of the day."""
WARM = 0.8
"""Load above which a host counts a little already, as a share of the host. Raised, fewer moves are
found that save hot minutes only together; lowered, moves are made that save no hot minute. Not
measured."""
WARMTH, HEAT = 0.05, 0.5
"""Penalties of load above :data:`WARM` and above HOT, per share of a host, where a hot host has a
penalty of 1. Raised, moves that lower high load count for more; lowered, the search ends at hosts
that two servers have to leave. Not measured."""


class DayKnown(rivals._Mover):
    """Knows the load of each server on the whole day, and makes all moves at the beginning.

    The moves are found one by one: the next move is the one that saves the largest penalty for each
    GiB. The search ends when the placement leaves few enough hot minutes. Then servers return to
    their hosts, the largest server first, if few enough hot minutes remain.

    :param share: permitted hot minutes, as a share of those of no moves
    """

    name = 'day known'

    def __init__(self, share: float = summary.GOAL_HOT):
        self._share = share

    def begin(self, world):
        super().begin(world)
        search = _Search(world)
        most = AIM * self._share * search.minutes()
        search.run(most)
        search.take_back(most)
        self.want(search.moves())


class _Search:
    """The search for the moves. All arrays of a move are (V, H), servers by hosts."""

    def __init__(self, world):
        scenario = world.scenario
        self._use = (scenario.demand / scenario.cores).T.copy()
        self._gib = scenario.vm_memory_mb / 1024
        self._home, self._place = world.place.copy(), world.place.copy()
        self._free = world.free_mb() / 1024
        self._loads = np.stack([self._use[self._place == host].sum(axis=0)
                                for host in range(scenario.hosts)])
        shape = len(self._gib), scenario.hosts
        self._left, self._arrived = np.zeros(shape[0]), np.zeros(shape)
        self._order = []
        for host in range(scenario.hosts):
            self._rate(host)

    def minutes(self) -> float:
        """Return the hot minutes of the present placement."""
        return float((self._loads > HOT).sum()) * scenarios.STEP / 60

    def run(self, most: float) -> None:
        """Make moves until at most ``most`` hot minutes remain, or no move saves anything."""
        vms = np.arange(len(self._gib))
        while self.minutes() > most:
            saved = (self._left[:, None] - self._arrived) / self._gib[:, None]
            saved[self._place != self._home] = -np.inf
            saved[vms, self._place] = -np.inf
            saved[self._gib[:, None] > self._free] = -np.inf
            vm, host = np.unravel_index(saved.argmax(), saved.shape)
            if saved[vm, host] <= 0:
                break
            self._order.append(int(vm))
            self._move(vm, host)

    def take_back(self, most: float) -> None:
        """Return servers to their hosts while at most ``most`` hot minutes remain."""
        for vm in sorted(self._order, key=lambda vm: -self._gib[vm]):
            host, home = self._place[vm], self._home[vm]
            if self._gib[vm] <= self._free[home]:
                self._move(vm, home)
                if self.minutes() > most:
                    self._move(vm, host)

    def moves(self) -> list[tuple[int, int]]:
        """Return (server, host) of the moves, those that save most for each GiB first."""
        return [(vm, int(self._place[vm])) for vm in self._order
                if self._place[vm] != self._home[vm]]

    def _move(self, vm, host):
        source = self._place[vm]
        self._place[vm] = host
        for at, sign in ((source, -1), (host, 1)):
            self._loads[at] += sign * self._use[vm]
            self._free[at] -= sign * self._gib[vm]
            self._rate(at)

    def _rate(self, host):
        """Compute by how much the penalty of a host falls if a server leaves it, and rises if one
        arrives."""
        loads, there = self._loads[host], self._place == host
        now = _penalty(loads)
        self._left[there] = now - _penalty(loads - self._use[there])
        self._arrived[:, host] = _penalty(loads + self._use) - now


def _penalty(loads: np.ndarray) -> np.ndarray:
    """Return the penalty of the loads (..., t) of a host as float64 (...): the share of the time
    above HOT, and a part of high load."""
    return ((loads > HOT).mean(axis=-1) + WARMTH * np.maximum(loads - WARM, 0.0).mean(axis=-1)
            + HEAT * np.maximum(loads - HOT, 0.0).mean(axis=-1))
