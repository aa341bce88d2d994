"""Completion or rollback of live migrations that broke off, depending on where the guest runs.

Nova's compute manager relies on its driver, and the libvirt driver reports too little. After a
rollback the driver raises the hypervisor's error again, so the manager sets an instance to ERROR
although its guest still runs. If the guest is no longer on the source, the driver reports the
migration as successful, even if the QEMU process died. If libvirt itself stops, nothing is rolled
back. With this fix, the migration gets its final status only after the hypervisors of both hosts
have reported where the guest runs.

Launchpad: no bug is known. Option: ``[kronos_fixes] broken_migrations``.
"""

import dataclasses
import sys
import threading
from collections.abc import Callable
from typing import Any
from typing import TypeVar

import nova.conf
import tenacity
from nova import exception as nova_exception
from nova import objects
from nova.compute import power_state
from nova.compute import utils as compute_utils
from nova.compute import vm_states
from oslo_log import log as logging
from oslo_utils import excutils

from kronos_nova.db.engine import first_line
from kronos_nova.objects import migration_status
from kronos_nova.plugin import outages
from kronos_nova.plugin import reverts
from kronos_nova.plugin.fixes import guest_state
from kronos_nova.plugin.fixes import post_migration_retry
from kronos_nova.plugin.nova_types import BlockDeviceMappingList
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import LiveMigrateData
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import Mixin
from kronos_nova.plugin.nova_types import RequestContext

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

R = TypeVar('R')

PATIENCE_SECONDS = 120
"""Seconds for which a failing step is repeated after the live migration of a guest broke off. A
step is a query of the guest's state, or the completion or rollback of the migration. Raised, the
migration ends later if libvirtd or Nova's services do not answer; lowered, the step may fail for
good if a service is restarted at this time. A restart takes seconds. Not measured."""
SETTLING_SECONDS = 60
"""Maximum seconds to wait for a guest that is paused at the destination after its live migration
broke off. In this time, libvirt at the destination notices that the source is gone, and then
resumes or removes the guest. Raised, the migration ends later; lowered, the migration may end while
the guest is still paused. Fixed by the keepalive of libvirt's connections."""
COPY_SECONDS = 3600
"""Maximum seconds to wait until the remaining memory of a guest is copied, if the guest already
runs at the destination (post-copy). Raised, a copy that hangs is reported later; lowered, the copy
of a large guest counts as one that hangs. Chosen as the time in which the whole memory of a large
guest is copied once."""
INTERVAL_SECONDS = 0.5
"""Seconds between two queries of a guest's state after the live migration of the guest broke off.
Raised, the migration ends later; lowered, libvirt gets more queries. Not measured."""

# Compared by name, because there are compute hosts without libvirt.
LIBVIRT_ERROR = 'libvirtError'

DEAD = (power_state.SHUTDOWN, power_state.CRASHED)

_MANAGER = 'nova.compute.manager:ComputeManager'

EXPECTED = {
    **post_migration_retry.EXPECTED,
    f'{_MANAGER}._delete_allocation_after_move':
        ('self', 'context', 'instance', 'migration'),
    f'{_MANAGER}._do_live_migration':
        ('self', 'context', 'dest', 'instance', 'block_migration', 'migration', 'migrate_data'),
    f'{_MANAGER}._do_pre_live_migration_from_source':
        ('self', 'context', 'dest', 'instance', 'block_migration', 'migration', 'migrate_data',
         'source_bdms'),
    f'{_MANAGER}._get_compute_info': ('self', 'context', 'host'),
    f'{_MANAGER}._get_power_state': ('self', 'instance'),
    f'{_MANAGER}._post_live_migration_update_host':
        ('self', 'ctxt', 'instance', 'dest', 'block_migration', 'migrate_data', 'source_bdms'),
    f'{_MANAGER}._rollback_live_migration':
        ('self', 'context', 'instance', 'dest', 'migrate_data', 'migration_status', 'source_bdms',
         'pre_live_migration'),
    f'{_MANAGER}._set_instance_obj_error_state': ('self', 'instance', 'clean_task_state'),
    'nova.compute.utils:add_instance_fault_from_exc':
        ('context', 'instance', 'fault', 'exc_info', 'fault_message'),
}


