"""Predicted durations of moves, learnt from past moves.

Two values are the same for all moves: the seconds before and after copying, and the bandwidth. Both
values are fitted to past moves by least squares of the relative errors. The fit starts from assumed
values, which count less than one past move. Outliers have less weight, as in Huber's estimator. The
rate at which a guest writes memory is estimated from the bytes that were copied in addition to its
memory.

Three factors correct the predicted durations. The factors are learnt from past moves in this order:
a factor for the memory size, a factor for the pair of hosts, and a factor for the instance. A
factor that is learnt from *n* past moves corrects the fraction *n* / (*n* + 2) of their mean
deviation. So a few moves change a prediction little (shrinkage, as in empirical Bayes).
"""

import bisect
import collections
import dataclasses
import math
import statistics
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.pacing.precopy import DOWNTIME
from kronos_nova.pacing.precopy import Copy


def sharing(tries: Iterable[Mapping]) -> list[float]:
    """Return, for each move, the mean number of moves that used the same network link at the same
    time, including the move itself. A move uses two links: the link of its source and that of its
    destination. The number for the busier link is returned.

    :param tries: moves, each with the keys ``source`` and ``destination``, and ``begun`` and
        ``ended`` in seconds
    """
    tries = list(tries)
    spans = collections.defaultdict(list)
    for each in tries:
        for side in ('source', 'destination'):
            spans[side, each[side]].append((each['begun'], max(each['begun'], each['ended'])))
    histories = {link: _ConcurrencyHistory(found) for link, found in spans.items()}
    return [max(1.0, *(histories[side, each[side]].during(each['begun'], each['ended'])
                       for side in ('source', 'destination'))) for each in tries]


class _ConcurrencyHistory:
    """The number of migrations in progress on one link at each time."""

    def __init__(self, spans: Sequence[tuple[float, float]]):
        """:param spans: (begin, end) of each migration, in seconds; at least one migration"""
        changes = sorted([(begun, 1) for begun, _ended in spans]
                         + [(ended, -1) for _begun, ended in spans])
        self._times: list[float] = []
        self._counts: list[int] = []
        self._sums: list[float] = []
        count, total, last = 0, 0.0, changes[0][0]
        for at, change in changes:
            total += count * (at - last)
            count, last = count + change, at
            self._times.append(at)
            self._counts.append(count)
            self._sums.append(total)

    def during(self, begun: float, ended: float) -> float:
        """Return the mean number of migrations in progress from ``begun`` to ``ended``; 0 if
        ``ended`` is not later than ``begun``."""
        if ended <= begun:
            return 0.0
        return (self._until(ended) - self._until(begun)) / (ended - begun)

    def _until(self, at: float) -> float:
        last = bisect.bisect_right(self._times, at) - 1
        return self._sums[last] + self._counts[last] * (at - self._times[last])


FIXED = 10.0
"""Seconds that a live migration takes in addition to copying memory. The value is assumed if no
past migrations are known. The seconds are for checks, network ports and cleaning up. Raised, the
first predicted durations are longer; lowered, the first predicted durations are shorter. Not
measured."""
BANDWIDTH = 1000.0
"""Bandwidth of a live migration in MiB per second, assumed if no past migrations are known. Raised,
the first predicted durations are shorter; lowered, the first predicted durations are longer. Chosen
as most of the bandwidth of a link of 10 Gbit/s."""
LEAST_FIXED = 0.5
"""Lower bound of the seconds that a live migration takes in addition to copying memory. The bound
applies to the value that is fitted to past migrations, which may be near 0 or negative. Raised,
predicted durations are too long in fast clouds; lowered, predicted durations are too short where
the fitted value is too small. Not measured."""
LEAST_BANDWIDTH = 1.0
"""Lower bound of the bandwidth, in MiB per second, that is computed from past migrations. Raised,
the predicted durations of migrations over slow links are too short; lowered, one migration that
hung makes all predicted durations extremely long. Not measured."""
SPREAD = 0.2
"""Relative error (no unit) that is assumed for the measured duration of a past migration. The
smaller this error is, the more the past migration corrects the initial values :data:`FIXED` and
:data:`BANDWIDTH`. The relative error of the initial values is assumed to be 1. Raised, more past
migrations are needed for the correction; lowered, single migrations decide the predictions.
Measured by ``bench makespan``: the median error of predicted durations is 10 to 18 %."""
SURE = 0.1
"""Relative error (no unit) that is assumed for a bandwidth that the operator has configured.
Durations are predicted from this bandwidth. The larger the assumed error is, the more each past
migration corrects the bandwidth. Raised, fewer past migrations are needed for a correction;
lowered, more past migrations are needed. Not measured."""
HUBER = 1.5
"""Ratio above which a past migration counts as an outlier: the relative error of its predicted
duration, divided by the assumed relative error :data:`SPREAD`. Outliers have less weight when
predictions are fitted to past migrations. Raised, fewer migrations count as outliers; lowered,
ordinary migrations count as outliers. Chosen as the usual constant of Huber's estimator."""
ROUNDS = 10
"""Number of iterations in which predictions are fitted to past migrations. Raised, nothing changes
once the fit has converged; lowered, the fit may not converge. Not measured."""
SHRINKAGE = 2.0
"""Number of past migrations after which a prediction is corrected by half of their mean deviation.
The deviation of a migration is the logarithm of the ratio of its actual to its predicted duration.
A prediction is corrected by the past migrations of the same instance, of the same pair of hosts,
and of instances with the same memory size. *n* past migrations give a correction of *n* / (*n* +
``SHRINKAGE``) times their mean deviation. Raised, slow instances and links are learnt later;
lowered, deviations by chance are learnt. Not measured."""
MOST = 8.0
"""Largest ratio of the measured to the predicted duration of a past migration. A larger ratio
counts as this value, and a ratio below 1 / ``MOST`` counts as 1 / ``MOST``. The ratios correct
later predictions. Raised, one migration that hung makes a pair of hosts seem slow; lowered, the
predicted durations of migrations between slow hosts are too short. Not measured."""

