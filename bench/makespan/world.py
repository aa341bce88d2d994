"""A cloud whose live migrations share links and copy what guests dirty meanwhile.

Nothing here is what Kronos predicts by: memory is dirtied within a working set that saturates, at a
rate that changes from round to round, and each migration gets its max-min fair share of the links.
"""

import dataclasses

import numpy as np

from bench.days import world

PREPARE, FINISH = (4.0, 8.0), (2.0, 5.0)
"""Seconds, drawn evenly, that Nova takes before the copying and after it."""
TELLING = 5.0
DOWNTIME = 0.5
"""Seconds for which a guest may be stopped (``live_migration_downtime``)."""
CHANGE = 0.25
"""Standard deviation of the logarithm of what a guest's dirty rate is from round to round."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Guests:
    """The use that servers make of their memory, each float64 (V,).

    touched : MiB that are not zero
    dirty_rate : MiB a second that are written
    working_set : MiB that are written again and again
    """

    touched: np.ndarray
    dirty_rate: np.ndarray
    working_set: np.ndarray


@dataclasses.dataclass(frozen=True, slots=True)
class Network:
    """MiB a second: of a host's link, each way, and of one migration at most."""

    link: float
    stream: float


class _Copy:
    """A live migration: ``left`` is seconds in the stages ``prepare`` and ``finish``, else MiB."""

    def __init__(self, source, destination, prepare, finish):
        self.source, self.destination, self.finish = source, destination, finish
        self.stage, self.left, self.rate = 'prepare', prepare, 1.0
        self.round, self.copied, self.reported, self.begun_at = 0.0, 0.0, (0.0, 0.0), None

    @property
    def is_copying(self):
        return self.stage in ('rounds', 'stopped')


class SharedLinks(world.World):
    """The cloud of a scenario, by a network and guests."""

    def __init__(self, scenario, threshold: float, network: Network, guests: Guests, seed: int = 0):
        super().__init__(scenario, threshold)
        self.network, self.guests, self._seed = network, guests, seed
        self.took = {}      # {server: seconds of its last migration}
        self.copied = {}    # {server: MiB of its last migration}
        self.reported = {}      # {server: the reports of it to Nova, and of the rest}
        self._rng = {}

    def start(self, vm, destination):
        rng = self._rng[vm] = np.random.default_rng([self._seed, vm])
        copy = _Copy(int(self.place[vm]), destination, rng.uniform(*PREPARE), rng.uniform(*FINISH))
        copy.begun_at = self.now
        self.migrations[vm] = copy
        self._share()

    def abort(self, vm):
        """End a migration without success."""
        del self.migrations[vm]
        self._share()

    def next_end(self):
        """Return the seconds until the next stage of a migration ends."""
        return min((copy.left / copy.rate for copy in self.migrations.values()), default=np.inf)

    def pass_time(self, seconds):
        until = self.now + seconds
        while until - self.now > 1e-9:
            step = min(until - self.now, self.next_end())
            self.tally.add(step, self)
            self.now += step
            for vm, copy in sorted(self.migrations.items()):
                amount = copy.rate * step
                copy.left -= amount
                if copy.is_copying:
                    copy.round += step
                    copy.copied += amount
                    self._tell(copy, step)
                if copy.left <= 1e-6:
                    self._next_stage(vm, copy)
            self._share()

    def _tell(self, copy, step):
        """Record how much of a migration is copied, every five seconds as Nova does."""
        taken = self.now - copy.begun_at
        if taken // TELLING > (taken - step) // TELLING:
            copy.reported = copy.copied, max(copy.left, 0.0)

    def _next_stage(self, vm, copy):
        if copy.stage == 'prepare':
            copy.stage, copy.left = 'rounds', float(self.guests.touched[vm])
        elif copy.stage == 'rounds':
            dirtied = self._dirtied(vm, copy.round)
            copy.stage = 'stopped' if dirtied <= copy.rate * DOWNTIME else 'rounds'
            copy.left, copy.round = max(dirtied, 0.01), 0.0
        elif copy.stage == 'stopped':
            copy.stage, copy.left = 'finish', copy.finish
        else:
            self._end(vm, copy)

    def _dirtied(self, vm, seconds):
        """Return the MiB of memory to which a guest has written at least once in some seconds."""
        rate = self.guests.dirty_rate[vm] * np.exp(self._rng[vm].normal(0, CHANGE))
        size = self.guests.working_set[vm]
        return float(size * -np.expm1(-rate * seconds / size))

    def _end(self, vm, copy):
        del self.migrations[vm]
        self.took[vm], self.copied[vm] = self.now - copy.begun_at, copy.copied
        self.reported[vm] = copy.reported
        self.place[vm] = copy.destination
        self.ended.append((self.now, vm, copy.source, copy.destination))
        self.tally.moved(self, vm, copy)

    def _share(self):
        """Give each migration that copies its max-min fair share (Bertsekas and Gallager, Data
        Networks, 6.5.2)."""
        for copy in self.migrations.values():
            copy.rate = 1.0
        left = [copy for copy in self.migrations.values() if copy.is_copying]
        room = {}
        while left:
            users = {}
            for copy in left:
                for link in (('out', copy.source), ('in', copy.destination)):
                    users.setdefault(link, []).append(copy)
            fair = {link: room.get(link, self.network.link) / len(those)
                    for link, those in users.items()}
            least = min(fair, key=fair.__getitem__)
            share = min(fair[least], self.network.stream)
            done = users[least] if share == fair[least] else left
            for copy in done:
                copy.rate = share
                for link in (('out', copy.source), ('in', copy.destination)):
                    room[link] = room.get(link, self.network.link) - share
            left = [copy for copy in left if copy not in done]
