"""The end of cold migrations and resizes that a restart of nova-compute interrupts.

*On the source*: When nova-compute starts, Nova clears the task_state of an instance whose cold
migration was about to begin. The consequence depends on how far the migration had come:

* If the request to begin is still in the queue, Nova sets the instance to ERROR when nova-compute
  receives the request.
* If nova-compute had received this request, the migration seems to be in progress for ever.
* If the guest was already powered off, Nova starts the guest again on the source. The migration
  seems to be in progress for ever, and keeps its allocations.

With this fix, nova-compute ends the migration in all three cases, and gives the allocations back to
the instance. The executor tries such a move again.

A host that was lost may come back and receive the request to begin a migration of an instance that
was evacuated in the meantime, or is being evacuated. Nova sets such an instance to ERROR, and an
evacuation in progress fails. With this fix, nova-compute ends only the migration. So does the
destination if it receives the request to prepare the migration so late.

*On the destination*: If nova-compute is killed before it has sent its request to the source, the
instance stays in the task_state ``resize_prep``. With this fix, nova-compute ends the migration
after its next start. If nova-compute is killed before it has started the guest, Nova leaves the
instance in the task_state ``resize_migrated`` or ``resize_finish``, and the guest powered off. With
this fix, nova-compute writes a checkpoint when it receives the request to start the guest. At its
next start it completes the migration.

Launchpad: bug 1836369, about the source host. Option:
``[kronos_fixes] interrupted_cold_migrations``.
"""

import os
import threading
from collections.abc import Mapping
from typing import Any

import nova.conf
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.compute import manager
from nova.compute import power_state
from nova.compute import task_states
from nova.compute import utils as compute_utils
from nova.compute import vm_states
from oslo_log import log as logging
from oslo_serialization import jsonutils

from kronos_nova import clock
from kronos_nova.objects import migration_status
from kronos_nova.plugin import marks
from kronos_nova.plugin import outages
from kronos_nova.plugin import reverts
from kronos_nova.plugin.fixes import cold_migration_retry
from kronos_nova.plugin.fixes import migration_checkpoint
from kronos_nova.plugin.nova_types import Flavor
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import Mixin
from kronos_nova.plugin.nova_types import RequestContext
from kronos_nova.plugin.nova_types import RequestSpec
from kronos_nova.plugin.nova_types import Selection
from kronos_nova.plugin.nova_types import wraps

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_MANAGER = 'nova.compute.manager:ComputeManager'

EXPECTED = {
    f'{_MANAGER}.init_host': ('self', 'service_ref'),
    f'{_MANAGER}._complete_volume_attachments': ('self', 'context', 'bdms'),
    f'{_MANAGER}._delete_allocation_after_move': ('self', 'context', 'instance', 'migration'),
    f'{_MANAGER}._get_power_state': ('self', 'instance'),
    f'{_MANAGER}._init_instance': ('self', 'context', 'instance'),
    f'{_MANAGER}._revert_allocation': ('self', 'context', 'instance', 'migration'),
    f'{_MANAGER}._set_instance_info': ('instance', 'flavor'),
    f'{_MANAGER}._set_instance_obj_error_state': ('self', 'instance', 'clean_task_state'),
    f'{_MANAGER}.finish_resize':
        ('self', 'context', 'disk_info', 'image', 'instance', 'migration', 'request_spec'),
    f'{_MANAGER}.post_start_hook': ('self',),
    f'{_MANAGER}.prep_resize':
        ('self', 'context', 'image', 'instance', 'flavor', 'request_spec', 'filter_properties',
         'node', 'clean_shutdown', 'migration', 'host_list'),
    f'{_MANAGER}.resize_instance':
        ('self', 'context', 'instance', 'image', 'migration', 'flavor', 'clean_shutdown',
         'request_spec'),
}

KINDS = (migration_status.COLD, migration_status.RESIZE)
"""Types of the migrations that this fix ends. An evacuation can have the same statuses. It is left
unchanged: when the source starts again, Nova destroys the guest there because of its record."""
ON_SOURCE = (task_states.RESIZE_PREP, task_states.RESIZE_MIGRATING)
"""The task_states of an instance that is about to leave the source, or is leaving it."""
REQUEST_SECONDS = 60.0
"""Seconds from the start of nova-compute until it ends the migrations that it was preparing as the
destination when it was stopped. Before it was stopped, nova-compute may have sent the request to
begin such a migration to the source. The source receives the request within this time. Raised, an
instance waits longer until it can be used; lowered, nova-compute may end a migration before the
source can begin it. Chosen well above the seconds that a request takes."""
ON_DESTINATION = (task_states.RESIZE_MIGRATED, task_states.RESIZE_FINISH)
"""The task_states of an instance whose guest is off, and is to be started on the destination."""


