"""Clouds of which some hosts are to be emptied, and how long that takes."""

import copy
import dataclasses
import math

import numpy as np
import sqlalchemy as sa
from oslo_utils import uuidutils

from bench.days import pipeline
from bench.days import scenario as scenarios
from bench.makespan import world as worlds
from kronos_nova.db import models
from kronos_nova.db.drains import Drains
from kronos_nova.drain import states as drains
from kronos_nova.objects import snapshot
from kronos_nova.objects.move import Caps

GIB = (2, 4, 8, 16, 32, 64, 128)
CHANCES = (.2, .25, .25, .15, .08, .05, .02)
"""Probabilities of a server's memory: many small servers, and few that take most of the time."""
DIRTY = 20.0, 1.0
"""Median MiB a second, and standard deviation of its logarithm."""
FASTEST = 250.0
"""MiB a second that no guest writes more than: all converge, even where two share a link."""
POLL = 2.0
"""Seconds between two looks: ``poll_interval``."""
LONGEST = 7 * 86400.0
"""Seconds of the world after which a drain has failed. Raised, a fault is found later; lowered,
slow drains count as failed. A case takes hours."""
OTHERS = 3
"""Hosts that stay for each one that is emptied."""


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """``counts`` is how many servers are on each of the hosts to be emptied."""

    counts: tuple[int, ...]

    @property
    def name(self) -> str:
        return f'{len(self.counts)} hosts of {self.counts[0]}'


def cloud(case: Case, network, seed: int) -> worlds.SharedLinks:
    """Return the world of a case: the hosts, with servers that stay and servers that have to
    leave."""
    rng = np.random.default_rng([seed, *case.counts])
    emptied, hosts = len(case.counts), len(case.counts) * (OTHERS + 1)
    staying = 8 * (hosts - emptied)
    place = np.concatenate([np.repeat(np.arange(emptied), case.counts),
                            np.tile(np.arange(emptied, hosts), 8)])
    count = len(place)
    memory = rng.choice(GIB, count, p=CHANCES) * 1024
    memory[-staying:] = rng.choice((4096, 8192, 16384), staying)
    vcpus = np.maximum(memory // 4096, 1)
    demand = rng.beta(1.0, 3.0, count) * vcpus
    found = scenarios.Scenario(
        name=case.name, hosts=hosts, cores=int(vcpus.sum() / hosts * 2), memory_mb=2 ** 20,
        vcpus=vcpus, vm_memory_mb=memory, demand=demand[None].astype(np.float32),
        born=np.zeros(count, dtype=np.intp), dies=np.full(count, 2), place=place)
    guests = worlds.Guests(
        touched=memory * rng.uniform(.4, 1.0, count),
        dirty_rate=np.minimum(DIRTY[0] * np.exp(rng.normal(0, DIRTY[1], count)), FASTEST),
        working_set=memory * rng.uniform(.02, .3, count))
    return worlds.SharedLinks(found, threshold=1.0, network=network, guests=guests, seed=seed)


class TellingCloud(pipeline.Cloud):
    """A Nova whose hypervisors say how much memory they copied."""

    def migration(self, move):
        vm = self._number[move.instance_uuid]
        copy = self.world.migrations.get(vm)
        reported = self.world.reported.get(vm, (0.0, 0.0)) if copy is None else copy.reported
        copied, left = (int(mib * 2 ** 20) or None for mib in reported)
        return dataclasses.replace(super().migration(move), memory_processed=copied,
                                   memory_remaining=left)


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """Some hosts that were emptied at once: when they were, in seconds from its beginning, the
    MoveRecords, and [(memory in MiB, seconds)] of the moves before."""

    seconds: float
    moves: list
    observed: list


class Emptier(pipeline.Kronos):
    """Empties hosts of a world by cycle, journal, dispatcher and executor.

    :param caps: of ``[kronos_executor]``
    :param in_order: whether moves begin in the order in which they were planned, first come first
        served, whatever the schedule says
    """

    def __init__(self, case: Case, caps: dict, in_order: bool = False):
        super().__init__('drain', 1.0)
        self._case, self._caps, self._in_order = case, caps, in_order

    def _conf(self):
        conf = super()._conf()
        for option, value in self._caps.items():
            conf.set_override(option, value, 'kronos_executor')
        return conf

    def _seen(self, world):
        return TellingCloud(world)

    def run(self, world, rounds: int = 1) -> list[Round]:
        """Empty as many hosts as the case has, then, when these are open again, as many others."""
        self.begin(world)
        count = len(self._case.counts)
        found = [self._empty(range(n * count, (n + 1) * count)) for n in range(rounds)]
        self.end()
        return found

    def _empty(self, hosts):
        journal, begun = self._ports.journal, self.world.now
        known, observed = {move.uuid for move in journal.moves()}, journal.durations()
        wishes = self._disable(hosts)
        while wishes.in_states(drains.ACTIVE):
            if self.world.now - begun > LONGEST:
                raise RuntimeError(f'the hosts are not emptied in {LONGEST / 3600:.0f} hours')
            if not journal.aggregates_with_open_plans():
                self._plan()
            self.tick()
            self._pass_time()
        for host in hosts:
            self.world.states[host] = scenarios.UP
        return Round(self.world.ended[-1][0] - begun, [
            move for move in journal.moves() if move.uuid not in known], observed)

    def _disable(self, hosts):
        wishes = Drains(self._ports.journal.database)
        for host in hosts:
            self.world.states[host] = scenarios.DISABLED
        wishes.request([drains.Drain(
            uuid=uuidutils.generate_uuid(), host=self._cloud.hosts[host],
            aggregate=snapshot.UNASSIGNED, state=drains.DRAINING, requested_by='bench',
            requested_at=self._cloud.utcnow()) for host in hosts])
        return wishes

    def _plan(self):
        self._interval = 0
        self.evaluate()
        if self._in_order:
            with self._ports.journal.database.writer() as session:
                session.execute(sa.update(models.MoveRow).values(position=0))

    def _pass_time(self):
        """Let time pass until the first look of Kronos after a migration has ended."""
        before = len(self.world.ended)
        while True:
            self.world.pass_time(POLL)
            if len(self.world.ended) > before or not self.world.migrations:
                return


def least(world, case: Case, caps: Caps) -> float:
    """Return a lower bound of the seconds of any order: the largest of the times of the busiest
    host by its slots, of all slots, and of the busiest link, as if each migration had its links for
    itself. A slot is free again when Kronos looks, and a link carries nothing before the first copy
    and after the last.

    :param world: after one round
    """
    again = copy.deepcopy(world)
    by_slots, by_links = np.zeros(len(case.counts)), np.zeros(len(case.counts))
    for _ended, vm, source, destination in world.ended:
        again.place[vm] = source
        again.start(vm, destination)
        while again.migrations:
            again.pass_time(again.next_end())
        by_slots[source] += math.ceil(again.took[vm] / POLL) * POLL
        by_links[source] += again.copied[vm] / world.network.link
    # After the last migration in a slot no look is needed.
    return float(max(by_slots.sum() / caps.total - POLL, by_slots.max() / caps.per_source - POLL,
                     by_links.max() + worlds.PREPARE[0] + worlds.FINISH[0]))