Key = float | str | tuple[str, str]
"""Key of a learnt factor: MiB of memory, the uuid of an instance, or (source, destination)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Values about migrations that are assumed until past moves show other values.

    bandwidth : configured MiB per second of one migration; None if not configured
    fixed : seconds before and after copying
    downtime : seconds for which a guest may be stopped
    """

    bandwidth: float | None = None
    fixed: float = FIXED
    downtime: float = DOWNTIME


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """The data of an instance from which the duration of its migration is predicted. Past moves of
    the instance are used in addition. A value that is not known is None.

    memory_mb : MiB of memory of its flavor
    disk_mb : MiB of local disk to be copied
    used_mb : MiB of memory in use
    dirty_mb_s : MiB of memory that the guest writes per second
    """

    uuid: str
    memory_mb: float
    disk_mb: float = 0.0
    used_mb: float | None = None
    dirty_mb_s: float | None = None


class MigrationHistory:
    """A predictor of the durations of moves. The constructor learns from past moves.

    fixed : learnt seconds of a move before and after copying
    bandwidth : learnt MiB per second
    """

    def __init__(self, tries: Iterable[PastTry] = (), assumed: Assumed = Assumed()):
        self._assumed = assumed
        tries = [past for past in tries if past.memory_mb]
        # A record of an older release may have negative seconds, after a clock was set back.
        timed = [(past, past.seconds) for past in tries if past.seconds and past.seconds > 0]
        self.fixed, self.bandwidth = _fitted(timed, assumed)
        # Failed moves are included, because a migration that did not end is the best evidence of
        # how much its guest writes.
        self._written = self._learn_writing(tries)
        self._usual = tuple(statistics.median(each[n] for each in self._written.values())
                            if self._written else default for n, default in ((0, 1.0), (1, 0.0)))
        self._factors = self._learn_factors(timed)

    def copy(self, guest: Guest, source: str, destination: str) -> Copy:
        """Return a Copy: the values from which the duration of an instance's live migration between
        two hosts is predicted."""
        used, written = self._written.get(guest.uuid, self._usual)
        return Copy(
            memory_mb=used * guest.memory_mb if guest.used_mb is None else guest.used_mb,
            dirty_mb_s=written if guest.dirty_mb_s is None else guest.dirty_mb_s,
            disk_mb=guest.disk_mb, fixed=self.fixed, downtime=self._assumed.downtime,
            factor=math.exp(sum(self._factors.get(key, 0.0) for key in _keys(
                guest.uuid, guest.memory_mb, source, destination))))

    def seconds(self, guest: Guest, source: str = '', destination: str = '') -> float:
        """Return the expected seconds of a move while no other move is in progress."""
        return self.copy(guest, source, destination).seconds(self.bandwidth)

    def slowness(self, source: str, destination: str) -> float:
        """Return the factor, learnt from past moves, by which moves between two hosts take longer
        than other moves. The factor is 1 if no past moves between these hosts are known."""
        return math.exp(self._factors.get((source, destination), 0.0))

    def endless(self, guests: Iterable[Guest]) -> frozenset[str]:
        """Return the uuids of the instances whose live migration would not converge. Instances
        whose write rate is not known are left out."""
        return frozenset(
            guest.uuid for guest in guests
            if (guest.dirty_mb_s is not None or guest.uuid in self._written)
            and not self.copy(guest, '', '').forecast(self.bandwidth).converges)

    def _learn_writing(self, tries: Iterable[PastTry]) -> dict[str, tuple[float, float]]:
        """Return {uuid of an instance: (fraction of its memory that the first round of copying
        copies, write rate in MiB per second)}. Instances for which the hypervisor did not report
        the copied memory are left out."""
        found = collections.defaultdict(list)
        for past in tries:
            lasted = past.seconds or past.lasted
            if past.processed_mb and lasted:
                again = max(0.0, past.processed_mb - past.memory_mb)
                copying = max(lasted - self.fixed, 1.0)
                found[past.instance_uuid].append(
                    (min(1.0, past.processed_mb / past.memory_mb), again / copying))
        return {uuid: (statistics.mean(part for part, _ in rows),
                       statistics.mean(written for _, written in rows))
                for uuid, rows in found.items()}

    def _learn_factors(self, timed: Sequence[tuple[PastTry, float]]) -> dict[Key, float]:
        """Compute, from past moves, factors that correct the predicted durations of moves. Return
        {key: natural logarithm of the factor}. There is a key for each memory size, each pair of
        hosts and each instance. The predicted duration of a move is multiplied by the factors of
        the memory size, hosts and instance of the move.

        :param timed: moves with their durations in seconds
        """
        factors: dict[Key, float] = {}
        errors = []
        for past, seconds in timed:
            guest = Guest(uuid=past.instance_uuid, memory_mb=past.memory_mb)
            used, written = self._written.get(past.instance_uuid, self._usual)
            expected = Copy(memory_mb=used * guest.memory_mb, dirty_mb_s=written, fixed=self.fixed,
                            downtime=self._assumed.downtime).seconds(
                self.bandwidth / max(past.sharing, 1.0))
            errors.append(float(np.clip(math.log(seconds / expected),
                                        -math.log(MOST), math.log(MOST))))
        keys = [_keys(past.instance_uuid, past.memory_mb, past.source, past.destination)
                for past, _seconds in timed]
        for level in range(len(keys[0]) if keys else 0):
            found = collections.defaultdict(list)
            for each, error in zip(keys, errors, strict=True):
                found[each[level]].append(error)
            shrunk = {key: sum(some) / (len(some) + SHRINKAGE) for key, some in found.items()}
            factors |= shrunk
            errors = [error - shrunk[each[level]]
                      for each, error in zip(keys, errors, strict=True)]
        return factors


