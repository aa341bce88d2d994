"""Avoidance of delayed requests to other services after the clock of the host was set back.

Nova reaches placement, neutron, glance and cinder by adapters of keystoneauth. An adapter sends no
request while the wall clock is before the time at which the adapter was made. If, for example, the
clock is set back by an hour, the first request of nova-compute to placement waits for an hour.
During this time, the request holds the lock of the resource tracker. So nova-compute is blocked for
an hour.

This fix replaces two methods of ``keystoneauth1._fair_semaphore.FairSemaphore``, a private class,
by methods that use the monotonic clock (:mod:`kronos_nova.inventory.request_clock`).

Launchpad: no bug is known. Option: ``[kronos_fixes] request_clock``.
"""

import nova.conf

from kronos_nova.inventory import request_clock

CONF = nova.conf.CONF


def install() -> None:
    """Make requests of this process use the monotonic clock, unless the option is off. A repeated
    call changes nothing."""
    if CONF.kronos_fixes.request_clock:
        request_clock.install()
