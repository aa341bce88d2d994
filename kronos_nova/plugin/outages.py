"""Tells a service that does not answer from one that says no.

By the classes of exceptions, never by what they say.
"""

import oslo_messaging as messaging
from keystoneauth1 import exceptions as ks_exc
from neutronclient.common import exceptions as neutron_exc
from nova import exception as nova_exception
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.placement import errors

CODE = 503
"""The ``code`` of the instance fault that Nova keeps of a live migration that an outage ended."""

OUTAGES = (
    errors.PlacementUnavailable, errors.PlacementTooOld, errors.PlacementRefused,
    errors.ConcurrentUpdate,
    messaging.MessagingTimeout, messaging.MessageDeliveryFailure,
    db_exc.DBError, exception.TaskLost,
    ks_exc.ConnectionError, ks_exc.HttpServerError, ks_exc.DiscoveryFailure,
    neutron_exc.ConnectionFailed, neutron_exc.InternalServerError, neutron_exc.ServiceUnavailable,
    nova_exception.CinderConnectionFailed, nova_exception.PlacementAPIConnectFailure,
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
