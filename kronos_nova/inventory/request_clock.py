"""A monotonic clock for the pauses that keystoneauth keeps between requests.

Without this module, keystoneauth uses the wall clock. An adapter reads it when the adapter is made,
and sends no request before the time that was read. If the wall clock is then set back by an hour,
the adapter's next request waits for an hour. Other threads may wait for a lock that is held during
the request, so a nova-compute may not answer for that hour. Setting the clock forward again does
not end a wait that has begun.

:func:`install` replaces two methods of a private class of keystoneauth. An adapter that is made
with a least interval between its requests still keeps that interval.
"""

import inspect
import time

from keystoneauth1 import _fair_semaphore
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_SEMAPHORE = _fair_semaphore.FairSemaphore
_NEXT = '_kronos_next'
"""Attribute of a semaphore with the time of its next request, by the monotonic clock."""


def _advance_timer(self) -> float:
    """Return the time at which the next request may be sent, by the monotonic clock, and reserve
    it. The caller holds the semaphore's lock."""
    at = max(getattr(self, _NEXT, 0.0), time.monotonic())
    setattr(self, _NEXT, at + self._rate_delay)
    return at


def _wait_for_execution(self, execution_time: float) -> None:
    wait = execution_time - time.monotonic()
    if wait > 0:
        time.sleep(wait)


_REPLACED = {each.__name__: each for each in (_advance_timer, _wait_for_execution)}


def install() -> None:
    """Replace the clock for all adapters, also for those that exist already. Harmless when
    repeated. If the methods of the installed keystoneauth have other parameters, nothing is
    replaced."""
    for name, method in _REPLACED.items():
        if _parameters(getattr(_SEMAPHORE, name, None)) != _parameters(method):
            LOG.warning('The fix request_clock is not active, because it does not fit the '
                        'installed keystoneauth: %(class)s.%(method)s has other parameters than '
                        'expected. If the clock of this host is ever set back, restart this '
                        'service; otherwise it may send no request to other services for as long '
                        'as the clock was set back.',
                        {'class': _SEMAPHORE.__name__, 'method': name})
            return
    for name, method in _REPLACED.items():
        setattr(_SEMAPHORE, name, method)


def _parameters(method):
    return method and [*inspect.signature(method).parameters]
