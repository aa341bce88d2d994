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
    """Return the names of the days in a file of traces, sorted."""
    with np.load(path) as days:
        return sorted(name for name in days.files if name.isdigit())


def planetlab(path: pathlib.Path, day: str, hosts: int, vms: int, mean: float,
              seed: int = 0) -> Scenario:
    """Return a scenario of a day of PlanetLab, with the CPU load of servers that are drawn from
    those of the day.

    Where ``vms`` is more than the day has, all are drawn repeatedly. Each further time the day of
    each server is shifted by a random time, and what is shifted over its end comes at its
    beginning.

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
    """Return the rows, each rotated by a random number of columns."""
    count = rows.shape[1]
    columns = (np.arange(count) + rng.integers(count, size=(len(rows), 1))) % count
    return np.take_along_axis(rows, columns, axis=1)


def constant(hosts: int, vms: int, mean: float, seed: int = 0, days: int = 1,
             is_noisy: bool = False) -> Scenario:
    """Return a scenario of servers with constant load. With ``is_noisy`` the means are constant and
    each sample has random noise. The means of the hosts are then even from the beginning, so that
    every move is a reaction to noise."""
    rng = np.random.default_rng([seed, hosts, vms, is_noisy])
    vcpus = rng.choice(VCPUS, vms, p=CHANCES)
    share = np.tile(rng.beta(.8, 3.2, vms), (days * DAY, 1))
    if is_noisy:
        share += rng.normal(0, NOISE, share.shape)
    demand = share.clip(.01, 1.0) * vcpus
    return _scenario(f'{CONSTANT}{" with noise" if is_noisy else ""}, {days} days', rng, hosts,
                     vcpus, demand, mean, is_even=is_noisy)


def week(hosts: int, vms: int, mean: float, seed: int = 0, days: int = 7) -> Scenario:
    """Return a generated week with office hours, batch jobs at night, noise and bursts. Three
    servers grow, a tenth as many servers are added on the third day, one host is down for half a
    day, and another is serviced for four hours."""
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
    """Return a scenario of days on which no server is added and no host fails, after earlier days
    whose loads monitoring has recorded.

    :param kind: key of :data:`ORDINARY`
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
    """Return a scenario of several days of PlanetLab in a row, with another of its servers behind
    each server every day. The last day is simulated; the others are the loads that monitoring has
    recorded."""
    each = [planetlab(path, name, hosts, vms, mean, seed) for name in names]
    share = np.concatenate([day.demand / day.vcpus for day in each])
    demand, known = share * each[-1].vcpus, len(share) - each[-1].samples
    rng = np.random.default_rng([seed, int(names[-1])])
    return _scenario(f'PlanetLab {names[-1]} after {len(names) - 1} others', rng, hosts,
                     each[-1].vcpus, demand[known:], mean, before=demand[:known].astype(np.float32))


def _habits(rng, samples, count):
    """Return loads as float64 (T, V): a constant level, and for two of three servers a pattern that
    repeats every day."""
    hour = np.arange(samples) / DAY * 24 % 24
    is_weekend = np.arange(samples) // DAY % 7 >= 5
    office = np.exp(-((hour - 13) / 4) ** 2) * np.where(is_weekend, .3, 1.0)
    batch = ((hour >= 1) & (hour < 4)).astype(float)
    kind = rng.choice(3, count, p=(.5, .17, .33))
    shapes = np.stack([office, batch, np.zeros(samples)], axis=1)
    return rng.beta(.8, 3.2, count) + shapes[:, kind] * rng.uniform(.1, .6, count)


def _levels(rng, samples, count):
    """Return loads as float64 (T, V): levels that change randomly, so that no day predicts the next
    one."""
    return rng.beta(.8, 3.2, count) + _noise(rng, samples, count, .998, .01)


def _jobs(rng, samples, count):
    """Return loads as float64 (T, V): a constant level, and for two of three servers one to three
    heavy jobs, each with its own time of the day and a length of half an hour to three hours. Half
    of the jobs run every day, a quarter on working days, a quarter once a week. The load and length
    differ a little each time."""
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
    """Return noise as float64 (T, V), of which the part ``kept`` remains after each sample."""
    noise, left = np.zeros((samples, count)), np.zeros(count)
    for sample in range(samples):
        left = kept * left + rng.normal(0, deviation, count)
        noise[sample] = left
    return noise


def _bursts(rng, samples, count):
    """Return bursts of load as float64 (T, V). Each server has one about every fourth day."""
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
    """Return the host of each server as intp (V,), chosen as by Nova's weigher of memory; -1 for
    servers that do not exist at the beginning."""
    place, free = np.full(len(memory), -1), np.full(hosts, capacity)
    for vm in np.flatnonzero(there):
        place[vm] = free.argmax()
        free[place[vm]] -= memory[vm]
    return place


def _evenly(load, memory, hosts, capacity):
    """Return the host of each server as intp (V,). The server with the largest load comes first,
    and goes to the least loaded host with free memory."""
    place, free, used = np.full(len(memory), -1), np.full(hosts, capacity), np.zeros(hosts)
    for vm in np.argsort(-load, kind='stable'):
        place[vm] = np.where(free >= memory[vm], used, np.inf).argmin()
        free[place[vm]] -= memory[vm]
        used[place[vm]] += load[vm]
    return place
