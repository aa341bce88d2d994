"""Events of a cloud that no strategy changes: demand, servers that come and go, hosts that
die or are serviced."""

import dataclasses
import pathlib

import numpy as np

STEP = 300
"""Seconds of a sample, of PlanetLab's and ours."""
DAY = 86400 // STEP
VCPUS, CHANCES = (2, 4, 8), (.5, .35, .15)
MIB_PER_VCPU = (1024, 2048, 4096)
VCPU_RATIO = 16.0
MEMORY_FILL = 0.65
"""Share of the hosts' memory that is allocated: they are not empty, and one may be serviced."""

DAYS_KNOWN = 9
"""That monitoring knows of: the same hours of last week, and of a day before them."""

NOISE = 0.1
"""Standard deviation of a server's noise, as a part of its vCPUs: of a host with ten servers some
.06, so that 100 hosts are .3 apart although their means are even."""

CONSTANT = 'constant load'
"""Prefix of the names of scenarios of constant load."""

DOWN, UP, DISABLED = 'down', 'up', 'disabled'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """From sample ``at`` on a host is ``down``, ``disabled`` or ``up``."""

    at: int
    host: int
    state: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """T samples of V servers on H equal hosts.

    demand : float32 (T, V), cores that each server would use
    born, dies : intp (V,), first sample, and first sample without it
    place : intp (V,), host of each server that is there from the beginning
    cores, memory_mb : of a host
    before : float32 (B, V), demand of the days before, as monitoring knows it
    """

    name: str
    hosts: int
    cores: int
    memory_mb: int
    vcpus: np.ndarray
    vm_memory_mb: np.ndarray
    demand: np.ndarray
    born: np.ndarray
    dies: np.ndarray
    place: np.ndarray
    events: tuple[Event, ...] = ()
    before: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 0), np.float32))

    @property
    def samples(self) -> int:
        return len(self.demand)


def planetlab_days(path: pathlib.Path) -> list[str]:
    """The days that a file of traces has."""
    with np.load(path) as days:
        return sorted(name for name in days.files if name.isdigit())


def planetlab(path: pathlib.Path, day: str, hosts: int, vms: int, mean: float,
              seed: int = 0) -> Scenario:
    """A day of PlanetLab: CPU in percent of each of some servers, drawn of those that there are.

    Where more servers are asked for than the day has, all are drawn again and again; every further
    time each begins its day at another moment, and midnight follows the evening.

    :param mean: load of the hosts over the day
    """
    rng = np.random.default_rng([seed, int(day)])
    with np.load(path) as days:
        percent = days[day]
    drawn = [rng.choice(len(percent), min(vms - done, len(percent)), replace=False)
             for done in range(0, vms, len(percent))]
    vcpus = rng.choice(VCPUS, vms, p=CHANCES)
    share = np.concatenate([percent[drawn[0]], *(_shifted(rng, percent[chosen])
                                                 for chosen in drawn[1:])]).T / 100.0
    return _scenario(f'PlanetLab {day}', rng, hosts, vcpus, share * vcpus, mean)


def _shifted(rng, rows):
    """Each row from another column on, and its beginning at its end."""
    count = rows.shape[1]
    columns = (np.arange(count) + rng.integers(count, size=(len(rows), 1))) % count
    return np.take_along_axis(rows, columns, axis=1)


def constant(hosts: int, vms: int, mean: float, seed: int = 0, days: int = 1,
             is_noisy: bool = False) -> Scenario:
    """Servers of constant load. Where it is noisy the means are constant and each sample is off by
    a noise of its own; the means of the hosts are even from the beginning, so that every move is
    made on noise alone."""
    rng = np.random.default_rng([seed, hosts, vms, is_noisy])
    vcpus = rng.choice(VCPUS, vms, p=CHANCES)
    share = np.tile(rng.beta(.8, 3.2, vms), (days * DAY, 1))
    if is_noisy:
        share += rng.normal(0, NOISE, share.shape)
    demand = share.clip(.01, 1.0) * vcpus
    return _scenario(f'{CONSTANT}{" with noise" if is_noisy else ""}, {days} days', rng, hosts,
                     vcpus, demand, mean, is_even=is_noisy)


