"""A reader of the cloud's hosts and instances inside a Nova process. Only some columns of Nova's
tables are read. Only providers whose generation has changed are read from placement."""

import collections
import contextlib
import functools
import itertools
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import servicegroup
from nova.api.openstack import common
from nova.db.main import api as main_db
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.inventory import devices
from kronos_nova.inventory import kinds
from kronos_nova.inventory import numa
from kronos_nova.inventory import pace
from kronos_nova.inventory import providers
from kronos_nova.inventory import scope
from kronos_nova.inventory import shape
from kronos_nova.objects import migration_status
from kronos_nova.objects import snapshot
from kronos_nova.objects.domains import domains_of_hosts
from kronos_nova.objects.movability import Where
from kronos_nova.objects.numa import NumaCell
from kronos_nova.objects.numa import Pool
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import is_supported
from kronos_nova.plugin import cells
from kronos_nova.plugin import device_pools
from kronos_nova.plugin import nova_tables
from kronos_nova.plugin import placement
from kronos_nova.plugin import server_facts
from kronos_nova.plugin.nova_types import CellMapping
from kronos_nova.plugin.nova_types import Flavor
from kronos_nova.plugin.nova_types import RequestContext

LOG = logging.getLogger(__name__)

SHORT_PATIENCE = 1
"""Maximum seconds to wait for an answer from the databases of cells, in place of the usual limit.
This short limit is used if a cell did not answer during the previous reading of the cloud, and if
Kronos can continue without the answer. Raised, a cell that is down delays each reading of the cloud
for longer; lowered, a slow cell is left out. Not measured."""


class HostRecords(NamedTuple):
    """Records of cells about hosts and their instances.

    nodes : pairs (Node, name of its cell)
    servers : Servers on the nodes
    moves : MoveUnderWay objects
    versions : versions of the oldest nova-compute services, one for each cell
    numa_cells : pairs (host, its NumaCells); empty if no server has a NUMA topology
    devices : PCI devices, as :func:`~kronos_nova.plugin.nova_tables.raw_devices` returns them;
        empty if no PCI alias is known
    """

    nodes: Sequence[tuple[nova_tables.Node, str]] = ()
    servers: Sequence[nova_tables.Server] = ()
    moves: Sequence[snapshot.MoveUnderWay] = ()
    versions: Sequence[int] = ()
    numa_cells: Sequence[tuple[str, tuple[NumaCell, ...]]] = ()
    devices: Sequence[nova_tables.RawDevices] = ()


