"""Recognition of processes that have shown no sign of life for a while.

A process that lives writes a time into the control database with every tick. An observer does not
compare this time with any clock. The observer measures, by its own monotonic clock, for how long
the written time has not changed. So the clocks of hosts may differ by any amount.
"""

import datetime
from collections.abc import Callable
from collections.abc import Mapping

Sign = datetime.datetime | None


class Liveness:
    """The signs of life that one observer has seen of other processes. A new observer has seen
    none.

    :param monotonic: callable that returns the seconds of a monotonic clock
    """

    def __init__(self, monotonic: Callable[[], float]):
        self._monotonic = monotonic
        self._seen: dict[str, tuple[Sign, float]] = {}

    def silent(self, signs: Mapping[str, Sign], seconds: float) -> dict[str, Sign]:
        """Return the processes whose sign of life has not changed for ``seconds``, as {process:
        sign}.

        :param signs: {process: its last sign of life; None if the process has no record}
        """
        now = self._monotonic()
        self._seen = {name: self._since(name, sign, now) for name, sign in signs.items()}
        return {name: sign for name, (sign, since) in self._seen.items()
                if now - since >= seconds}

    def _since(self, name: str, sign: Sign, now: float) -> tuple[Sign, float]:
        known = self._seen.get(name)
        return known if known and known[0] == sign else (sign, now)
