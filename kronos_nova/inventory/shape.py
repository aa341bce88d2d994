"""Conversion of JSON from Nova's and placement's public APIs to the objects of a snapshot."""

import collections
import dataclasses
import functools
import math
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.inventory.kinds import Kinds
from kronos_nova.inventory.kinds import facts_of_power
from kronos_nova.objects import migration_meaning
from kronos_nova.objects.movability import Where
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import OWN_METADATA
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import Cpu
from kronos_nova.objects.snapshot import Flavor
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Image
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import ResourceInventory
from kronos_nova.objects.snapshot import ServerGroup
from kronos_nova.objects.snapshot import Service
from kronos_nova.objects.snapshot import SharedProvider

HOST = 'OS-EXT-SRV-ATTR:host'
LAUNCHED = 'OS-SRV-USG:launched_at'
UNSHOWN = ''

NAMES = {'name': 'OS-EXT-SRV-ATTR:instance_name', 'display_name': 'name'}
"""{attribute of an Instance that is a name: its key in Nova's API}."""

MOST = 1 << 53
"""Largest number that is accepted in an inventory, an allocation or a flavor (no unit). Data with a
larger number are refused. Fixed by float64, which represents all whole numbers exactly only up to
this number. The numbers of placement are smaller: they have at most 31 bits."""

MOST_RULE = 1 << 64
"""Largest number of instances that Kronos accepts as the rule ``max_server_per_host`` of a server
group. Fixed far above the size of any server group. Nova accepts any whole number, and all numbers
above the size of a group have the same effect."""

MOST_KEYS = 10_000
"""Maximum number of keys in the metadata of a server or aggregate, in the extra specs of a flavor,
and in the properties of an image. The same maximum applies to the tags of a server and to the
features of a host's processor. Raised, a faulty record takes more memory; lowered, servers are
refused in a cloud with a large quota for metadata. Chosen far above 128, which is Nova's default
quota."""

LONGEST_VALUE = 65_535
"""Maximum number of characters of one value of metadata or extra specs. Fixed by MySQL: a TEXT
column has at most this number of bytes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider as placement reports it. ``inventories`` is {resource class: inventory}.
    ``held`` is {uuid of a consumer: {resource class: amount that is allocated to the consumer}}.
    ``traits`` are names of traits."""

    inventories: Mapping[str, dict]
    held: Mapping[str, Mapping[str, int]]
    traits: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SharingProvider:
    """A sharing resource provider. ``roots`` are the root providers of the hosts that use the
    provider."""

    provider: Provider
    roots: frozenset[str]


def refuse_silent_cells(services: Iterable[dict]) -> None:
    """Raise an error if a cell is down. While a cell is down, Nova's API lists its nova-compute
    services without a state, and does not list its hypervisors.

    :raises InventoryError: a cell is down
    """
    unread = sorted(service['host'] for service in services if 'state' not in service)
    if unread:
        raise exception.InventoryError(
            problem=f'the cell of the hosts {", ".join(unread[:5])} is down, and Nova\'s API lists '
                    'no hypervisors until the cell is up again')


def refuse_gaps(servers: Iterable[dict]) -> None:
    """Raise an error if a server is listed without its host. Nova reports only the uuids of the
    servers in a cell that is down. Without the hosts of servers, a plan would be wrong.

    :raises InventoryError: the list has a server without a host
    """
    bare = [server['id'] for server in servers if HOST not in server]
    if bare:
        raise exception.InventoryError(
            problem=f'Nova does not report the hosts of {plural.count(len(bare), "server")} '
                    f'(such as {bare[0]}): '
                    'either their cell is down, or the user of [kronos_nova] lacks the admin role')


def one_of_each(instances: Iterable[Instance]) -> tuple[Instance, ...]:
    """Return the instances without repetitions. If several have the same uuid, only the first is in
    the result. Nova may list a server twice for two reasons. A server that changes during the
    listing may be on two pages of the list. A server that moves to another cell is in both cells
    for a while."""
    found: dict[str, Instance] = {}
    for instance in instances:
        found.setdefault(instance.uuid, instance)
    return tuple(found.values())