class InProcessInventory:
    """An inventory source in a conductor. The conductor has to reach the API database and the
    databases of all cells.

    Answers of placement and the flavors of instances are kept from one reading to the next.

    :param reading_pace: pauses of a reading, which limit the load on databases and placement
    :param patience: maximum seconds to wait for the databases of cells
    :param short_patience: as ``patience``, but used after a reading in which some cell did not
        answer
    :param domain_keys: metadata keys of aggregates that name the failure domain of their hosts
    """

    def __init__(self, reading_pace: pace.ReadingPace = pace.HURRY,
                 patience: float = cells.PATIENCE, short_patience: float = SHORT_PATIENCE,
                 domain_keys: Sequence[str] = ()):
        self._pace = reading_pace
        self._patience, self._short_patience = patience, short_patience
        self._domain_keys = domain_keys
        self._servicegroup_api = servicegroup.API()
        self._placement = placement.client()
        self._providers = providers.ProviderCache(reading_pace=self._pace)
        self._instances = nova_tables.InstanceReader(self._pace)
        self._zones, self._kinds = server_facts.ZoneReader(), kinds.Kinds()
        self._cells = nova_tables.CellReader()
        self._configured_aliases = device_pools.configured()
        self._aliases = device_pools.Aliases(self._configured_aliases)
        self._silent = False
        # {host: cell} of the last reading, None if it read all hosts
        self._read_last: dict[str, str] | None = None

    def read(self, scopes: Collection[str] | None = None,
             moves: Collection[snapshot.MoveUnderWay] = ()) -> snapshot.Snapshot:
        """Return a snapshot of the hosts with QEMU or KVM and the instances on them, of all
        projects and cells. Hosts in cells whose database does not answer are in ``unread`` of the
        snapshot.

        :param scopes: names of the aggregates whose hosts are wanted, or None for all hosts
        :param moves: see :class:`kronos_nova.inventory.base.InventorySource`

        :raises InventoryError: the API database or placement cannot be read, or no cell answers
        """
        taken_at = clock.utcnow().strftime('%Y-%m-%dT%H:%M:%SZ')
        context = cells.admin_context()
        with _readable():
            return self._read(context, taken_at, scopes, moves)

    def read_flavors(self) -> tuple[Shape, ...]:
        """Return the Shapes of all flavors; see
        :class:`kronos_nova.inventory.base.InventorySource`."""
        with _readable():
            return tuple(shape_of(each, self._aliases.specs.keys())
                         for each in objects.FlavorList.get_all(cells.admin_context()))

    def names_elsewhere(self, attribute: str, names: Collection[str]) -> set[str]:
        """Return those of ``names`` that belong to instances on hosts that were not in the last
        reading. Only cells that can be read are searched. See
        :class:`kronos_nova.inventory.base.InventorySource`."""
        if self._read_last is None or not names:
            return set()
        hosts, known = self._read_last.keys(), set(self._read_last.values())

        def read(context: RequestContext, cell: CellMapping) -> set[str]:
            if known == {cells.name(cell)} and nova_tables.is_unique_in_a_cell(attribute):
                return set()
            return nova_tables.names_elsewhere(context, attribute, names, hosts)

        with _readable():
            return set().union(*cells.read_each(cells.admin_context(), read,
                                                self._short_patience))

    def _read(self, context: RequestContext, taken_at: str, scopes: Collection[str] | None,
              planned: Collection[snapshot.MoveUnderWay]) -> snapshot.Snapshot:
        self._pace.begin()
        aggregates = nova_tables.aggregates(context)
        wanted = scope.HostScope(aggregates, scopes).with_ends_of(planned)
        records, unread = self._read_cells(context, wanted)
        nodes, servers = records.nodes, records.servers
        cells_of, pools = dict(records.numa_cells), self._pools(records.devices, servers)
        on_hosts: dict[str, set[str]] = collections.defaultdict(set)
        for server in servers:
            on_hosts[server.host].add(server.uuid)
        trees = self._providers.read(
            self._placement, {node.uuid: on_hosts.get(node.host, set()) for node, _cell in nodes})
        domains = domains_of_hosts(aggregates, self._domain_keys)
        hosts = tuple(self._host(node, cell, trees.of[node.uuid], domains.get(node.host, {}),
                                 cells_of.get(node.host), pools.get(node.host))
                      for node, cell in nodes if node.uuid in trees.of)
        held = {host.name: shape.held_by_consumer(trees.of[host.uuid]) for host in hosts}
        shared = shape.held_by_consumer(each.provider for each in trees.sharing.values())
        self._read_last = None if scopes is None else {host.name: host.cell for host in hosts}
        names = {host.uuid: host.name for host in hosts}
        listed = [server for server in servers
                  if nova_tables.is_listed(server) and server.host in held]
        members = kinds.zone_members(aggregates)
        zones = self._zones.read(context, [server.uuid for server in listed], members.keys())
        oldest = min(records.versions, default=None)
        wheres = {host.name: self._kinds.where(oldest, host.hypervisor_version) for host in hosts}
        instances = shape.one_of_each(
            self._instance(server, held[server.host].get(server.uuid, {}),
                           shared.get(server.uuid, {}), wheres[server.host],
                           members.get(zones.get(server.uuid, ''), ())) for server in listed)
        return snapshot.Snapshot(
            taken_at=taken_at, hosts=hosts, instances=instances,
            aggregates=scope.within(aggregates, held),
            server_groups=tuple(nova_tables.server_groups(
                context, None if scopes is None else [each.uuid for each in instances])),
            shared_providers=tuple(shape.shared_provider(uuid, found, names)
                                   for uuid, found in trees.sharing.items()),
            unread=scope.unread(aggregates, {host: why for host, why in unread.items()
                                             if host in wanted}),
        ).with_moves_under_way(shape.with_arrived(records.moves, held))

    def _read_cells(self, context: RequestContext,
                    wanted: scope.HostScope) -> tuple[HostRecords, dict[str, str]]:
        """Return the HostRecords of all cells that answer, and {host: reason} for the hosts that
        were not read."""
        everywhere = cells.mappings(context)
        # Cells have less time to answer after a reading in which one did not.
        alive, silent = cells.answering(context, everywhere,
                                        self._short_patience if self._silent else self._patience)
        parts = []
        for cell in alive:
            try:
                parts.append(self._read_cell(context, cell, wanted))
            except (db_exc.DBError, nova_exception.NovaException) as error:
                LOG.warning('Cell %s is left out of this evaluation, because its records cannot be '
                            'read: %s', cells.name(cell), first_line(error))
                silent.append(cell)
        self._silent = bool(silent)
        if silent and not parts:
            raise exception.InventoryError(problem='no cell answers')
        unread = {each.host: f'cell {cells.name(cell)} does not answer' for cell in silent
                  for each in objects.HostMappingList.get_by_cell_id(context, cell.id)}
        return HostRecords(*(list(itertools.chain(*kind))
                         for kind in zip(*parts, HostRecords(), strict=True))), unread

    def _pools(self, raw: Iterable[nova_tables.RawDevices],
               servers: Iterable[nova_tables.Server]) -> dict[str, tuple[Pool, ...] | None]:
        """Return {host: its Pools of PCI devices}. The value is None if the devices of a host
        cannot be read. The result is empty if no PCI alias is known."""
        self._aliases = aliases = device_pools.Aliases(self._configured_aliases, servers)
        if not aliases.specs:
            return {}
        on_hosts: dict[str, dict[str, nova_tables.Server]] = collections.defaultdict(dict)
        for server in servers:
            if server.facts.requested.devices:
                on_hosts[server.host][server.uuid] = server
        return {host: device_pools.pools_of(host, text, held, on_hosts[host], aliases)
                for host, text, held in raw}

    def _read_cell(self, context: RequestContext, cell: CellMapping,
                   wanted: scope.HostScope) -> HostRecords:
        with nova_context.target_cell(context, cell) as cell_context:
            here = nova_tables.migrations(cell_context, migration_status.LEAVING)
            # The source and the destination of a move decide which resources it takes.
            ours = wanted.with_ends_of(here)
            found = [node for node in nova_tables.nodes(cell_context, ours.names)
                     if is_supported(node.hypervisor_type) and node.host in ours]
            servers = [*self._instances.read(cell_context, {node.host for node in found})]
            cells_of = self._cells.read(cell_context, [node.host for node in found]) if any(
                server.facts.topology.cells for server in servers) else {}
            raw = nova_tables.raw_devices(cell_context, [node.host for node in found]) if (
                self._configured_aliases
                or any(server.facts.requested.specs for server in servers)) else []
            # Nova's Service object caches one version for all cells, so the cell's database is
            # read.
            oldest = main_db.service_get_minimum_version(cell_context, ['nova-compute'])
        return HostRecords(
            nodes=[(node, cells.name(cell)) for node in found], servers=servers, moves=here,
            versions=[version for version in oldest.values() if version],
            numa_cells=[*cells_of.items()], devices=raw)

    def _host(self, node: nova_tables.Node, cell: str, tree: list[shape.Provider],
              domains: Mapping[str, str], numa_cells: tuple[NumaCell, ...] | None,
              pools: tuple[Pool, ...] | None) -> snapshot.Host:
        service = node.service
        return snapshot.Host(
            name=node.host, uuid=node.uuid, cell=cell, hypervisor_type=node.hypervisor_type,
            service=snapshot.Service(
                state='up' if self._servicegroup_api.service_is_up(service) else 'down',
                status='disabled' if service['disabled'] else 'enabled',
                forced_down=bool(service['forced_down']),
                disabled_reason=service['disabled_reason']),
            inventory=shape.inventory(tree), used=shape.used(tree), domains=domains,
            traits=shape.traits(tree), cpu=node.cpu, hypervisor_version=node.hypervisor_version,
            cells=numa_cells, pools=pools)

    def _instance(self, server: nova_tables.Server, resources: Mapping[str, int],
                  shared_resources: Mapping[str, int], where: Where,
                  member_of: tuple[tuple[str, ...], ...]) -> snapshot.Instance:
        size, image = server.size, server.image
        status, topology = _status(server.vm_state, server.task_state), server.facts.topology
        if topology.cells:
            topology = numa.with_page_size(topology, size.extra_specs, image.properties)
        live, requires = self._kinds.decide(
            (id(size), id(image)), size.extra_specs, image.properties, resources, status, where,
            server.facts, server.launched_at is not None, member_of)
        return snapshot.Instance(
            uuid=server.uuid, name=server.name, display_name=server.display_name, host=server.host,
            project_id=server.project_id, status=status,
            task_state=server.task_state, locked=server.locked, vcpus=size.vcpus,
            memory_mb=size.memory_mb, disk_gb=size.disk_gb, metadata=server.metadata,
            flavor_extra_specs=size.extra_specs, resources=resources,
            shared_resources=shared_resources, launched_at=server.launched_at, flavor=size.flavor,
            image=image, tags=server.tags, live=live, requires=requires, cells=topology.cells,
            on_cells=topology.on_cells, on_pages=topology.on_pages,
            devices=server.facts.requested.devices)


