"""Faults of the requests of one step: a conflict, a lost answer, a crash."""

import dataclasses

from keystoneauth1 import exceptions

CONFLICT, LOST, CRASH_BEFORE, CRASH_AFTER = 'conflict', 'lost answer', 'crash before', 'crash after'
KINDS = (CONFLICT, LOST, CRASH_BEFORE, CRASH_AFTER)


class ProcessDied(BaseException):
    """The process that carried a step out is gone: nothing of it handles this."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """``kind`` happens to the ``at``-th request of a step that writes allocations, from 0."""

    kind: str
    at: int


class Injector:
    """Lets ``fault`` happen to requests that reach the placement of ``fixture``.

    :param interfere: called for a conflict with the body that is about to be written; changes a
        consumer's generation
    """

    def __init__(self, fixture, interfere):
        self._interfere = interfere
        self._fault, self._count, self._is_busy = None, 0, False
        fixture.before, fixture.after = self._before, self._after

    def arm(self, fault):
        self._fault, self._count = fault, 0

    def _is_hit(self, method, path):
        return (self._fault is not None and not self._is_busy and method != 'GET'
                and path.startswith('/allocations') and self._count == self._fault.at)

    def _before(self, method, path, body):
        if not self._is_hit(method, path):
            return
        if self._fault.kind == CRASH_BEFORE:
            self._fault = None
            raise ProcessDied
        if self._fault.kind == CONFLICT:
            self._fault, self._is_busy = None, True
            try:
                self._interfere(body)
            finally:
                self._is_busy = False

    def _after(self, method, path, body):
        if self._is_hit(method, path):
            fault, self._fault = self._fault, None
            if fault.kind == LOST:
                raise exceptions.ConnectFailure('injected')
            if fault.kind == CRASH_AFTER:
                raise ProcessDied
        if method != 'GET' and path.startswith('/allocations') and not self._is_busy:
            self._count += 1