def host(hypervisor: dict, service: dict, tree: Iterable[Provider]) -> Host:
    return Host(
        name=service['host'], uuid=hypervisor['id'],
        hypervisor_type=hypervisor['hypervisor_type'],
        service=Service(state=service['state'], status=service['status'],
                        forced_down=service['forced_down'],
                        disabled_reason=service['disabled_reason'] or None),
        inventory=inventory(tree), used=used(tree), traits=traits(tree),
        cpu=cpu(hypervisor.get('cpu_info')),
        hypervisor_version=_version(hypervisor.get('hypervisor_version')))


def cpu(raw: Any) -> Cpu | None:
    """Return the processors of a host; None if the hypervisor does not report them.

    :param raw: ``compute_nodes.cpu_info``, parsed
    """
    if not isinstance(raw, Mapping) or not all(raw.get(key) for key in ('arch', 'model')):
        return None
    return _cpu(raw['arch'], raw['model'], tuple(boundary.sized(
        raw.get('features') or (), 'CPU features', MOST_KEYS)))


@functools.lru_cache(maxsize=1000)
def _cpu(arch: str, model: str, features: tuple[str, ...]) -> Cpu:
    """Return the processors of a host. Calls with equal values return the same object."""
    return Cpu(arch=boundary.text(arch, 'an architecture'),
               model=boundary.text(model, 'a CPU model'),
               features=tuple(sorted({boundary.text(each, 'a CPU feature') for each in features})))


def _version(raw: Any) -> int | None:
    return None if raw is None else boundary.integer(raw, 'a hypervisor version', 0, MOST)


def inventory(tree: Iterable[Provider]) -> dict[str, ResourceInventory]:
    """Return {resource class: inventory} of a provider tree. Several providers of the tree may have
    the same resource class, because NUMA nodes and devices may be separate providers. All
    inventories of a class are combined."""
    parts: dict[str, list[ResourceInventory]] = collections.defaultdict(list)
    for provider in tree:
        for resource_class, inventory in provider.inventories.items():
            parts[boundary.text(resource_class, 'a resource class')].append(
                _resource_inventory(inventory))
    return {name: _together(parts[name]) for name in sorted(parts)}


def traits(tree: Iterable[Provider]) -> tuple[str, ...]:
    """Return the traits of all providers of the tree, sorted."""
    return tuple(sorted(boundary.text(trait, 'a trait')
                        for trait in frozenset().union(*(each.traits for each in tree))))


def _resource_inventory(raw: Mapping[str, Any]) -> ResourceInventory:
    """Convert the inventory of one resource class in a response of placement.

    :raises OutOfBounds: a number is out of placement's range
    """
    def figure(name: str, lowest: int) -> int:
        return boundary.integer(raw[name], f'an inventory: {name}', lowest, MOST)

    return ResourceInventory(
        total=figure('total', 0), reserved=figure('reserved', 0), min_unit=figure('min_unit', 0),
        max_unit=figure('max_unit', 0), step_size=figure('step_size', 1),
        allocation_ratio=boundary.number(raw['allocation_ratio'], 'an allocation ratio'))


def amounts(resources: Mapping[str, int]) -> dict[str, int]:
    """Return {resource class: amount} of a consumer on a provider, sorted by class.

    :raises OutOfBounds: the resources do not have the form in which placement reports them
    """
    if not isinstance(resources, Mapping):
        raise boundary.OutOfBounds(what='an allocation', problem='must be a JSON object')
    return {name: boundary.integer(amount, f'an allocation of {boundary.shown(name, 80)}', 0, MOST)
            for name, amount in sorted(resources.items())}


def _together(parts: list[ResourceInventory]) -> ResourceInventory:
    """Return one inventory with the total capacity of several inventories of a resource class.

    A consumer's allocation of a class comes from a single provider. The ``min_unit``, ``max_unit``
    and ``step_size`` of the result therefore permit every amount that at least one of the
    inventories permits. The ``allocation_ratio`` of the result is the ratio that gives the total
    capacity.
    """
    if len(parts) == 1:
        return parts[0]
    total = sum(part.total for part in parts)
    reserved = sum(part.reserved for part in parts)
    capacity = sum(part.capacity for part in parts)
    ratio = capacity / (total - reserved) if total > reserved else 1.0
    return ResourceInventory(
        total=total, reserved=reserved, allocation_ratio=ratio,
        # Inventories from placement have all units.
        min_unit=min(part.min_unit for part in parts),  # type: ignore[type-var]
        max_unit=max(part.max_unit for part in parts),  # type: ignore[type-var]
        step_size=math.gcd(*(part.step_size for part in parts)))  # type: ignore[arg-type]


