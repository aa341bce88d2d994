"""The list of errors that mean an outage: a service did not answer. A refusal is no outage, unless
Kronos' own credentials are refused.

All code that classifies an exception calls :func:`is_outage`, which compares classes and never
texts. :mod:`kronos_nova.plugin.outages` adds the classes of Nova and of neutron, for code inside
Nova.
"""

import sys
from collections.abc import Iterable
from typing import Any

from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.db import engine as db_engine
from kronos_nova.placement import errors

BUS = 'oslo_messaging'
"""Name (no unit) of the module of oslo.messaging. The module is not imported here, because its
import takes long and chooses between threads and eventlet. While no other code has imported the
module, none of its exceptions can have been raised."""

OUTAGES = (
    *errors.OF_EVERY_REQUEST, errors.ConcurrentUpdate,
    ConnectionError,
    # Databases, those of cells too. oslo.db does not translate all of SQLAlchemy's errors.
    db_exc.DBError, exception.TaskLost, *db_engine.NO_ANSWER,
    # Keystone, and services that are reached through its sessions.
    ks_exc.ConnectionError, ks_exc.HttpServerError, ks_exc.DiscoveryFailure, ks_exc.Unauthorized,
    ks_exc.EndpointNotFound, ks_exc.RetriableConnectionFailure,
    sdk_exc.ServiceDiscoveryException, sdk_exc.EndpointNotFound,
    # Nova, by its public API.
    exception.NovaUnavailable, exception.InventoryError,
)


def is_outage(error: BaseException | None,
              classes: tuple[type[BaseException], ...] = OUTAGES) -> bool:
    """Return whether an error, or one of its causes, is an outage. An outage means that a service
    did not answer, or refused Kronos' own credentials. The instance is not the cause, so it is not
    put into quarantine."""
    bus = sys.modules.get(BUS)
    while error is not None:
        if isinstance(error, classes) or (bus and _is_outage_of(bus, error, classes)):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def _is_outage_of(bus: Any, error: BaseException, classes: tuple[type[BaseException], ...]) -> bool:
    """Return True if an error of oslo.messaging is an outage: the message bus or the called service
    did not answer, or the called service reports an outage. A RemoteError has only the name of the
    remote exception's class. This name is compared with the names of ``classes``."""
    silent = (bus.MessagingTimeout, bus.MessageDeliveryFailure, bus.MessageUndeliverable)
    return isinstance(error, silent) or (
        isinstance(error, bus.RemoteError) and error.exc_type in _names((*classes, *silent)))


def _names(classes: Iterable[type[BaseException]]) -> set[str]:
    """Return the names of ``classes`` and of all classes that are derived from them."""
    found = {each.__name__ for each in classes}
    return found.union(*(_names(each.__subclasses__()) for each in classes))
