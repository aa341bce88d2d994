"""A reader of Nova's tables that reads only some columns. An instance has dozens of columns, of
which Kronos needs ten.

The results equal those of Nova's objects, in a twentieth of the time. Data that does not concern
Kronos is not read: no user data, no keys, and no metadata but Kronos' own. The tests compare each
result with Nova's objects. Names of tables and columns are those of ``nova.db.main.models`` and
``nova.db.api.models``.
"""

import calendar
import collections
import contextlib
import dataclasses
import datetime
import functools
import json
import operator
import sys
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import TypeVar

import nova.conf
from nova import utils as nova_utils
from nova.compute import vm_states
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from nova.objects import fields
from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova.inventory import numa
from kronos_nova.inventory import pace
from kronos_nova.inventory import shape
from kronos_nova.inventory.kinds import Facts
from kronos_nova.objects import migration_meaning
from kronos_nova.objects import migration_status
from kronos_nova.objects import snapshot
from kronos_nova.objects.numa import NumaCell
from kronos_nova.plugin import server_facts
from kronos_nova.plugin.nova_types import Column
from kronos_nova.plugin.nova_types import Query
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import Row
from kronos_nova.plugin.nova_types import Session

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

T = TypeVar('T', str, int)
Text = TypeVar('Text', str, None)

NODES = 200
"""Maximum number of compute nodes that one query reads from Nova's database. Raised, a query takes
the database longer; lowered, there are more queries. Not measured."""

HOSTS = 5
"""Maximum number of hosts whose instances are read from Nova's database by one query. Raised, the
RPCs of the same nova-conductor wait longer for the query to end; lowered, there are more queries.
Chosen because the query takes a hundredth of a second with the one or two hundred instances of five
hosts."""

METADATA_HOSTS = 25
"""Maximum number of hosts in one query of Nova's database for the metadata of the hosts' instances.
Raised, the RPCs of the same nova-conductor wait longer for the query to end; lowered, there are
more queries. Chosen larger than the number of hosts in one query for instances (:data:`HOSTS`),
because few instances have metadata keys of Kronos; not measured."""

MEMBERS = 1000
"""Maximum number of instances for which one query reads image properties or names from Nova's
database. Raised, a query takes the database longer; lowered, there are more queries. Not
measured."""

HELD_DEVICES = fields.PciDeviceStatus.CLAIMED, fields.PciDeviceStatus.ALLOCATED
"""Statuses (no unit) of a PCI device that is assigned to an instance. Fixed by Nova."""


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A compute node. ``service`` has the columns of its nova-compute service, as a mapping that
    Nova's servicegroup drivers accept."""

    uuid: str
    host: str
    hypervisor_type: str
    hypervisor_version: int | None
    cpu: snapshot.Cpu | None
    service: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """The size of a flavor: VCPUs, memory in MiB and disk in GiB."""

    vcpus: int
    memory_mb: int
    disk_gb: int
    extra_specs: Mapping[str, str]
    flavor: snapshot.Flavor


class Server(NamedTuple):
    """The columns of an instance that Kronos reads. The row itself is not kept, because most of it
    is the text of the flavor."""

    uuid: str
    name: str
    display_name: str
    host: str
    project_id: str
    vm_state: str
    task_state: str | None
    locked: bool
    size: Size
    metadata: Mapping[str, str]
    launched_at: float | None
    image: snapshot.Image
    tags: tuple[str, ...]
    facts: Facts


HeldDevice = tuple[str, str, str, int | None]
"""A PCI device of an instance: uuid of the instance, vendor, product, NUMA cell."""
RawDevices = tuple[str, str | None, list[HeldDevice]]
"""The PCI devices of a host: its name, the text of its pools of free devices, its assigned
devices."""
_ImageState = tuple[str, datetime.datetime | None]


def _main(context: RequestContext) -> contextlib.AbstractContextManager[Session]:
    return main_db.get_context_manager(context).reader.using(context)


def _keep_to_one_time(session: Session) -> None:
    """Set the isolation level of a new transaction to REPEATABLE READ, so that all statements of
    the transaction read the database as of one moment. The default of the database server may be
    READ COMMITTED, which is common with Galera."""
    if session.get_bind().dialect.name != 'sqlite':  # SQLite always does so
        session.connection(execution_options={'isolation_level': 'REPEATABLE READ'})


