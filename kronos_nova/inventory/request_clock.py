"""A monotonic clock for the pauses that keystoneauth makes between requests.

Without this module, keystoneauth uses the wall clock. An adapter records the time when it is made,
and sends no request before this time. If the wall clock is then set back by an hour, the adapter's
next request waits for an hour. Other threads may wait for a lock that is held during the request,
so a nova-compute may be unable to respond for this hour. The wait does not end early if the clock
is set forward again.

:func:`install` replaces two methods of a private class of keystoneauth. An adapter with a minimum
interval between its requests still keeps this interval.
"""

import inspect
import time
from collections.abc import Callable
from typing import Any

from keystoneauth1 import _fair_semaphore
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_SEMAPHORE = _fair_semaphore.FairSemaphore
_NEXT = '_kronos_next'
"""Name of the attribute of a semaphore that stores the time, by the monotonic clock, from which on
the next request may be sent."""


def _advance_timer(self: Any) -> float:
    """Return the time, by the monotonic clock, at which the caller may send a request. The next
    caller gets a time that is later by the minimum interval between two requests. This function
    replaces a method of keystoneauth's semaphore; the caller has to hold the semaphore's lock."""
    at = max(getattr(self, _NEXT, 0.0), time.monotonic())
    setattr(self, _NEXT, at + self._rate_delay)
    return at


def _wait_for_execution(self: Any, execution_time: float) -> None:
    wait = execution_time - time.monotonic()
    if wait > 0:
        time.sleep(wait)


_REPLACED = {each.__name__: each for each in (_advance_timer, _wait_for_execution)}


def install() -> None:
    """Replace the clock for all keystoneauth adapters, including existing ones. A second call does
    nothing. If the two methods of the installed keystoneauth have other parameters than this module
    expects, the clock is not replaced."""
    for name, method in _REPLACED.items():
        if _parameters(getattr(_SEMAPHORE, name, None)) != _parameters(method):
            LOG.warning('The fix request_clock is not active, because it does not fit the '
                        'installed keystoneauth: %(class)s.%(method)s has other parameters than '
                        'expected. If the clock of this host is ever set back, restart this '
                        'service. Without a restart, the service may be unable to send requests '
                        'to other services until the clock shows again the time from which it was '
                        'set back.',
                        {'class': _SEMAPHORE.__name__, 'method': name})
            return
    for name, method in _REPLACED.items():
        setattr(_SEMAPHORE, name, method)


def _parameters(method: Callable[..., object] | None) -> list[str] | None:
    return method and [*inspect.signature(method).parameters]
