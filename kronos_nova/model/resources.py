"""Conversion of a snapshot's hosts, instances and server groups to the arrays of a problem."""

import collections
import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

import numpy as np

from kronos_nova import boundary
from kronos_nova.model.problem import Group
from kronos_nova.objects import domains
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import ResourceInventory
from kronos_nova.objects.snapshot import SharedProvider
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.objects.snapshot import pools_of

NOTHING = ResourceInventory(total=0)
DEVICE = 'device'
"""Prefix of the names of devices. Devices count like resource classes. The names of resource
classes are in upper case, so that none of them begins with this prefix."""
ENOUGH = 1 << 20
"""Number of devices of each kind that a host is assumed to have if its devices are not known.
Raised, nothing changes; lowered below the need of the servers on a host, servers with devices seem
to have no room there. Fixed: more devices than all servers of one host need."""
T = TypeVar('T')


def resources(hosts: tuple[Host, ...], instances: tuple[Instance, ...], vm_host: np.ndarray,
              snapshot: Snapshot) -> tuple[dict[str, Any], np.ndarray]:
    """Return two results: the fields of a :class:`~kronos_nova.model.Problem` about allocations and
    capacity; and bool (H,), true for hosts that report the amounts in use.

    For a host that does not report the amounts in use, the sum of the allocations is used instead.
    The sum includes the instances on the host and the instances that are migrating to the host. PCI
    devices are treated like resource classes: each alias of ``[pci] alias`` is one class. The NUMA
    cells of the devices are ignored.
    """
    hosts, instances = _with_devices(hosts, instances)
    classes = tuple(sorted({name for instance in instances for name in (
        *instance.resources, *instance.shared_resources)}))
    shared = _shared(hosts, snapshot)
    providers: list[Host | SharedProvider] = [*hosts, *shared]
    inventories = [row.inventory for row in providers]
    limits, least, most, step = (_table(inventories, classes, NOTHING, of) for of in (
        lambda one: one.capacity, lambda one: one.min_unit or 0,
        lambda one: np.inf if one.max_unit is None else one.max_unit,
        lambda one: one.step_size or 1))
    has_units = (least > 1).any() or np.isfinite(most).any() or (step > 1).any()
    own = _table([instance.resources for instance in instances], classes, 0, float)
    demands, used = own, np.zeros(limits.shape)
    if shared:
        demands = own + _table([i.shared_resources for i in instances], classes, 0, float)
    np.add.at(used, vm_host, own)
    _add_arriving(used, hosts, classes, snapshot)
    known = np.array([host.used is not None for host in hosts], dtype=bool)
    said = _table([row.used or {} for row in providers], classes, 0, float)
    used = np.where(np.append(known, np.ones(len(shared), dtype=bool))[:, None], said, used)
    units = {'min_unit': least, 'max_unit': most, 'step_size': step} if has_units else {}
    return {**units, 'resource_classes': classes, 'demands': demands, 'used': used,
            'limits': limits, 'shared': tuple(pool.uuid for pool in shared),
            'provider': _provider(hosts, shared, classes) if shared else None}, known


def _with_devices(hosts: tuple[Host, ...], instances: tuple[Instance, ...]
                  ) -> tuple[tuple[Host, ...], tuple[Instance, ...]]:
    """Return hosts and instances with their devices as additional resources. A host that does not
    report its devices gets more devices than any servers need."""
    held: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for instance in instances:
        if instance.devices:
            held[instance.host].update(_devices(instance))
    if not held:
        return hosts, instances
    wanted = set().union(*held.values())
    return (tuple(_with_pools(host, wanted, held[host.name]) for host in hosts),
            tuple(dataclasses.replace(each, resources={**each.resources, **_devices(each)})
                  if each.devices else each for each in instances))


def _devices(instance: Instance) -> dict[str, int]:
    found = collections.Counter[str]()
    for device in instance.devices:
        found[f'{DEVICE} {device.alias}'] += device.count
    return dict(found)


def _with_pools(host: Host, wanted: Iterable[str], held: Mapping[str, int]) -> Host:
    """Return a host with an inventory of each class of devices in ``wanted``.

    :param held: {class: number of devices of the instances on the host}
    """
    total, used = collections.Counter[str](), collections.Counter[str]()
    for pool in host.pools or ():
        total[f'{DEVICE} {pool.alias}'] += pool.total
        used[f'{DEVICE} {pool.alias}'] += pool.used
    if host.pools is None:
        total.update(dict.fromkeys(wanted, ENOUGH))
        used.update(held)
    return dataclasses.replace(
        host, used=None if host.used is None else {**host.used, **used},
        inventory={**host.inventory, **{name: ResourceInventory(
            # Where a host does not report its use, the allocations of its instances count, and
            # others are reserved.
            total=total[name], reserved=0 if host.used is not None else max(
                used[name] - held.get(name, 0), 0)) for name in wanted}})


def _shared(hosts: Sequence[Host], snapshot: Snapshot) -> list[SharedProvider]:
    """Return the providers that ``hosts`` share, sorted by uuid. So the order does not depend on
    how the providers were read."""
    names = {host.name for host in hosts}
    return sorted((pool for pool in snapshot.shared_providers if not names.isdisjoint(pool.hosts)),
                  key=lambda pool: pool.uuid)


