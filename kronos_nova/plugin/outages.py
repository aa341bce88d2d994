"""The one list of what an outage is: a service that does not answer, as against one that says no.

Every place that judges an exception asks :func:`is_outage`. It looks at the classes of exceptions,
never by their texts.
"""

import oslo_messaging as messaging
from keystoneauth1 import exceptions as ks_exc
from neutronclient.common import exceptions as neutron_exc
from nova import exception as nova_exception
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.db import engine as db_engine
from kronos_nova.placement import errors

CODE = 503
"""The ``code`` of the instance fault that Nova keeps of a live migration that an outage ended."""

OUTAGES = (
    errors.PlacementUnavailable, errors.PlacementTooOld, errors.PlacementRefused,
    errors.ConcurrentUpdate,
    # The bus.
    messaging.MessagingTimeout, messaging.MessageDeliveryFailure, messaging.MessageUndeliverable,
    ConnectionError,
    # Databases, those of cells too. oslo.db does not translate all of SQLAlchemy's errors.
    db_exc.DBError, exception.TaskLost, nova_exception.CellTimeout,
    *db_engine.NO_ANSWER,
    # Keystone, and whatever is reached through its sessions.
    ks_exc.ConnectionError, ks_exc.HttpServerError, ks_exc.DiscoveryFailure, ks_exc.Unauthorized,
    ks_exc.EndpointNotFound, nova_exception.KeystoneConnectionFailed,
    # Placement, as Nova's report client tells of it.
    nova_exception.PlacementAPIConnectFailure, nova_exception.ResourceProviderRetrievalFailed,
    nova_exception.ResourceProviderAggregateRetrievalFailed,
    nova_exception.ResourceProviderTraitRetrievalFailed,
    nova_exception.ResourceProviderAllocationRetrievalFailed,
    nova_exception.ConsumerAllocationRetrievalFailed, nova_exception.UsagesRetrievalFailed,
    nova_exception.TraitRetrievalFailed,
    # Neutron, cinder, glance and manila.
    neutron_exc.ConnectionFailed, neutron_exc.InternalServerError, neutron_exc.ServiceUnavailable,
    neutron_exc.Unauthorized, nova_exception.NeutronAdminCredentialConfigurationInvalid,
    nova_exception.CinderConnectionFailed, nova_exception.GlanceConnectionFailed,
    nova_exception.ManilaConnectionFailed,
    # A nova-compute.
    nova_exception.ComputeServiceUnavailable,
)


def is_outage(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised because of, says nothing about the instance: what
    was asked did not answer, or did not let us."""
    while error is not None:
        if isinstance(error, OUTAGES) or _is_remote_outage(error):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def _is_remote_outage(error):
    """Of an exception that a nova-compute or a nova-scheduler met, oslo.messaging hands on the name
    of the class where it does not know the class."""
    return isinstance(error, messaging.RemoteError) and error.exc_type in _names(OUTAGES)


def _names(classes):
    """Names of classes and of all that are derived from them."""
    found = {each.__name__ for each in classes}
    return found.union(*(_names(each.__subclasses__()) for each in classes))
