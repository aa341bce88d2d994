"""The executor's interface to Nova inside nova-conductor. It uses ``nova.compute.api`` and Nova's
objects."""

import contextlib
from collections.abc import Callable
from collections.abc import Iterator

import oslo_messaging as messaging
from keystoneauth1 import exceptions as ks_exc
from nova import exception as nova_exception
from nova import objects
from nova import servicegroup
from nova.api.openstack import common
from nova.compute import api
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.drain import states as drains
from kronos_nova.executor import compute
from kronos_nova.objects import migration_status
from kronos_nova.objects import snapshot
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.move import request_id
from kronos_nova.plugin import cells
from kronos_nova.plugin import claim_rpc
from kronos_nova.plugin import marks
from kronos_nova.plugin import outages
from kronos_nova.plugin.fixes import confirmation_retry
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import InstanceFault
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import Service
from kronos_nova.plugin.nova_types import ServiceGroupApi

LOG = logging.getLogger(__name__)

def service_of(servicegroup_api: ServiceGroupApi, service: Service) -> snapshot.Service:
    """Convert a nova-compute service of Nova to a Service of Kronos."""
    return snapshot.Service(
        state='up' if servicegroup_api.service_is_up(service) else 'down',
        status='disabled' if service.disabled else 'enabled',
        forced_down=service.forced_down, disabled_reason=service.disabled_reason)


# Errors of Nova about an instance that is busy, locked or deleted.
NOT_AS_PLANNED = (nova_exception.InstanceInvalidState, nova_exception.InstanceIsLocked,
                  nova_exception.InstanceNotFound)


def find_service(servicegroup_api: ServiceGroupApi, host: str) -> snapshot.Service | None:
    """Return the nova-compute service of a host as a Service; None if the host has no such service.

    :raises NovaClientError: a database does not answer
    """
    with answered(host):
        context = cells.admin_context()
        if not cells.target_host(context, host):
            return None
        try:
            found = objects.Service.get_by_compute_host(context, host)
        except nova_exception.ComputeHostNotFound:
            return None
        return service_of(servicegroup_api, found)


