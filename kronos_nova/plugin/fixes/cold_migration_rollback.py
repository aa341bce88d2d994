"""Rollback of a cold migration or a resize that cannot begin.

Nova's own rollback has three faults. It gives the migration's allocations to the instance even if
the instance was deleted in the meantime (bug 1848343). It counts allocations on sharing providers
twice. It continues even if placement refuses the change.

Launchpad: bug 1848343; the part of the repair in nova-compute is :mod:`kronos_nova.plugin.reverts`.
Option: ``[kronos_fixes] cold_migration_rollback``.
"""

from typing import Any

from nova.conductor.tasks import migrate

from kronos_nova import exception
from kronos_nova.placement import moves
from kronos_nova.plugin import placement
from kronos_nova.plugin import reverts

_TASK = 'nova.conductor.tasks.migrate:MigrationTask'

# Methods of Nova that the task calls or overrides.
EXPECTED = {
    f'{_TASK}.__init__': (
        'self', 'context', 'instance', 'flavor', 'request_spec', 'clean_shutdown',
        'compute_rpcapi', 'query_client', 'report_client', 'host_list', 'network_api'),
    f'{_TASK}.rollback': ('self', 'ex'),
}


class RevertingMigrationTask(migrate.MigrationTask):
    """Nova's task for cold migrations with another rollback, which restores the instance's
    allocations in one request."""

    _held_allocations: dict[str, Any] | None

    def rollback(self, ex: Exception) -> None:
        """Roll the cold migration back. An error of placement is only logged, because Nova has to
        report the error that caused the rollback. The reconciler in nova-conductor corrects the
        allocations later."""
        held, self._held_allocations = self._held_allocations, None
        # Without held allocations, Nova's rollback only marks the migration as failed.
        super().rollback(ex)
        if not held:
            return
        try:
            moves.revert(
                placement.client(), moves.Parties(
                    instance=self.instance.uuid, migration=self._migration.uuid,
                    source=self._source_cn.uuid, project_id=self.instance.project_id,
                    user_id=self.instance.user_id),
                lambda: reverts.is_gone(self.context, self.instance),
                before={uuid: dict(each['resources']) for uuid, each in held.items()},
                evacuated_to=reverts.evacuated_to(self.context, self._migration))
        except exception.PlacementError as error:
            reverts.log_unreturned(self._migration, self.instance, error)
