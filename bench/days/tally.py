"""The quality of some time in a cloud, for its servers and its operator."""

import collections

import numpy as np

HOT = 0.9
RETURN = 86400
OFTEN = 5

COLUMNS = ('moves', 'GiB', 'time above threshold', 'hot host minutes', 'contention minutes',
           'mean imbalance', 'p95 imbalance', 'most moves of a VM', 'VMs with 5 or more',
           'returns in 24 h', 'VM minutes in migration')


class Tally:
    """Sums up.

    seconds, imbalance : of each span of time that passed
    """

    def __init__(self, threshold: float, vms: int):
        self._threshold = threshold
        self.seconds, self.imbalance, self.hottest = [], [], []
        self.moves, self.gib, self.returns = np.zeros(vms, dtype=int), 0.0, 0
        self.hot = self.contention = self.migrating = 0.0
        self._left = collections.defaultdict(dict)

    def add(self, seconds: float, world) -> None:
        """Add some seconds of a world in its present state."""
        load, available = world.loads(), world.available
        self.seconds.append(seconds)
        self.imbalance.append(float(np.ptp(load[available])) if available.any() else 0.0)
        self.hottest.append(float(load.max()))
        self.hot += seconds * int((load > HOT).sum())
        self.contention += seconds * int((load[world.place[world.present]] > 1.0).sum())
        self.migrating += seconds * len(world.migrations)

    def moved(self, world, vm, migration) -> None:
        """Count a live migration that has ended."""
        self.moves[vm] += 1
        self.gib += float(world.scenario.vm_memory_mb[vm]) / 1024
        left = self._left[vm]
        if world.now - left.get(migration.destination, -np.inf) <= RETURN:
            self.returns += 1
        left[migration.source] = world.now

    def above(self) -> float:
        """Part of the time during which the imbalance was above the threshold."""
        over = np.array(self.imbalance) > self._threshold
        return float(np.array(self.seconds) @ over / sum(self.seconds))

    def row(self) -> tuple:
        """Return the values of the columns :data:`COLUMNS`."""
        imbalance, seconds = np.array(self.imbalance), np.array(self.seconds)
        order = np.argsort(imbalance)
        reached = np.searchsorted(np.cumsum(seconds[order]), .95 * seconds.sum())
        return (int(self.moves.sum()), self.gib, self.above(), float(self.hot) / 60,
                float(self.contention) / 60, float(imbalance @ seconds / seconds.sum()),
                float(imbalance[order[min(reached, len(order) - 1)]]), int(self.moves.max()),
                int((self.moves >= OFTEN).sum()), self.returns, float(self.migrating) / 60)