class InProcessComputeApi:
    """A ComputeApi (see :mod:`kronos_nova.executor.compute`) that calls Nova's own code in
    nova-conductor.

    :param prepared: function without arguments that returns the uuids of the instances whose
        migrations a conductor is preparing
    """

    def __init__(self, prepared: Callable[[], frozenset[str]] = frozenset):
        self.api = api.API()
        self._prepared = prepared
        self.servicegroup_api = servicegroup.API()
        self.claims = claim_rpc.ClaimsClient()
        self._held: dict[str, int] = {}     # {uuid of a move: id of its claim at the destination}
        self._requested = compute.RequestedMigrations()

    def instance(self, uuid: str) -> compute.InstanceState | None:
        with answered(uuid):
            found = self._instance(cells.admin_context(), uuid)
            if found is None:
                return None
            return compute.InstanceState(
                host=found.host, task_state=found.task_state, locked=bool(found.locked),
                status=common.status_from_state(found.vm_state, found.task_state))

    def service(self, host: str) -> snapshot.Service | None:
        return find_service(self.servicegroup_api, host)

    def hold_room(self, move: MoveRecord) -> None:
        with answered(move.instance_uuid):
            context = cells.admin_context()
            instance = self._instance(context, move.instance_uuid)
            claim_id = instance and self.claims.prepare(context, move.destination, instance)
            if claim_id is not None:
                self._held[move.uuid] = claim_id

    def release_room(self, move: MoveRecord, has_moved: bool) -> None:
        self._requested.forget(move)
        claim_id = self._held.pop(move.uuid, None)
        if claim_id is None:
            return
        release = self.claims.confirm if has_moved else self.claims.abort
        try:
            context = cells.admin_context()
            cells.target_host(context, move.destination)
            release(context, move.destination, claim_id)
        except Exception as e:
            if not isinstance(e, messaging.MessagingException) and not outages.is_outage(e):
                raise
            LOG.warning('The claim of instance %s on host %s could not be released, and keeps room '
                        'there until it expires: %s', move.instance_uuid, move.destination,
                        first_line(e))

    def live_migrate(self, move: MoveRecord) -> None:
        self._migrate(move, lambda context, instance: self.api.live_migrate(
            # None, because the hypervisor decides whether disks are copied.
            context, instance, None, None, move.destination, force=False, async_=True))

    def cold_migrate(self, move: MoveRecord) -> None:
        self._migrate(move, lambda context, instance: self.api.resize(
            context, instance, host_name=move.destination))

    def _migrate(self, move: MoveRecord, act: Callable[[RequestContext, Instance], object]) -> None:
        """Send Nova the request for a move.

        :param act: callable that sends the request; called with the context and the instance
        """
        with answered(move.instance_uuid):
            context = cells.request_context(request_id(move.uuid))
            instance = self._instance(context, move.instance_uuid)
            if instance is None:
                raise _outdated(move, 'the instance does not exist any more')
            context.project_id = instance.project_id
            self._requested.about_to_ask(move, self._listed(context, move))
            try:
                act(context, instance)
            except NOT_AS_PLANNED as e:
                raise _outdated(move, f'Nova refused: {first_line(e)}') from e
            except nova_exception.NovaException as e:
                if outages.is_outage(e):
                    raise
                raise _refused(move, f'Nova refused: {first_line(e)}') from e

    def confirm(self, move: MoveRecord) -> None:
        with answered(move.instance_uuid):
            context = cells.request_context(request_id(move.uuid))
            instance = self._instance(context, move.instance_uuid)
            if instance is None:
                return
            context.project_id = instance.project_id
            migration = self._migration(context, move)
            if migration is None or not _may_be_confirmed(context, migration):
                return
            try:
                self.api.confirm_resize(context, instance, migration)
            except nova_exception.NovaException as e:
                if outages.is_outage(e):
                    raise
                LOG.debug('Nova refused to confirm the cold migration of instance %s: %s',
                          instance.uuid, e)

    def migration(self, move: MoveRecord) -> compute.MigrationState | None:
        with answered(move.instance_uuid):
            context = cells.admin_context()
            if not cells.target_instance(context, move.instance_uuid):
                return None
            found = self._migration(context, move)
            if found is None:
                return None
            fault = _fault(context, found)
            return compute.MigrationState(
                uuid=found.uuid, status=found.status, was_started=found.dest_node is not None,
                fault=fault.message if fault else '',
                is_outage=fault is not None and fault.code == outages.CODE,
                memory_total=found.memory_total, memory_remaining=found.memory_remaining,
                memory_processed=found.memory_processed)

    def set_free(self, move: MoveRecord) -> bool:
        # A conductor such as this one records a migration as soon as it receives a request.
        with answered(move.instance_uuid):
            if move.instance_uuid in self._prepared():
                return False
            instance = self._instance(cells.admin_context(), move.instance_uuid)
            if instance is None:
                return True
            mark = migration_status.MARKS[_type(move)]
            if not marks.clear(instance, mark):
                return False
            LOG.warning('Instance %s: cleared stale task_state "%s" (no migration was begun).',
                        move.instance_uuid, mark)
            return True

    def abort(self, move: MoveRecord) -> bool:
        return self._act_on_migration(move, 'abort', lambda context, instance, number:
                                      self.api.live_migrate_abort(
                                          context, instance, number, support_abort_in_queue=True))

    def force_complete(self, move: MoveRecord) -> bool:
        return self._act_on_migration(move, 'force', self.api.live_migrate_force_complete)

    def _act_on_migration(self, move: MoveRecord, verb: str,
                          act: Callable[[RequestContext, Instance, int], object]) -> bool:
        """Ask Nova to abort a move's migration, or to force it to complete.

        :param verb: name of the action, for the log
        :param act: callable that asks Nova; called with context, instance and the migration's
            number
        :returns: True if Nova accepted; False if Nova refused, or if the instance or migration does
            not exist
        """
        with answered(move.instance_uuid):
            context = cells.request_context(request_id(move.uuid))
            instance = self._instance(context, move.instance_uuid)
            if instance is None:
                return False
            migration = self._migration(context, move)
            if migration is None:
                return False
            context.project_id = instance.project_id
            try:
                act(context, instance, migration.id)
            except nova_exception.NovaException as e:
                LOG.debug('Nova refused to %s migration %s: %s', verb, migration.uuid, e)
                return False
            return True

    @staticmethod
    def _instance(context: RequestContext, uuid: str) -> Instance | None:
        if not cells.target_instance(context, uuid):
            return None
        try:
            return objects.Instance.get_by_uuid(
                context, uuid, expected_attrs=['flavor', 'info_cache', 'metadata',
                                               'pci_requests', 'system_metadata'])
        except nova_exception.InstanceNotFound:
            return None

    def _migration(self, context: RequestContext, move: MoveRecord) -> Migration | None:
        """Return Nova's Migration that the executor requested for a move; None if there is none."""
        found = self._requested.find(move, self._listed(context, move))
        return found and objects.Migration.get_by_id(context, found.number)

    @staticmethod
    def _listed(context: RequestContext, move: MoveRecord) -> list[compute.ListedMigration]:
        """Return a ListedMigration for each migration of the move's instance and kind (live or
        cold)."""
        filters = {'instance_uuid': move.instance_uuid, 'migration_type': _type(move)}
        return [compute.ListedMigration(number=each.id, uuid=each.uuid, status=each.status,
                                        source=each.source_compute, created_at=each.created_at)
                for each in objects.MigrationList.get_by_filters(context, filters)]