def aggregate_hosts() -> dict[str, list[str]]:
    """Return {name of an aggregate: names of its hosts}.

    Columns are read in place of Nova's objects, because a conductor calls this for every evaluation
    and there may be thousands of hosts.

    :raises InventoryError: the API database cannot be read
    """
    with _readable():
        return {each.name: list(each.hosts)
                for each in nova_tables.aggregates(cells.admin_context()) if each.hosts}


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Convert errors of Nova's databases in the ``with`` block to errors of Kronos.

    :raises InventoryError: a database of Nova's cannot be read
    """
    try:
        yield
    except (db_exc.DBError, nova_exception.NovaException) as e:
        raise exception.InventoryError(problem=first_line(e)) from e


# Thousands of instances share a dozen pairs of vm_state and task_state.
_status = functools.cache(common.status_from_state)


def shape_of(flavor: Flavor, aliases: Collection[str] = ()) -> Shape:
    """Return the Shape of a flavor: the resources that each server of the flavor needs.

    :param aliases: names of the PCI aliases whose devices are counted
    """
    extra_specs = dict(flavor.extra_specs or {})
    return Shape(id=flavor.flavorid, name=flavor.name, vcpus=flavor.vcpus,
                 memory_mb=flavor.memory_mb,
                 disk_gb=flavor.root_gb + flavor.ephemeral_gb + -(-flavor.swap // 1024),
                 extra_specs=extra_specs, devices=devices.of_flavor(extra_specs, aliases))
