"""Marking of cold migrations that an outage ends before nova-compute receives the request.

Nova itself does not mark these failures as outages. For example, the scheduler reports that no host
is valid if placement does not answer. Without a mark, the executor would regard the failure as a
refusal.
"""

from collections.abc import Callable
from typing import Any

from nova import exception as nova_exception
from nova.conductor.tasks import migrate

from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.plugin import outages
from kronos_nova.plugin import placement
from kronos_nova.plugin import registration
from kronos_nova.plugin.fixes import cold_migration_rollback
from kronos_nova.plugin.nova_types import Mixin


class ReportsOutages(Mixin):
    """A mixin for Nova's task of a cold migration or resize. If an outage ends the task, the mixin
    records this.

    :param note_outage: callable without arguments that records the outage for the executor
    """

    def __init__(self, *args: Any, note_outage: Callable[[], None], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._note_outage = note_outage

    def execute(self) -> Any:
        """Execute Nova's task. Errors that are no outages are raised unchanged.

        :raises MigrationPreCheckError: a service did not answer, and the instance is unchanged. The
            ``code`` of the error is :data:`outages.CODE`
        """
        try:
            answer = super().execute()
        except Exception as error:
            if not outages.is_outage(error) and not self._is_placement_away(error):
                raise
            registration.note_outage(self._note_outage, 'cold migration', self.instance.uuid)
            raise nova_exception.MigrationPreCheckError(
                reason=first_line(error), code=outages.CODE) from error
        registration.close_receipt()  # the destination has the request
        return answer

    def _is_placement_away(self, error: Exception) -> bool:
        """Return True if two conditions hold: Nova itself raised ``error``, and placement does not
        answer now. The error alone does not show an outage: a scheduler that cannot reach placement
        reports that no host is valid."""
        if not isinstance(error, nova_exception.NovaException):
            return False
        try:
            placement.client().consumer(self.instance.uuid)
        except exception.PlacementError as silence:
            return outages.is_outage(silence)
        return False


class ColdMigrationTask(ReportsOutages, migrate.MigrationTask):
    """Nova's task of a cold migration with Nova's own rollback."""


class RevertingColdMigrationTask(ReportsOutages, cold_migration_rollback.RevertingMigrationTask):
    """Nova's task of a cold migration with the rollback of the fix ``cold_migration_rollback``."""
