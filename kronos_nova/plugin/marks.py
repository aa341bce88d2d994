"""The task_states with which Nova's API marks an instance when a migration of the instance is
requested; see ``MARKS`` in :mod:`kronos_nova.objects.migration_status`. A request may wait in a
queue while its migration is ended. The request is then outdated, and is dropped when a service
receives it."""

from nova import exception as nova_exception
from nova import objects
from oslo_log import log as logging

from kronos_nova.objects import migration_status
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext

LOG = logging.getLogger(__name__)


def mark_of(migration: Migration) -> str | None:
    """Return the task_state with which Nova's API marked the instance for a migration."""
    return migration_status.MARKS.get(migration.migration_type)


def is_being_migrated(context: RequestContext, instance: Instance) -> bool:
    """Return whether an instance is being migrated: Nova's API has set its task_state for a
    migration, and this migration has not ended."""
    found = objects.MigrationList.get_by_filters(
        context, {'instance_uuid': instance.uuid, 'status': list(migration_status.LEAVING)})
    return any(mark_of(each) == instance.task_state for each in found)


def has_ended(context: RequestContext, migration: Migration) -> bool:
    """Return whether a migration has ended. Return False if this is not known, for example because
    no conductor answers."""
    try:
        found = objects.Migration.get_by_id(context, migration.id)
    except Exception as error:  # after any error, Nova's own method decides
        LOG.debug('The status of migration %s cannot be read: %s', migration.uuid, error)
        return False
    return found.status in migration_status.ENDED


def log_dropped(instance: Instance, migration: Migration) -> None:
    """Log that a request is not carried out, because its migration has ended."""
    LOG.warning('Dropped an outdated request for migration %s, which has ended.', migration.uuid,
                instance=instance)


def clear(instance: Instance, mark: str | None) -> bool:
    """Clear the task_state of an instance.

    :returns: True if the task_state is cleared; False if it is not ``mark`` any more, or if the
        instance was deleted
    """
    instance.task_state = None
    try:
        instance.save(expected_task_state=[mark])
    except (nova_exception.UnexpectedTaskStateError, nova_exception.InstanceNotFound):
        return False
    return True