@dataclasses.dataclass(slots=True)
class Attempt:
    """A live migration that this thread runs at the source.

    is_prepared : true once the destination is prepared; the guest may then be in transfer
    has_left : true once the guest has arrived and the migration is being completed
    is_completed : true once the migration is completed
    is_rolled_back : true once the migration is rolled back
    is_rolled_back_by_driver : true if the migration was rolled back before the driver raised its
        error
    status : the status with which Nova wants to end the migration
    is_error : true if Nova wants to set the instance to ERROR
    fate : a sentence about the end of the guest's transfer; None until this is known
    error : the exception that ended the migration
    """

    context: RequestContext
    instance: Instance
    dest: str
    block_migration: bool
    migration: Migration
    migrate_data: LiveMigrateData
    source_bdms: BlockDeviceMappingList | None = None
    is_prepared: bool = False
    has_left: bool = False
    is_completed: bool = False
    is_rolled_back: bool = False
    is_rolled_back_by_driver: bool = False
    status: str | None = None
    is_error: bool = False
    fate: str | None = None
    error: Exception | None = None

    @property
    def is_over(self) -> bool:
        """Return True if nothing is left to do in this process: the guest has left, the migration
        is rolled back, or another process has ended the migration."""
        return self.has_left or self.is_rolled_back or isinstance(
            self.error, nova_exception.InvalidMigrationState)

    @property
    def is_settled(self) -> bool:
        """Return True if the instance keeps its state. Return False if Nova has to set the instance
        to ERROR.

        Three conditions have to be met for the instance to keep its state:

        * The migration is rolled back.
        * The state of the guest is known.
        * The error does not suggest that the guest was damaged. This holds for outages, for errors
          of Nova and libvirt, and for errors of Python itself, such as AttributeError, that the
          driver raised after the rollback. After any other error, the instance is set to ERROR, so
          that an operator looks at it.
        """
        return self.is_rolled_back and self.fate is not None and (
            self.error is None or isinstance(self.error, nova_exception.NovaException)
            or type(self.error).__name__ == LIBVIRT_ERROR or outages.is_outage(self.error)
            or self.is_rolled_back_by_driver and type(self.error).__module__ == 'builtins')

    def runs(self, state: int | None) -> bool:
        """Return True if a power state means that the migration has not stopped the guest. The
        state RUNNING always means this. The state PAUSED means this only if a user had paused the
        instance."""
        return state == power_state.RUNNING or (
            state == power_state.PAUSED and self.instance.vm_state == vm_states.PAUSED)


