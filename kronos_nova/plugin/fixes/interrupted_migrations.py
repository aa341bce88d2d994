"""Completion or rollback of live migrations that a restart of nova-compute interrupted.

The hypervisors continue without nova-compute. When nova-compute starts again, Nova only aborts the
copy and clears the task_state. Nova does not undo the preparations at the destination, and does not
notice if the guest has arrived there in the meantime. This fix completes the migration if the guest
has arrived at the destination, and otherwise rolls the migration back.

Launchpad: no bug is known. Option: ``[kronos_fixes] interrupted_migrations``.
"""

import threading
from collections.abc import Iterable
from typing import Any

import nova.conf
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_log import log as logging

from kronos_nova.objects import migration_status
from kronos_nova.plugin.fixes import broken_migrations
from kronos_nova.plugin.fixes import migration_checkpoint
from kronos_nova.plugin.nova_types import BlockDeviceMappingList
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import LiveMigrateData
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

EXPECTED = {
    **broken_migrations.EXPECTED,
    'nova.compute.manager:ComputeManager._reset_live_migration': ('self', 'context', 'instance'),
    'nova.compute.manager:ComputeManager.post_start_hook': ('self',),
}


class Restarted(nova_exception.NovaException):
    msg_fmt = 'nova-compute was restarted during the live migration'