def _api(context: RequestContext) -> contextlib.AbstractContextManager[Session]:
    return api_db.context_manager.reader.using(context)


def chunks(values: Iterable[T], size: int) -> list[list[T]]:
    values = sorted(values)
    return [values[start:start + size] for start in range(0, len(values), size)]


def nodes(context: RequestContext, hosts: Collection[str] | None = None) -> list[Node]:
    """Return the Nodes of a cell. Only nodes with a nova-compute service are returned, with every
    kind of hypervisor.

    :param hosts: names of the hosts that are wanted, or None for all hosts
    """
    node, service = models.ComputeNode, models.Service
    columns = (service.host, service.topic, service.disabled, service.disabled_reason,
               service.forced_down, service.last_seen_up, service.created_at, service.updated_at)
    names, found = [column.key for column in columns], []
    with _main(context) as session:
        query = session.query(node.uuid, node.hypervisor_type, node.hypervisor_version,
                              node.cpu_info, *columns).join(
            service, service.host == node.host,
        ).filter(node.deleted == 0, service.deleted == 0, service.binary == 'nova-compute')
        for chunk in [None] if hosts is None else chunks(hosts, NODES):
            rows = _among(query, node.host, chunk).order_by(node.id)
            found += [Node(uuid=row.uuid, host=row.host, hypervisor_type=row.hypervisor_type,
                           hypervisor_version=row.hypervisor_version, cpu=_cpu(row.cpu_info),
                           service=dict(zip(names, row[4:], strict=True))) for row in rows]
    return found


class CellReader:
    """A reader of the NUMA cells of hosts. A record that has not changed is not parsed again."""

    def __init__(self) -> None:
        # host: (text, cells)
        self._known: dict[str, tuple[str | None, tuple[NumaCell, ...] | None]] = {}

    def read(self, context: RequestContext,
             hosts: Iterable[str]) -> dict[str, tuple[NumaCell, ...]]:
        """Return {name of a host: its NumaCells}. Hosts whose NUMA cells cannot be read are left
        out."""
        node, found = models.ComputeNode, {}
        with _main(context) as session:
            query = session.query(node.host, node.numa_topology).filter(node.deleted == 0)
            for chunk in chunks(hosts, NODES):
                for host, text in query.filter(node.host.in_(chunk)):
                    cells = self._parsed(host, text)
                    if cells is not None:
                        found[host] = cells
        return found

    def _parsed(self, host: str, text: str | None) -> tuple[NumaCell, ...] | None:
        known = self._known.get(host)
        if known is None or known[0] != text:
            known = self._known[host] = text, _cells(host, text)
        return known[1]


def raw_devices(context: RequestContext, hosts: Iterable[str]) -> list[RawDevices]:
    """Return the free and the assigned PCI devices of each host, as Nova stores them.

    :returns: [(host, text of its pools of free PCI devices, devices that instances have)]; a device
        is (uuid of the instance, vendor, product, NUMA cell)
    """
    node, device = models.ComputeNode, models.PciDevice
    held: dict[str, list[HeldDevice]] = collections.defaultdict(list)
    found: list[RawDevices] = []
    with _main(context) as session:
        pools = session.query(node.host, node.pci_stats).filter(node.deleted == 0)
        taken = session.query(node.host, device.instance_uuid, device.vendor_id, device.product_id,
                              device.numa_node).join(
            node, node.id == device.compute_node_id,
        ).filter(node.deleted == 0, device.deleted == 0, device.status.in_(HELD_DEVICES))
        for chunk in chunks(hosts, NODES):
            for host, *row in taken.filter(node.host.in_(chunk)):
                held[host].append(tuple(row))
            found += [(host, text, held[host])
                      for host, text in pools.filter(node.host.in_(chunk))]
    return found


def _cells(host: str, text: str | None) -> tuple[NumaCell, ...] | None:
    """Return the NUMA cells of a host. Return None, and log a warning, if Nova's record cannot be
    read."""
    try:
        return numa.host_cells(json.loads(text or 'null'))
    except (ValueError, TypeError, boundary.OutOfBounds) as error:
        LOG.warning('Host %s: Nova\'s record of its NUMA topology cannot be read. Whether a server '
                    'fits into the NUMA cells of the host is checked by Nova, but not by Kronos: '
                    '%r', host, error)
        return None


