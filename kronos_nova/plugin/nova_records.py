"""Nova's records of instances and migrations, read from the databases of all cells."""

import collections
import contextlib
import datetime
import itertools
from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
from typing import Any
from typing import TypeVar

from keystoneauth1 import exceptions as keystone_exc
from neutronclient.common import exceptions as neutron_exc
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import servicegroup
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.objects import migration_meaning
from kronos_nova.objects import migration_status
from kronos_nova.placement import records
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.client import PlacementClient
from kronos_nova.plugin import audit_tables
from kronos_nova.plugin import bound_providers
from kronos_nova.plugin import candidates
from kronos_nova.plugin import cells
from kronos_nova.plugin import marks
from kronos_nova.plugin import nova_tables
from kronos_nova.plugin import requested_resources
from kronos_nova.plugin.nova_types import CellMapping
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import Row
from kronos_nova.plugin.nova_types import ServiceGroupApi

LOG = logging.getLogger(__name__)

CHUNK = 500
"""Maximum number of instance uuids in one database query. Raised, a query may be too long for the
database to optimise; lowered, there are more queries. Not measured."""

RECENT = datetime.timedelta(days=1)
"""Maximum age (one day) of the ended migrations that are read. Only an audit finds wrong
allocations of older migrations. Raised, more records are read; lowered, more wrong allocations are
found only by an audit. Not measured."""

UNFINISHED = list(migration_status.UNDER_WAY)
MARKED = list(migration_status.MARKED)

NEW = migration_status.ACCEPTED, migration_status.PRE_MIGRATING
"""Statuses (no unit) of a migration that a conductor has just created: ``accepted`` for a live
migration, ``pre-migrating`` for a cold migration. Fixed by Nova."""


R = TypeVar('R')

UNANSWERED = (db_exc.DBError, nova_exception.NovaException,
              keystone_exc.ClientException, neutron_exc.NeutronException)
