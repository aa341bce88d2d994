"""Pauses during a reading of the cloud, which limit the load on Nova's databases and placement."""

import contextlib
import time
from collections.abc import Callable
from collections.abc import Iterator

LONGEST_REST = 0.05
"""Maximum seconds of the pause after each query while Kronos reads the cloud. Each pause is as long
as the query before it, up to this maximum. In the pauses, the database serves other clients.
Raised, reading the cloud takes longer; lowered, Nova's own requests wait longer. Chosen as the time
of a query for some hundred instances."""


class ReadingPace:
    """Pauses between the steps of a reading of the cloud. Each pause is as long as the step before
    it, up to :data:`LONGEST_REST`.

    Nova's databases and placement have to serve nova-conductor at the same time. The pauses leave
    half of the time to nova-conductor. The total time of all pauses is limited, because a large
    reading would otherwise take too long.

    :param rest_time: maximum total seconds of all pauses of one reading
    :param sleep: function that waits for a number of seconds
    """

    def __init__(self, rest_time: float, sleep: Callable[[float], None] = time.sleep,
                 monotonic: Callable[[], float] = time.monotonic):
        self._rest_time = self._left = rest_time
        self._sleep, self._monotonic = sleep, monotonic

    def begin(self) -> None:
        """Begin another reading. The total time of its pauses is again limited to ``rest_time``."""
        self._left = self._rest_time

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Run the ``with`` block as one step of a reading, and then pause. The pause is as long as
        the step, but at most :data:`LONGEST_REST` seconds. All pauses of a reading together take at
        most ``rest_time`` seconds. Several threads may run steps at the same time."""
        begun = self._monotonic()
        yield
        rest = min(self._monotonic() - begun, LONGEST_REST, self._left)
        self._left -= rest
        self._sleep(max(rest, 0))


HURRY = ReadingPace(0)
"""A pace without pauses, for a process that serves one caller who waits for the result."""
