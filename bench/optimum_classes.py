"""Random clouds of the classes that the search is judged by; each seed is one cloud."""

import pathlib

import numpy as np

from bench import fragments
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
    """Return a cloud with one to three disabled hosts, whose servers all fit elsewhere.

    It is made from its end state: enabled hosts are filled up to the slack, and some of their
    servers are put onto the disabled ones.

    :param kind: ``E1``, only the servers of disabled hosts need to move; ``E2``, other servers were
        moved afterwards and have to make room; ``E3``, as E1 with two sizes of hosts and
        anti-affinity groups
    """
    rng = np.random.default_rng([seed, ord(kind[1])])
    slack = SLACKS[seed % len(SLACKS)]
    count = 1 if kind == 'E2' else int(rng.integers(1, 4))
    size = np.ones(HOSTS)
    if kind == 'E3':
        size[rng.permutation(HOSTS)[:HOSTS // 2]] = 2.0
    limits = HOST * size[:, None]
    place, demands = _filled(rng, limits[count:] * [1.0, 1.0 - slack])
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


def _filled(rng, rooms, flavors=FLAVORS):
    """Put servers on hosts until none fits any more, and return (host of each, demands of each).

    :param rooms: iterator of the room of each host; it may draw from ``rng``, too
    """
    place, demands = [], []
    for host, left in enumerate(rooms):
        while (left >= flavors).all(axis=1).any():
            fits = flavors[(left >= flavors).all(axis=1)]
            demands.append(fits[rng.integers(len(fits))])
            left = left - demands[-1]
            place.append(host)
    return np.array(place), np.array(demands)


def _taken(rng, place, demands, limits, count, groups):
    """Return where servers are before: some on the disabled hosts."""
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


def spreading(kind: str, seed: int) -> tuple[Problem, int]:
    """Return a small cloud with uneven load, and the number of moves that a plan may have.

    :param kind: ``S3``, tight memory; ``S4``, groups that are kept apart, and three servers in ten
        that may not move; ``S5``, three policies of different weights, two sizes of hosts, groups,
        servers that may not move, tight memory
    """
    rng = np.random.default_rng([seed, 3, int(kind[1])])
    size = np.ones(8)
    if kind == 'S5':
        size[rng.permutation(8)[:4]] = 0.5
    demands = FLAVORS[rng.integers(len(FLAVORS) - 1, size=56 if kind == 'S4' else 64)]
    at, limits = _uneven(rng, demands, HOST * size[:, None])
    if kind != 'S4':
        limits[:, 1] = _tight(rng, at, demands, limits[:, 1])
    policies = 3 if kind == 'S5' else 2
    loads = _loads(rng, demands, policies)
    scale = np.repeat(1 / size[:, None], policies, axis=1)
    loads *= rng.uniform(0.7, 0.95) / _highest(loads, at, scale)
    weights = rng.dirichlet(np.ones(policies))
    groups = _groups(rng, at) if kind != 'S3' else ()
    movable = np.ones(len(at), bool) if kind == 'S3' else rng.random(len(at)) >= 0.3
    return inputs.problem(
        mode='spread', loads=loads, vm_host=at, limits=limits, demands=demands,
        threshold=0.03, host_scale=scale, policy_weights=weights, movable=movable,
        groups=_apart(groups)), 8 if kind == 'S5' else 6


def packing(kind: str, seed: int) -> tuple[Problem, int]:
    """Return a cloud of twelve hosts of three sizes that are used in part, and the number of moves
    that a plan may have.

    :param kind: ``P3``, half as many moves; ``P5``, no groups; ``P6``, groups
    """
    rng = np.random.default_rng([seed, 5, int(kind[1])])
    limits = np.array([[64.0, 131072.0], [96.0, 262144.0], [128.0, 262144.0]])[
        rng.integers(3, size=12)]
    fill = rng.uniform(0.33, 0.9, size=12)
    at, demands = _filled(rng, limits * fill[:, None], FLAVORS[2:])
    scale = limits.max(axis=0) / limits
    loads = demands / limits.max(axis=0) * rng.uniform(0.3, 0.9, size=(len(at), 2))
    return inputs.problem(
        mode='pack', loads=loads, vm_host=at, limits=limits, demands=demands, threshold=0.0,
        host_scale=scale, groups=_apart(_groups(rng, at)) if kind == 'P6' else ()
    ), 30 if kind == 'P3' else 60


def relieving(seed: int) -> tuple[Problem, int]:
    """Return a cloud of ten hosts of three sizes, of which two or three are hot and the others have
    little room for load, and the number of moves that a plan may have."""
    rng = np.random.default_rng([seed, 7])
    limits = HOST * rng.choice([0.5, 1.0, 1.5], size=10)[:, None]
    scale = limits.max(axis=0) / limits
    at, demands = _filled(rng, (limit * rng.uniform(0.6, 0.92) for limit in limits))
    loads = _loads(rng, demands, 2)
    scores = np.zeros(limits.shape)
    np.add.at(scores, at, loads * scale[at])
    level = rng.uniform(0.5, 0.72, size=limits.shape)
    for host in rng.permutation(10)[:rng.integers(2, 4)]:
        level[host, rng.integers(2)] = rng.uniform(0.86, 0.95)
    loads *= (level / scores)[at]
    return inputs.problem(
        mode='spread', loads=loads, vm_host=at, limits=limits, demands=demands, threshold=1.0,
        host_scale=scale, groups=_apart(_groups(rng, at))), 60


def _apart(groups) -> tuple[Group, ...]:
    return tuple(Group(uuid=f'g{n}', name=f'g{n}', members=members, anti=True, hard=True)
                 for n, members in enumerate(groups))


def _uneven(rng, demands, limits):
    """Put servers on hosts, on some several times as many as on others, and return (host of each,
    limits of the hosts)."""
    used, place = np.zeros(limits.shape), []
    share = rng.dirichlet(np.full(len(limits), 1.5))
    for demand in demands:
        fits = (used + demand <= limits).all(axis=1)
        place.append(int(rng.choice(len(limits), p=share * fits / (share * fits).sum())))
        used[place[-1]] += demand
    return np.array(place), limits.copy()


def _tight(rng, place, demands, memory):
    """Return the memory of hosts in MiB, reduced so that 3 to 13 % are free. A host without servers
    keeps its memory."""
    used = np.bincount(place, weights=demands[:, 1], minlength=len(memory))
    tight = np.ceil(used / rng.uniform(0.87, 0.97, size=len(memory)) / 1024) * 1024
    return np.where(used > 0, tight, memory)


def _loads(rng, demands, policies):
    """Return the loads of servers, as parts of a host, in up to three policies: in proportion to
    processors, to memory, and to neither."""
    part = rng.uniform(0.1, 0.9, size=(len(demands), policies))
    size = np.ones(part.shape)
    size[:, :2] = demands / HOST
    size[:, 2:] = 1 / len(demands)
    return size * part


def _highest(loads, place, scale):
    scores = np.zeros(scale.shape)
    np.add.at(scores, place, loads * scale[place])
    return scores.max(axis=0)


def mapped(path: pathlib.Path, count: int, seed: int) -> Problem:
    """Return the cloud of a published mapping, with some random hosts disabled. The room of a host
    is its CPUs and huge pages, of all its NUMA cells together.

    :param path: file of the mapping, as in ``bench fragments``
    :param count: number of disabled hosts
    """
    hosts, servers = fragments.mapping(path)
    index = {host: n for n, host in enumerate(hosts)}
    limits = np.array([[sum(cell[n] for cell in cells.values()) for n in (0, 2)]
                       for cells in hosts.values()], dtype=float)
    demands = np.array([[sum(part[n] for part in parts) for n in (1, 2)]
                        for _host, parts in servers], dtype=float)
    draining = np.zeros(len(hosts), dtype=bool)
    draining[np.random.default_rng(seed).choice(len(hosts), count, replace=False)] = True
    return inputs.problem(
        mode='spread', loads=demands / limits.max(axis=0) / 2,
        vm_host=np.array([index[host] for host, _parts in servers]), limits=limits,
        demands=demands, threshold=1.0, draining=draining)
