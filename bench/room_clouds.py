"""Random clouds for what is asked about room; each seed is one cloud."""

import dataclasses
import itertools
import uuid
from collections.abc import Iterator

import numpy as np

from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.numa import NumaCell
from kronos_nova.objects.shape import Shape

WIDE = 8
"""CPUs above which a server lies in two cells, where hosts have any."""
FLAVORS = np.array([[1, 2048], [2, 4096], [2, 8192], [4, 8192], [4, 32768], [8, 16384],
                    [8, 65536], [16, 32768], [32, 65536]])
SIZES = np.array([[32, 131072], [64, 262144], [128, 524288]])
CELLS = 2
"""NUMA cells of a host, where hosts have any."""
UP = objects.Service(state='up', status='enabled')
KEPT = 'filter_tenant_id'
PROJECTS = 'a', 'b', 'c'


def cloud(seed: int, hosts: int | None = None, servers: int | None = None,
          ratio: float = 4.0, has_cells: bool = False) -> objects.Snapshot:
    """Return a random cloud whose hosts together have about as much room free as the largest of
    them has in use, so that the loss of one is just possible or just not.

    Hosts have up to three sizes, one in ten is disabled, a third may be reserved for projects, and
    groups of servers are kept apart or together by hard policies.

    :param has_cells: hosts have NUMA cells, and all CPUs of servers are pinned
    """
    ratio = 1.0 if has_cells else ratio
    rng = np.random.default_rng([seed, 22])
    count = hosts or int(rng.integers(6, 15))
    size = SIZES[rng.integers(0, rng.integers(1, 4), count)]
    limits = size * [ratio, 1.0]
    # Many servers on each host are small ones.
    flavors = FLAVORS if servers is None else FLAVORS[:5]
    free = np.repeat(size[:, None, :] / CELLS, CELLS, axis=1)
    full = limits * (rng.uniform(0.5, min(1.0 - 1.0 / count, 0.95))
                     * rng.uniform(0.85, 1.1, count))[:, None]
    instances, used = [], np.zeros((count, 2))
    kept = rng.random() < 0.3
    project_of = [PROJECTS[n % 2] if kept and n < count // 3 else '' for n in range(count)]
    misses = 0
    while misses < 200 and (servers is None or len(instances) < servers):
        flavor = flavors[rng.integers(len(flavors))]
        host = int(rng.integers(count))
        if (used[host] + flavor > np.minimum(full[host], limits[host])).any():
            misses += 1
            continue
        cells = _cells(rng, free[host], flavor) if has_cells else None
        if has_cells and cells is None:
            misses += 1
            continue
        misses = 0
        used[host] += flavor
        instances.append(_instance(rng, len(instances), host, flavor, project_of[host]))
        if cells is not None:
            free[host, cells] -= flavor / len(cells)
            instances[-1] = _pinned(instances[-1], cells)
    return objects.Snapshot(
        taken_at='2026-11-26T12:00:00+00:00',
        hosts=tuple(_host(rng, n, limits[n] / [ratio, 1.0], ratio,
                          free[n] if has_cells else None) for n in range(count)),
        instances=tuple(instances), server_groups=tuple(_groups(rng, instances)),
        aggregates=tuple(objects.Aggregate(
            name=f'for-{project}', uuid=_uuid(rng), metadata={KEPT: project},
            hosts=tuple(_name(n) for n in range(count) if project_of[n] == project))
            for project in sorted(set(project_of) - {''})))


def shape(vcpus: int, memory: int, has_cells: bool) -> Shape:
    """Return the flavor of a size. Where hosts have NUMA cells, it has pinned CPUs, and a large
    flavor has two cells."""
    specs = {}
    if has_cells:
        specs = {'hw:cpu_policy': 'dedicated'} | (
            {'hw:numa_nodes': str(CELLS)} if vcpus > WIDE else {})
    return Shape(name=f'{vcpus}:{memory}', vcpus=vcpus, memory_mb=memory, extra_specs=specs)


def _cells(rng, free, flavor):
    """Return random cells for a server of a flavor; None where it does not fit."""
    parts = CELLS if flavor[0] > WIDE else 1
    cells = np.flatnonzero((free >= flavor / parts).all(axis=1))
    return None if len(cells) < parts else sorted(rng.permutation(cells)[:parts].tolist())


def _pinned(instance, cells):
    return dataclasses.replace(
        instance, resources={'PCPU': instance.vcpus, 'MEMORY_MB': instance.memory_mb},
        cells=shape(instance.vcpus, instance.memory_mb, True).cells, on_cells=tuple(cells))


def ways(host: objects.Host, parts: int) -> Iterator[tuple[int, ...]]:
    """Return an iterator over the sets of cells of a host that a server of equal parts can have."""
    return itertools.combinations([cell.id for cell in host.cells or ()], parts)


def kept(snapshot: objects.Snapshot) -> dict[str, set[str]]:
    """Return {name of a host that is reserved for projects: ids of these projects}."""
    found: dict[str, set[str]] = {}
    for aggregate in snapshot.aggregates:
        for name in aggregate.hosts:
            found.setdefault(name, set()).add(aggregate.metadata[KEPT])
    return found


def _host(rng, number, size, ratio, free):
    """:param free: float64 (CELLS, 2), CPUs and MiB of each cell; None for no cells"""
    vcpus, memory = map(int, size)
    is_disabled = rng.random() < 0.1
    return objects.Host(
        name=_name(number), uuid=_uuid(rng),
        service=objects.Service(state='up', status='disabled') if is_disabled else UP,
        cells=None if free is None else tuple(NumaCell(
            id=cell, memory_mb=memory // CELLS, memory_used_mb=memory // CELLS - int(free[cell, 1]),
            pinned_cpus=vcpus // CELLS, pinned_used=vcpus // CELLS - int(free[cell, 0]))
            for cell in range(CELLS)),
        inventory={'VCPU' if free is None else 'PCPU': objects.ResourceInventory(
            total=vcpus, allocation_ratio=ratio),
                   'MEMORY_MB': objects.ResourceInventory(total=memory)})


def _instance(rng, number, host, flavor, project):
    vcpus, memory = map(int, flavor)
    return objects.Instance(
        uuid=_uuid(rng), name=f'instance-{number:08x}', display_name=f'server{number}',
        host=_name(host), project_id=project or PROJECTS[rng.integers(len(PROJECTS))],
        status='ACTIVE', vcpus=vcpus, memory_mb=memory, disk_gb=0,
        resources={'VCPU': vcpus, 'MEMORY_MB': memory}, launched_at=1.7e9 + number)


def _groups(rng, instances):
    """Anti-affinity over hosts, and affinity of servers that are on one host."""
    left = rng.permutation(len(instances)).tolist()
    for number in range(len(instances) // 12):
        policy = 'affinity' if number % 5 == 0 else 'anti-affinity'
        members, places = [], set()
        for position in list(left):
            host = instances[position].host
            if len(members) < 4 and (policy == 'affinity' and (not places or host in places)
                                     or policy == 'anti-affinity' and host not in places):
                members.append(instances[position].uuid)
                places.add(host)
                left.remove(position)
        if len(members) > 1:
            yield objects.ServerGroup(uuid=_uuid(rng), name=f'group{number}', policy=policy,
                                      members=tuple(members))


def _name(number):
    return f'host{number:05d}'


def _uuid(rng):
    return str(uuid.UUID(bytes=rng.bytes(16), version=4))
