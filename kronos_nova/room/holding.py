"""The cloud as all else is planned in: room that is held counts as in use."""

import dataclasses
import math
from collections.abc import Iterable
from collections.abc import Mapping

import numpy as np

from kronos_nova.model import numa
from kronos_nova.objects.hold import Hold
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.room import shapes
from kronos_nova.room import whole


def with_held(snapshot: Snapshot, holds: Iterable[Hold], packs: bool = False) -> Snapshot:
    """The cloud with what holds keep counted as in use: resources, and NUMA cells as Nova would
    choose them. What a hold needs of cells and does not find there yet is not counted.

    :param packs: whether Nova fills NUMA cells that are in use first
    """
    kept = [_placeholder(hold, host, number) for hold in holds
            for host, count in sorted(hold.left().items()) for number in range(count)]
    if not kept:
        return snapshot
    index = {host.name: number for number, host in enumerate(snapshot.hosts)}
    kept = [each for each in kept if each.host in index]
    hosts = list(snapshot.hosts)
    for each in kept:
        hosts[index[each.host]] = _with_taken(hosts[index[each.host]], each.resources)
    hosts, _placed = numa.settled(
        hosts, kept, np.array([index[each.host] for each in kept], dtype=np.intp), packs)
    return dataclasses.replace(snapshot, hosts=tuple(hosts))


def _with_taken(host: Host, amounts: Mapping[str, int]) -> Host:
    """The host with less to give: more in use, or reserved where what is in use follows from its
    instances."""
    if host.used is not None:
        return whole.with_used(host, amounts)
    return dataclasses.replace(host, inventory={
        name: dataclasses.replace(each, reserved=each.reserved + math.ceil(
            amounts.get(name, 0) / each.allocation_ratio))
        for name, each in host.inventory.items()})


def _placeholder(hold: Hold, host: str, number: int) -> Instance:
    return shapes.instance(hold.shape, f'{shapes.NEW}{hold.uuid}/{host}/{number}', host,
                           hold.project_id)


def used_by(hold: Hold, snapshot: Snapshot) -> dict[str, str]:
    """The servers that have come into the room of a hold: uuid to host, at most as many on each
    host as it has room for. A server that has come stays counted after it has left or ended: its
    room is not kept again."""
    used, left = dict(hold.used), hold.left()
    for each in sorted(snapshot.instances, key=lambda each: each.uuid):
        flavor = each.flavor.name if each.flavor else ''
        if (left.get(each.host) and each.uuid not in used and each.uuid not in hold.known
                and hold.is_for(flavor, each.project_id)):
            used[each.uuid] = each.host
            left[each.host] -= 1
    return used


def known_in(hold: Hold, hosts: Iterable[str], snapshot: Snapshot) -> list[str]:
    """Uuids of the servers on some hosts that could be taken for users of the room."""
    names = set(hosts)
    return sorted(each.uuid for each in snapshot.instances if each.host in names and each.flavor
                  and hold.is_for(each.flavor.name, each.project_id))
