"""A cloud in virtual time: where servers are, what they use, and what live migration costs."""

import dataclasses

import numpy as np

from bench.days import scenario as scenarios
from bench.days.tally import Tally

MIGRATION_CORES = 1.0
"""Processors of the source and of the destination that copying a server takes: QEMU does it in
one thread."""
SECONDS, SECONDS_PER_GIB = 10.0, 3.0
"""Seconds of a live migration before and after the copying, and of each GiB at 3 Gbit/s."""
PAUSE = 10
"""Seconds until moves that wait are looked at again while none is in progress."""


@dataclasses.dataclass(frozen=True, slots=True)
class Migration:
    source: int
    destination: int
    ends_at: float


class World:
    """The cloud of one scenario. Everybody who acts in it asks the same questions, and pays alike.

    now : seconds since the beginning
    place : intp (V,), host of each server, -1 where there is none
    states : of each host ``up``, ``disabled`` or ``down``
    migrations : {server: Migration}
    ended : [(seconds, server, source, destination)] of all that ended well
    """

    def __init__(self, scenario, threshold: float):
        self.scenario, self.now, self.sample = scenario, 0.0, 0
        self.place = scenario.place.copy()
        self.states = [scenarios.UP] * scenario.hosts
        self.migrations, self.ended = {}, []
        self._samples, self._hours = [], {}
        self.tally = Tally(threshold, len(scenario.vcpus))

    @property
    def available(self) -> np.ndarray:
        """bool (H,)"""
        return np.array([state == scenarios.UP for state in self.states])

    @property
    def present(self) -> np.ndarray:
        """intp: the servers that there are."""
        return np.flatnonzero(self.place >= 0)

    def loads(self) -> np.ndarray:
        """Return the load that is asked of each host as float64 (H,), as a fraction of the host; it
        may be above 1."""
        load = self._sum(self.scenario.demand[self.sample])
        for migration in self.migrations.values():
            load[migration.source] += MIGRATION_CORES / self.scenario.cores
            load[migration.destination] += MIGRATION_CORES / self.scenario.cores
        return load

    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the last sample as monitoring reports it: (used part of each host, part of its
        host that each server uses), float64 (H,) and (V,). No host uses more than 1."""
        demand = self.scenario.demand[max(self.sample - 1, 0)] / self.scenario.cores
        wanted = self._sum(demand * self.scenario.cores)
        share = np.minimum(1.0, 1.0 / np.maximum(wanted, 1e-9))
        used = np.where(self.place >= 0, demand * share[self.place], 0.0)
        return np.minimum(wanted, 1.0), used

    def mean_of_hour(self, hour: int) -> np.ndarray:
        """Return the mean load of each server in an hour as float64 (V,), as :meth:`seen` reports
        it; NaN where there is no sample. Hours before the beginning are negative, and are from the
        earlier days of the scenario."""
        if hour in self._hours:
            return self._hours[hour]
        before, per_hour = self.scenario.before, 3600 // scenarios.STEP
        begin = len(before) + hour * per_hour
        if hour >= 0 or begin < 0:
            return np.full(len(self.place), np.nan)
        means = before[begin:begin + per_hour].mean(axis=0) / self.scenario.cores
        return np.where(self.scenario.born == 0, means, np.nan)

    def _remember(self):
        """Store the usage of the sample that ends."""
        self._samples.append(np.where(self.place >= 0, self.seen()[1], np.nan))
        if len(self._samples) == 3600 // scenarios.STEP:
            self._hours[self.sample // len(self._samples) - 1] = np.mean(self._samples, axis=0)
            self._samples = []

    def _sum(self, demand):
        there = self.present
        return np.bincount(self.place[there], weights=demand[there],
                           minlength=self.scenario.hosts) / self.scenario.cores

    def free_mb(self) -> np.ndarray:
        """Return the MiB of memory of each host that no server and no migration uses, as float64
        (H,)."""
        memory, there = self.scenario.vm_memory_mb, self.present
        used = np.bincount(self.place[there], weights=memory[there],
                           minlength=self.scenario.hosts)
        for vm, migration in self.migrations.items():
            used[migration.destination] += memory[vm]
        return self.scenario.memory_mb - used

    def may_start(self, vm: int, destination: int) -> bool:
        """Return whether Nova would."""
        return (self.place[vm] not in (-1, destination) and vm not in self.migrations
                and self.states[destination] == scenarios.UP
                and self.states[self.place[vm]] != scenarios.DOWN
                and self.free_mb()[destination] >= self.scenario.vm_memory_mb[vm])

    def start(self, vm: int, destination: int) -> None:
        seconds = SECONDS + SECONDS_PER_GIB * self.scenario.vm_memory_mb[vm] / 1024
        self.migrations[vm] = Migration(int(self.place[vm]), destination, self.now + seconds)

    def turn(self, sample: int) -> None:
        """Apply the events at the beginning of a sample."""
        self.sample = sample
        if sample:
            self._remember()
        for event in self.scenario.events:
            if event.at == sample:
                self._change(event.host, event.state)
        for vm in np.flatnonzero(self.scenario.dies == sample):
            self.migrations.pop(int(vm), None)
            self.place[vm] = -1
        if sample:
            for vm in np.flatnonzero((self.scenario.born == sample)
                                     & (self.scenario.dies > sample)):
                self._schedule(vm)

    def _change(self, host, state):
        """Move the servers of a host that dies or is to be serviced elsewhere at once: the operator
        does so, and no strategy is charged for it."""
        self.states[host] = state
        if state == scenarios.UP:
            return
        for vm, migration in list(self.migrations.items()):
            if host in (migration.source, migration.destination):
                del self.migrations[vm]
        for vm in np.flatnonzero(self.place == host):
            self._schedule(vm)

    def _schedule(self, vm):
        """Put a server where Nova's scheduler would: where most memory is free."""
        self.place[vm] = np.where(self.available, self.free_mb(), -np.inf).argmax()

    def next_end(self) -> float:
        """Return the seconds until the next migration ends; inf if none is in progress."""
        return min((migration.ends_at - self.now for migration in self.migrations.values()),
                   default=np.inf)

    def pass_time(self, seconds: float) -> None:
        """Let time go by; nothing else changes meanwhile but what ends."""
        self.tally.add(seconds, self)
        self.now += seconds
        for vm, migration in sorted(self.migrations.items()):
            if migration.ends_at <= self.now + 1e-6:
                del self.migrations[vm]
                self.place[vm] = migration.destination
                self.ended.append((self.now, vm, migration.source, migration.destination))
                self.tally.moved(self, vm, migration)


def live(scenario, strategy, threshold: float) -> Tally:
    """Have a strategy look after the cloud of a scenario, from its beginning to its end."""
    return live_in(World(scenario, threshold), strategy)


def live_in(world: World, strategy) -> Tally:
    """Run a strategy to the end of a given world, and return its tally."""
    strategy.begin(world)
    for sample in range(world.scenario.samples):
        world.turn(sample)
        strategy.evaluate()
        left: float = scenarios.STEP
        while left > 0:
            is_busy = strategy.tick()
            seconds = min(left, world.next_end() if world.migrations or not is_busy else PAUSE)
            world.pass_time(seconds)
            left -= seconds
    strategy.end()
    return world.tally
