"""Repetition of the request that completes a live migration at its destination.

If nova-compute at the destination stops during this request, Nova gives up. Nova sets the instance
to ERROR, although its guest runs well. This fix asks the destination once more, because its
nova-compute may have been restarted.

Launchpad: no bug is known. Option: ``[kronos_fixes] post_migration_retry``.
"""

import nova.conf
import oslo_messaging as messaging
from nova import objects
from nova.compute import rpcapi as compute_rpcapi
from nova.compute import vm_states
from oslo_log import log as logging

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

EXPECTED = {
    'nova.compute.manager:ComputeManager.reset': ('self',),
    'nova.compute.rpcapi:ComputeAPI.post_live_migration_at_destination':
        ('self', 'ctxt', 'instance', 'block_migration', 'host'),
}


class Unanswered(Exception):
    """The error that is raised if the destination does not answer. The last steps of the migration
    are then not done at the destination."""


class PatientComputeAPI(compute_rpcapi.ComputeAPI):
    """Nova's RPC client of nova-compute, with one repetition of the request to complete a live
    migration."""

    def post_live_migration_at_destination(self, ctxt, instance, block_migration, host):
        """Ask the destination to complete the live migration. Ask the destination once more if it
        did not answer and has not completed the migration.

        :raises Unanswered: the destination answered neither request and has not completed the
            migration
        """
        asked = ctxt, instance, block_migration, host
        try:
            super().post_live_migration_at_destination(*asked)
            return
        except messaging.MessagingTimeout as error:
            LOG.warning('nova-compute on %s did not answer the request to complete the live '
                        'migration; the request is repeated: %s', host, error, instance=instance)
        if _is_done(ctxt, instance, host):
            return
        try:
            super().post_live_migration_at_destination(*asked)
        except Exception as error:
            # A restarted nova-compute may have found the first request in its queue, too.
            if _is_done(ctxt, instance, host):
                return
            if isinstance(error, messaging.MessagingTimeout):
                raise Unanswered(f'nova-compute on {host} does not answer: {error}') from error
            raise


def compute_api(stock):
    """Return the RPC client of nova-compute for the manager. It is a PatientComputeAPI, or
    ``stock`` if the option is off.

    :param stock: Nova's own client
    """
    return PatientComputeAPI() if CONF.kronos_fixes.post_migration_retry else stock


def _is_done(ctxt, instance, host):
    now = objects.Instance.get_by_uuid(ctxt, instance.uuid)
    return (now.host, now.task_state) == (host, None) and now.vm_state != vm_states.ERROR
