"""What nova-compute says of a live migration that failed while its destination prepared for it."""

import sys

from nova import exception as nova_exception
from nova.compute import utils as compute_utils
from oslo_log import log as logging

from kronos_nova.plugin import outages

LOG = logging.getLogger(__name__)

EXPECTED = {
    'nova.compute.manager:ComputeManager._cleanup_pre_live_migration': (
        'self', 'context', 'dest', 'instance', 'migration', 'migrate_data', 'source_bdms'),
    'nova.compute.utils:add_instance_fault_from_exc': (
        'context', 'instance', 'fault', 'exc_info', 'fault_message'),
}


class TellsOutages:
    """A part of the compute manager.

    Nova keeps the error as a fault of the instance, and not whether Neutron, Cinder or the
    destination did not answer: then the same move may well succeed a little later.
    """

    def _cleanup_pre_live_migration(self, context, dest, instance, *args, **kwargs):
        """Called while the error is handled, and before anybody can see that the migration failed.
        """
        error = sys.exc_info()[1]
        if outages.is_outage(error):
            _keep(context, instance, error)
        super()._cleanup_pre_live_migration(context, dest, instance, *args, **kwargs)


def _keep(context, instance, error):
    fault = nova_exception.MigrationPreCheckError(reason=str(error), code=outages.CODE)
    try:
        compute_utils.add_instance_fault_from_exc(context, instance, fault, sys.exc_info())
    except Exception as e:  # whatever it is, the destination has to be tidied up
        LOG.warning('That an outage ended the live migration is not written down: %s', e,
                    instance=instance)