def _table(rows: Sequence[Mapping[str, T]], classes: Sequence[str], missing: T,
           of: Callable[[T], float]) -> np.ndarray:
    """Return float64, a table with a row for each of ``rows`` (mappings by resource class) and a
    column for each of ``classes``.

    :param missing: value that is used for a class that a mapping does not have
    :param of: function that converts a value of a mapping to the number
    """
    return np.array([[of(row.get(name, missing)) for name in classes] for row in rows],
                    dtype=float).reshape(len(rows), len(classes))


def _add_arriving(used: np.ndarray, hosts: Sequence[Host], classes: Sequence[str],
                  snapshot: Snapshot) -> None:
    arriving = _arriving_members(snapshot, [host.name for host in hosts])
    for instance in snapshot.instances if arriving else ():
        if instance.uuid in arriving:
            used[arriving[instance.uuid]] += [instance.resources.get(name, 0) for name in classes]


def _provider(hosts: Sequence[Host], shared: Sequence[SharedProvider],
              classes: Sequence[str]) -> np.ndarray:
    """Return intp (H, C): for each host and each of C resource classes, the row of the provider.
    The rows are the hosts, followed by the shared providers. The result is the host's own row if
    the host provides the class itself, or if the host shares no provider of the class. Otherwise
    the result is the row of the shared provider."""
    number = {pool.uuid: number for number, pool in enumerate(shared, start=len(hosts))}
    return np.array([[number.get(pools.get(name, ''), host) for name in classes]
                     for host, pools in enumerate(pools_of(hosts, shared).values())],
                    dtype=np.intp)


def groups(snapshot: Snapshot, vms: tuple[str, ...], hosts: tuple[str, ...]) -> tuple[Group, ...]:
    """Return the server groups that can affect moves. A group can affect moves if at least two of
    its members count. At least one of them must be in ``vms``; the other members that count are in
    ``vms`` or are migrating to ``hosts``.

    If the members of a group are kept apart, the metadata of a member may request a level of
    failure domains. A copy of the group is added for each requested level.
    """
    index = {uuid: position for position, uuid in enumerate(vms)}
    arriving = _arriving_members(snapshot, hosts)
    levels = _levels_apart(snapshot)
    found = []
    for group in sorted(snapshot.server_groups, key=lambda group: group.uuid):
        members = sorted({index[uuid] for uuid in group.members if uuid in index})
        hosts_of = [arriving[uuid] for uuid in sorted(set(group.members) & arriving.keys())]
        size = len(members) + len(hosts_of)
        if members and size > 1:
            made = Group(
                uuid=group.uuid, name=boundary.shown(group.name, 80),
                members=np.array(members, dtype=np.intp), anti='anti' in group.policy,
                hard=not group.policy.startswith('soft-'),
                # Nova has no upper bound for the rule; a value above the number of members has no
                # effect.
                max_per_host=min(max(1, group.rules.get('max_server_per_host', 1)), size),
                arriving=np.array(hosts_of, dtype=np.intp))
            found.append(made)
            wanted = {levels[uuid] for uuid in group.members if uuid in levels}
            found += [_by_domain(made, snapshot, hosts, *each)
                      for each in sorted(wanted if made.anti else ())]
    return tuple(found)


def _levels_apart(snapshot: Snapshot) -> dict[str, tuple[str, bool]]:
    """Return {uuid of an instance: (level of failure domains, whether the level is required)}. The
    metadata of these instances requests that other members of the group are kept in other failure
    domains of the level."""
    levels = {level for host in snapshot.hosts for level in host.domains}
    found = {}
    for instance in snapshot.instances if levels else ():
        wish = instance.metadata.get(domains.APART, '').strip()
        level = wish.removeprefix(domains.SOFT)
        if level in levels:
            found[instance.uuid] = level, level == wish
    return found


def _by_domain(group: Group, snapshot: Snapshot, hosts: Sequence[str], level: str,
               hard: bool) -> Group:
    """Return a copy of a group whose members must be in different failure domains. If a host cannot
    be emptied otherwise, the rule of the copy is ignored, even if ``hard`` is true. The reason is
    that the owners of servers have requested this rule, and owners must not keep an operator from
    emptying a host.

    :param level: kind of failure domain, such as racks
    :param hard: whether the copy must hold
    """
    place_of = {host.name: domains.place(host, level) or (host.name,) for host in snapshot.hosts}
    first: dict[domains.Place, int] = {}
    places = [first.setdefault(place_of[host], number) for number, host in enumerate(hosts)]
    return dataclasses.replace(
        group, name=f'{group.name} by {level}', hard=hard, yields=True, max_per_host=1,
        places=np.array(places, dtype=np.intp))


def _arriving_members(snapshot: Snapshot, hosts: Sequence[str]) -> dict[str, int]:
    """Return {uuid of an instance: index of the host} for the instances that are migrating to one
    of ``hosts``."""
    index = {name: number for number, name in enumerate(hosts)}
    return {move.instance_uuid: index[move.destination] for move in snapshot.moves_under_way
            if move.destination in index}
