"""Random clouds of the classes that the search is judged by; each seed is one cloud."""

import numpy as np

from bench import inputs
from kronos_nova.model import Problem
from kronos_nova.model.problem import Group

FLAVORS = np.array([[1, 2048], [1, 4096], [2, 4096], [2, 8192], [4, 8192], [4, 16384],
                    [4, 32768], [8, 16384], [8, 32768], [16, 32768]], dtype=float)
HOST = np.array([256.0, 262144.0])
"""VCPU with the allocation ratio, and MiB, of a host of normal size."""
SLACKS = 0.0, 0.01, 0.03, 0.06, 0.10
HOSTS = 10


def emptying(kind: str, seed: int) -> Problem:
    """A cloud of which one to three hosts are disabled, and whose servers all fit elsewhere.

    It is made from its end: enabled hosts are filled up to the slack, and servers are taken from
    them onto the disabled ones.

    :param kind: ``E1``, evacuees alone need to move; ``E2``, others have been moved about since
        and have to give way; ``E3``, as E1 with two sizes of hosts and anti-affinity groups
    """
    rng = np.random.default_rng([seed, ord(kind[1])])
    slack = SLACKS[seed % len(SLACKS)]
    count = 1 if kind == 'E2' else int(rng.integers(1, 4))
    size = np.ones(HOSTS)
    if kind == 'E3':
        size[rng.permutation(HOSTS)[:HOSTS // 2]] = 2.0
    limits = HOST * size[:, None]
    place, demands = _filled(rng, limits[count:], 1.0 - slack)
    place += count
    groups = _groups(rng, place) if kind == 'E3' else ()
    at = _taken(rng, place, demands, limits, count, groups)
    if kind == 'E2':
        _shuffle(rng, at, place, demands, limits, count)
    loads = demands / HOST * rng.uniform(0.1, 0.8, size=(len(demands), 2))
    order = rng.permutation(len(demands))
    number = np.empty(len(order), dtype=np.intp)
    number[order] = np.arange(len(order))
    available = np.arange(HOSTS) >= count
    return inputs.problem(
        mode='spread', loads=loads[order], vm_host=at[order], limits=limits,
        demands=demands[order], threshold=1.0, host_scale=1.0 / np.repeat(size[:, None], 2, 1),
        available=available, draining=~available,
        groups=tuple(Group(uuid=f'g{n}', name=f'g{n}', members=np.sort(number[members]), anti=True,
                           hard=True) for n, members in enumerate(groups)))


def _filled(rng, limits, part):
    """Servers on hosts until nothing fits any more: (place, demands)."""
    place, demands = [], []
    for host, limit in enumerate(limits):
        left = limit * [1.0, part]
        while (left >= FLAVORS).all(axis=1).any():
            fits = FLAVORS[(left >= FLAVORS).all(axis=1)]
            demands.append(fits[rng.integers(len(fits))])
            left = left - demands[-1]
            place.append(host)
    return np.array(place), np.array(demands)


def _taken(rng, place, demands, limits, count, groups):
    """Where servers are before: some on the disabled hosts."""
    at, used = place.copy(), np.zeros(limits.shape)
    fill = rng.uniform(0.3, 0.9, size=count)
    of_group = {vm: n for n, members in enumerate(groups) for vm in members.tolist()}
    for vm in rng.permutation(len(place)):
        host = int(rng.integers(count))
        after = used[host] + demands[vm]
        apart = all(at[other] != host for other in groups[of_group[vm]].tolist()
                    ) if vm in of_group else True
        if (after <= limits[host] * fill[host]).all() and apart:
            at[vm], used[host] = host, after
    return at


def _groups(rng, place):
    """Ten groups of three to six servers that are apart at the end."""
    groups, free = [], set(range(len(place)))
    for _ in range(10):
        hosts, members = set(), []
        for vm in rng.permutation(sorted(free)):
            if place[vm] not in hosts and len(members) < rng.integers(3, 7):
                hosts.add(place[vm])
                members.append(int(vm))
        free -= set(members)
        groups.append(np.array(sorted(members)))
    return groups


def _shuffle(rng, at, place, demands, limits, count):
    """Move servers of the enabled hosts about, as years do; the room that the taken ones left makes
    it possible, and is scattered by it."""
    used = np.zeros(limits.shape)
    np.add.at(used, at, demands)
    for _ in range(int(rng.integers(20, 200))):
        vm = int(rng.integers(len(at)))
        host = int(rng.integers(count, len(limits)))
        if at[vm] >= count and host != at[vm] and (
                used[host] + demands[vm] <= limits[host]).all():
            used[at[vm]] -= demands[vm]
            used[host] += demands[vm]
            at[vm] = host