@functools.lru_cache(maxsize=1000)
def _cpu(text: str | None) -> snapshot.Cpu | None:
    """Return the processors of a node. Return None if the hypervisor's driver does not describe the
    processors, or if Nova's record cannot be read."""
    try:
        return shape.cpu(json.loads(text or 'null'))
    except (ValueError, TypeError, boundary.OutOfBounds) as error:
        LOG.warning('Nova\'s record of the processors of a host cannot be read. Whether servers '
                    'can run on these processors is checked by Nova, but not by Kronos: %r', error)
        return None


def not_hidden() -> Column:
    """Return an SQL condition that leaves out hidden instances. Nova hides one copy of an instance
    during a resize to another cell."""
    hidden = models.Instance.hidden
    return hidden.is_(None) | hidden.is_(False)


class InstanceReader:
    """A reader of the instances of a cell. Each flavor is parsed once. The properties of an
    instance's image are read again only when the instance has changed. Other facts that decide how
    an instance can be moved are read by :mod:`kronos_nova.plugin.server_facts`.

    :param reading_pace: pauses between groups of hosts
    """

    def __init__(self, reading_pace: pace.ReadingPace = pace.HURRY):
        self._pace = reading_pace
        self._sizes: dict[str, Size] = {}
        self._images: dict[str, tuple[_ImageState, snapshot.Image]] = {}
        self._alike: dict[tuple[str, frozenset[tuple[str, str]]], snapshot.Image] = {}
        self._facts = server_facts.FactReader()

    def read(self, context: RequestContext, hosts: Iterable[str]) -> Iterator[Server]:
        """Yield the Servers on ``hosts`` of a cell, including soft-deleted ones. One transaction
        reads all Servers as of one moment."""
        host, name_of = models.Instance.host, namer()
        self._facts.begin()
        with _main(context) as session:
            _keep_to_one_time(session)
            instances, items = _instances(session), _metadata_items(session)
            for many in chunks(hosts, METADATA_HOSTS):
                with self._pace.step():
                    metadata = _metadata(items.filter(host.in_(many)))
                    tags = _tags(session, many)
                for few in chunks(many, HOSTS):
                    with self._pace.step():
                        rows = instances.filter(host.in_(few)).all()
                        self._read_images(session, rows)
                        self._facts.read(session, rows)
                        yield from self._servers(rows, metadata, tags, name_of)

    def _read_images(self, session: Session, rows: Sequence[Row]) -> None:
        """Read the image properties of instances that are new or have changed.

        The image reference does not show whether the properties have changed. A server that boots
        from a volume has no reference, and may be rebuilt from another image. nova-manage can
        change the properties of a server. So the properties are read again whenever the
        ``updated_at`` of the instance has changed, even if the image reference is the same.
        """
        states = {row.uuid: (row.image_ref or '', row.updated_at) for row in rows}
        new = {uuid: state for uuid, state in states.items()
               if self._images.get(uuid, (None,))[0] != state}
        properties = _image_properties(session, new) if new else {}
        for uuid, state in new.items():
            reference, _updated_at = state
            found = properties.get(uuid, {})
            # Thousands of instances share an image, whose properties are stored once.
            image = self._alike.setdefault(
                (reference, frozenset(found.items())),
                snapshot.Image(id=reference, properties=found))
            self._images[uuid] = state, image

    def _servers(self, rows: Sequence[Row], metadata: Mapping[str, Mapping[str, str]],
                 tags: Mapping[str, tuple[str, ...]],
                 name_of: Callable[[Row], str]) -> Iterator[Server]:
        nothing: dict[str, str] = {}
        for row in rows:
            # Columns are read by position, because names take twice as long for tens of thousands
            # of rows.
            (uuid, display_name, host, project_id, vm_state, task_state, locked, flavor,
             launched_at, *_) = row
            size = self._sizes.get(flavor) or self._parsed(uuid, flavor)
            if size is not None:
                yield Server(uuid, name_of(row), display_name or '',
                             # Thousands of instances have equal values, which are stored once.
                             sys.intern(host), _interned(project_id), _interned(vm_state),
                             _interned(task_state), bool(locked), size, metadata.get(uuid, nothing),
                             launched_at and calendar.timegm(launched_at.timetuple()),
                             self._images[uuid][1], tags.get(uuid, ()), self._facts.facts_of(uuid))

    def _parsed(self, uuid: str, flavor: str) -> Size | None:
        """Return the size of an instance's flavor. Return None, and log a warning, if Nova's record
        of the flavor cannot be read."""
        try:
            size = self._sizes[flavor] = parse_flavor(flavor)
        except (TypeError, ValueError, KeyError) as error:
            LOG.warning('Instance %s is not considered in this evaluation, because Nova\'s record '
                        'of its flavor cannot be read: %r', uuid, error)
            return None
        return size


