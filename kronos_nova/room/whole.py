"""The model of a whole cloud, made from allocations and not from load."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from kronos_nova import model
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.constraints.base import compile_model
from kronos_nova.model import Model
from kronos_nova.model import Problem
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.objects.snapshot import is_supported
from kronos_nova.policies.selection import Selections

ALLOCATED = 'allocated'
"""Name of the only policy of the model. The policy scores a host by the used fraction of its
capacity, in the resource class in which this fraction is largest."""


def model_of(snapshot: Snapshot, rules: ConstraintRules,
             emptied: Sequence[str] = (), pinned: Sequence[str] = (),
             loads: Mapping[str, float] = MappingProxyType({})) -> Model:
    """Make the model of all supported hosts and their instances. Soft server groups may be
    violated, because Nova starts a server even on a host that violates a soft group. Operators'
    rules apply only if they name hosts.

    :param emptied: names of hosts that all instances have to leave
    :param pinned: uuids of instances that do not move
    :param loads: {host: its load}, for hosts whose load is known; for other hosts, the used
        fraction of the capacity counts as load
    """
    hosts = tuple(sorted((host for host in snapshot.hosts
                          if is_supported(host.hypervisor_type)),
                         key=lambda host: host.name))
    selections = Selections((each.rule for each in rules.selections), snapshot)
    return compile_model(
        _problem(snapshot, hosts, frozenset(emptied), frozenset(pinned),
                 rules.packs_numa_cells, loads), snapshot,
        dataclasses.replace(rules, soft_groups_yield=True, selections=selections))


def _problem(snapshot: Snapshot, hosts: tuple[Host, ...], emptied: frozenset[str],
             pinned: frozenset[str], packs_numa_cells: bool,
             loads: Mapping[str, float]) -> Problem:
    names = tuple(host.name for host in hosts)
    index = {name: position for position, name in enumerate(names)}
    instances: tuple[Instance, ...] = tuple(sorted(
        (each for each in snapshot.instances if each.host in index), key=lambda each: each.uuid))
    vms = tuple(instance.uuid for instance in instances)
    vm_host = np.array([index[instance.host] for instance in instances], dtype=np.intp)
    fields, _known = model.resources(hosts, instances, vm_host, snapshot)
    draining = np.array([name in emptied for name in names], dtype=bool)
    available = np.array([host.service.is_available for host in hosts], dtype=bool) & ~draining
    free = np.array([uuid not in pinned for uuid in vms], dtype=bool)
    limits = np.maximum(fields['limits'][:len(hosts)], 1.0)
    fill = (fields['used'][:len(hosts)] / limits).max(axis=1, initial=0.0)
    fill = np.array([loads.get(name, part) for name, part in zip(names, fill, strict=True)],
                    dtype=float)
    size = np.maximum(limits[available].max(axis=0, initial=1.0), 1.0)
    return Problem(
        hosts=names, vms=vms, policies=(ALLOCATED,), policy_weights=np.ones(1),
        thresholds=np.full(1, np.inf), scores=fill[:, None],
        weights=(fields['demands'] / size).max(axis=1, initial=0.0)[:, None],
        host_scale=np.ones((len(hosts), 1)), capacity_scores=np.full((len(hosts), 1), np.nan),
        capacity_thresholds=np.full(1, np.inf), vm_host=vm_host,
        memory_mb=np.array([each.memory_mb for each in instances], dtype=np.int64),
        movable=free & available[vm_host], available=available, evacuable=free,
        draining=draining, groups=model.groups(snapshot, vms, names),
        cells=model.cells(hosts, instances, vm_host, packs_numa_cells),
        **fields)


def with_used(host: Host, amounts: Mapping[str, int], sign: int = 1) -> Host:
    """Return the host with changed use: the amounts are added, or subtracted if ``sign`` is -1. A
    host whose use is not known is returned unchanged."""
    if host.used is None:
        return host
    used = dict(host.used)
    for name, amount in amounts.items():
        used[name] = used.get(name, 0) + sign * amount
    return dataclasses.replace(host, used=used)
