"""Replaces the clock by which keystoneauth spaces requests by one that no correction changes.

Each adapter of keystoneauth notes the time of the wall clock when it is made, and lets no request
go before that time. After the wall clock was set back, every request through an adapter from before
waits for as long as the step was, and with the request whatever holds a lock meanwhile: a
nova-compute whose clock was an hour ahead answers nothing for an hour. A clock that is put right
again ends no wait that has begun.

:func:`install` replaces two methods of a private class of keystoneauth. The space between requests
that an adapter was made with stays.
"""

import inspect
import time

from keystoneauth1 import _fair_semaphore
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_SEMAPHORE = _fair_semaphore.FairSemaphore
_NEXT = '_kronos_next'
"""Attribute of a semaphore: when its next request may go, by the monotonic clock."""


def _advance_timer(self) -> float:
    """Reserve the next time for a request, and return it. The caller holds the semaphore's lock."""
    at = max(getattr(self, _NEXT, 0.0), time.monotonic())
    setattr(self, _NEXT, at + self._rate_delay)
    return at


def _wait_for_execution(self, execution_time: float) -> None:
    wait = execution_time - time.monotonic()
    if wait > 0:
        time.sleep(wait)


_REPLACED = {each.__name__: each for each in (_advance_timer, _wait_for_execution)}


def install() -> None:
    """Replace the clock, for adapters that there are already too; harmless when repeated. Another
    keystoneauth, whose methods are others, is left as it is."""
    for name, method in _REPLACED.items():
        if _parameters(getattr(_SEMAPHORE, name, None)) != _parameters(method):
            LOG.warning('%s.%s of this keystoneauth is not the one that Kronos knows and is not '
                        'replaced. If the clock is set back, requests to other services may be '
                        'delayed.', _SEMAPHORE.__name__, name)
            return
    for name, method in _REPLACED.items():
        setattr(_SEMAPHORE, name, method)


def _parameters(method):
    return method and [*inspect.signature(method).parameters]
