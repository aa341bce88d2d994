"""The state of the cloud at one moment, as Nova and placement report it. Fields have the names that
Nova and placement use."""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from kronos_nova import exception
from kronos_nova.objects.numa import Device
from kronos_nova.objects.numa import InstanceCell
from kronos_nova.objects.numa import NumaCell
from kronos_nova.objects.numa import Pool
from kronos_nova.objects.shape import Shape

UNASSIGNED = '_unassigned_'
"""Name of the pool of hosts that are in no aggregate."""

DEFAULT_ZONE = 'nova'
"""Availability zone of hosts whose aggregates set no zone (``[DEFAULT] default_availability_zone``
of Nova)."""

OWN_METADATA = 'kronos:'
"""Prefix of the server metadata keys that Kronos reads. Kronos reads no other keys."""


HYPERVISOR_TYPES = frozenset(('QEMU', 'KVM'))
"""Hypervisor types that Nova reports for hosts with libvirt's driver. Nova reports QEMU for KVM as
well; older versions reported KVM."""


def is_supported(hypervisor_type: str) -> bool:
    """Return True if Kronos plans for hosts with this hypervisor type, else False. Upper and lower
    case are not distinguished."""
    return hypervisor_type.upper() in HYPERVISOR_TYPES


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResourceInventory:
    """The inventory of one resource class of a resource provider, in the unit of the class.
    ``min_unit``, ``max_unit`` and ``step_size`` limit the amount that one consumer may have. Each
    is None if unknown."""

    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0
    min_unit: int | None = None
    max_unit: int | None = None
    step_size: int | None = None

    @property
    def capacity(self) -> float:
        """The total amount that may be allocated, by placement's formula ``(total - reserved) *
        allocation_ratio``."""
        return (self.total - self.reserved) * self.allocation_ratio


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The nova-compute service of a host. ``state`` is ``up`` or ``down``, and ``status`` is
    ``enabled`` or ``disabled``."""

    state: str
    status: str
    forced_down: bool = False
    disabled_reason: str | None = None

    @property
    def is_available(self) -> bool:
        """True if the service is up, enabled and not forced down; else False. Only an available
        host may be a destination, and only available hosts count in an imbalance."""
        return self.state == 'up' and self.status == 'enabled' and not self.forced_down

    @property
    def is_evacuable(self) -> bool:
        """True if an operator disabled the host and live migrations can still empty it; else
        False."""
        return self.state == 'up' and self.status == 'disabled' and not self.forced_down

    @property
    def is_silent(self) -> bool:
        """True if nova-compute has stopped reporting, and the service is neither disabled nor
        forced down; else False."""
        return self.has_stopped_reporting and self.status == 'enabled'

    @property
    def has_stopped_reporting(self) -> bool:
        """True if nova-compute has stopped reporting, and the service is not forced down; else
        False. This may be true for a disabled service, in contrast to :attr:`is_silent`."""
        return self.state == 'down' and not self.forced_down


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """The processors of a host, from ``compute_nodes.cpu_info``. ``features`` are sorted and
    include the features of the model."""

    arch: str
    model: str
    features: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A compute node.

    ``uuid`` is the uuid of the compute node and of its root resource provider. ``inventory`` maps a
    resource class to its inventory. ``used`` maps a resource class to the allocations of all
    consumers on the provider tree; None if only the allocations of instances are known. ``domains``
    maps a level of failure domains, such as ``rack``, to the domain of the host, the largest domain
    first.

    ``traits`` are the traits of the whole provider tree, sorted. ``cells`` are NUMA cells, and
    ``pools`` are pools of devices. ``hypervisor_version`` is a whole number as in Nova, such as
    9000000 for 9.0.0. ``traits``, ``cpu``, ``hypervisor_version``, ``cells`` and ``pools`` are None
    if unknown. ``cells`` and ``pools`` are empty for a host that has none.
    """

    name: str
    uuid: str
    service: Service
    inventory: Mapping[str, ResourceInventory]
    cell: str = 'cell1'
    hypervisor_type: str = 'QEMU'
    used: Mapping[str, int] | None = None
    domains: Mapping[str, str] = field(default_factory=dict)
    traits: tuple[str, ...] | None = None
    cpu: Cpu | None = None
    hypervisor_version: int | None = None
    cells: tuple[NumaCell, ...] | None = None
    pools: tuple[Pool, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SharedProvider:
    """A sharing resource provider, such as a storage pool. ``hosts`` are the names of the hosts
    that use the provider. ``inventory`` and ``used`` have the shape that they have in
    :class:`Host`."""

    uuid: str
    hosts: tuple[str, ...]
    inventory: Mapping[str, ResourceInventory]
    used: Mapping[str, int] = field(default_factory=dict)


LIVE = 'live'
COLD = 'cold'
IMMOVABLE = 'no'
"""Values of ``can`` of a :class:`Movability`. Nova can move the server live, cold (Nova stops the
server for the move), or not at all."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Movability:
    """The way in which Nova can move a server, regardless of its status. ``can`` is :data:`LIVE`,
    :data:`COLD` or :data:`IMMOVABLE`. ``why`` is the reason why Nova cannot migrate the server
    live; '' if Nova can."""

    can: str
    why: str = ''


MOVES_LIVE = Movability(can=LIVE)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The requirements of a server on its host, in addition to amounts of resources.
    ``traits`` are the required traits, and ``forbidden`` the forbidden traits; both are sorted.
    ``member_of`` are sets of aggregate uuids; the host has to be in at least one aggregate of each
    set. ``image`` are the image properties that Nova compares with hosts. ``cpu_model`` is the
    named CPU model of the guest. It is '' if the guest has the CPU model of its host; Nova then
    compares the processors of this host with the processors of a destination.
    """

    traits: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    member_of: tuple[tuple[str, ...], ...] = ()
    image: Mapping[str, str] = field(default_factory=dict)
    cpu_model: str = ''


NO_REQUIREMENTS = Requirements()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """The flavor of an instance. ``id`` is None if Nova's API does not show it."""

    name: str
    id: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The image of an instance, as it was when the instance booted. ``id`` is '' for an instance
    that booted from a volume."""

    id: str
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance with its size, its allocations and its requirements.

    ``name`` is the name of its libvirt domain. ``resources`` are the instance's allocations on the
    provider tree of its host, and ``shared_resources`` are its allocations on sharing providers.
    Memory is in MiB, disk in GiB. ``launched_at`` is in Unix seconds. ``launched_at``, ``flavor``
    and ``image`` are None if unknown. ``live`` says whether Nova can move the instance live, only
    cold or not at all.

    ``cells`` are the NUMA cells that the instance requests; empty for an instance without NUMA
    topology. ``on_cells`` has the id of the host's NUMA cell that each of ``cells`` uses now, in
    the order of ``cells``; None if unknown. ``on_pages`` has the page size in KiB of each of
    ``cells``; empty if unknown. ``devices`` are the devices that the instance needs.
    """

    uuid: str
    name: str
    display_name: str
    host: str
    project_id: str
    status: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    task_state: str | None = None
    locked: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    flavor_extra_specs: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    shared_resources: Mapping[str, int] = field(default_factory=dict)
    launched_at: float | None = None
    flavor: Flavor | None = None
    image: Image | None = None
    tags: tuple[str, ...] = ()
    live: Movability = MOVES_LIVE
    requires: Requirements = NO_REQUIREMENTS
    cells: tuple[InstanceCell, ...] = ()
    on_cells: tuple[int, ...] | None = None
    on_pages: tuple[int, ...] = ()
    devices: tuple[Device, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A host aggregate. ``hosts`` are host names, in no particular order."""

    name: str
    uuid: str
    hosts: tuple[str, ...]
    availability_zone: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerGroup:
    """A server group with one of Nova's four policies. ``members`` are instance uuids, including
    deleted instances."""

    uuid: str
    name: str
    policy: str
    members: tuple[str, ...]
    rules: Mapping[str, int] = field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveUnderWay:
    """A migration in progress, which Kronos or any other user requested. The instance is still
    listed on ``source``. The resources that the instance needs on the destination are already
    included in ``used`` of the destination and of the sharing providers, unless ``used`` is None.

    ``arrived`` are the allocations that Nova has already made for the instance on the provider tree
    of the destination; empty if there are none, or if they are not known."""

    instance_uuid: str
    source: str
    destination: str
    arrived: Mapping[str, int] = field(default_factory=dict, compare=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All data that an evaluation reads from Nova and placement. ``taken_at`` is the time in ISO
    8601, UTC. ``unread`` maps an aggregate, or the pool of hosts without an aggregate, to a text
    that names the hosts that could not be read. ``flavors`` has the flavors only in a snapshot that
    is recorded for a replay; in any other snapshot it is empty."""

    taken_at: str
    hosts: tuple[Host, ...]
    instances: tuple[Instance, ...]
    aggregates: tuple[Aggregate, ...] = ()
    server_groups: tuple[ServerGroup, ...] = ()
    moves_under_way: tuple[MoveUnderWay, ...] = ()
    shared_providers: tuple[SharedProvider, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    flavors: tuple[Shape, ...] = ()

    def with_moves_under_way(self, moves: Iterable[MoveUnderWay]) -> 'Snapshot':
        """Return a copy of the snapshot with further moves in progress. The resources that these
        moves need are added to ``used`` of their destinations.

        A move is left out if its instance already has a move or is not on the source, or if the
        destination is the source or is not in the snapshot.

        If an instance has no allocations on the provider tree of its source, nothing is added to
        ``used``. In this case Nova has already given these allocations to the migration, and has
        allocated resources of the destination to the instance.
        """
        instances = {instance.uuid: instance for instance in self.instances}
        known = {host.name: host for host in self.hosts}
        added = {move.instance_uuid: move for move in self.moves_under_way}
        needed: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        shared = pools_of(self.hosts, self.shared_providers)
        for move in moves:
            instance, destination = instances.get(move.instance_uuid), known.get(move.destination)
            if (instance is not None and instance.host == move.source != move.destination
                    and destination is not None and move.instance_uuid not in added):
                added[move.instance_uuid] = move
                for name, amount in _more(
                        instance, shared.get(move.source, {}), shared[move.destination]):
                    needed[shared[move.destination].get(name, destination.uuid)][name] += amount
        hosts, pools = (tuple(_using(provider, needed.get(provider.uuid, {}))
                              for provider in providers)
                        for providers in (self.hosts, self.shared_providers))
        return dataclasses.replace(self, hosts=hosts, shared_providers=pools,
                                   moves_under_way=tuple(added.values()))

    def after_moves(self) -> 'Snapshot':
        """Return the snapshot as it is once the moves in progress have completed. Each of these
        instances is on its destination, and its source has the room of the instance again.

        A move stays in progress if its amounts are not known, or if its instance uses NUMA cells or
        devices, because the cells and devices on the destination are not known.
        """
        if not self.moves_under_way:
            return self
        known = {host.name: host for host in self.hosts}
        instances = {instance.uuid: instance for instance in self.instances}
        moving = {move.instance_uuid: move for move in self.moves_under_way}
        freed: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        pools, ended = pools_of(self.hosts, self.shared_providers), {}
        for uuid, move in moving.items():
            instance = instances.get(uuid)
            if (instance is None or instance.cells or instance.devices
                    or not (instance.resources or move.arrived)
                    or move.source not in known or move.destination not in known):
                continue
            before, after = pools[move.source], pools[move.destination]
            amounts = {**(instance.resources or move.arrived), **instance.shared_resources}
            for name, amount in amounts.items():
                # Until Nova has made the new allocations, those on a common pool are not doubled.
                if not instance.resources or name not in before or (
                        before[name] != after.get(name)):
                    freed[before.get(name, known[move.source].uuid)][name] -= amount
            ended[uuid] = dataclasses.replace(
                instance, host=move.destination,
                resources={name: amounts[name] for name in amounts if name not in after},
                shared_resources={name: amounts[name] for name in amounts if name in after})
        hosts, shared = (tuple(_using(provider, freed.get(provider.uuid, {}))
                               for provider in providers)
                         for providers in (self.hosts, self.shared_providers))
        return dataclasses.replace(
            self, hosts=hosts, shared_providers=shared,
            instances=tuple(ended.get(each.uuid, each) for each in self.instances),
            moves_under_way=tuple(move for move in self.moves_under_way
                                  if move.instance_uuid not in ended))

    def refuse_unread(self, aggregate: str | None = None) -> None:
        """Raise an error if hosts could not be read, so that an answer about them would be wrong.

        :param aggregate: name of the aggregate whose hosts matter; None if all hosts matter
        :raises InventoryError: a host of the aggregate, or any host, could not be read
        """
        missing = {name: why for name, why in self.unread.items() if aggregate in (None, name)}
        if missing:
            raise exception.InventoryError(problem='; '.join(
                f'aggregate {name}: {why}' for name, why in sorted(missing.items())))

    def zones(self) -> dict[str, str]:
        """Return {host name: availability zone of the host} for each host whose aggregates set a
        zone. All other hosts are in Nova's default zone."""
        return {host: each.availability_zone for each in self.aggregates
                if each.availability_zone for host in each.hosts}

    def hosts_of(self, scope: str) -> tuple[str, ...]:
        """Return the sorted host names of an aggregate, or of the pool :data:`UNASSIGNED`.

        :param scope: name of the aggregate, or :data:`UNASSIGNED`
        :raises KeyError: there is no aggregate with this name
        """
        known = {host.name for host in self.hosts}
        if scope == UNASSIGNED:
            return tuple(sorted(known.difference(*(a.hosts for a in self.aggregates))))
        for aggregate in self.aggregates:
            if aggregate.name == scope:
                return tuple(sorted(known.intersection(aggregate.hosts)))
        raise KeyError(scope)


def pools_of(hosts: Iterable[Host],
             pools: Iterable[SharedProvider]) -> dict[str, dict[str, str]]:
    """Return {host: {resource class: uuid of a sharing provider}}. The inner dict has the resource
    classes that the host gets from a sharing provider, because the host itself does not provide
    them."""
    found: dict[str, dict[str, str]] = {host.name: {} for host in hosts}
    inventories = {host.name: host.inventory for host in hosts}
    for pool in sorted(pools, key=lambda pool: pool.uuid):
        for name in found.keys() & pool.hosts:
            found[name].update(dict.fromkeys(
                pool.inventory.keys() - inventories[name].keys(), pool.uuid))
    return found


def _more(instance: Instance, before: Mapping[str, str],
          after: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield (resource class, amount) for the allocations that an instance needs during a move, in
    addition to its present allocations. An allocation on a sharing provider is needed only if the
    source and the destination use different providers for the class.

    :param before, after: sharing providers of the source and of the destination, each as
        {resource class: uuid of the provider}
    """
    yield from instance.resources.items()
    if instance.resources:
        for name, amount in instance.shared_resources.items():
            if before.get(name) != after.get(name):
                yield name, amount


def _using(provider: Any, more: Mapping[str, int]) -> Any:
    """Return a copy of a host or sharing provider with the amounts ``more`` added to ``used``. The
    amounts may be negative. Return the provider unchanged if ``used`` is unknown."""
    if not more or provider.used is None:
        return provider
    used = collections.Counter(provider.used)
    used.update(more)
    return dataclasses.replace(provider, used=dict(sorted(used.items())))