class EndsInterruptedColdMigrations(Mixin):
    """A mixin for the compute manager that ends the cold migrations and resizes that a restart
    interrupted: those that left this host, and those that were to arrive on this host."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._cold_checkpoints = migration_checkpoint.MigrationCheckpoints(
            CONF.state_path, self.host, migration_checkpoint.COLD_FOLDER)
        self._unfinished: list[tuple[str, dict[str, Any] | None]] = []
        self._prepared: list[str] = []

    def init_host(self, *args: Any, **kwargs: Any) -> None:
        super().init_host(*args, **kwargs)
        if _is_on():
            try:
                self._prepared = _prepared_on(self.host)
            except Exception:  # the service has to start after any error
                LOG.exception('The cold migrations that were being prepared on this host when '
                              'nova-compute was stopped could not be read, and are not ended.')

    def _init_instance(self, context: RequestContext, instance: Instance) -> None:
        if (_is_on() and instance.host == self.host and instance.task_state in ON_DESTINATION
                and instance.vm_state in (vm_states.ACTIVE, vm_states.STOPPED)):
            self._init_arriving(context, instance)
            return
        is_interrupted = instance.task_state in ON_SOURCE
        super()._init_instance(context, instance)
        if is_interrupted and instance.task_state is None and _is_on():
            try:
                self._end_interrupted_cold(context, instance)
            except Exception:  # the service has to start after any error
                LOG.exception('The interrupted cold migration or resize could not be ended.',
                              instance=instance)

    @wraps(manager.ComputeManager.prep_resize)
    def prep_resize(self, context: RequestContext, image: Mapping[str, Any], instance: Instance,
                    flavor: Flavor, request_spec: RequestSpec, filter_properties: dict[str, Any],
                    node: str, clean_shutdown: bool, migration: Migration,
                    host_list: list[Selection] | None) -> None:
        if _is_on() and migration is not None and _is_evacuated(context, migration):
            self._end_evacuated(context, instance, migration)
            return
        super().prep_resize(context, image, instance, flavor, request_spec, filter_properties, node,
                            clean_shutdown, migration, host_list)

    # Steps of migrations that leave this host

    def _end_interrupted_cold(self, context: RequestContext, instance: Instance) -> None:
        """End the migrations that were to move an instance off this host, if the destination has
        already prepared them. A migration that the destination has not prepared yet is ended later,
        when the destination's request reaches this host."""
        for migration in objects.MigrationList.get_by_filters(context, {
                'instance_uuid': instance.uuid, 'source_compute': self.host,
                'status': [migration_status.PRE_MIGRATING, migration_status.MIGRATING]}):
            if migration.dest_node and migration.migration_type in KINDS:
                self._end_cold(context, instance, migration)

    @wraps(manager.ComputeManager.resize_instance)
    def resize_instance(self, context: RequestContext, instance: Instance, image: Mapping[str, Any],
                        migration: Migration, flavor: Flavor, clean_shutdown: bool,
                        request_spec: RequestSpec) -> None:
        if _is_on() and marks.has_ended(context, migration):
            marks.log_dropped(instance, migration)
            return
        if _is_on() and _is_evacuated(context, migration):
            self._end_evacuated(context, instance, migration)
            return
        if _is_on() and _is_outdated(context, instance):
            self._end_cold(context, instance, migration)
            return
        super().resize_instance(context, instance, image, migration, flavor, clean_shutdown,
                                request_spec)

    def _end_cold(self, context: RequestContext, instance: Instance, migration: Migration) -> None:
        """End a migration whose guest is unharmed on the source, and give the allocations back to
        the instance. A fault of the instance records that an outage, and not the instance, caused
        the failure."""
        error = nova_exception.MigrationError(
            reason='nova-compute was restarted during the cold migration or resize',
            code=outages.CODE)
        LOG.warning('Migration %s is ended as failed, and the server stays on its host: %s.',
                    migration.uuid, error, instance=instance)
        compute_utils.add_instance_fault_from_exc(context, instance, error)
        self._revert_allocation(context, instance, migration)
        reverts.forget_destination(instance)
        migration.status = migration_status.ERROR
        migration.save()

    def _end_evacuated(self, context: RequestContext, instance: Instance,
                       migration: Migration) -> None:
        """End a migration of an instance that is evacuated from the source. The instance belongs to
        the evacuation, and is not changed. The instance's allocations on the destination of the
        migration are deleted by the reconciler in nova-conductor."""
        LOG.warning('Dropped a request for migration %s, because the server was evacuated from the '
                    'source, or is being evacuated. The migration is ended as failed.',
                    migration.uuid, instance=instance)
        try:
            self._delete_allocation_after_move(context, instance, migration)
        except Exception as error:
            if not reverts.may_be_left(error):
                raise
            reverts.log_undeleted(f'An evacuation has ended migration {migration.uuid}', instance,
                                  error)
        migration.status = migration_status.ERROR
        migration.save()

    # Steps of migrations that arrive on this host

    @wraps(manager.ComputeManager.finish_resize)
    def finish_resize(self, context: RequestContext, disk_info: str, image: Mapping[str, Any],
                      instance: Instance, migration: Migration, request_spec: RequestSpec) -> None:
        if not _is_on():
            super().finish_resize(context, disk_info, image, instance, migration, request_spec)
            return
        try:
            self._cold_checkpoints.write(
                instance.uuid, disk_info=disk_info, image=image, migration=migration.uuid,
                request_spec=request_spec)
        except OSError as error:
            LOG.warning('The file with which a restarted nova-compute could complete the cold '
                        'migration or resize cannot be written: %s. If nova-compute is restarted '
                        'during the migration, the instance is set to ERROR.', error,
                        instance=instance)
        try:
            super().finish_resize(context, disk_info, image, instance, migration, request_spec)
        except Exception:  # not SystemExit, by which the process ends before the request is done
            self._cold_checkpoints.remove(instance.uuid)
            raise
        self._cold_checkpoints.remove(instance.uuid)

    def _init_arriving(self, context: RequestContext, instance: Instance) -> None:
        """Handle an instance whose guest was to be started on this host. Nova's own method would do
        nothing, or would start the guest before its network and volumes are ready.

        A checkpoint is a file with the request to start the guest. nova-compute writes it when it
        receives this request, and then sets the task_state of the instance to ``resize_finish``. If
        an instance has no checkpoint, and its task_state is still ``resize_migrated``, the request
        may still be in the queue. Such an instance is left unchanged.
        """
        try:
            kept = self._cold_checkpoints.load(context, instance.uuid)
        except (OSError, ValueError) as error:
            LOG.error('The file that describes the interrupted cold migration or resize cannot be '
                      'read: %s', error, instance=instance)
            kept = None
        if kept is not None or instance.task_state == task_states.RESIZE_FINISH:
            self._unfinished.append((instance.uuid, kept))

    def post_start_hook(self) -> None:
        super().post_start_hook()
        try:
            self._cold_checkpoints.remove_all_but([uuid for uuid, _kept in self._unfinished])
        except OSError as error:
            LOG.warning('Files that describe earlier cold migrations could not be removed: %s',
                        error)
        if self._unfinished:
            threading.Thread(target=self._finish_all, daemon=True).start()
        if self._prepared:
            threading.Timer(REQUEST_SECONDS, self._end_prepared).start()

    def _end_prepared(self) -> None:
        """End the migrations to this host that wait for the source in vain: nova-compute on this
        host was stopped before it sent its request to the source."""
        context = nova_context.get_admin_context()
        while self._prepared:
            uuid = self._prepared.pop()
            try:
                self._end_if_waiting(context, objects.Migration.get_by_uuid(context, uuid))
            except Exception:  # the others have to be ended too
                LOG.exception('Migration %s, which was being prepared when nova-compute was '
                              'stopped, could not be ended.', uuid)

    def _end_if_waiting(self, context: RequestContext, migration: Migration) -> None:
        instance = objects.Instance.get_by_uuid(context, migration.instance_uuid)
        if migration.status != migration_status.PRE_MIGRATING or (
                instance.task_state not in (None, marks.mark_of(migration))):
            return
        # The source may begin at this moment. The one that changes the task_state first goes on.
        if instance.task_state is None or marks.clear(instance, marks.mark_of(migration)):
            self._end_cold(context, instance, migration)

    def _finish_all(self) -> None:
        while self._unfinished:
            uuid, kept = self._unfinished.pop()
            finish = outages.retrying(cold_migration_retry.LONG_PATIENCE_SECONDS)
            try:
                finish(self._finish, nova_context.get_admin_context(), uuid, kept)
            except Exception:  # the others have to be finished too
                LOG.exception('The cold migration or resize of instance %s, which was in progress '
                              'when nova-compute was stopped, could not be completed.', uuid)

    def _finish(self, context: RequestContext, uuid: str, kept: dict[str, Any] | None) -> None:
        """Complete the migration of an instance.

        :param kept: content of the checkpoint; None if there is none
        """
        instance = objects.Instance.get_by_uuid(context, uuid)
        if instance.host != self.host or instance.task_state not in ON_DESTINATION:
            return  # the instance was deleted, or its state was reset
        if kept is None:
            self._fail_unfinished(context, instance, 'the file that describes it is missing')
            return
        migration = objects.Migration.get_by_uuid(context, kept['migration'])
        LOG.info('Completing cold migration or resize %s, which was in progress when nova-compute '
                 'was stopped.', migration.uuid, instance=instance)
        state = self._get_power_state(instance)
        if state == power_state.RUNNING:
            self._set_resized(context, instance, migration)
            self._cold_checkpoints.remove(uuid)
            return
        if _is_converted(kept['disk_info']):
            self._fail_unfinished(context, instance, 'a raw disk may be converted already')
            return
        if state not in (power_state.NOSTATE, power_state.SHUTDOWN):
            self.driver.power_off(instance)
        if migration.old_instance_type_id != migration.new_instance_type_id:
            self._set_instance_info(instance, instance.old_flavor)
        instance.task_state = task_states.RESIZE_MIGRATED
        instance.save(expected_task_state=ON_DESTINATION)
        self.finish_resize(context, kept['disk_info'], kept['image'], instance, migration,
                           kept['request_spec'])

    def _set_resized(self, context: RequestContext, instance: Instance,
                     migration: Migration) -> None:
        """Record, as Nova does, that a migration whose guest already runs on this host has
        finished. The instance then waits for its confirmation."""
        self._complete_volume_attachments(
            context, objects.BlockDeviceMappingList.get_by_instance_uuid(context, instance.uuid))
        migration.status = migration_status.FINISHED
        migration.save()
        instance.vm_state = vm_states.RESIZED
        instance.task_state = None
        instance.launched_at = clock.utcnow()
        instance.save(expected_task_state=task_states.RESIZE_FINISH)

    def _fail_unfinished(self, context: RequestContext, instance: Instance, reason: str) -> None:
        """Set an instance to ERROR, as Nova does after an error of ``finish_resize``. Called if
        nova-compute cannot start the guest of the instance."""
        error = nova_exception.MigrationError(
            reason='nova-compute was restarted before it had started the guest, and cannot '
                   f'continue, because {reason}', code=outages.CODE)
        LOG.error('%s The server may be recovered by a hard reboot.', error, instance=instance)
        compute_utils.add_instance_fault_from_exc(context, instance, error)
        self._set_instance_obj_error_state(instance, clean_task_state=True)
        for migration in objects.MigrationList.get_by_filters(context, {
                'instance_uuid': instance.uuid, 'status': migration_status.POST_MIGRATING}):
            self._delete_allocation_after_move(context, instance, migration)
            migration.status = migration_status.ERROR
            migration.save()
        self._cold_checkpoints.remove(instance.uuid)


