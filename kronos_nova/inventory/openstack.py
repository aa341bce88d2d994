"""Reading of the cloud through the public APIs of Nova and placement.

Responses are read as JSON through openstacksdk's adapters. The SDK's resource classes are not used.
These classes need about 3 ms for each server, which is one and a half minutes in a cloud of 30,000
servers.
"""

import collections
import contextlib
import dataclasses
import datetime
import urllib.parse
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence

import openstack
from keystoneauth1 import exceptions
from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.inventory import kinds
from kronos_nova.inventory import providers
from kronos_nova.inventory import scope
from kronos_nova.inventory import shape
from kronos_nova.objects import migration_status
from kronos_nova.objects.domains import domains_of_hosts
from kronos_nova.objects.nova_facts import COMPUTE_IMAGES
from kronos_nova.objects.nova_facts import COMPUTE_INVENTORY
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.objects.snapshot import is_supported
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.shortcut import Shortcut

LOG = logging.getLogger(__name__)

PAGE = 1000
"""Number of entries of a list that one request asks Nova for. Fixed by Nova's option ``max_limit``,
whose default is 1000."""


class OpenStackInventory:
    """A source of the state of the cloud, for processes outside Nova.

    :param connection: connection of a user who may read all projects, all hosts and placement
    :param clock: callable that returns the present time, for the time of a snapshot
    :param domain_keys: keys of aggregates' metadata that state failure domains
    """

    def __init__(self, connection: openstack.connection.Connection,
                 clock: Callable[[], datetime.datetime] = clock.utcnow,
                 domain_keys: Sequence[str] = ()):
        self._connection = connection
        self._clock = clock
        self._domain_keys = domain_keys
        self._providers = providers.ProviderCache()
        self._kinds = kinds.Kinds()
        self._names_elsewhere: dict[str, set[str]] = {}

    def read(self, scopes: Collection[str] | None = None,
             moves: Collection[MoveUnderWay] = ()) -> Snapshot:
        """Return the hosts with QEMU or KVM and the instances on them, of all projects and cells.

        The public API does not show the cells of hosts, so all hosts seem to be in one cell. Nova
        itself refuses a live migration to another cell.

        Only the hosts in scope are read from placement. Nova can list the servers of one host or of
        all hosts, but not of several hosts. So all servers of the cloud are listed, and servers on
        other hosts are dropped.

        :param scopes: names of the aggregates whose hosts are read; None for all hosts
        :param moves: as of :class:`kronos_nova.inventory.base.InventorySource`
        :raises InventoryError: a part of the cloud could not be read, or a cell is down; no partial
            snapshot is returned
        """
        taken_at = self._clock().strftime('%Y-%m-%dT%H:%M:%SZ')
        with _answered():
            return self._read(taken_at, scopes, moves)

    def read_flavors(self) -> tuple[Shape, ...]:
        """Return all flavors, as :class:`kronos_nova.inventory.base.InventorySource` defines."""
        with _answered():
            return tuple(shape.flavor(each) for each in self._pages(
                '/flavors/detail?is_public=None', 'flavors'))

    def names_elsewhere(self, attribute: str, names: Collection[str]) -> set[str]:
        """Return those of ``names`` that are the ``attribute`` of an instance outside of the last
        snapshot. No request is sent, because the last snapshot was made from a list of all
        servers."""
        return self._names_elsewhere[attribute].intersection(names)

    def aggregate_hosts(self) -> dict[str, list[str]]:
        """Return {name of an aggregate: names of its hosts}.

        :raises InventoryError: Nova cannot be read
        """
        with _answered():
            return {raw['name']: raw['hosts'] for raw in self._compute('/os-aggregates',
                                                                       'aggregates')}

    def past_moves(self, since: datetime.datetime) -> list[PastMove]:
        """Return the live migrations that have completed since a time. Migrations that users
        requested are included.

        :raises InventoryError: Nova cannot be read
        """
        path = (f'/os-migrations?migration_type={migration_status.LIVE}'
                f'&status={migration_status.COMPLETED}&changes-since={clock.stamp(since)}')
        with _answered():
            return [shape.past_move(m) for m in self._pages(path, 'migrations')]

    def _read(self, taken_at: str, scopes: Collection[str] | None,
              moves: Collection[MoveUnderWay]) -> Snapshot:
        services = {s['host']: s for s in self._compute('/os-services?binary=nova-compute',
                                                        'services')}
        shape.refuse_silent_cells(services.values())
        aggregates = [shape.aggregate(a) for a in self._compute('/os-aggregates', 'aggregates')]
        listed = list(self._migrations_under_way())
        wanted = scope.HostScope(aggregates, scopes).with_ends_of(
            (*map(shape.move_under_way, listed), *moves))
        hypervisors = [h for h in self._pages('/os-hypervisors/detail', 'hypervisors')
                       if is_supported(h['hypervisor_type'])
                       and h['service']['host'] in wanted]
        groups = list(self._server_groups())
        # Soft-deleted servers can be restored, and keep their allocations until then.
        version = COMPUTE_IMAGES if openstack.utils.supports_microversion(
            self._connection.compute, COMPUTE_IMAGES) else COMPUTE_INVENTORY
        servers = list(self._pages('/servers/detail?all_tenants=1&soft_deleted=True', 'servers',
                                   version))
        shape.refuse_gaps(servers)
        migrations = list(shape.moves_under_way(listed, servers))
        on_host = collections.defaultdict(list)
        for server in servers:
            on_host[server[shape.HOST]].append(server)
        # A host that was registered after the services were read has no servers yet.
        known = services.keys() | on_host.keys()
        hypervisors = [h for h in hypervisors if h['service']['host'] in known]
        placement = PlacementClient(Shortcut(self._connection.placement))
        trees = self._providers.read(placement, {
            h['id']: frozenset(server['id'] for server in on_host[h['service']['host']])
            for h in hypervisors})
        domains = domains_of_hosts(aggregates, self._domain_keys)
        hosts = tuple(
            dataclasses.replace(shape.host(h, services[name], trees.of[h['id']]),
                                domains=domains.get(name, {}))
            for h in hypervisors if h['id'] in trees.of for name in [h['service']['host']])
        held = {host.name: shape.held_by_consumer(trees.of[host.uuid]) for host in hosts}
        shared = shape.held_by_consumer(each.provider for each in trees.sharing.values())
        here = [server for server in servers if server[shape.HOST] in held]
        elsewhere = [server for server in servers if server[shape.HOST] not in held]
        self._names_elsewhere = {
            attribute: {server[key] for server in elsewhere}.intersection(
                server[key] for server in here)
            for attribute, key in shape.NAMES.items()}
        names = {host.uuid: host.name for host in hosts}
        wheres = {host.name: self._kinds.where(None, host.hypervisor_version) for host in hosts}
        members = kinds.zone_members(aggregates)
        return Snapshot(
            taken_at=taken_at, hosts=hosts,
            instances=shape.one_of_each(
                shape.instance(server, held[server[shape.HOST]], shared, self._kinds,
                               wheres[server[shape.HOST]], members) for server in here),
            aggregates=scope.within(aggregates, held),
            server_groups=tuple(shape.server_group(g) for g in groups),
            shared_providers=tuple(shape.shared_provider(uuid, found, names)
                                   for uuid, found in trees.sharing.items()),
        ).with_moves_under_way(shape.with_arrived(migrations, held))

    def _compute(self, path: str, key: str) -> list[dict]:
        return self._get(path)[key]

    def _get(self, path: str, version: str = COMPUTE_INVENTORY) -> dict:
        response = self._connection.compute.get(path, microversion=version)
        openstack.exceptions.raise_from_response(response)
        try:
            return boundary.json_of(response.content, path.partition('?')[0])
        except boundary.OutOfBounds as error:
            raise exception.InventoryError(problem=str(error)) from error

    def _pages(self, path: str, key: str,
               version: str = COMPUTE_INVENTORY) -> Iterator[dict]:
        """Yield all entries of a list that Nova returns in pages. If a page has a link to the next
        page, this page is read as well.

        :raises InventoryError: the same page is returned again, so that the list does not end
        """
        separator = '&' if '?' in path else '?'
        marker, seen = '', set[str]()
        while marker not in seen:
            seen.add(marker)
            page = self._get(f'{path}{separator}limit={PAGE}{marker}', version)
            yield from page[key]
            if not page[key] or not page.get(f'{key}_links'):
                return
            last = page[key][-1]
            marker = f'&marker={last.get("uuid") or last["id"]}'  # of migrations the uuid
        raise _endless(path)

    def _migrations_under_way(self) -> Iterator[dict]:
        """Yield the migrations in progress whose destination is known. One query is sent for each
        status, because Nova can filter by only one status at a time."""
        for status in migration_status.LEAVING:
            path = f'/os-migrations?status={urllib.parse.quote(status)}'
            for migration in self._pages(path, 'migrations'):
                if migration['dest_compute']:
                    yield migration

    def _server_groups(self) -> Iterator[dict]:
        """Yield the server groups. The groups are read page by page, by offset, until a page is
        empty.

        :raises InventoryError: the same page is returned again, so that the list does not end
        """
        path, offset, seen = '/os-server-groups?all_projects=True', 0, set()
        while page := self._compute(f'{path}&limit={PAGE}&offset={offset}', 'server_groups'):
            if page[0]['id'] in seen:
                raise _endless(path)
            seen.add(page[0]['id'])
            yield from page
            offset += len(page)


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """Convert errors in the ``with`` block to InventoryError: errors of requests, and errors due to
    a response with an unexpected form. :mod:`kronos_nova.executor.outages` counts an InventoryError
    as an outage."""
    try:
        yield
    except (openstack.exceptions.SDKException, exceptions.ClientException,
            ConnectionError) as error:
        raise exception.InventoryError(problem=_cause(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError, boundary.OutOfBounds) as error:
        raise exception.InventoryError(
            problem='an answer of Nova does not have the form that its API version promises: '
                    f'{boundary.shown(repr(error))}') from error


def _endless(path: str) -> exception.InventoryError:
    return exception.InventoryError(
        problem=f"Nova's list {path} does not end: the same page is returned again and again")


def _cause(error: Exception) -> str:
    """Return the text of an error with the URL of the request, which the SDK leaves out of some
    messages. For status 401 or 403, the text says that the user needs the admin role."""
    text = ' '.join(str(error).split())
    url = getattr(error, 'url', None)
    status = getattr(error, 'http_status', None) or getattr(error, 'status_code', None)
    if status in (401, 403):
        text += ' (the user of [kronos_nova] needs the admin role)'
    return f'{text} ({url})' if url and str(url) not in text else text
