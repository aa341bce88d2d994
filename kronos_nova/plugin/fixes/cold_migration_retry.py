"""Repetition of the calls of a cold migration or resize while a service does not answer.

nova-compute carries out a cold migration or resize by three requests: ``prep_resize`` at the
destination, ``resize_instance`` at the source, and ``finish_resize`` at the destination. If a
service does not answer at this time, Nova sets the instance to ERROR. With this fix, nova-compute
repeats its calls to a conductor. It also repeats those requests to neutron, placement and cinder
that do no harm if they are repeated. Calls and requests are repeated for longer once the guest is
powered off. The steps of the driver are never repeated. The request that nova-compute sends to the
next host is not repeated either, because oslo.messaging itself waits for the message bus.

If the service still does not answer, the result depends on the guest. If the guest has not been
powered off, nova-compute ends the migration, and the instance keeps its state. If the guest was
powered off, Nova sets the instance to ERROR. In both cases, the fault of the instance says that the
cause is an outage. The saves that end the migration are repeated as well.

Launchpad: no bug is known. Option: ``[kronos_fixes] cold_migration_retry``.
"""

import contextlib
import dataclasses
import functools
import sys
import threading
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from typing import TypeVar

import nova.conf
from nova import exception as nova_exception
from nova.compute import manager
from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova.objects import base as objects_base
from nova.objects import fields
from oslo_log import log as logging
from oslo_utils import excutils

from kronos_nova.db.engine import first_line
from kronos_nova.objects import migration_status
from kronos_nova.plugin import outages
from kronos_nova.plugin import reverts
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

PATIENCE_SECONDS = 180
"""Seconds for which a call of a cold migration is repeated while a service does not answer, if the
guest has not been powered off yet. Raised, the instance waits longer before it can be used for
another request; lowered, a migration may fail during a restart of a service. Chosen as the same
time as in the fix ``confirmation_retry``."""
LONG_PATIENCE_SECONDS = 1800
"""Seconds for which a call is repeated while a service does not answer, if the guest is already
powered off for the cold migration. The same limit applies to the calls that end a migration.
Raised, a migration that cannot be completed is reported later; lowered, the instance may be set to
ERROR during an outage. Chosen as a time in which operators notice an outage and restart a service.
"""

_MANAGER = 'nova.compute.manager:ComputeManager'

EXPECTED = {
    f'{_MANAGER}.prep_resize':
        ('self', 'context', 'image', 'instance', 'flavor', 'request_spec', 'filter_properties',
         'node', 'clean_shutdown', 'migration', 'host_list'),
    f'{_MANAGER}.resize_instance':
        ('self', 'context', 'instance', 'image', 'migration', 'flavor', 'clean_shutdown',
         'request_spec'),
    f'{_MANAGER}.finish_resize':
        ('self', 'context', 'disk_info', 'image', 'instance', 'migration', 'request_spec'),
    f'{_MANAGER}._delete_allocation_after_move': ('self', 'context', 'instance', 'migration'),
    f'{_MANAGER}._error_out_instance_on_exception':
        ('self', 'context', 'instance', 'instance_state'),
    f'{_MANAGER}._get_power_off_values': ('self', 'instance', 'clean_shutdown'),
    f'{_MANAGER}._reschedule_resize_or_reraise':
        ('self', 'context', 'instance', 'exc_info', 'flavor', 'request_spec', 'filter_properties',
         'host_list'),
    f'{_MANAGER}._revert_allocation': ('self', 'context', 'instance', 'migration'),
    f'{_MANAGER}._send_prep_resize_notifications':
        ('self', 'context', 'instance', 'phase', 'flavor'),
    f'{_MANAGER}._set_instance_obj_error_state': ('self', 'instance', 'clean_task_state'),
    'nova.compute.utils:add_instance_fault_from_exc':
        ('context', 'instance', 'fault', 'exc_info', 'fault_message'),
    'nova.conductor.rpcapi:ConductorAPI.object_action':
        ('self', 'context', 'objinst', 'objmethod', 'args', 'kwargs'),
    'nova.conductor.rpcapi:ConductorAPI.object_class_action_versions':
        ('self', 'context', 'objname', 'objmethod', 'object_versions', 'args', 'kwargs'),
    'nova.network.neutron:API.get_instance_nw_info': None,
    'nova.network.neutron:API.migrate_instance_finish':
        ('self', 'context', 'instance', 'migration', 'provider_mappings'),
    'nova.network.neutron:API.migrate_instance_start':
        ('self', 'context', 'instance', 'migration'),
    'nova.network.neutron:API.setup_networks_on_host':
        ('self', 'context', 'instance', 'host', 'teardown'),
    'nova.scheduler.client.report:SchedulerReportClient.get_allocations_for_consumer':
        ('self', 'context', 'consumer'),
    'nova.scheduler.client.report:SchedulerReportClient.get_allocs_for_consumer':
        ('self', 'context', 'consumer'),
    'nova.scheduler.client.report:SchedulerReportClient.get_resource_provider_name':
        ('self', 'context', 'uuid'),
    'nova.volume.cinder:API.attachment_complete': None,
    'nova.volume.cinder:API.attachment_update': None,
}