def _prepared_on(host: str) -> list[str]:
    """Return the uuids of the cold migrations and resizes that nova-compute on a host was preparing
    as the destination when it was stopped. Called before nova-compute receives requests."""
    return [each.uuid for each in objects.MigrationList.get_by_filters(
        nova_context.get_admin_context(),
        {'host': host, 'status': migration_status.PRE_MIGRATING})
        if each.dest_compute == host and each.migration_type in KINDS]


def _is_converted(disk_info: str) -> bool:
    """Return whether the libvirt driver converts a raw disk of the guest to qcow2 when it starts
    the guest. Such a start must not be repeated, because converting a disk a second time would
    destroy it.

    :param disk_info: the disks of the guest, as JSON; other drivers may give no JSON
    """
    try:
        disks = jsonutils.loads(disk_info)
    except (TypeError, ValueError):
        return False
    return CONF.use_cow_images and isinstance(disks, list) and any(
        disk.get('type') == 'raw' and os.path.basename(disk.get('path', '')) != 'disk.config'
        for disk in disks)


def _is_on() -> bool:
    return CONF.kronos_fixes.interrupted_cold_migrations


def _is_evacuated(context: RequestContext, migration: Migration) -> bool:
    """Return whether the instance of a migration was evacuated from the source after the migration
    was requested, or is being evacuated. Return False if this is not known."""
    try:
        return bool(reverts.evacuations_since(context, migration))
    except Exception as error:  # after any error, Nova's own method decides
        LOG.debug('The evacuations of an instance cannot be read: %s', error)
        return False


def _is_outdated(context: RequestContext, instance: Instance) -> bool:
    """Return whether the task_state of an instance was cleared after its cold migration or resize
    was requested, so that the request to begin is outdated. Return False if this is not known, for
    example because no conductor answers."""
    try:
        found = objects.Instance.get_by_uuid(context, instance.uuid, expected_attrs=[])
    except Exception as error:  # after any error, Nova's own method decides
        LOG.debug('The task_state of the instance cannot be read: %s', error, instance=instance)
        return False
    return found.task_state is None