def _interned(text: Text) -> Text:
    return text and sys.intern(text)


def parse_flavor(text: str) -> Size:
    """Return the Size in ``instance_extra.flavor``, a serialized ``nova.objects.Flavor``.

    :raises TypeError, ValueError, KeyError: the text is not a serialized flavor
    """
    data = json.loads(text)['cur']['nova_object.data']
    return Size(vcpus=data['vcpus'], memory_mb=data['memory_mb'],
                disk_gb=data['root_gb'] + data['ephemeral_gb'],
                extra_specs=dict(data.get('extra_specs') or {}),
                flavor=snapshot.Flavor(name=data['name'], id=data['flavorid']))


def _instances(session: Session) -> Query:
    instance, extra = models.Instance, models.InstanceExtra
    return session.query(
        instance.uuid, instance.display_name, instance.host, instance.project_id,
        instance.vm_state, instance.task_state, instance.locked, extra.flavor,
        instance.launched_at, instance.image_ref, instance.updated_at, *name_columns(),
    ).outerjoin(extra, extra.instance_uuid == instance.uuid).filter(
        instance.deleted == 0, not_hidden())


def _metadata_items(session: Session) -> Query:
    item, instance = models.InstanceMetadata, models.Instance
    return session.query(item.instance_uuid, item.key, item.value).join(
        instance, instance.uuid == item.instance_uuid,
    ).filter(item.deleted == 0, instance.deleted == 0,
             item.key.like(f'{snapshot.OWN_METADATA}%'))


def _metadata(rows: Iterable[Row]) -> Mapping[str, dict[str, str]]:
    """Return {instance uuid: its metadata that concerns Kronos}."""
    found: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for uuid, key, value in rows:
        if key.startswith(snapshot.OWN_METADATA):  # the query may have ignored case
            found[uuid][key] = value
    return found


