"""The pace of a reading of the cloud, which limits the load on its databases."""

import contextlib
import time
from collections.abc import Callable

LONGEST_REST = 0.05
"""Maximum seconds of the pause after each query while the cloud is read. A pause lasts as long as
the query did, and lets the database serve others. Raised, reading the cloud takes longer; lowered,
Nova's own requests wait longer. Chosen as the time of a query for some hundred instances."""


class ReadingPace:
    """The pauses between the steps of a reading of the cloud, each as long as the step before.

    Nova's databases and placement also serve the RPCs of nova-conductor, often on the same machine.
    The pauses leave half of the time to these RPCs. A large reading would take too long in this
    way, so the total time of pauses is limited.

    :param rest_time: maximum seconds of all pauses of one reading
    :param sleep: function that waits for some seconds
    """

    def __init__(self, rest_time: float, sleep: Callable[[float], None] = time.sleep,
                 monotonic: Callable[[], float] = time.monotonic):
        self._rest_time = self._left = rest_time
        self._sleep, self._monotonic = sleep, monotonic

    def begin(self):
        """Begin another reading, whose pauses may again last ``rest_time`` in all."""
        self._left = self._rest_time

    @contextlib.contextmanager
    def step(self):
        """Run a part of a reading, and then pause for as long as the part took, so that a reading
        does not load the database all of the time. Parts may run at the same time in several
        threads.
        """
        begun = self._monotonic()
        yield
        rest = min(self._monotonic() - begun, LONGEST_REST, self._left)
        self._left -= rest
        self._sleep(max(rest, 0))


HURRY = ReadingPace(0)
"""The pace of a process that serves one caller, who waits for the result."""
