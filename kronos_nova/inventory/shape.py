"""From the public API's JSON to the objects of a snapshot."""

import collections
import dataclasses
import datetime
import math
from collections.abc import Iterable
from collections.abc import Mapping

from kronos_nova import exception
from kronos_nova.cooldown.memory import PastMove
from kronos_nova.objects.snapshot import OWN_METADATA
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import ResourceInventory
from kronos_nova.objects.snapshot import ServerGroup
from kronos_nova.objects.snapshot import Service
from kronos_nova.objects.snapshot import SharedProvider

HOST = 'OS-EXT-SRV-ATTR:host'


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider as placement shows it: ``inventories`` by resource class, ``held`` by
    consumer uuid and resource class."""

    inventories: Mapping[str, dict]
    held: Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SharingProvider:
    """A provider that shares what it has with the hosts whose root providers are ``roots``."""

    provider: Provider
    roots: frozenset[str]


def refuse_gaps(services: Iterable[dict], servers: Iterable[dict]):
    """Nova answers for a cell that is down with the bare names of what it has there; a plan that
    does not know where those run would be wrong.

    :raises InventoryError: something is missing
    """
    unread = sorted(service['host'] for service in services if 'state' not in service)
    if unread:
        raise exception.InventoryError(
            problem=f'the cell of the hosts {", ".join(unread[:5])} is down')
    bare = [server['id'] for server in servers if HOST not in server]
    if bare:
        raise exception.InventoryError(
            problem=f'Nova does not tell where {len(bare)} servers run ({bare[0]} is one): either '
                    'their cell is down, or the user of [kronos_nova] lacks the admin role')


def host(hypervisor: dict, service: dict, tree: Iterable[Provider]) -> Host:
    return Host(
        name=service['host'], uuid=hypervisor['id'],
        hypervisor_type=hypervisor['hypervisor_type'],
        service=Service(state=service['state'], status=service['status'],
                        forced_down=service['forced_down'],
                        disabled_reason=service['disabled_reason'] or None),
        inventory=inventory(tree), used=used(tree))


def inventory(tree: Iterable[Provider]) -> dict[str, ResourceInventory]:
    """The whole tree's by resource class: a NUMA node or a card may have a provider of its own."""
    parts = collections.defaultdict(list)
    for provider in tree:
        for resource_class, inventory in provider.inventories.items():
            parts[resource_class].append(ResourceInventory(
                total=inventory['total'], reserved=inventory['reserved'],
                allocation_ratio=inventory['allocation_ratio'], min_unit=inventory['min_unit'],
                max_unit=inventory['max_unit'], step_size=inventory['step_size']))
    return {name: _together(parts[name]) for name in sorted(parts)}


def _together(parts: list[ResourceInventory]) -> ResourceInventory:
    """One inventory with the capacity of several, whose ratios may differ.

    What one consumer is allocated of a class comes from one provider: its units are those that some
    provider has.
    """
    if len(parts) == 1:
        return parts[0]
    total = sum(part.total for part in parts)
    reserved = sum(part.reserved for part in parts)
    capacity = sum(part.capacity for part in parts)
    ratio = capacity / (total - reserved) if total > reserved else 1.0
    return ResourceInventory(
        total=total, reserved=reserved, allocation_ratio=ratio,
        min_unit=min(part.min_unit for part in parts),
        max_unit=max(part.max_unit for part in parts),
        step_size=math.gcd(*(part.step_size for part in parts)))


def used(tree: Iterable[Provider]) -> dict[str, int]:
    """What all consumers together are allocated on the tree, by resource class: instances,
    migrations, soft-deleted servers, whoever else asked placement."""
    total = collections.Counter()
    for provider in tree:
        for resources in provider.held.values():
            total.update(resources)
    return dict(sorted(total.items()))


def held_by_consumer(tree: Iterable[Provider]) -> dict[str, dict[str, int]]:
    """Consumer uuid -> what it is allocated on the tree, by resource class."""
    held = collections.defaultdict(collections.Counter)
    for provider in tree:
        for consumer, resources in provider.held.items():
            held[consumer].update(resources)
    return {consumer: dict(sorted(resources.items())) for consumer, resources in held.items()}


def shared_provider(uuid: str, found: SharingProvider, names: Mapping[str, str]) -> SharedProvider:
    """
    :param names: root provider uuid to the name of the host
    """
    return SharedProvider(
        uuid=uuid, hosts=tuple(sorted(names[root] for root in found.roots)),
        inventory=inventory([found.provider]), used=used([found.provider]))


def instance(server: dict, held: Mapping[str, dict[str, int]],
             shared: Mapping[str, dict[str, int]]) -> Instance:
    """
    :param held: what :func:`held_by_consumer` says of the server's host
    :param shared: what it says of all sharing providers together
    """
    flavor = server['flavor']
    return Instance(
        uuid=server['id'], name=server['OS-EXT-SRV-ATTR:instance_name'],
        display_name=server['name'], host=server[HOST], project_id=server['tenant_id'],
        status=server['status'], task_state=server['OS-EXT-STS:task_state'],
        locked=server['locked'], vcpus=flavor['vcpus'], memory_mb=flavor['ram'],
        disk_gb=flavor['disk'] + flavor['ephemeral'],
        metadata={key: value for key, value in server['metadata'].items()
                  if key.startswith(OWN_METADATA)},
        # Left out for a user who may not see them.
        flavor_extra_specs=flavor.get('extra_specs') or {},
        resources=held.get(server['id'], {}), shared_resources=shared.get(server['id'], {}))


def aggregate(raw: dict) -> Aggregate:
    """With all its hosts, those of bare metal among them."""
    return Aggregate(name=raw['name'], uuid=raw['uuid'],
                     availability_zone=raw['availability_zone'], metadata=raw['metadata'],
                     hosts=tuple(raw['hosts']))


def server_group(raw: dict) -> ServerGroup:
    """Old servers have the list ``policies`` with one element, new ones the single ``policy``."""
    policy = raw.get('policy') or next(iter(raw.get('policies') or ()), None)
    if policy is None:
        raise exception.InventoryError(problem=f'server group {raw["id"]} has no policy')
    return ServerGroup(uuid=raw['id'], name=raw['name'], policy=policy,
                       members=tuple(raw['members']), rules=raw.get('rules') or {})


def move_under_way(migration: dict) -> MoveUnderWay:
    return MoveUnderWay(instance_uuid=migration['instance_uuid'],
                        source=migration['source_compute'], destination=migration['dest_compute'])


def past_move(migration: dict) -> PastMove:
    ended_at = datetime.datetime.fromisoformat(migration['updated_at'] or migration['created_at'])
    return PastMove(instance_uuid=migration['instance_uuid'], source=migration['source_compute'],
                    destination=migration['dest_compute'],
                    ended_at=ended_at.replace(tzinfo=datetime.UTC).timestamp())
