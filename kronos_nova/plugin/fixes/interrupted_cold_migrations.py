"""The end of cold migrations and resizes that a restart of nova-compute on the source interrupts.

At its start, Nova clears the task_state of an instance whose cold migration was about to begin. A
request to begin that is still in the queue then sets the instance to ERROR. If the guest was
already powered off, Nova starts the guest again on the source. The migration then seems to be in
progress for ever, and keeps its allocations. With this fix, nova-compute ends both migrations, and
gives the allocations back to the instance. The executor tries such a move again.

Launchpad: no bug is known. Option: ``[kronos_fixes] interrupted_cold_migrations``.
"""

import functools

import nova.conf
from nova import exception as nova_exception
from nova import objects
from nova.compute import manager
from nova.compute import task_states
from nova.compute import utils as compute_utils
from oslo_log import log as logging

from kronos_nova.objects import migration_status
from kronos_nova.plugin import outages

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_MANAGER = 'nova.compute.manager:ComputeManager'

EXPECTED = {
    f'{_MANAGER}._init_instance': ('self', 'context', 'instance'),
    f'{_MANAGER}._revert_allocation': ('self', 'context', 'instance', 'migration'),
    f'{_MANAGER}.resize_instance':
        ('self', 'context', 'instance', 'image', 'migration', 'flavor', 'clean_shutdown',
         'request_spec'),
}


class EndsInterruptedColdMigrations:
    """A mixin for the compute manager that ends the cold migrations and resizes from this host that
    a restart interrupted."""

    def _init_instance(self, context, instance):
        is_interrupted = instance.task_state == task_states.RESIZE_MIGRATING
        super()._init_instance(context, instance)
        if is_interrupted and instance.task_state is None and _is_on():
            try:
                self._end_interrupted_cold(context, instance)
            except Exception:  # the service has to start after any error
                LOG.exception('The interrupted cold migration or resize could not be ended.',
                              instance=instance)

    def _end_interrupted_cold(self, context, instance):
        for migration in objects.MigrationList.get_by_filters(context, {
                'instance_uuid': instance.uuid, 'source_compute': self.host,
                'status': migration_status.MIGRATING}):
            if migration.migration_type in (migration_status.COLD, migration_status.RESIZE):
                self._end_cold(context, instance, migration)

    @functools.wraps(manager.ComputeManager.resize_instance)
    def resize_instance(self, context, instance, image, migration, flavor, clean_shutdown,
                        request_spec):
        if _is_on() and _is_outdated(context, instance):
            self._end_cold(context, instance, migration)
            return
        super().resize_instance(context, instance, image, migration, flavor, clean_shutdown,
                                request_spec)

    def _end_cold(self, context, instance, migration):
        """End a migration whose guest is unharmed on this host. The fault of the instance says that
        the instance was not the cause."""
        error = nova_exception.MigrationError(
            reason='nova-compute was restarted during the cold migration or resize',
            code=outages.CODE)
        LOG.warning('Migration %s ends: %s.', migration.uuid, error, instance=instance)
        compute_utils.add_instance_fault_from_exc(context, instance, error)
        self._revert_allocation(context, instance, migration)
        migration.status = migration_status.ERROR
        migration.save()


def _is_on():
    return CONF.kronos_fixes.interrupted_cold_migrations


def _is_outdated(context, instance):
    """Return whether the task_state of the instance was cleared since the request was sent. Return
    False if this is not known, for example because no conductor answers."""
    try:
        found = objects.Instance.get_by_uuid(context, instance.uuid, expected_attrs=[])
    except Exception as error:  # after any error, Nova's own method decides
        LOG.debug('The task_state of the instance cannot be read: %s', error, instance=instance)
        return False
    return found.task_state is None