class SettlesBrokenMigrations(Mixin):
    """A mixin for the compute manager that completes or rolls back live migrations that broke
    off."""

    # Attributes of ComputeManager
    compute_rpcapi: Any
    network_api: Any

    def __init__(self, *args: Any, **kwargs: Any):
        self._thread = threading.local()
        super().__init__(*args, **kwargs)
        self.compute_rpcapi = post_migration_retry.compute_api(self.compute_rpcapi)
        self.network_api = post_migration_retry.network_api(self.network_api)
        self.additional_endpoints.append(guest_state.GuestStateEndpoint(self._get_power_state))

    def reset(self) -> None:
        super().reset()
        self.compute_rpcapi = post_migration_retry.compute_api(self.compute_rpcapi)

    @property
    def _attempt(self) -> Attempt | None:
        return getattr(self._thread, 'attempt', None)

    def _do_live_migration(self, context: RequestContext, dest: str, instance: Instance,
                           block_migration: bool, migration: Migration,
                           migrate_data: LiveMigrateData) -> None:
        if not CONF.kronos_fixes.broken_migrations:
            super()._do_live_migration(context, dest, instance, block_migration, migration,
                                       migrate_data)
            return
        attempt = Attempt(context, instance, dest, block_migration, migration, migrate_data)
        self._thread.attempt = attempt
        try:
            super()._do_live_migration(context, dest, instance, block_migration, migration,
                                       migrate_data)
        except Exception as error:
            with excutils.save_and_reraise_exception():
                self._end(attempt, error)
        else:
            self._conclude(attempt)
        finally:
            self._thread.attempt = None

    # Steps of Nova's own code

    def _do_pre_live_migration_from_source(self, context: RequestContext, dest: str,
                                           instance: Instance, block_migration: bool,
                                           migration: Migration, migrate_data: LiveMigrateData,
                                           source_bdms: BlockDeviceMappingList) -> LiveMigrateData:
        attempt = self._attempt
        if attempt:
            attempt.source_bdms = source_bdms
        prepared = super()._do_pre_live_migration_from_source(
            context, dest, instance, block_migration, migration, migrate_data, source_bdms)
        if attempt:
            attempt.migrate_data, attempt.is_prepared = prepared, True
        return prepared

    def _post_live_migration_update_host(self, ctxt: RequestContext, instance: Instance, dest: str,
                                         block_migration: bool = False,
                                         migrate_data: LiveMigrateData | None = None,
                                         source_bdms: BlockDeviceMappingList | None = None) -> None:
        """Complete the migration by Nova's method, which deletes the guest's files on this host. If
        the guest died during the transfer, roll the migration back instead, so that the files are
        kept."""
        attempt = self._attempt
        if attempt and self._has_died(attempt):
            self._rollback_live_migration(ctxt, instance, dest, migrate_data,
                                          source_bdms=source_bdms)
            return
        if attempt is None:
            super()._post_live_migration_update_host(ctxt, instance, dest, block_migration,
                                                     migrate_data, source_bdms)
        else:
            self._complete(attempt, migrate_data)

    def _complete(self, attempt: Attempt, migrate_data: LiveMigrateData) -> None:
        attempt.has_left = True
        try:
            super()._post_live_migration_update_host(
                attempt.context, attempt.instance, attempt.dest, attempt.block_migration,
                migrate_data, attempt.source_bdms)
        except Exception as error:
            if not (isinstance(error, post_migration_retry.Unanswered)
                    or outages.is_outage(error)):
                raise
            LOG.warning('The live migration is completed, because the guest has arrived at %s. A '
                        'last step was left out, because a service did not answer: %s. If '
                        'nova-compute on %s is down, start it. If the server has no network, '
                        'reboot it hard.', attempt.dest, first_line(error), attempt.dest,
                        instance=attempt.instance)
            self._record_arrival(attempt)
        attempt.is_completed = True

    def _record_arrival(self, attempt: Attempt) -> None:
        """Record that a guest has arrived at the destination. The first step sets the destination
        as the host of the instance, unless Nova has already done so. It is repeated while a service
        does not answer. The other steps record that the live migration is completed, and delete the
        allocations of the migration."""
        tries = outages.retrying(PATIENCE_SECONDS)
        tries(self._record_host, attempt)
        self._set_migration_status(attempt.migration, migration_status.COMPLETED)
        self._delete_allocation_after_move(attempt.context, attempt.instance, attempt.migration)

    def _record_host(self, attempt: Attempt) -> None:
        instance = attempt.instance
        instance.refresh()
        if instance.host == attempt.dest:
            return
        node = self._get_compute_info(attempt.context, attempt.dest)
        instance.apply_migration_context()
        instance.drop_migration_context()
        instance.host, instance.node = attempt.dest, node.hypervisor_hostname
        instance.compute_id, instance.progress, instance.task_state = node.id, 0, None
        instance.save()

    def _delete_allocation_after_move(self, context: RequestContext, instance: Instance,
                                      migration: Migration) -> None:
        """Delete the allocations of the migration by Nova's method. If the guest has arrived at the
        destination, an outage or a failed deletion is only logged
        (:func:`~kronos_nova.plugin.reverts.may_be_left`). If the error were raised, Nova would set
        the instance to ERROR."""
        try:
            super()._delete_allocation_after_move(context, instance, migration)
        except Exception as error:
            if not self._has_left() or not reverts.may_be_left(error):
                raise
            reverts.log_undeleted(f'The guest of live migration {migration.uuid} has arrived',
                                  instance, error)

    def _has_left(self) -> bool:
        return self._attempt is not None and self._attempt.has_left

    def _rollback_live_migration(self, context: RequestContext, instance: Instance, dest: str,
                                 migrate_data: LiveMigrateData | None = None,
                                 migration_status: str = 'failed',
                                 source_bdms: BlockDeviceMappingList | None = None,
                                 pre_live_migration: bool = False) -> None:
        """Resume the guest if it is paused. If the guest has ended, set the state of the instance
        to stopped. Then roll back by Nova's method. Nova's method alone would save the state that
        the instance had before the migration, even if the guest has ended."""
        attempt = self._attempt
        if attempt:
            self._look_after(attempt)
        super()._rollback_live_migration(context, instance, dest, migrate_data, migration_status,
                                         source_bdms, pre_live_migration)
        if attempt:
            attempt.is_rolled_back = True

    def _set_migration_status(self, migration: Migration, status: str) -> None:
        attempt = self._attempt
        if attempt is None or status not in migration_status.FAILED:
            super()._set_migration_status(migration, status)
        elif not attempt.is_rolled_back:
            attempt.status = status

    def _set_instance_obj_error_state(self, instance: Instance,
                                      clean_task_state: bool = False) -> None:
        if self._attempt is None:
            super()._set_instance_obj_error_state(instance, clean_task_state)
        else:
            self._attempt.is_error = True

    # Settlement in place of Nova's verdict

    def _end(self, attempt: Attempt, error: Exception) -> None:
        attempt.error, attempt.is_rolled_back_by_driver = error, attempt.is_rolled_back
        self._settle(attempt)
        _tell(attempt, error)
        self._conclude(attempt)

    def _settle(self, attempt: Attempt) -> None:
        """Complete or roll back a migration that Nova gave up, depending on where the guest is."""
        if attempt.is_over:
            return
        if attempt.is_prepared and outages.is_outage(attempt.error):
            # The driver lost its connection to Nova and not to the guest, so the copy would
            # continue.
            self._stop_copying(attempt)
        tries = outages.retrying(
            PATIENCE_SECONDS,
            is_worth=lambda error: outages.is_outage(error) and not attempt.has_left)
        try:
            tries(self._follow_guest if attempt.is_prepared else self._roll_back, attempt)
        except Exception:  # after any error, Nova's own verdict holds
            LOG.exception('The fix broken_migrations could neither complete nor roll back the live '
                          'migration. Nova handles the failure as it would without the fix.',
                          instance=attempt.instance)
            attempt.status = attempt.status or migration_status.ERROR

    def _follow_guest(self, attempt: Attempt) -> None:
        if attempt.runs(self._state_there(attempt)) and self._has_pages_here(attempt):
            return
        there, here = self._state_there(attempt), self._state_here(attempt)
        if attempt.runs(there) and here is not None and not attempt.runs(here):
            self._take_leave(attempt, here)
        elif here is not None and (attempt.runs(here) or there is not None):
            self._roll_back(attempt)

    def _stop_copying(self, attempt: Attempt) -> None:
        """Abort a copy of the guest that the driver no longer watches."""
        try:
            self.driver.live_migration_abort(attempt.instance)
        except Exception as error:  # each driver has errors of its own
            LOG.debug('The copying of the guest could not be aborted, probably because the copying '
                      'is already over: %s', error, instance=attempt.instance)

    def _has_pages_here(self, attempt: Attempt) -> bool:
        """Wait while this host still has memory pages of a guest that already runs at the
        destination (post-copy), at most for COPY_SECONDS. Return True if pages are left after this
        time."""
        return bool(_ask_patiently(COPY_SECONDS, attempt, guest_state.is_copied, self.driver,
                                   attempt.instance, still=bool))

    def _roll_back(self, attempt: Attempt) -> None:
        if attempt.source_bdms is None:
            attempt.source_bdms = objects.BlockDeviceMappingList.get_by_instance_uuid(
                attempt.context, attempt.instance.uuid)
        attempt.migrate_data.migration = attempt.migration
        self._rollback_live_migration(
            attempt.context, attempt.instance, attempt.dest, attempt.migrate_data,
            source_bdms=attempt.source_bdms, pre_live_migration=not attempt.is_prepared)

    def _take_leave(self, attempt: Attempt, here: int) -> None:
        """Complete the migration of a guest that runs at the destination. If the guest is still
        paused on this host, power it off here first."""
        LOG.warning('The live migration broke off, but the guest already runs at destination %s. '
                    'The migration is therefore completed.', attempt.dest,
                    instance=attempt.instance)
        if here == power_state.PAUSED:
            self.driver.power_off(attempt.instance)
        self._complete(attempt, attempt.migrate_data)

    def _has_died(self, attempt: Attempt) -> bool:
        """Return True if the guest ended during the transfer. Return False if the guest runs, or if
        its state is not known."""
        try:
            here = self._get_power_state(attempt.instance)
        except Exception as error:  # after any error, the guest is not known to be dead
            LOG.debug('The state of the guest on the source host cannot be read: %s', error,
                      instance=attempt.instance)
            return False
        if here not in DEAD:
            return False
        there = self._state_there(attempt)
        return there is not None and not attempt.runs(there)

    def _look_after(self, attempt: Attempt) -> None:
        """Resume the guest on this host if its live migration left the guest paused. Record in
        ``attempt`` whether the guest runs or has ended. If the guest has ended, set the state of
        the instance to stopped."""
        state, instance = self._state_here(attempt), attempt.instance
        if state == power_state.PAUSED and instance.vm_state == vm_states.ACTIVE:
            state = self._resume(instance)
        if attempt.runs(state):
            attempt.fate = f'its guest runs on at {instance.host}'
        elif state in DEAD:
            attempt.fate = f'its guest has ended at {instance.host}, and can be started again'
            instance.vm_state, instance.power_state = vm_states.STOPPED, state

    def _resume(self, instance: Instance) -> int:
        """Resume a paused guest, and return its power state. The guest may be paused because Nova
        has forced its live migration to complete."""
        LOG.info('The guest was left paused when its live migration broke off; resuming the '
                 'guest.', instance=instance)
        try:
            self.driver.unpause(instance)
            return self._get_power_state(instance)
        except Exception:  # after any error, Nova's own verdict holds
            LOG.exception('The guest could not be resumed after its live migration broke off, and '
                          'stays paused. Unpause the server.', instance=instance)
            return power_state.PAUSED

    def _state_here(self, attempt: Attempt) -> int | None:
        """Return the power state of the guest on this host; None if the hypervisor does not
        answer."""
        return _ask_patiently(PATIENCE_SECONDS, attempt, self._get_power_state, attempt.instance)

    @staticmethod
    def _state_there(attempt: Attempt) -> int | None:
        """Return the power state of the guest at the destination; None if the state is not known.
        While the guest is paused there, wait up to SETTLING_SECONDS for it to run."""
        return _ask_patiently(
            SETTLING_SECONDS, attempt, guest_state.power_state, attempt.context, attempt.dest,
            attempt.instance, still=lambda state: state == power_state.PAUSED
            and not attempt.runs(state))

    def _conclude(self, attempt: Attempt) -> None:
        """Save the final status of the migration. Set the instance to ERROR if Nova wants this and
        :attr:`Attempt.is_settled` is false. Do nothing if the migration was completed."""
        if attempt.is_completed:
            return
        is_error = attempt.is_error and not attempt.is_settled
        status = migration_status.ERROR if is_error else attempt.status
        if status:
            super()._set_migration_status(attempt.migration, status)
        if is_error:
            super()._set_instance_obj_error_state(attempt.instance, clean_task_state=True)


