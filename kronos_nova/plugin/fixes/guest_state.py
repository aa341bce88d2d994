"""The power state of a guest on a host, as the hypervisor of that host reports it.

Used by :mod:`kronos_nova.plugin.fixes.broken_migrations`.
"""

from collections.abc import Callable

import oslo_messaging as messaging
from nova import exception as nova_exception
from nova import rpc
from nova.compute import rpcapi as compute_rpcapi
from nova.objects import base as objects_base

from kronos_nova.plugin import claim_rpc
from kronos_nova.plugin.nova_types import ComputeDriver
from kronos_nova.plugin.nova_types import Instance
from kronos_nova.plugin.nova_types import RequestContext

NAMESPACE = 'kronos_guests'
VERSION = '1.0'

TIMEOUT_SECONDS = 10
"""Maximum seconds to wait until a nova-compute reports the power state of a guest on its host.
After the live migration of a guest broke off, Kronos reads this state to find out where the guest
runs. Raised, the migration ends later if the nova-compute does not answer, and the guest may have
no network until the migration ends; lowered, a busy nova-compute counts as failed. Not measured."""

JOBS = (1, 2)
"""Types of libvirt jobs that copy a guest: VIR_DOMAIN_JOB_BOUNDED (1) and VIR_DOMAIN_JOB_UNBOUNDED
(2). Fixed by libvirt. The numbers are repeated here because this module has to work on hosts
without libvirt."""


class GuestStateEndpoint:
    """An RPC endpoint of nova-compute that reports the power state of a guest.

    Version 1.0 has one method, :meth:`power_state`.

    :param power_state: function that reads the power state of a guest on this host:
        ComputeManager._get_power_state
    """

    target = messaging.Target(namespace=NAMESPACE, version=VERSION)

    def __init__(self, power_state: Callable[[Instance], int]):
        self._power_state = power_state

    def power_state(self, context: RequestContext, instance: Instance) -> int:
        return self._power_state(instance)


def is_copied(driver: ComputeDriver, instance: Instance) -> bool:
    """Return whether the hypervisor of this host still copies a guest to its destination. With
    post-copy the guest may run at the destination already, while pages of its memory are still on
    this host. Return False for every driver except libvirt's.

    :raises Exception: the hypervisor does not answer
    """
    get_guest = getattr(getattr(driver, '_host', None), 'get_guest', None)
    if get_guest is None:
        return False
    try:
        return get_guest(instance).get_job_info().type in JOBS
    except nova_exception.InstanceNotFound:
        return False


def power_state(context: RequestContext, host: str, instance: Instance) -> int | None:
    """Return the state of an instance's guest at ``host``, one of ``nova.compute.power_state``.
    NOSTATE means that there is no guest. None means that the nova-compute of the host does not run
    Kronos.

    :raises Exception: nova-compute or its hypervisor does not answer; each driver raises errors of
        its own
    """
    target = messaging.Target(topic=compute_rpcapi.RPC_TOPIC, server=host, namespace=NAMESPACE,
                              version=VERSION)
    client = rpc.get_client(target, serializer=objects_base.NovaObjectSerializer())
    routed = rpc.ClientRouter(client).client(context).prepare(timeout=TIMEOUT_SECONDS)
    try:
        return routed.call(context, 'power_state', instance=instance)
    except messaging.MessagingException as error:
        if claim_rpc.is_unserved(error):
            return None
        raise
