"""RPC endpoints for claims: two-phase claims in nova-compute, and the claim store ``central`` in
nova-conductor.

Both endpoints have RPC namespaces of their own, so that a host without Kronos refuses a call
instead of misunderstanding it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any

import oslo_messaging as messaging
from nova import context as nova_context
from nova import exception as nova_exc
from nova import rpc
from nova.compute import rpcapi as compute_rpcapi
from nova.conductor import rpcapi as conductor_rpcapi
from nova.objects import base as objects_base

from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.plugin import outages
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import Migration
from kronos_nova.plugin.nova_types import RequestContext

if TYPE_CHECKING:  # nova-conductor and nova-compute do not load each other's code
    from kronos_nova.claims import central
    from kronos_nova.plugin import two_phase

NAMESPACE = 'kronos_claims'
STORE_NAMESPACE = 'kronos_claim_store'
VERSION = '1.0'

TIMEOUT_SECONDS = 10
"""Maximum seconds to wait for a nova-compute's answer to a request about a claim. A claim is the
set of resources that a host reserves for an instance. Raised, a host that has just failed delays
the executor for longer; lowered, a busy host counts as failed. Not measured."""

STORE_TIMEOUT_SECONDS = 5
"""Maximum seconds that a nova-compute waits until nova-conductor has stored a claim. A claim is the
set of resources that a host reserves for an instance. Raised, other claims of the host wait longer
if nova-conductor does not answer; lowered, a claim is more often not stored because nova-conductor
is slow. Not measured."""

# Errors of oslo.messaging where the called service has no endpoint of a namespace.
UNSERVED = (messaging.UnsupportedVersion, messaging.NoSuchMethod)


class ClaimsEndpoint:
    """The RPC endpoint of nova-compute for two-phase claims. Its methods return plain values. A
    repeated call does no harm.

    Version 1.0 has prepare, confirm and abort.

    :param claims: kronos_nova.plugin.two_phase.TwoPhaseClaims
    """

    target = messaging.Target(namespace=NAMESPACE, version=VERSION)

    def __init__(self, claims: 'two_phase.TwoPhaseClaims'):
        self._claims = claims

    @messaging.expected_exceptions(nova_exc.ComputeResourcesUnavailable)
    def prepare(self, context: RequestContext, instance: Instance,
                migration: Migration | None = None, node: str | None = None) -> int | None:
        return self._claims.prepare(context, instance, migration, node)

    def confirm(self, context: RequestContext, claim_id: int) -> bool:
        return self._claims.confirm(context, claim_id)

    def abort(self, context: RequestContext, claim_id: int) -> bool:
        return self._claims.abort(context, claim_id)


class ClaimsClient:
    """A client that calls :class:`ClaimsEndpoint` on compute hosts. The ``context`` of a call has
    to be targeted at the cell of the host."""

    def prepare(self, context: RequestContext, host: str, instance: Instance,
                migration: Migration | None = None, node: str | None = None) -> int | None:
        """Have ``host`` reserve resources for ``instance`` before the instance moves there.

        :param instance: Instance
        :param migration: Nova's Migration of the move; None if Nova has not created it yet
        :returns: id of the claim; None if the host does not run Kronos
        :raises PreFlightError: the instance does not fit on the host, Nova refuses it there, or the
            host failed with an error that is no outage
        :raises NovaUnavailable: the host did not answer, or reported an outage
        """
        try:
            return self._call(context, host, 'prepare', instance=instance, migration=migration,
                              node=node)
        except (nova_exc.NovaException, messaging.MessagingException) as error:
            if is_unserved(error):
                return None
            # Nova's own checks, such as of the image of an instance, raise errors of other kinds.
            # A RemoteError that is no outage is an error of the host's code about this instance.
            is_refusal = isinstance(error, (nova_exc.NovaException, messaging.RemoteError)) and (
                not outages.is_outage(error))
            kind = exception.PreFlightError if is_refusal else exception.NovaUnavailable
            raise kind(instance=instance.uuid, reason=first_line(error)) from error

    def confirm(self, context: RequestContext, host: str, claim_id: int) -> bool:
        """Confirm the claim of a move that was made.

        :returns: True if this call confirmed the claim; False if no prepared claim has this id
        """
        return self._call(context, host, 'confirm', claim_id=claim_id)

    def abort(self, context: RequestContext, host: str, claim_id: int) -> bool:
        """Release the resources of a claim whose move will not be made.

        :returns: True if this call released resources; False if no prepared claim has this id
        """
        return self._call(context, host, 'abort', claim_id=claim_id)

    def _call(self, context: RequestContext, host: str, method: str, **kwargs: Any) -> Any:
        target = messaging.Target(topic=compute_rpcapi.RPC_TOPIC, server=host,
                                  namespace=NAMESPACE, version=VERSION)
        client = rpc.get_client(target, serializer=objects_base.NovaObjectSerializer())
        routed = rpc.ClientRouter(client).client(context).prepare(timeout=TIMEOUT_SECONDS)
        return routed.call(context, method, **kwargs)


class ClaimStoreEndpoint:
    """The RPC endpoint of nova-conductor for the claim store ``central``, which has the claims of
    all compute hosts.

    :param tables: callable that returns the kronos_nova.claims.central.CentralTable
    """

    target = messaging.Target(namespace=STORE_NAMESPACE, version=VERSION)

    def __init__(self, tables: 'Callable[[], central.CentralTable]'):
        self._tables = tables

    def load(self, context: RequestContext, host: str) -> list[dict[str, Any]]:
        return self._tables().load(host)

    def write(self, context: RequestContext, host: str, put: object, drop: object) -> list[int]:
        return self._tables().write(host, put, drop)


def call_store(method: str, **kwargs: Any) -> Any:
    """Call a method of the conductor's :class:`ClaimStoreEndpoint`, and return its result.

    :raises ClaimError: the conductor did not answer, or the call failed in the conductor
    """
    target = messaging.Target(topic=conductor_rpcapi.RPC_TOPIC, namespace=STORE_NAMESPACE,
                              version=VERSION)
    client = rpc.get_client(target).prepare(timeout=STORE_TIMEOUT_SECONDS)
    try:
        return client.call(nova_context.get_admin_context(), method, **kwargs)
    except messaging.MessagingException as error:
        raise exception.ClaimError(problem=f'the conductor: {error}') from error


def is_unserved(error: Exception) -> bool:
    """Return whether an error means that the called service has no endpoint for the namespace. An
    error that arrives over a message broker is recognised by the name of its class."""
    return isinstance(error, UNSERVED) or (
        isinstance(error, messaging.RemoteError) and
        error.exc_type in {unserved.__name__ for unserved in UNSERVED})