# Requests that may be repeated, even if the service has carried out the first request.
NETWORK = frozenset({'get_instance_nw_info', 'migrate_instance_finish', 'migrate_instance_start',
                     'setup_networks_on_host'})
PLACEMENT = frozenset({'get_allocs_for_consumer', 'get_resource_provider_name'})
VOLUME = frozenset({'attachment_complete', 'attachment_update'})

R = TypeVar('R')

_thread = threading.local()


@dataclasses.dataclass(slots=True)
class MigrationStep:
    """A request of a cold migration or resize that this thread carries out.

    is_guest_touched : true once the guest may have been powered off, on this or another host
    outage : the error of the first call that was repeated and still failed; None if there is no
        such call
    """

    context: RequestContext
    instance: Instance
    is_guest_touched: bool = False
    outage: BaseException | None = None

    @property
    def patience_seconds(self) -> int:
        return (PATIENCE_SECONDS if self.outage is None and not self.is_guest_touched
                else LONG_PATIENCE_SECONDS)

    def give_up(self, error: Exception) -> None:
        """Record an outage as the cause of the failure, also as a fault of the instance. Called
        before the migration gets its final status, because the executor reads the fault as soon as
        the migration has ended."""
        if self.outage is not None:
            return
        self.outage = error
        LOG.warning('The cold migration or resize fails, because a service does not answer: %s. %s',
                    first_line(error), 'The server ends in ERROR. Reset its state and reboot it '
                    'hard.' if self.is_guest_touched else 'The server keeps its state; migrate it '
                    'later.', instance=self.instance)
        try:
            compute_utils.add_instance_fault_from_exc(
                self.context, self.instance, _fault(error), sys.exc_info())
        except Exception as failure:  # after any error, the migration has to be ended
            LOG.warning('The outage could not be recorded as a fault of the server: %s',
                        first_line(failure), instance=self.instance)


def _fault(error: Exception) -> nova_exception.MigrationError:
    return nova_exception.MigrationError(reason=first_line(error), code=outages.CODE)


def _current() -> MigrationStep | None:
    """Return the MigrationStep of this thread; None outside of a cold migration or resize."""
    return getattr(_thread, 'step', None)