"""Errors that Nova's objects raise if a database, keystone or Neutron does not answer, or if a
record is missing."""


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    try:
        yield
    except UNANSWERED as error:
        raise exception.InventoryError(problem=first_line(error)) from error


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Convert errors in the records of one instance, raised in the ``with`` block, to
    InventoryError. The caller leaves this instance out and continues with other instances.

    :raises InventoryError: the records of the instance cannot be read
    """
    try:
        yield
    except requested_resources.UNREADABLE as error:
        raise exception.InventoryError(
            problem=f'{type(error).__name__}: {first_line(error)}') from error


class CellRecords:
    """The implementation of NovaRecords (see :mod:`kronos_nova.placement.records`) by Nova's own
    code. It reads the databases of all cells."""

    def __init__(self, placement: PlacementClient):
        self._placement = placement
        self._services = servicegroup.API()
        self._count = requested_resources.Counter()

    @_answered()
    def read(self) -> records.Records:
        hosts: dict[str, str] = {}
        instances: dict[str, records.InstanceRecord] = {}
        migrations: dict[str, records.Migration] = {}
        context = cells.admin_context()
        alive, silent = cells.answering(context, objects.CellMappingList.get_all(context))
        for mapping in alive:
            try:
                of_cell = self._read_cell(context, mapping)
            except (db_exc.DBError, nova_exception.NovaException) as error:
                LOG.warning('Cell %s is left out of the audit of allocations, because its records '
                            'cannot be read: %s', cells.name(mapping), first_line(error))
                silent.append(mapping)
                continue
            hosts.update(of_cell.hosts)
            instances.update(of_cell.instances)
            migrations.update(of_cell.migrations)
        if silent and not hosts and not instances:
            raise exception.InventoryError(problem='no cell answers')
        return records.Records(hosts=hosts, instances=instances, migrations=migrations,
                               silent=tuple(map(cells.name, silent)))

    def _read_cell(self, context: RequestContext, mapping: CellMapping) -> records.Records:
        [(target, cell)] = _targeted(context, [mapping])
        nodes = audit_tables.nodes(target)
        instances = {each.row.uuid: _instance(each, nodes, cell, self._count)
                     for each in audit_tables.instances(target)}
        up = self._hosts_up(target)
        unfinished = objects.MigrationList.get_by_filters(target, {'status': UNFINISHED})
        return records.Records(
            hosts={uuid: host for (host, _name), uuid in nodes.items()}, instances=instances,
            migrations={each.uuid: _migration(each, up) for each in unfinished})

    @_answered()
    def migrations(self, uuids: Iterable[str]) -> dict[str, records.Migration]:
        found = {}
        for context, _cell in _cells(read_deleted='yes'):
            for chunk in _chunks(uuids):
                rows = objects.MigrationList.get_by_filters(context, {'uuid': chunk})
                up = self._hosts_up(context) if rows else ()
                found.update({each.uuid: _migration(each, up) for each in rows})
        return found

    @_answered()
    def deleted(self, uuids: Iterable[str]) -> frozenset[str]:
        found = set()
        for context, _cell in _cells(read_deleted='yes'):
            for chunk in _chunks(uuids):
                found |= {each.uuid for each in _instances(context, uuid=chunk, deleted=True)}
        return frozenset(found)

    @_answered()
    def building(self, uuids: Iterable[str]) -> frozenset[str]:
        context = cells.admin_context()
        return frozenset(uuid for uuid in uuids if _is_building(context, uuid))

    @_answered()
    def histories(self, wanted: Mapping[str, Set[str]]) -> dict[str, records.InstanceHistory]:
        context = cells.admin_context()
        by_cell = collections.defaultdict(list)
        known = objects.InstanceMappingList.get_by_instance_uuids(context, list(wanted))
        found = dict.fromkeys(wanted, records.InstanceHistory(instance=None))
        for each in known:
            if each.cell_mapping is not None:
                by_cell[each.cell_mapping.uuid].append(each)
        for mappings in by_cell.values():
            [(target, cell)] = _targeted(context, [mappings[0].cell_mapping], read_deleted='yes')
            uuids = [each.instance_uuid for each in mappings]
            try:
                found.update(self._histories(target, cell, {uuid: wanted[uuid] for uuid in uuids}))
            except (db_exc.DBError, nova_exception.NovaException) as error:
                LOG.warning('Cell %s is left out of the check of allocations, because its records '
                            'cannot be read: %s', cell, first_line(error))
                for uuid in uuids:
                    del found[uuid]
        return found

    def _histories(self, context: RequestContext, cell: str,
                   wanted: Mapping[str, Set[str]]) -> dict[str, records.InstanceHistory]:
        also = frozenset().union(*wanted.values())
        rows, up = collections.defaultdict(list), _HostsUp(context, self._services)
        for row in nova_tables.migrations_of(context, wanted, UNFINISHED,
                                             clock.utcnow() - RECENT, also):
            rows[row.instance_uuid].append(_migration(row, up))
        read = {each.row.uuid: each for each in audit_tables.instances(context, list(wanted))}
        hosts = {each.row.host for each in read.values() if each.row.host}
        nodes = audit_tables.nodes(context, hosts) if hosts else {}
        return {uuid: records.InstanceHistory(
            instance=_instance(read[uuid], nodes, cell, self._count) if uuid in read else None,
            migrations=tuple(rows[uuid])) for uuid in wanted}

    @_answered()
    def recent(self, seconds: float) -> tuple[dict[str, dict[str, object]], list[str]]:
        """Return the instances with recent migrations, and the names of cells that do not answer.

        A migration is recent if it has not ended, or if it changed within ``seconds``.

        :returns: ({instance uuid: {migration uuid: [status, time of last change]}}, names of cells)
        """
        since = clock.utcnow() - datetime.timedelta(seconds=seconds)
        read, silent = _of_each_cell(
            lambda context: nova_tables.recent_migrations(context, UNFINISHED, since),
            read_deleted='yes')
        found: dict[str, dict[str, object]] = collections.defaultdict(dict)
        for instance, migration, *state in itertools.chain(*read):
            found[instance][migration] = state
        return dict(found), silent

    @_answered()
    def accepted(self) -> list[records.Migration]:
        """Return the live migrations in the status ``accepted``. Cells that do not answer are left
        out."""
        def read(context: RequestContext) -> list[records.Migration]:
            rows = objects.MigrationList.get_by_filters(
                context, {'status': migration_status.ACCEPTED,
                          'migration_type': migration_status.LIVE})
            up = self._hosts_up(context) if rows else ()
            return [_migration(each, up) for each in rows]

        found, _silent = _of_each_cell(read)
        return [migration for of_cell in found for migration in of_cell]

    @_answered()
    def end_stale(self, before: datetime.datetime) -> list[str]:
        """End migrations in progress whose instance is deleted, or is neither on the source
        nor on the destination. An instance is on neither host if the source died and the instance
        was evacuated. Cells that do not answer are left out.

        :param before: time; a migration that has changed since this time is not ended
        :returns: uuids of the migrations that were ended
        """
        ended, _silent = _of_each_cell(lambda context: _end_stale(context, before))
        return [uuid for of_cell in ended for uuid in of_cell]

    @_answered()
    def marked(self, before: datetime.datetime) -> frozenset[str]:
        def read(context: RequestContext) -> list[str]:
            return [each.uuid for each in _instances(context, task_state=MARKED)
                    if (each.updated_at or each.created_at) <= before]

        found, _silent = _of_each_cell(read)
        return frozenset(uuid for of_cell in found for uuid in of_cell)

    @_answered()
    def unbegun(self, instance_uuid: str, created_before: datetime.datetime) -> list[str]:
        filters = {'instance_uuid': instance_uuid, 'status': [*NEW]}
        return [each.uuid for context, _cell in _cells(instance=instance_uuid)
                for each in objects.MigrationList.get_by_filters(context, filters)
                if each.created_at <= created_before and _is_with_conductor(each)]

    @_answered()
    def set_free(self, instance_uuid: str, marked_before: datetime.datetime) -> None:
        for context, _cell in _cells(instance=instance_uuid):
            for instance in _instances(context, uuid=[instance_uuid], task_state=MARKED):
                is_old = (instance.updated_at or instance.created_at) <= marked_before
                if is_old and not marks.is_being_migrated(context, instance):
                    LOG.warning('Instance %s: cleared stale task_state "%s" (no migration in '
                                'progress).', instance_uuid, instance.task_state)
                    _set_free(context, instance_uuid, instance.task_state)

    @_answered()
    def give_up(self, migration_uuid: str) -> bool:
        """End a migration; see NovaRecords for the result. If the migration is not found, the
        result is True if all cells have answered. It is False if a cell has not answered, because
        this cell may have the migration."""
        found, silent = _of_each_cell(lambda context: self._give_up(context, migration_uuid))
        said = [each for each in found if each is not None]
        return all(said) if said else not silent

    def _give_up(self, context: RequestContext, migration_uuid: str) -> bool | None:
        """End a migration of this cell that no nova-compute has received, and clear the task_state
        of its instance. If the migration has already failed, only clear the task_state that the
        migration left behind.

        :returns: True if nothing is left to do; False if nothing was changed, because the
            nova-compute of the source is down; None if this cell has no new or failed migration
            with this uuid
        """
        found = objects.MigrationList.get_by_filters(
            context, {'uuid': migration_uuid, 'status': [*NEW, migration_status.ERROR]})
        for migration in found:
            if migration.source_compute not in _HostsUp(context, self._services):
                return False
            if _is_with_conductor(migration):
                _end(migration)
            elif not _left_its_mark(context, migration):
                continue
            _set_free(context, migration.instance_uuid, marks.mark_of(migration))
        return True if found else None

    @_answered()
    @_readable()
    def asks_for(self, instance_uuid: str) -> tuple[Mapping[str, int], ...]:
        for context, instance in _instance_and_context(instance_uuid):
            return requested_resources.exactly(context, instance)
        return ()

    @_answered()
    @_readable()
    def candidates(self, instance_uuid: str, kept: Allocations) -> list[Allocations]:
        for context, instance in _instance_and_context(instance_uuid):
            root = objects.ComputeNode.get_by_host_and_nodename(
                context, instance.host, instance.node).uuid
            spec = candidates.without_groups(candidates.spec_of(context, instance), kept)
            found = candidates.on_host(self._placement, spec, root, kept)
            return [each.allocations for each in bound_providers.agreeing(
                context, instance, found, self._placement.tree(root))]
        return []

    def _hosts_up(self, context: RequestContext) -> set[str]:
        """Return the names of the hosts of a cell whose nova-compute is up."""
        return {service.host for service in objects.ServiceList.get_by_binary(
            context, 'nova-compute', include_disabled=True)
            if self._services.service_is_up(service)}


def _cells(instance: str | None = None,
           read_deleted: str = 'no') -> Iterator[tuple[RequestContext, str]]:
    """Yield (context targeted at a cell, name of the cell) for all cells that answer.

    :param instance: uuid of an instance; if it is not None, only the instance's cell is yielded
    """
    context = cells.admin_context()
    if instance is not None:
        try:
            mapping = objects.InstanceMapping.get_by_instance_uuid(context, instance).cell_mapping
        except nova_exception.InstanceMappingNotFound:
            mapping = None
        mappings = [mapping] if mapping is not None else []
    else:
        mappings, _silent = cells.answering(context, objects.CellMappingList.get_all(context))
    yield from _targeted(context, mappings, read_deleted)


def _targeted(context: RequestContext, mappings: Iterable[CellMapping],
              read_deleted: str = 'no') -> Iterator[tuple[RequestContext, str]]:
    for mapping in mappings:
        with nova_context.target_cell(context, mapping) as target:
            target.read_deleted = read_deleted
            yield target, cells.name(mapping)


def _of_each_cell(read: Callable[[RequestContext], R],
                  read_deleted: str = 'no') -> tuple[list[R], list[str]]:
    """Read all cells in parallel.

    :param read: called with a context that is targeted at the cell
    :returns: (results of the cells that answered, names of the cells that did not)
    :raises InventoryError: no cell answered
    """
    context = cells.admin_context()
    context.read_deleted = read_deleted
    answers, silent = cells.ask(context, objects.CellMappingList.get_all(context), read)
    if silent and not answers:
        raise exception.InventoryError(problem='no cell answers')
    return [*answers.values()], [*map(cells.name, silent)]


def _end_stale(context: RequestContext, before: datetime.datetime) -> list[str]:
    listed = objects.MigrationList.get_by_filters(
        context, {'status': list(migration_status.LEAVING)})
    old = [each for each in listed if each.migration_type in migration_status.MARKS
           and (each.updated_at or each.created_at) <= before]
    return [each.uuid for each in old if _is_left_over(context, each) and _end_left_over(each)]


def _is_left_over(context: RequestContext, migration: Migration) -> bool:
    """Return True if a migration is certainly not in progress any more: its instance was deleted,
    or is neither on the source nor on the destination. The task_state is no proof: an instance
    without one may still be in transfer, because an operator may have reset its state."""
    try:
        instance = objects.Instance.get_by_uuid(context, migration.instance_uuid,
                                                expected_attrs=[])
    except nova_exception.InstanceNotFound:
        return True
    ends = migration.source_compute, migration.dest_compute
    return instance.host not in ends and migration_meaning.meaning(
        migration.status, *ends, migration_meaning.InstanceNow(
            host=instance.host, vm_state=instance.vm_state, task_state=instance.task_state),
    ) == migration_meaning.STALE


def _end_left_over(migration: Migration) -> bool:
    LOG.warning('Migration %s of instance %s: status was set to error (the instance is '
                'deleted, or is neither on the source %s nor on the destination %s).',
                migration.uuid, migration.instance_uuid, migration.source_compute,
                migration.dest_compute)
    migration.status = migration_status.ERROR
    migration.save()
    return True


def _end(migration: Migration) -> None:
    LOG.warning('Migration %s: status was set to error (the conductor worker that prepared the '
                'migration has died).', migration.uuid)
    migration.status = migration_status.ERROR
    migration.save()


def _left_its_mark(context: RequestContext, migration: Migration) -> bool:
    """Return whether the task_state of an instance was left behind by a failed migration. This
    happens if the process that ended the migration died before it cleared the task_state. Return
    False if the instance changed after the migration, because the task_state is then from a later
    request."""
    try:
        instance = objects.Instance.get_by_uuid(context, migration.instance_uuid)
    except nova_exception.InstanceNotFound:
        return False
    return (instance.task_state == marks.mark_of(migration) and
            instance.updated_at < migration.updated_at)


def _is_with_conductor(migration: Migration) -> bool:
    """Return True if a migration is new and no nova-compute has received the request for it yet.
    For a cold migration, this is so until the destination has recorded its node in the migration.
    """
    if migration.status == migration_status.PRE_MIGRATING:
        return migration.dest_node is None
    return migration.status == migration_status.ACCEPTED and migration.is_live_migration


def _set_free(context: RequestContext, instance_uuid: str, task_state: str | None) -> None:
    """Clear the task_state of an instance, unless the task_state has changed since it was read."""
    try:
        is_cleared = marks.clear(objects.Instance.get_by_uuid(context, instance_uuid), task_state)
    except nova_exception.InstanceNotFound:
        is_cleared = False
    if not is_cleared:
        LOG.info('Instance %s: task_state "%s" need not be cleared any more (the instance was '
                 'deleted, or is busy with something else).', instance_uuid, task_state)


def _is_building(context: RequestContext, uuid: str) -> bool:
    try:
        objects.BuildRequest.get_by_instance_uuid(context, uuid)
    except nova_exception.BuildRequestNotFound:
        return False
    return True


def _instance_and_context(uuid: str) -> Iterator[tuple[RequestContext, Instance]]:
    for context, _cell in _cells(instance=uuid):
        with contextlib.suppress(nova_exception.InstanceNotFound):
            yield context, objects.Instance.get_by_uuid(
                context, uuid, expected_attrs=['flavor', 'pci_requests', 'info_cache'])


def _instances(context: RequestContext, deleted: bool = False, **filters: Any) -> list[Instance]:
    """Return the instances of a cell. Soft-deleted servers are included, because they can be
    restored and keep their allocations."""
    return objects.InstanceList.get_by_filters(
        context, {'deleted': deleted, 'soft_deleted': not deleted, **filters})


def _instance(asking: audit_tables.Asking, nodes: Mapping[tuple[str, str], str], cell: str,
              count: requested_resources.Counter) -> records.InstanceRecord:
    row = asking.row
    return records.InstanceRecord(
        uuid=row.uuid, root=nodes.get((row.host, row.node)), host=row.host, cell=cell,
        project_id=row.project_id, user_id=row.user_id, vm_state=row.vm_state,
        task_state=row.task_state, settled_for=_age(row), asks_for=count(asking))


class _HostsUp:
    """A container of the names of the hosts whose nova-compute is up. Its only operator is ``in``,
    which reads the record of one host each time."""

    def __init__(self, context: RequestContext, services: ServiceGroupApi):
        self._context, self._services = context, services

    def __contains__(self, host: object) -> bool:
        try:
            service = objects.Service.get_by_compute_host(self._context, host)
        except nova_exception.NotFound:
            return False
        return self._services.service_is_up(service)


def _migration(migration: Migration, up: Container[str]) -> records.Migration:
    """Convert Nova's record of a migration to a Migration. The state of the source is looked up
    only if the migration has not ended.

    :param up: names of the hosts whose nova-compute is up, or a _HostsUp
    """
    has_ended = migration.status in migration_status.ENDED
    return records.Migration(
        uuid=migration.uuid, instance_uuid=migration.instance_uuid, kind=migration.migration_type,
        status=migration.status, source=migration.source_compute,
        destination=migration.dest_compute,
        is_source_up=has_ended or migration.source_compute in up,
        settled_for=_age(migration))


def _age(record: Row) -> float:
    """Return the seconds since a record of Nova was last changed."""
    changed_at = clock.aware(record.updated_at or record.created_at)
    return (clock.utcnow() - changed_at).total_seconds()


def _chunks(uuids: Iterable[str]) -> list[list[str]]:
    uuids = sorted(uuids)
    return [uuids[start:start + CHUNK] for start in range(0, len(uuids), CHUNK)]
