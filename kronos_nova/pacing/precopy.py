"""The duration of a live migration: pre-copy as a geometric series of rounds.

The first round copies the memory that is in use while the guest goes on. Each later one copies what
was written meanwhile, and when that fits into the time for which the guest may be stopped, it is
stopped and the rest is copied (Clark et al., NSDI 2005). With a guest that writes at a constant
rate, each round is *r* = dirty rate / bandwidth of the one before it (Akoush et al., MASCOTS 2010).
"""

import dataclasses
import math

DOWNTIME = 0.5
"""Seconds for which a guest may be stopped. Fixed by the default of Nova's
``live_migration_downtime``."""

MOST_ROUNDS = 1000
"""Maximum number of copying rounds that are computed. Fixed: more than any migration makes, so that
the computation ends for a guest that writes nearly as fast as it is copied."""


@dataclasses.dataclass(frozen=True, slots=True)
class MigrationForecast:
    """The expected course of one live migration.

    seconds : from the request to the end; where it does not converge, until as much was copied as
        there is twice over, and then the guest stops
    downtime : seconds for which the guest is stopped
    rounds : how many are copied before that
    converges : whether what is left ever fits into the downtime that is allowed
    """

    seconds: float
    downtime: float
    rounds: int
    converges: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The copy of an instance.

    memory_mb : MiB of memory in use
    disk_mb : MiB of local disk, copied before the memory
    dirty_mb_s : MiB a second that the guest writes
    fixed : seconds that it takes however little there is to copy
    factor : by what the time differs from the model, as far as is known
    downtime : seconds for which the guest may be stopped
    """

    memory_mb: float
    disk_mb: float = 0.0
    dirty_mb_s: float = 0.0
    fixed: float = 0.0
    factor: float = 1.0
    downtime: float = DOWNTIME

    def forecast(self, bandwidth: float) -> MigrationForecast:
        """Compute the expected course.

        With *M* memory, *b* bandwidth, *d* dirty rate, *D* downtime and *r* = *d*/*b* there are the
        fewest rounds *n* for which *M* *r*\\ :sup:`n` ≤ *b* *D*, and the time of these and of the
        last copy is *M*/*b* · (1 − *r*\\ :sup:`n+1`) / (1 − *r*).

        :param bandwidth: MiB a second, more than 0
        """
        whole, ratio = self.memory_mb / bandwidth, self.dirty_mb_s / bandwidth
        rounds = _rounds(whole, ratio, self.downtime)
        if rounds is None:
            copying, stopped, rounds = 2 * whole, whole, 1
        else:
            stopped = whole * ratio ** rounds
            copying = stopped + whole * (
                rounds if ratio == 1 else (1 - ratio ** rounds) / (1 - ratio))
        seconds = self.fixed + self.disk_mb / bandwidth + copying
        return MigrationForecast(self.factor * seconds, stopped, rounds,
                                 converges=stopped <= self.downtime * (1 + 1e-9))

    def seconds(self, bandwidth: float) -> float:
        return self.forecast(bandwidth).seconds


def _rounds(whole: float, ratio: float, downtime: float) -> int | None:
    """Return how many rounds there are before the last copy; None where it never comes.

    :param whole: seconds that copying all memory once takes
    """
    if whole <= downtime:
        return 0
    if whole * ratio <= downtime:
        return 1
    if ratio >= 1:
        return None
    return min(math.ceil(math.log(downtime / whole) / math.log(ratio) - 1e-9), MOST_ROUNDS)
