"""Errors inside Nova that mean an outage: a service did not answer.

The list has the errors of :mod:`kronos_nova.executor.outages`, and the errors by which Nova and
neutron's client report an outage.
"""

import time
from collections.abc import Callable
from typing import Any

import tenacity
from neutronclient.common import exceptions as neutron_exc
from nova import exception as nova_exception

from kronos_nova.executor import outages

CODE = 503
"""Fault code that Kronos records for a migration that failed because a service did not answer (no
unit). Fixed by HTTP, whose status for an unavailable service is 503."""

OUTAGES = (
    *outages.OUTAGES,
    nova_exception.CellTimeout, nova_exception.KeystoneConnectionFailed,
    # Placement, by Nova's report client.
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
    """Return whether an error, or one of its causes, is an outage. An outage says nothing about the
    instance."""
    return outages.is_outage(error, OUTAGES)


def retrying(seconds: float, is_worth: Callable[[BaseException], bool] = is_outage,
             **rest: Any) -> tenacity.Retrying:
    """Return a tenacity.Retrying, which calls a function again after an outage. At the end it
    raises the last error. The pauses are random, and at most 15 seconds long.

    A request or its answer may be lost while a service is restarted. The caller then notices the
    outage only after ``rpc_response_timeout``, which may be longer than ``seconds``. So the time of
    the last call counts from its beginning and not from its end. A lost request is always repeated.

    :param seconds: the last call begins at least this many seconds after the first call
    :param is_worth: called with an error; returns True if another attempt is made after this error
    :param rest: further arguments of tenacity.Retrying, such as ``before_sleep``
    """
    began_at = 0.0

    def note(_state: tenacity.RetryCallState) -> None:
        nonlocal began_at
        began_at = time.monotonic()

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_worth), reraise=True, before=note,
        stop=lambda state: began_at - state.start_time >= seconds,
        wait=tenacity.wait_random_exponential(max=15), **rest)