def used(tree: Iterable[Provider]) -> dict[str, int]:
    """Return {resource class: sum of all allocations on the tree}. The sum includes instances,
    migrations, soft-deleted servers and all other consumers."""
    total: dict[str, int] = collections.defaultdict(int)
    for provider in tree:
        for resources in provider.held.values():
            for name, amount in resources.items():
                total[name] += amount
    return dict(sorted(total.items()))


def held_by_consumer(tree: Iterable[Provider]) -> Mapping[str, Mapping[str, int]]:
    """Return {consumer uuid: {resource class: amount that is allocated on the tree}}."""
    tree = list(tree)
    if len(tree) == 1:
        return tree[0].held
    held: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for provider in tree:
        for consumer, resources in provider.held.items():
            held[consumer].update(resources)
    return {consumer: dict(sorted(resources.items())) for consumer, resources in held.items()}


def shared_provider(uuid: str, found: SharingProvider, names: Mapping[str, str]) -> SharedProvider:
    """Return the SharedProvider of a snapshot for a sharing provider in placement.

    :param names: {root provider uuid: name of the host}
    """
    return SharedProvider(
        uuid=uuid, hosts=tuple(sorted(names[root] for root in found.roots)),
        inventory=inventory([found.provider]), used=used([found.provider]))


def instance(server: dict, held: Mapping[str, Mapping[str, int]],
             shared: Mapping[str, Mapping[str, int]], known: Kinds, where: Where,
             members: Mapping[str, tuple[tuple[str, ...], ...]]) -> Instance:
    """Return the instance that a server in a response of Nova describes.

    :param held: result of :func:`held_by_consumer` for the server's host
    :param shared: result of :func:`held_by_consumer` for all sharing providers together
    :param members: result of :func:`~kronos_nova.inventory.kinds.zone_members`
    """
    flavor, image, status = server['flavor'], _image(server['image']), _text(server, 'status')
    # Nova leaves extra specs out for a user who may not see them.
    extra_specs = boundary.texts(flavor.get('extra_specs') or {}, 'extra specs', MOST_KEYS,
                                 LONGEST_VALUE)
    resources = held.get(server['id'], {})
    live, requires = known.decide(
        (frozenset(extra_specs.items()), frozenset(image.properties.items())), extra_specs,
        image.properties, resources, status, where,
        facts_of_power(server.get('OS-EXT-STS:power_state')),
        server.get(LAUNCHED, UNSHOWN) is not None,
        members.get(server.get('pinned_availability_zone') or '', ()))

    def size(name: str) -> int:
        return boundary.integer(flavor[name], f'a flavor: {name}', 0, MOST)

    return Instance(
        uuid=_text(server, 'id'), host=_text(server, HOST),
        name=_text(server, NAMES['name']), display_name=_text(server, NAMES['display_name']),
        project_id=_text(server, 'tenant_id'), status=status,
        task_state=_text_or_none(server, 'OS-EXT-STS:task_state'),
        locked=bool(server['locked']), vcpus=size('vcpus'), memory_mb=size('ram'),
        disk_gb=size('disk') + size('ephemeral'),
        metadata={key: value for key, value in boundary.texts(
            server['metadata'], 'metadata', MOST_KEYS).items() if key.startswith(OWN_METADATA)},
        flavor_extra_specs=extra_specs,
        resources=resources, shared_resources=shared.get(server['id'], {}),
        launched_at=_seconds(server.get(LAUNCHED)), live=live, requires=requires,
        flavor=Flavor(name=_text(flavor, 'original_name')), image=image,
        tags=tuple(sorted(boundary.text(tag, 'a tag') for tag in boundary.sized(
            server['tags'], 'tags', MOST_KEYS))))