def _tags(session: Session, hosts: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return {instance uuid: its tags, sorted}."""
    tag, instance = models.Tag, models.Instance
    found: dict[str, list[str]] = collections.defaultdict(list)
    for uuid, name in session.query(tag.resource_id, tag.tag).join(
            instance, instance.uuid == tag.resource_id,
    ).filter(instance.deleted == 0, instance.host.in_(hosts)):
        found[uuid].append(name)
    return {uuid: tuple(sorted(names)) for uuid, names in found.items()}


IMAGE_PREFIX = nova_utils.SM_IMAGE_PROP_PREFIX

NO_PROPERTIES = frozenset((*nova_utils.SM_INHERITABLE_KEYS, *nova_utils.SM_SKIP_KEYS,
                           'base_image_ref', 'kernel_id', 'ramdisk_id'))
"""Keys of an image's system metadata that are not properties set by an operator. Fixed by Nova."""


def _image_properties(session: Session, uuids: Iterable[str]) -> Mapping[str, dict[str, str]]:
    """Return {instance uuid: the properties of its image}."""
    item = models.InstanceSystemMetadata
    found: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for chunk in chunks(uuids, MEMBERS):
        for uuid, key, value in session.query(item.instance_uuid, item.key, item.value).filter(
                item.instance_uuid.in_(chunk), item.deleted == 0,
                item.key.like(f'{IMAGE_PREFIX}%')):
            name = key.removeprefix(IMAGE_PREFIX)
            if key.startswith(IMAGE_PREFIX) and name not in NO_PROPERTIES and value is not None:
                found[uuid][name] = value
    return found


class _Names(dict[str, int]):
    """A mapping that records the names which a ``%`` template uses. Its value for each name is 0,
    which every format accepts."""

    def __missing__(self, name: str) -> int:
        self[name] = 0
        return 0


def name_columns() -> list[Column]:
    """Return the columns of instances that ``instance_name_template`` uses."""
    names = _Names()
    try:
        CONF.instance_name_template % 0
        return [models.Instance.id]
    except TypeError:
        CONF.instance_name_template % names
    known = models.Instance.__table__.columns
    return [known[name] for name in names if name in known and name != 'uuid'] or [
        models.Instance.id]


def namer() -> Callable[[Row], str]:
    """Return a function that computes the name of an instance's libvirt domain from a row. The row
    has the :func:`name_columns`. The name is the one that ``nova.objects.Instance.name`` returns.
    The option ``instance_name_template`` is read once, and not for each row."""
    template = CONF.instance_name_template

    def by_columns(row: Row) -> str:
        try:
            return template % row._mapping
        except KeyError:
            return row.uuid

    try:
        template % 0
    except TypeError:
        return by_columns
    return lambda row: template % row.id


def is_unique_in_a_cell(attribute: str) -> bool:
    """Return True if two instances of a cell always differ in an attribute. Only ``name`` is
    unique, and only if the option ``instance_name_template`` uses the instance's id.

    :param attribute: ``name`` (of the libvirt domain) or ``display_name``
    """
    return attribute == 'name' and 'id' in [column.key for column in name_columns()]


def names_elsewhere(context: RequestContext, attribute: str, names: Collection[str],
                    hosts: Container[str]) -> set[str]:
    """Return the values in ``names`` that instances of a cell have on hosts other than ``hosts``.

    :param attribute: ``name`` (of the libvirt domain) or ``display_name``
    """
    instance = models.Instance
    by_display_name = attribute == 'display_name'
    columns = [instance.display_name] if by_display_name else name_columns()
    name_of = operator.attrgetter('display_name') if by_display_name else namer()
    found = set()
    with _main(context) as session:
        query = session.query(instance.host, instance.uuid, *columns).filter(
            instance.deleted == 0, instance.host.isnot(None), not_hidden())
        for chunk in chunks(names, MEMBERS) if by_display_name else [None]:
            for row in _among(query, instance.display_name, chunk).yield_per(MEMBERS):
                if row.host not in hosts:
                    found.add(name_of(row))
    return found.intersection(names)


def is_listed(server: Server) -> bool:
    """Return whether Nova lists an instance. Soft-deleted instances are not listed, but keep their
    allocations."""
    return server.vm_state != vm_states.SOFT_DELETED


IN_PROGRESS = (migration_meaning.MOVES, migration_meaning.WAITS)


def migrations(context: RequestContext, statuses: Collection[str]) -> list[snapshot.MoveUnderWay]:
    """Return a MoveUnderWay for each migration of a cell that is in progress, or waits to be
    confirmed or reverted. Migrations without a destination are left out. Migrations that no service
    acts on any more are left out as well.

    :param statuses: statuses of the migrations that are read
    """
    row, instance = models.Migration, models.Instance
    with _main(context) as session:
        rows = session.query(
            row.instance_uuid, row.source_compute, row.dest_compute, row.status, instance.host,
            instance.vm_state, instance.task_state, instance.deleted,
        ).outerjoin(instance, instance.uuid == row.instance_uuid).filter(
            row.deleted == 0, row.status.in_(statuses)).order_by(row.id)
        return [snapshot.MoveUnderWay(instance_uuid=uuid, source=source, destination=destination)
                for uuid, source, destination, status, host, vm_state, task_state, deleted in rows
                if destination and migration_meaning.meaning(
                    status, source, destination, migration_meaning.InstanceNow(
                        host=host, vm_state=vm_state, task_state=task_state,
                        is_deleted=deleted != 0)) in IN_PROGRESS]


def live_migrations(context: RequestContext, statuses: Collection[str],
                    since: datetime.datetime) -> list[Row]:
    """Return the live migrations of a cell that are in one of ``statuses`` and have changed since
    the time ``since``.

    :returns: rows (``instance_uuid``, ``source_compute``, ``dest_compute``, ``updated_at``)
    """
    row, since = models.Migration, clock.naive(since)
    with _main(context) as session:
        return session.query(
            row.instance_uuid, row.source_compute, row.dest_compute, row.updated_at,
        ).filter(row.deleted == 0, row.migration_type == migration_status.LIVE,
                 row.status.in_(statuses), row.updated_at >= since).order_by(row.id).all()


def aggregates(context: RequestContext) -> list[snapshot.Aggregate]:
    """Return all Aggregates, with all their hosts."""
    row, member, item = (api_models.Aggregate, api_models.AggregateHost,
                         api_models.AggregateMetadata)
    hosts: dict[int, list[str]] = collections.defaultdict(list)
    metadata: dict[int, dict[str, str]] = collections.defaultdict(dict)
    with _api(context) as session:
        rows = session.query(row.id, row.uuid, row.name).order_by(row.id).all()
        for number, host in session.query(member.aggregate_id, member.host).order_by(member.id):
            hosts[number].append(host)
        for number, key, value in session.query(
                item.aggregate_id, item.key, item.value).order_by(item.id):
            metadata[number][key] = value
    return [snapshot.Aggregate(
        name=each.name, uuid=each.uuid, hosts=tuple(hosts[each.id]), metadata=metadata[each.id],
        availability_zone=metadata[each.id].get('availability_zone')) for each in rows]


def server_groups(context: RequestContext,
                  instances: Iterable[str] | None = None) -> list[snapshot.ServerGroup]:
    """Return the ServerGroups of the cloud.

    :param instances: uuids of instances; only groups with one of these members are returned. None
        for all groups
    """
    group, policy, member = (api_models.InstanceGroup, api_models.InstanceGroupPolicy,
                             api_models.InstanceGroupMember)
    with _api(context) as session:
        wanted = None if instances is None else _groups_with(session, frozenset(instances))
        found: list[Row] = []
        members: dict[int, list[str]] = collections.defaultdict(list)
        for chunk in [None] if wanted is None else chunks(wanted, MEMBERS):
            found += _among(session.query(
                group.id, group.uuid, group.name, policy.policy, policy.rules,
            ).join(policy, policy.group_id == group.id), group.id, chunk).order_by(group.id)
            for number, uuid in _among(session.query(
                    member.group_id, member.instance_uuid), member.group_id, chunk,
                    ).order_by(member.id):
                members[number].append(uuid)
    return [snapshot.ServerGroup(
        uuid=row.uuid, name=row.name, policy=row.policy, members=tuple(members[row.id]),
        rules={name: int(value) for name, value in json.loads(row.rules or '{}').items()})
        for row in found]


def _groups_with(session: Session, instances: frozenset[str]) -> set[int]:
    """Return the ids of the groups that have one of ``instances`` as a member. If there are more
    ``instances`` than group members in the cloud, all members are read instead: this is faster than
    a query that names all ``instances``."""
    member = api_models.InstanceGroupMember
    if session.query(member).count() <= len(instances):
        return {number for number, uuid in session.query(member.group_id, member.instance_uuid)
                if uuid in instances}
    return {number for chunk in chunks(instances, MEMBERS) for number, in session.query(
        member.group_id).filter(member.instance_uuid.in_(chunk))}


def _among(query: Query, column: Column, values: Collection[object] | None) -> Query:
    return query if values is None else query.filter(column.in_(values))


def recent_migrations(context: RequestContext, unfinished: Collection[str],
                      since: datetime.datetime) -> set[tuple[str, str, str, datetime.datetime]]:
    """Return the migrations of a cell that have not ended or have changed since the time ``since``.

    :param unfinished: statuses of migrations that have not ended
    :returns: set of (instance uuid, migration uuid, status, time of its last change)
    """
    row, since = models.Migration, clock.naive(since)
    columns = row.instance_uuid, row.uuid, row.status, row.updated_at
    with _main(context) as session:
        # Two statements, so that each can use an index.
        found = set(map(tuple, session.query(*columns).filter(row.status.in_(unfinished))))
        return found.union(map(tuple, session.query(*columns).filter(row.updated_at >= since)))


def migrations_of(context: RequestContext, instances: Iterable[str], unfinished: Collection[str],
                  since: datetime.datetime, also: Collection[str]) -> list[Row]:
    """Return rows of the migrations of ``instances``. A migration is included if its status is in
    ``unfinished``, if it has changed since the time ``since``, or if its uuid is in ``also``."""
    row, since = models.Migration, clock.naive(since)
    with _main(context) as session:
        return session.query(
            row.uuid, row.instance_uuid, row.migration_type, row.status, row.source_compute,
            row.dest_compute, row.created_at, row.updated_at,
        ).filter(
            row.instance_uuid.in_(list(instances)), row.uuid.is_not(None),
            row.status.in_(unfinished) | (row.updated_at >= since) | row.uuid.in_(also),
        ).order_by(row.id).all()