def week(hosts: int, vms: int, mean: float, seed: int = 0, days: int = 7) -> Scenario:
    """A made-up week: office hours, nights of batches, noise and bursts; three servers that grow,
    a tenth as many servers again deployed on the third day, a host that dies for half a day, and
    one that is serviced for four hours."""
    rng = np.random.default_rng([seed, hosts, vms])
    count, samples = vms + vms // 10, days * DAY
    vcpus = rng.choice(VCPUS, count, p=CHANCES)
    share = _habits(rng, samples, count) + _noise(rng, samples, count)
    share = np.maximum(share, _bursts(rng, samples, count))
    growing = rng.choice(vms, 3, replace=False)
    share[:, growing] = np.linspace(.1, .95, samples)[:, None]
    born, dies = np.zeros(count, dtype=np.intp), np.full(count, samples, dtype=np.intp)
    born[vms:] = min(2 * DAY + 10 * DAY // 24, samples)
    dies[vms:] = rng.integers(4 * DAY, 7 * DAY, count - vms).clip(max=samples)
    died, serviced = rng.choice(hosts, 2, replace=False)
    events = (Event(at=3 * DAY + 10 * DAY // 24, host=int(serviced), state=DISABLED),
              Event(at=3 * DAY + 14 * DAY // 24, host=int(serviced), state=UP),
              Event(at=4 * DAY + 3 * DAY // 24, host=int(died), state=DOWN),
              Event(at=4 * DAY + 15 * DAY // 24, host=int(died), state=UP))
    return _scenario(f'week of {days} days', rng, hosts, vcpus, share.clip(.01, 1.0) * vcpus, mean,
                     born=born, dies=dies, events=events)


def ordinary(hosts: int, vms: int, mean: float, seed: int = 0, days: int = 3,
             kind: str = 'pattern') -> Scenario:
    """Days on which nothing is deployed and nothing dies, after some that monitoring knows.

    :param kind: of :data:`ORDINARY`
    """
    rng = np.random.default_rng([seed, hosts, vms, list(ORDINARY).index(kind)])
    known = DAYS_KNOWN * DAY
    samples = known + days * DAY
    vcpus = rng.choice(VCPUS, vms, p=CHANCES)
    share = _noise(rng, samples, vms) + ORDINARY[kind](rng, samples, vms)
    demand = np.maximum(share, _bursts(rng, samples, vms)).clip(.01, 1.0) * vcpus
    return _scenario(f'{days} days, {kind}', rng, hosts, vcpus, demand[known:], mean,
                     before=demand[:known].astype(np.float32))


def planetlab_row(path: pathlib.Path, names: list[str], hosts: int, vms: int, mean: float,
                  seed: int = 0) -> Scenario:
    """Days of PlanetLab one after the other, each server another of theirs every day: the last of
    them is lived, the others are what monitoring knows."""
    each = [planetlab(path, name, hosts, vms, mean, seed) for name in names]
    share = np.concatenate([day.demand / day.vcpus for day in each])
    demand, known = share * each[-1].vcpus, len(share) - each[-1].samples
    rng = np.random.default_rng([seed, int(names[-1])])
    return _scenario(f'PlanetLab {names[-1]} after {len(names) - 1} others', rng, hosts,
                     each[-1].vcpus, demand[known:], mean, before=demand[:known].astype(np.float32))


def _habits(rng, samples, count):
    """float64 (T, V): a level, and for two of three servers a day that looks like the last."""
    hour = np.arange(samples) / DAY * 24 % 24
    is_weekend = np.arange(samples) // DAY % 7 >= 5
    office = np.exp(-((hour - 13) / 4) ** 2) * np.where(is_weekend, .3, 1.0)
    batch = ((hour >= 1) & (hour < 4)).astype(float)
    kind = rng.choice(3, count, p=(.5, .17, .33))
    shapes = np.stack([office, batch, np.zeros(samples)], axis=1)
    return rng.beta(.8, 3.2, count) + shapes[:, kind] * rng.uniform(.1, .6, count)


def _levels(rng, samples, count):
    """float64 (T, V): levels that wander, so that no day predicts the next one."""
    return rng.beta(.8, 3.2, count) + _noise(rng, samples, count, .998, .01)


def _jobs(rng, samples, count):
    """float64 (T, V): a level, and for two of three servers one to three jobs that begin suddenly
    at a time of their own, last half an hour to three, and are heavy meanwhile. Half of them run
    every day, a quarter on working days, a quarter once a week; each time they take a bit more or
    less."""
    share = np.tile(rng.beta(.8, 3.2, count), (samples, 1))
    for vm in np.flatnonzero(rng.random(count) < 2 / 3):
        for _job in range(rng.integers(1, 4)):
            start = (int(rng.integers(24)) + rng.choice((0, .5), p=(.7, .3))) * DAY / 24
            lasts, height = rng.uniform(.5, 3.0) * DAY / 24, rng.uniform(.3, .8)
            weekdays = (range(7), range(5), [int(rng.integers(7))])[rng.choice(3, p=(.5, .25, .25))]
            for day in range(samples // DAY):
                begin = int(day * DAY + start)
                end = begin + max(1, round(lasts * np.exp(rng.normal(0, .15))))
                if day % 7 in weekdays:
                    share[begin:end, vm] += height * np.exp(rng.normal(0, .1))
    return share


ORDINARY = {'none': _levels, 'pattern': _habits, 'jobs': _jobs}
"""Kinds of days, by what servers do on them."""


def _noise(rng, samples, count, kept=.7, deviation=.03):
    """float64 (T, V): what is left of a disturbance after five minutes is ``kept`` of it."""
    noise, left = np.zeros((samples, count)), np.zeros(count)
    for sample in range(samples):
        left = kept * left + rng.normal(0, deviation, count)
        noise[sample] = left
    return noise


def _bursts(rng, samples, count):
    """float64 (T, V): each server is busy for a while about every fourth day."""
    bursts = np.zeros((samples, count))
    for vm in range(count):
        for start in np.flatnonzero(rng.random(samples) < .25 / DAY):
            bursts[start:start + rng.integers(4, 18), vm] = rng.uniform(.4, .9)
    return bursts


def _scenario(name, rng, hosts, vcpus, demand, mean, is_even=False, **others):
    count = len(vcpus)
    memory = vcpus * rng.choice(MIB_PER_VCPU, count)
    there = others.get('born', np.zeros(count, dtype=np.intp)) == 0
    capacity = max(memory.sum() / hosts / MEMORY_FILL, 2.0 * memory.max())
    cores = max(demand.sum(axis=1).mean() / hosts / mean, vcpus.max())
    placed = _evenly(demand.mean(axis=0), memory, hosts, capacity) if is_even else (
        _where_memory_is_free(there, memory, hosts, capacity))
    return Scenario(**{
        'name': name, 'hosts': hosts, 'cores': round(cores), 'memory_mb': round(capacity),
        'vcpus': vcpus, 'vm_memory_mb': memory, 'demand': demand.astype(np.float32),
        'born': np.zeros(count, dtype=np.intp), 'dies': np.full(count, len(demand)),
        'place': placed, **others})


def _where_memory_is_free(there, memory, hosts, capacity):
    """intp (V,): as Nova's weigher of memory would have them; -1 for what is not there."""
    place, free = np.full(len(memory), -1), np.full(hosts, capacity)
    for vm in np.flatnonzero(there):
        place[vm] = free.argmax()
        free[place[vm]] -= memory[vm]
    return place


def _evenly(load, memory, hosts, capacity):
    """intp (V,): the largest load first, where there is least and memory is free."""
    place, free, used = np.full(len(memory), -1), np.full(hosts, capacity), np.zeros(hosts)
    for vm in np.argsort(-load, kind='stable'):
        place[vm] = np.where(free >= memory[vm], used, np.inf).argmin()
        free[place[vm]] -= memory[vm]
        used[place[vm]] += load[vm]
    return place