def flavor(raw: dict) -> Shape:
    """Return the Shape of a flavor in Nova's list."""
    def size(name: str) -> int:
        return boundary.integer(raw[name] or 0, f'a flavor: {name}', 0, MOST)

    return Shape(
        id=_text(raw, 'id'), name=_text(raw, 'name'), vcpus=size('vcpus'), memory_mb=size('ram'),
        disk_gb=size('disk') + size('OS-FLV-EXT-DATA:ephemeral') + -(-size('swap') // 1024),
        extra_specs=boundary.texts(raw.get('extra_specs') or {}, 'extra specs', MOST_KEYS,
                                   LONGEST_VALUE))


def _image(raw: Any) -> Image:
    """Return the image of a server. Nova has '' in place of the image of a server that was booted
    from a volume."""
    if not raw:
        return Image(id='')
    return Image(id=_text(raw, 'id'), properties=boundary.texts(
        raw.get('properties') or {}, 'image properties', MOST_KEYS))


def _seconds(time: Any) -> float | None:
    """Return a UTC time of Nova's API as Unix seconds; None if there is no time."""
    return int(clock.parsed(boundary.text(time, 'launched_at')).timestamp()) if time else None


def aggregate(raw: dict) -> Aggregate:
    """Return an aggregate with all of its hosts, including bare metal hosts."""
    return Aggregate(name=_text(raw, 'name'), uuid=_text(raw, 'uuid'),
                     availability_zone=_text_or_none(raw, 'availability_zone'),
                     metadata=boundary.texts(raw['metadata'], 'metadata', MOST_KEYS, LONGEST_VALUE),
                     hosts=tuple(boundary.text(name, 'a host') for name in raw['hosts']))


def server_group(raw: dict) -> ServerGroup:
    """Return the server group in a response of Nova. Old microversions have the list ``policies``
    with one element, and new microversions have ``policy``."""
    policy = raw.get('policy') or next(iter(raw.get('policies') or ()), None)
    if policy is None:
        raise exception.InventoryError(problem=f'server group {raw["id"]} has no policy')
    rules = {name: boundary.integer(value, f'a rule {boundary.shown(name, 80)}', 0, MOST_RULE)
             for name, value in (raw.get('rules') or {}).items()}
    return ServerGroup(
        uuid=_text(raw, 'id'), name=_text(raw, 'name'), rules=rules,
        policy=boundary.text(policy, 'a policy'),
        members=tuple(boundary.text(member, 'a member') for member in raw['members']))


def _text(raw: Mapping[str, Any], name: str) -> str:
    return boundary.text(raw[name], boundary.shown(name))


def _text_or_none(raw: Mapping[str, Any], name: str) -> str | None:
    return None if raw[name] is None else _text(raw, name)


def moves_under_way(migrations: Iterable[dict], servers: Iterable[dict]) -> Iterator[MoveUnderWay]:
    """Yield each migration in progress as a MoveUnderWay. Migrations that no service continues any
    more are left out."""
    known = {server['id']: server for server in servers}
    for migration in migrations:
        server = known.get(migration['instance_uuid'])
        now = None if server is None else migration_meaning.InstanceNow(
            host=server[HOST], vm_state=None, task_state=server['OS-EXT-STS:task_state'])
        if migration_meaning.meaning(
                migration['status'], migration['source_compute'], migration['dest_compute'],
                now) == migration_meaning.MOVES:
            yield move_under_way(migration)


def move_under_way(migration: dict) -> MoveUnderWay:
    return MoveUnderWay(instance_uuid=migration['instance_uuid'],
                        source=migration['source_compute'], destination=migration['dest_compute'])


def with_arrived(moves: Iterable[MoveUnderWay],
                 held: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Iterator[MoveUnderWay]:
    """Yield the moves, with the allocations that their instances have on their destinations.

    :param held: {host: result of :func:`held_by_consumer` for the host}
    """
    for move in moves:
        yield dataclasses.replace(
            move, arrived=held.get(move.destination, {}).get(move.instance_uuid, {}))


def past_move(migration: dict) -> PastMove:
    ended_at = clock.parsed(migration['updated_at'] or migration['created_at'])
    return PastMove(instance_uuid=migration['instance_uuid'], source=migration['source_compute'],
                    destination=migration['dest_compute'],
                    ended_at=ended_at.timestamp())