def _ask_patiently(seconds: float, attempt: Attempt, ask: Callable[..., R], *args: Any,
                   still: Callable[[R], bool] = lambda state: False) -> R | None:
    """Return the answer of ``ask``, which is called repeatedly for at most ``seconds``.

    The call is repeated while it raises an error. It is also repeated while ``still(answer)`` is
    true, because the answer is expected to change. When the time is over, the last answer is
    returned; None if the last call raised an error.
    """
    tries = tenacity.Retrying(
        stop=tenacity.stop_after_delay(seconds), wait=tenacity.wait_fixed(INTERVAL_SECONDS),
        retry=tenacity.retry_if_exception_type() | tenacity.retry_if_result(still),
        retry_error_callback=lambda state: state.outcome and state.outcome.result())
    try:
        return tries(ask, *args)
    except Exception as error:  # each driver has errors of its own
        LOG.error('The state of a guest whose live migration broke off could not be read from the '
                  'hypervisor: %s', error, instance=attempt.instance)
        return None


def _tell(attempt: Attempt, error: Exception) -> None:
    """Record, as a fault of the instance, why the migration failed. Called before the migration
    gets its final status, because the executor reads the fault as soon as the migration has
    ended."""
    if attempt.is_completed or attempt.status == migration_status.CANCELLED:
        return
    reason = first_line(error) + (f'; {attempt.fate}' if attempt.fate else '')
    LOG.warning('Live migration %s to %s failed: %s', attempt.migration.uuid, attempt.dest, reason,
                instance=attempt.instance)
    fault = nova_exception.MigrationError(
        reason=reason, code=outages.CODE if outages.is_outage(error) else 500)
    try:
        compute_utils.add_instance_fault_from_exc(
            attempt.context, attempt.instance, fault, sys.exc_info())
    except Exception as e:  # after any error, the migration has to be ended
        LOG.warning('The failure of the live migration could not be recorded as a fault of the '
                    'server: %s', e, instance=attempt.instance)
