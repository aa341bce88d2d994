"""From the objects of a snapshot to the arrays of a problem."""

import dataclasses

import numpy as np

from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import ServerGroup
from kronos_nova.simulation.problem import Group


@dataclasses.dataclass(frozen=True, slots=True)
class Resources:
    """Placement's view: classes (C), demands (V, C), used and limits (H, C) as in
    :class:`~kronos_nova.simulation.Problem`."""

    classes: tuple[str, ...]
    demands: np.ndarray
    used: np.ndarray
    limits: np.ndarray


def resources(hosts: tuple[Host, ...], instances: tuple[Instance, ...],
              vm_host: np.ndarray) -> Resources:
    """What the instances are allocated, and what the hosts can allocate."""
    classes = tuple(sorted({name for instance in instances for name in instance.resources}))
    demands = np.array([[instance.resources.get(name, 0) for name in classes]
                        for instance in instances], dtype=float)
    demands = demands.reshape(len(instances), len(classes))
    used = np.zeros((len(hosts), len(classes)))
    np.add.at(used, vm_host, demands)
    limits = np.array([[host.inventory[name].capacity if name in host.inventory else 0.0
                        for name in classes] for host in hosts]).reshape(len(hosts), len(classes))
    return Resources(classes, demands, used, limits)


def groups(server_groups: tuple[ServerGroup, ...], vms: tuple[str, ...]) -> tuple[Group, ...]:
    """The server groups that can matter here: those with two members or more among ``vms``."""
    index = {uuid: position for position, uuid in enumerate(vms)}
    found = []
    for group in sorted(server_groups, key=lambda group: group.uuid):
        members = sorted({index[uuid] for uuid in group.members if uuid in index})
        if len(members) > 1:
            found.append(Group(
                uuid=group.uuid, name=group.name, members=np.array(members, dtype=np.intp),
                anti='anti' in group.policy, hard=not group.policy.startswith('soft-'),
                # Nova has no upper bound for it; more than there are members says nothing.
                max_per_host=min(max(1, group.rules.get('max_server_per_host', 1)), len(members))))
    return tuple(found)
