"""Room held for new servers: the cloud in which this room counts as used, and the servers that use
it."""

import collections
import dataclasses
import math
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

import numpy as np

from kronos_nova.model import numa
from kronos_nova.objects.hold import Hold
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.room import shapes
from kronos_nova.room import whole


def with_held(snapshot: Snapshot, holds: Iterable[Hold], packs: bool = False,
              allocated: Collection[str] | None = None) -> Snapshot:
    """Return the cloud in which the room of holds (room kept for new servers) counts as used. The
    NUMA cells that Nova would choose for these servers also count as used, if the cells are free.

    :param packs: True if Nova fills the NUMA cells of a host one after the other
    :param allocated: uuids of the holds' consumers whose allocations the snapshot already counts as
        used; None for all consumers
    """
    seen = {host.name for host in snapshot.hosts if host.used is not None}
    for hold in holds:
        counted = collections.Counter(
            host for uuid, host in hold.consumers.items()
            if host in seen and (allocated is None or uuid in allocated))
        snapshot = with_taken(snapshot, hold.shape, {
            host: count - counted[host] for host, count in hold.left().items()}, packs)
    return snapshot


def with_taken(snapshot: Snapshot, shape: Shape, places: Mapping[str, int],
               packs: bool = False) -> Snapshot:
    """Return the cloud in which room for servers of a shape (the resources of one server) counts as
    used.

    :param places: {host: number of servers}
    :param packs: as for :func:`with_held`
    """
    index = {host.name: number for number, host in enumerate(snapshot.hosts)}
    taken = [shapes.instance(shape, f'{shapes.NEW}{host}/{number}', host, '')
             for host, count in sorted(places.items()) if host in index for number in range(count)]
    if not taken:
        return snapshot
    hosts = list(snapshot.hosts)
    for each in taken:
        hosts[index[each.host]] = _with_less(hosts[index[each.host]], each.resources)
    hosts, _placed = numa.settled(
        hosts, taken, np.array([index[each.host] for each in taken], dtype=np.intp), packs)
    return dataclasses.replace(snapshot, hosts=tuple(hosts))


def _with_less(host: Host, amounts: Mapping[str, int]) -> Host:
    """Return the host with less free room. The amounts are added to ``used`` of the host. If
    ``used`` is unknown, they are added to the reserved amounts of the inventory."""
    if host.used is not None:
        return whole.with_used(host, amounts)
    return dataclasses.replace(host, inventory={
        name: dataclasses.replace(each, reserved=each.reserved + math.ceil(
            amounts[name] / each.allocation_ratio)) if name in amounts and each.allocation_ratio
        else each for name, each in host.inventory.items()})


def used_by(hold: Hold, snapshot: Snapshot) -> dict[str, str]:
    """Return {uuid of a server that uses the room of a hold: host}. A hold keeps room for a number
    of servers on each host; if more servers are there, the surplus is left out. A server that has
    left the host or was deleted is still included, because its room is not kept again."""
    used, left = dict(hold.used), hold.left()
    for each in sorted(snapshot.instances, key=lambda each: each.uuid):
        flavor = each.flavor.name if each.flavor else ''
        if (left.get(each.host) and each.uuid not in used and each.uuid not in hold.known
                and hold.is_for(flavor, each.project_id)):
            used[each.uuid] = each.host
            left[each.host] -= 1
    return used


def problem_of(hold: Hold, snapshot: Snapshot) -> str:
    """Return the reason why some expected new servers cannot use the room of a hold now; '' if all
    of them can use it.

    :param snapshot: the cloud, including the hosts of the hold's aggregate
    """
    hosts = {host.name: host for host in snapshot.hosts}
    try:
        inside = hosts.keys() & {*snapshot.hosts_of(hold.aggregate)}
    except KeyError:
        return f'there is no aggregate {hold.aggregate} any more'
    closed = [name for name in sorted(hold.left())
              if name not in inside or not hosts[name].service.is_available]
    return (f'no server is started at present on {", ".join(closed)}: disabled, down, or not in '
            'the aggregate any more') if closed else ''


def known_in(hold: Hold, hosts: Iterable[str], snapshot: Snapshot) -> list[str]:
    """Return the uuids of the servers that do not count as users of the room of a hold, because
    they existed before the room was kept on ``hosts``. There are two kinds:

    * the servers that the hold has already recorded as existing before (``known``)
    * the servers of the hold's flavor and project that are on ``hosts`` now, and do not use the
      room
    """
    names = set(hosts)
    return sorted({*hold.known, *(
        each.uuid for each in snapshot.instances if each.host in names and each.flavor
        and each.uuid not in hold.used and hold.is_for(each.flavor.name, each.project_id))})
