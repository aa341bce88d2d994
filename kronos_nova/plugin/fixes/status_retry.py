"""Repeated attempts to save the status of a live migration while no conductor answers.

Launchpad: no bug is known. Option: ``[kronos_fixes] status_retry``.
"""

import nova.conf
import tenacity
from nova import exception as nova_exception
from nova import objects
from nova.compute import manager
from oslo_log import log as logging

from kronos_nova.objects import migration_status
from kronos_nova.plugin import outages
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import Mixin

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

PATIENCE_SECONDS = 180
"""Seconds for which a failed change of a live migration's status is repeated. A change fails while
the database or the message bus does not answer. Raised, another worker may take over the migration
before its status is saved; lowered, the status may be lost while a service is restarted. Chosen to
be longer than the default of ``rpc_response_timeout``, and shorter than the time after which
another worker takes over a dead worker's migration."""

EXPECTED = {
    'nova.compute.manager:ComputeManager._set_migration_status': ('migration', 'status'),
}


class RetriesStatus(Mixin):
    """A mixin for the compute manager that repeats a failed change of a migration's status.

    Nova itself sends each change of the status to a conductor only once. If the conductor dies, the
    migration breaks off. The end of the migration is then not saved, and the migration seems to run
    for ever.
    """

    @staticmethod
    def _set_migration_status(migration: Migration, status: str) -> None:
        """Set the status by Nova's method, and repeat the call while the database or message bus
        does not answer.

        :raises InvalidMigrationState: another process regarded the migration as lost, and has ended
            it in the meantime
        """
        if not CONF.kronos_fixes.status_retry:
            manager.ComputeManager._set_migration_status(migration, status)
            return
        for attempt in outages.retrying(PATIENCE_SECONDS, before_sleep=_tell):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    _refuse_if_ended(migration, status)
                manager.ComputeManager._set_migration_status(migration, status)


def _tell(state: tenacity.RetryCallState) -> None:
    LOG.warning('The new status of a migration could not be saved; nova-compute tries again: %s',
                state.outcome and state.outcome.exception())


def _refuse_if_ended(migration: Migration, status: str) -> None:
    found = objects.Migration.get_by_id(migration._context, migration.id)
    if found.status in migration_status.ENDED and found.status != status:
        raise nova_exception.InvalidMigrationState(
            migration_id=migration.uuid, instance_uuid=migration.instance_uuid,
            state=found.status, method=status)