def _keys(uuid: str, memory_mb: float, source: str,
          destination: str) -> tuple[float, tuple[str, str], str]:
    return memory_mb, (source, destination), uuid


def _fitted(timed: Sequence[tuple[PastTry, float]], assumed: Assumed) -> tuple[float, float]:
    """Return (seconds before and after copying, MiB per second): the two values by which the
    durations of all moves are predicted best.

    :param timed: moves with their durations in seconds
    """
    start = np.array([assumed.fixed, 1.0 / (assumed.bandwidth or BANDWIDTH)])
    if not timed:
        return assumed.fixed, assumed.bandwidth or BANDWIDTH
    taken = np.array([seconds for _past, seconds in timed], dtype=float)
    copied = np.array([past.sharing * (past.processed_mb or past.memory_mb)
                       for past, _seconds in timed])
    rows = np.column_stack([np.ones(len(taken)), copied]) / taken[:, None] / SPREAD
    wanted = np.full(len(taken), 1.0 / SPREAD)
    known = np.diag(1.0 / start / (1.0, 1.0 if assumed.bandwidth is None else SURE))
    weights = np.ones(len(taken))
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(np.vstack([rows * root[:, None], known]),
                                np.concatenate([wanted * root, np.diag(known) * start]),
                                rcond=None)[0]
        away = np.abs(rows @ found - wanted)
        weights = np.minimum(1.0, HUBER / np.maximum(away, HUBER))
    return (max(float(found[0]), LEAST_FIXED),
            1.0 / float(np.clip(found[1], start[1] / 1e3, 1.0 / LEAST_BANDWIDTH)))