def _fault(context: RequestContext, migration: Migration) -> InstanceFault | None:
    """Return the InstanceFault that Nova recorded for a failed migration. Return None if the
    migration has not failed or Nova recorded no fault."""
    if migration.status not in migration_status.FAILED:
        return None
    fault = objects.InstanceFault.get_latest_for_instance(context, migration.instance_uuid)
    return None if fault is None or fault.created_at < migration.created_at else fault


def _may_be_confirmed(context: RequestContext, migration: Migration) -> bool:
    """Return True if a request to confirm a cold migration may be sent now: either the migration
    waits for its first request, or the nova-compute of the source accepts a second request."""
    if migration.status == migration_status.CONFIRMING:
        try:
            node = objects.ComputeNode.get_by_host_and_nodename(
                context, migration.source_compute, migration.source_node)
        except nova_exception.ComputeHostNotFound:
            return False
        return confirmation_retry.is_repeatable_on(node)
    return migration.status == migration_status.FINISHED


def _type(move: MoveRecord) -> str:
    return migration_status.COLD if move.kind in drains.COLD_KINDS else migration_status.LIVE


def _outdated(move: MoveRecord, reason: str) -> exception.PlanOutdated:
    return exception.PlanOutdated(instance=move.instance_uuid, reason=reason)


def _refused(move: MoveRecord, reason: str) -> exception.PreFlightError:
    return exception.PreFlightError(instance=move.instance_uuid, reason=reason)


@contextlib.contextmanager
def answered(what: str) -> Iterator[None]:
    """Convert errors of Nova in the ``with`` block to errors of Kronos.

    :param what: uuid of the instance, or name of the host, that the block asks about
    :raises NovaUnavailable: a service did not answer; the instance is not the cause
    :raises NovaClientError: the message broker or keystone refused
    """
    try:
        yield
    except exception.MoveError:
        raise
    except Exception as e:
        reason = f'Nova did not answer: {first_line(e)}'
        if outages.is_outage(e):
            raise exception.NovaUnavailable(instance=what, reason=reason) from e
        if isinstance(e, messaging.MessagingException | ks_exc.ClientException):
            raise exception.NovaClientError(instance=what, reason=reason) from e
        raise
