"""The duration of a live migration that copies memory in rounds (pre-copy).

The first round copies the memory in use while the guest runs. Each later round copies the memory
that the guest wrote during the round before. Once the remaining memory can be copied within the
allowed downtime, the guest is stopped and the remaining memory is copied (Clark et al., NSDI 2005).
If the guest writes at a constant rate, each round takes *r* times as long as the round before. Here
*r* is the write rate divided by the bandwidth (Akoush et al., MASCOTS 2010). So the duration is the
sum of a geometric series.
"""

import dataclasses
import math

DOWNTIME = 0.5
"""Seconds for which a guest may be stopped at the end of a live migration. Fixed by the default of
Nova's option ``live_migration_downtime``."""

MOST_ROUNDS = 1000
"""Maximum number of rounds of copying in the prediction of a live migration. Each round copies the
memory that the guest wrote during the round before. A guest that writes nearly as fast as its
memory is copied would need more rounds. Raised, nothing changes; lowered, the durations predicted
for such a guest are too short. Fixed: more rounds than any migration makes."""


@dataclasses.dataclass(frozen=True, slots=True)
class MigrationForecast:
    """The expected course of one live migration.

    seconds : duration from the request to the end. For a migration that does not converge, it is
        assumed that all memory is copied twice: once while the guest runs, and once while the guest
        is stopped
    downtime : seconds for which the guest is stopped
    rounds : number of rounds of copying before the guest is stopped
    converges : True if the remaining memory can be copied within the allowed downtime; False
        otherwise
    """

    seconds: float
    downtime: float
    rounds: int
    converges: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The values from which the duration of an instance's live migration is predicted.

    memory_mb : MiB of memory in use
    disk_mb : MiB of local disk, copied before the memory
    dirty_mb_s : MiB of memory that the guest writes per second
    fixed : seconds before and after copying
    factor : ratio of actual to predicted durations, learnt from past moves; predicted durations are
        multiplied by this ratio
    downtime : seconds for which the guest may be stopped
    """

    memory_mb: float
    disk_mb: float = 0.0
    dirty_mb_s: float = 0.0
    fixed: float = 0.0
    factor: float = 1.0
    downtime: float = DOWNTIME

    def forecast(self, bandwidth: float) -> MigrationForecast:
        """Return the expected course of the migration.

        Memory is copied in rounds. Each round copies the memory that the guest has written in the
        round before. Let ``M`` be the memory in use, ``b`` the bandwidth, ``D`` the allowed
        downtime, and ``r`` the write rate divided by the bandwidth. The number of rounds is the
        smallest ``n`` for which the rest can be copied within the downtime: ``M * r**n <= b * D``.
        If ``r`` is not 1, the rounds and the copy of the rest take ``M / b * (1 - r**(n + 1)) / (1
        - r)`` seconds.

        :param bandwidth: MiB per second, more than 0
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
    """Return the number of rounds of copying before the guest is stopped; None if the migration
    does not converge.

    :param whole: seconds for copying all memory once
    :param ratio: write rate divided by bandwidth
    :param downtime: seconds for which the guest may be stopped
    """
    if whole <= downtime:
        return 0
    if whole * ratio <= downtime:
        return 1
    if ratio >= 1:
        return None
    return min(math.ceil(math.log(downtime / whole) / math.log(ratio) - 1e-9), MOST_ROUNDS)