class EndsInterruptedMigrations(broken_migrations.SettlesBrokenMigrations):
    """A mixin for the compute manager that ends live migrations which a restart interrupted."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._checkpoints = migration_checkpoint.MigrationCheckpoints(
            CONF.state_path, self.host, migration_checkpoint.LIVE_FOLDER)
        self._interrupted: list[broken_migrations.Attempt] = []

    # Steps while nova-compute runs: checkpoints of live migrations

    def _do_pre_live_migration_from_source(self, context: RequestContext, dest: str,
                                           instance: Instance, block_migration: bool,
                                           migration: Migration, migrate_data: LiveMigrateData,
                                           source_bdms: BlockDeviceMappingList) -> LiveMigrateData:
        if not _is_on():
            return super()._do_pre_live_migration_from_source(
                context, dest, instance, block_migration, migration, migrate_data, source_bdms)

        def write_checkpoint(data: LiveMigrateData) -> None:
            self._write_checkpoint(
                instance, dest=dest, block_migration=block_migration, migrate_data=data,
                migration=migration.uuid, source_bdms=source_bdms)

        write_checkpoint(migrate_data)
        prepared = super()._do_pre_live_migration_from_source(
            context, dest, instance, block_migration, migration, migrate_data, source_bdms)
        write_checkpoint(prepared)
        return prepared

    def _write_checkpoint(self, instance: Instance, **facts: Any) -> None:
        try:
            self._checkpoints.write(instance.uuid, **facts)
        except OSError as error:
            LOG.warning('The file with which a restarted nova-compute could complete the live '
                        'migration cannot be written: %s. If nova-compute is restarted during the '
                        'migration, the migration is handled as without Kronos.', error,
                        instance=instance)

    def _conclude(self, attempt: broken_migrations.Attempt) -> None:
        super()._conclude(attempt)
        self._checkpoints.remove(attempt.instance.uuid)

    # Steps when nova-compute starts again: the end of interrupted live migrations

    def _reset_live_migration(self, context: RequestContext, instance: Instance) -> None:
        """Call Nova's method, except in two cases:

        * The migration is still being prepared. A conductor then continues the migration.
        * The migration has a checkpoint, a file with the data that are needed to end a live
          migration. This nova-compute then ends the migration, after its start.

        In both cases, Nova's method would clear the task_state too early: while a migration still
        runs. If the guest is already at the destination, Nova's method would also set the instance
        to ERROR.
        """
        if not _is_on():
            super()._reset_live_migration(context, instance)
            return
        if _is_being_prepared(context, instance):
            LOG.info('The live migration of the instance is still being prepared by '
                     'nova-conductor, which continues it.', instance=instance)
            return
        try:
            attempt = self._load(context, instance)
        except Exception:  # the service has to start after any error
            LOG.exception('The file that describes the interrupted live migration cannot be read. '
                          'The migration is handled as without Kronos.', instance=instance)
            attempt = None
        self._end_others(context, instance, attempt)
        if attempt is None:
            super()._reset_live_migration(context, instance)
        else:
            self._interrupted.append(attempt)

    def _end_others(self, context: RequestContext, instance: Instance,
                    attempt: broken_migrations.Attempt | None) -> None:
        """Set the status of the instance's unfinished live migrations from this host to ``error``,
        because no process continues these migrations.

        :param attempt: the migration that this nova-compute completes or rolls back itself; its
            status is not changed here. None if there is no such migration. In this case, Nova's
            method ends the migrations that are copying the guest, and their status is not changed
            here
        """
        for migration in objects.MigrationList.get_by_filters(context, {
                'instance_uuid': instance.uuid, 'source_compute': self.host,
                'migration_type': migration_status.LIVE,
                'status': [*migration_status.NOT_COPIED,
                           *(migration_status.COPIED if attempt else ())]}):
            if attempt is None or migration.uuid != attempt.migration.uuid:
                LOG.info('Live migration %s, which had not ended when nova-compute was stopped, is '
                         'not continued, and gets the status error.', migration.uuid,
                         instance=instance)
                self._set_migration_status(migration, migration_status.ERROR)

    def _load(self, context: RequestContext,
              instance: Instance) -> broken_migrations.Attempt | None:
        kept = self._checkpoints.load(context, instance.uuid)
        if kept is None:
            return None
        migration = objects.Migration.get_by_uuid(context, kept.pop('migration'))
        if migration.status in migration_status.ENDED:
            return None
        attempt = broken_migrations.Attempt(
            context=nova_context.get_admin_context(), instance=instance, migration=migration,
            is_prepared=True, **kept)
        attempt.migrate_data.migration = migration
        return attempt

    def post_start_hook(self) -> None:
        super().post_start_hook()
        self._forget_all_but([attempt.instance.uuid for attempt in self._interrupted])
        if self._interrupted:
            threading.Thread(target=self._end_interrupted, daemon=True).start()

    def _forget_all_but(self, instance_uuids: Iterable[str]) -> None:
        try:
            self._checkpoints.remove_all_but(instance_uuids)
        except OSError as error:
            LOG.warning('Files that describe earlier live migrations could not be removed: %s',
                        error)

    def _end_interrupted(self) -> None:
        while self._interrupted:
            attempt = self._interrupted.pop()
            try:
                self._go_on(attempt)
            except Exception:  # the others have to be ended too
                LOG.exception('The live migration that was in progress when nova-compute was '
                              'stopped could neither be completed nor rolled back.',
                              instance=attempt.instance)

    def _go_on(self, attempt: broken_migrations.Attempt) -> None:
        LOG.info('Completing or rolling back live migration %s, which was in progress when '
                 'nova-compute was stopped.', attempt.migration.uuid, instance=attempt.instance)
        self._thread.attempt = attempt
        attempt.is_error, attempt.status = True, migration_status.ERROR
        try:
            self._stop_copying(attempt)
            self._end(attempt, Restarted())
        finally:
            self._thread.attempt = None


def _is_on() -> bool:
    return CONF.kronos_fixes.broken_migrations and CONF.kronos_fixes.interrupted_migrations


def _is_being_prepared(context: RequestContext, instance: Instance) -> bool:
    """Return True if a live migration of the instance has the status ``accepted``: a conductor may
    then be preparing the migration, and this nova-compute must not clear the task_state. If this
    conductor dies, another conductor worker clears the task_state.

    Always return False if the option ``atomic_moves`` is off. No other conductor worker then clears
    the task_state, so this nova-compute has to clear it."""
    if CONF.kronos.atomic_moves == 'off':
        return False
    try:
        objects.Migration.get_by_instance_and_status(
            context, instance.uuid, migration_status.ACCEPTED)
    except nova_exception.MigrationNotFoundByStatus:
        return False
    return True