def _patiently(act: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Call ``act``. Within a MigrationStep, repeat the call while a service does not answer.

    :raises Exception: the last error of ``act``
    """
    step = _current()
    if step is None:
        return act(*args, **kwargs)
    tries = outages.retrying(
        step.patience_seconds,
        before_sleep=lambda state: LOG.warning(
            'The cold migration or resize waits, because a service does not answer; nova-compute '
            'tries again: %s', first_line(state.outcome.exception()), instance=step.instance))
    try:
        return tries(act, *args, **kwargs)
    except Exception as error:
        if outages.is_outage(error):
            step.give_up(error)
        raise


class PatientClient:
    """A client of a service that repeats some requests within a MigrationStep.

    :param client: Nova's own client
    :param repeatable: names of the methods whose requests are repeated
    """

    def __init__(self, client: Any, repeatable: Collection[str]):
        self._client = client
        self._repeatable = repeatable

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return functools.partial(_patiently, found) if name in self._repeatable else found


class PatientReportClient(PatientClient):
    """Nova's client of placement that repeats some requests within a MigrationStep."""

    def get_allocations_for_consumer(self, context: RequestContext, consumer: str) -> Any:
        """Return the allocations of a consumer as Nova's method does. There is one difference: if
        placement does not answer within a MigrationStep, an error is raised. Nova's method would
        return an empty result, as if the consumer had no allocations."""
        if _current() is None:
            return self._client.get_allocations_for_consumer(context, consumer)
        return self.get_allocs_for_consumer(context, consumer)['allocations']


class PatientConductor(PatientClient):
    """Nova's client by which objects call a conductor. Within a MigrationStep, the client repeats
    the calls."""

    def __init__(self, client: Any):
        super().__init__(client, {'object_backport_versions', 'object_class_action',
                                  'object_class_action_versions'})

    def object_action(self, context: RequestContext, objinst: Any, objmethod: str,
                      args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a method of an object in a conductor.

        :raises UnexpectedTaskStateError: another request has changed the task_state of the instance
        """
        attempts: list[str] = []

        def act() -> Any:
            attempts.append(objmethod)
            try:
                return self._client.object_action(context, objinst, objmethod, args, kwargs)
            except nova_exception.UnexpectedTaskStateError:
                saved = len(attempts) > 1 and self._read_if_saved(context, objinst)
                if not saved:
                    raise
                return saved
        return _patiently(act)

    def _read_if_saved(self, context: RequestContext,
                       instance: Instance) -> tuple[dict[str, Any], None] | None:
        """Find out whether the conductor has carried out a call whose answer was lost. For this,
        read the instance from the conductor. If the instance has the task_state that the call was
        to save, return the answer to this reading in place of the lost answer; otherwise, return
        None."""
        updates, _result = self._client.object_action(context, instance, 'refresh', (), {})
        is_saved = updates.get('task_state', instance.task_state) == instance.task_state
        return (updates, None) if is_saved else None


def install() -> None:
    """Make Nova's objects in this process call the conductors by a PatientConductor. Nothing is
    changed in a process that reads the database itself."""
    stock = objects_base.NovaObject.indirection_api
    if CONF.kronos_fixes.cold_migration_retry and stock and not isinstance(stock, PatientConductor):
        objects_base.NovaObject.indirection_api = PatientConductor(stock)


class MovesPatiently(Mixin):
    """A mixin for the compute manager that repeats the calls of a cold migration or resize while a
    service does not answer."""

    # Attributes of ComputeManager
    network_api: Any
    reportclient: Any
    volume_api: Any

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if CONF.kronos_fixes.cold_migration_retry:
            self.network_api = PatientClient(self.network_api, NETWORK)
            self.reportclient = PatientReportClient(self.reportclient, PLACEMENT)
            self.volume_api = PatientClient(self.volume_api, VOLUME)
        install()

    @wraps(manager.ComputeManager.prep_resize)
    def prep_resize(self, context: RequestContext, image: Mapping[str, Any], instance: Instance,
                    flavor: Flavor, request_spec: RequestSpec, filter_properties: dict[str, Any],
                    node: str, clean_shutdown: bool, migration: Migration,
                    host_list: list[Selection] | None) -> None:
        with self._step(context, instance, migration):
            super().prep_resize(context, image, instance, flavor, request_spec, filter_properties,
                                node, clean_shutdown, migration, host_list)

    @wraps(manager.ComputeManager.resize_instance)
    def resize_instance(self, context: RequestContext, instance: Instance, image: Mapping[str, Any],
                        migration: Migration, flavor: Flavor, clean_shutdown: bool,
                        request_spec: RequestSpec) -> None:
        with self._step(context, instance, migration):
            super().resize_instance(context, instance, image, migration, flavor, clean_shutdown,
                                    request_spec)

    @wraps(manager.ComputeManager.finish_resize)
    def finish_resize(self, context: RequestContext, disk_info: str, image: Mapping[str, Any],
                      instance: Instance, migration: Migration, request_spec: RequestSpec) -> None:
        with self._step(context, instance, migration, is_guest_touched=True):
            super().finish_resize(context, disk_info, image, instance, migration, request_spec)

    @contextlib.contextmanager
    def _step(self, context: RequestContext, instance: Instance, migration: Migration,
              is_guest_touched: bool = False) -> Iterator[None]:
        """Run the ``with`` block as a MigrationStep of this thread. If the option is off, only run
        the block."""
        if not CONF.kronos_fixes.cold_migration_retry:
            yield
            return
        step = _thread.step = MigrationStep(context, instance, is_guest_touched)
        try:
            yield
        except Exception:
            with excutils.save_and_reraise_exception():
                if step.outage is not None and migration.status != migration_status.ERROR:
                    self._end_unbegun(step, migration)
        finally:
            _thread.step = None

    def _end_unbegun(self, step: MigrationStep, migration: Migration) -> None:
        """End a migration whose request failed before Nova's method began. Without this, the record
        of the migration would stay in progress for ever."""
        if step.is_guest_touched:
            self._set_instance_obj_error_state(step.instance)
        else:
            self._revert_allocation(step.context, step.instance, migration)
            reverts.forget_destination(step.instance)
        migration.status = migration_status.ERROR
        migration.save()

    # Steps of Nova's own code

    def _get_power_off_values(self, instance: Instance, clean_shutdown: bool) -> tuple[int, int]:
        """Return Nova's values. Called immediately before the driver powers the guest off."""
        step = _current()
        if step:
            step.is_guest_touched = True
        return super()._get_power_off_values(instance, clean_shutdown)

    def _send_prep_resize_notifications(self, context: RequestContext, instance: Instance,
                                        phase: str, flavor: Flavor) -> None:
        """Send Nova's notification. If it reports that ``prep_resize`` has ended without an outage,
        also set ``is_guest_touched`` of the MigrationStep. The source has then received the request
        ``resize_instance``, and may power the guest off. After an outage, the source has no
        request, and the attribute is not set."""
        step = _current()
        if step and phase == fields.NotificationPhase.END and step.outage is None:
            step.is_guest_touched = True
        super()._send_prep_resize_notifications(context, instance, phase, flavor)

    def _reschedule_resize_or_reraise(self, context: RequestContext, instance: Instance,
                                      exc_info: tuple[type[Exception], Exception, TracebackType],
                                      *args: Any, **kwargs: Any) -> None:
        """Call Nova's method, which tries another host. After an outage, raise the error instead,
        because neither the instance nor the host was the cause of the failure."""
        step, error = _current(), exc_info[1]
        if step and outages.is_outage(error):
            step.give_up(error)
            raise error
        super()._reschedule_resize_or_reraise(context, instance, exc_info, *args, **kwargs)

    @contextlib.contextmanager
    def _error_out_instance_on_exception(self, context: RequestContext, instance: Instance,
                                         instance_state: str = vm_states.ACTIVE) -> Iterator[None]:
        """Set the state of the instance if the ``with`` block raises an error, by Nova's method. If
        the error is an outage, and the guest has not been powered off, the instance gets the state
        ``instance_state`` instead of ERROR."""
        with super()._error_out_instance_on_exception(
                context, instance, instance_state=instance_state):
            try:
                yield
            except Exception as error:
                step = _current()
                if not step or not outages.is_outage(error):
                    raise
                step.give_up(error)
                if step.is_guest_touched:
                    raise _fault(error) from error
                reverts.forget_destination(instance)
                raise nova_exception.InstanceFaultRollback(
                    inner_exception=_fault(error)) from error

    def _delete_allocation_after_move(self, context: RequestContext, instance: Instance,
                                      migration: Migration) -> None:
        """Delete the allocations of the migration by Nova's method. If an outage has ended the
        migration, an outage or a failed deletion is only logged
        (:func:`~kronos_nova.plugin.reverts.may_be_left`). So the fault of the instance still names
        the outage that ended the migration."""
        try:
            super()._delete_allocation_after_move(context, instance, migration)
        except Exception as error:
            step = _current()
            if not step or step.outage is None or not reverts.may_be_left(error):
                raise
            reverts.log_undeleted(f'An outage has ended cold migration {migration.uuid}', instance,
                                  error)
