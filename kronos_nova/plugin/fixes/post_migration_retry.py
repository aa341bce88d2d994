"""Repetition of the last steps of a live migration while a service does not answer.

In these steps, the guest has already arrived at the destination. If nova-compute at the destination
stops, or if a service such as neutron or nova-conductor does not answer, Nova gives up. Nova then
sets the instance to ERROR, although its guest runs well. This fix repeats two requests until the
services answer again. One request asks neutron to bind the ports to the destination. The other asks
nova-compute at the destination to complete the migration.

Launchpad: no bug is known. Option: ``[kronos_fixes] post_migration_retry``.
"""

from collections.abc import Callable

import nova.conf
import tenacity
from nova import objects
from nova.compute import rpcapi as compute_rpcapi
from nova.compute import vm_states
from nova.network import neutron
from oslo_log import log as logging

from kronos_nova.db.engine import first_line
from kronos_nova.plugin import outages
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

EXPECTED = {
    'nova.compute.manager:ComputeManager.reset': ('self',),
    'nova.compute.rpcapi:ComputeAPI.post_live_migration_at_destination':
        ('self', 'ctxt', 'instance', 'block_migration', 'host'),
    'nova.network.neutron:API.migrate_instance_start':
        ('self', 'context', 'instance', 'migration'),
}

PATIENCE_SECONDS = 120
"""Seconds for which a step that completes a live migration is repeated while a service does not
answer. Raised, the migration ends later during a long outage; lowered, steps at the destination may
be left out although the service is only being restarted. Chosen as twice the default of
``rpc_response_timeout``."""


class Unanswered(Exception):
    """The error raised if nova-compute at the destination did not complete the live migration.
    Either it does not answer, or it gets no answer from another service. The guest then runs at the
    destination, but the last steps of its migration are not done there."""


class PatientComputeAPI(compute_rpcapi.ComputeAPI):
    """Nova's RPC client of nova-compute, which repeats the request to complete a live migration."""

    def post_live_migration_at_destination(self, ctxt: RequestContext, instance: Instance,
                                           block_migration: bool, host: str) -> None:
        """Ask the destination to complete the live migration. If an outage prevents this, repeat
        the request, unless the destination has completed the migration in the meantime.

        :raises Unanswered: the outage lasted longer than :data:`PATIENCE_SECONDS`
        """
        real = super().post_live_migration_at_destination

        def ask(state: tenacity.RetryCallState) -> None:
            try:
                # After an outage, an earlier request may have been carried out all the same.
                if state.attempt_number == 1 or not _is_done(ctxt, instance, host):
                    real(ctxt, instance, block_migration, host)
            except Exception as error:
                if outages.is_outage(error) or not _is_done(ctxt, instance, host):
                    raise

        try:
            _patiently(ask, f'The live migration to {host} could not be completed there', instance)
        except Exception as error:
            if outages.is_outage(error):
                raise Unanswered(
                    f'the destination {host} did not complete it: {first_line(error)}') from error
            raise


class PatientNetworkAPI(neutron.API):
    """Nova's client of neutron, which repeats a request while neutron does not answer. The request
    binds the ports of a guest to its destination, after the guest has arrived there."""

    def migrate_instance_start(self, context: RequestContext, instance: Instance,
                               migration: Migration) -> None:
        real = super().migrate_instance_start
        _patiently(lambda _state: real(context, instance, migration),
                   'The ports of the guest could not be bound to its destination',
                   instance)


def _patiently(act: Callable[[tenacity.RetryCallState], None], failure: str,
               instance: Instance) -> None:
    """Call ``act``, and repeat the call while a service does not answer.

    :param act: function that is called with the RetryCallState of tenacity
    :param failure: a clause that says what failed, for the log
    :raises Exception: the last error of ``act``
    """
    for attempt in outages.retrying(
            PATIENCE_SECONDS,
            before_sleep=lambda state: LOG.warning(
                '%s, because a service does not answer; nova-compute tries again: %s', failure,
                first_line(state.outcome.exception()), instance=instance)):
        with attempt:
            act(attempt.retry_state)


def compute_api(stock: compute_rpcapi.ComputeAPI) -> compute_rpcapi.ComputeAPI:
    """Return the RPC client with which the compute manager calls other nova-computes: a
    PatientComputeAPI, or ``stock`` if the option ``post_migration_retry`` is off.

    :param stock: Nova's own client
    """
    return PatientComputeAPI() if CONF.kronos_fixes.post_migration_retry else stock


def network_api(stock: neutron.API) -> neutron.API:
    """Return the client with which the compute manager calls neutron: a PatientNetworkAPI, or
    ``stock`` if the option ``post_migration_retry`` is off.

    :param stock: Nova's own client
    """
    return PatientNetworkAPI() if CONF.kronos_fixes.post_migration_retry else stock


def _is_done(ctxt: RequestContext, instance: Instance, host: str) -> bool:
    now = objects.Instance.get_by_uuid(ctxt, instance.uuid)
    return (now.host, now.task_state) == (host, None) and now.vm_state != vm_states.ERROR
