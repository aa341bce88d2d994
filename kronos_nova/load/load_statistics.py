"""Running statistics of each instance's load, and its likely load in the next half hour.

Four statistics are stored for each instance: the mean ``μ`` and the variance ``σ²`` of its load
``x`` over about a day, its mean ``q`` over about a quarter of an hour, and the covariance ``c`` of
``x`` with ``q`` at the previous sample. Older samples have less weight in each statistic.

Let ``w(k)`` be the weight of the k-th sample before the present one in the mean ``q``, and ``γ(k)``
the autocovariance of the load, the covariance of two loads that are k samples apart. Then
``c = Σ w(k) γ(k)``. A stationary load has the same ``γ(k)`` into the future as into the past. So
``c`` is also the covariance of the present load with the mean of the future load, if this mean has
the weights ``w(k)``. Therefore ``β = c / σ²`` is the slope of the regression of the future load on
the present load, and

    E = μ + β (x - μ)

is the best linear prediction. A load that changes quickly has ``β`` near 0 and is expected to
return to its mean. A load whose changes last has ``β`` near 1 and is expected to keep its present
value. For an instance known for a short time, ``β`` is shifted towards :data:`AT_FIRST`.
"""

import dataclasses

import numpy as np

from kronos_nova.units import DAY

SOON = 900.0
"""Time constant in seconds of the short-term mean of an instance's load. The weight of a sample of
this age has fallen to 1/e, about a third. Raised, a new load is noticed later; lowered, noise
counts as a new load. Chosen among 5, 10, 15 and 30 minutes: 15 minutes is the best value for two
sets of loads together, a simulated week and days that were recorded on PlanetLab (a network of
research servers)."""
AT_FIRST = 0.5
"""Share (0 to 1) of a change of load that is expected to last, for an instance that has been known
for a short time. The change is the difference between the present load and the mean load of the
instance. With 1, new instances are expected to keep their present load; with 0, new instances are
expected to return to their mean load soon. Later the share is learnt from samples. Raised, plans
react more to the present load of new instances; lowered, plans react less. Chosen halfway between 0
and 1; not measured."""
AS_GOOD_AS = 3 * 3600.0
"""Seconds of samples after which a learnt share and an assumed share have equal weight. Both are
estimates of the share of a change of load that lasts, from which the load of an instance is
predicted. One share is learnt from the samples of the instance; the other is the constant
:data:`AT_FIRST`. With fewer samples, the assumed share has more weight. Raised, the learnt share
gets its weight later; lowered, a few samples decide. Not measured."""
FORGOTTEN = 6 * 3600.0
"""Seconds without samples after which the statistics of all instances' loads are discarded. Raised,
old loads count as present loads after an outage of Prometheus; lowered, a short outage already
discards the statistics. Not measured."""
LEAST_VARIANCE = 1e-10
"""Variance of an instance's load, as the square of a fraction of a host, below which the load
counts as constant. Raised, the loads of more instances count as constant; lowered, rounding errors
of samples count as changes of load. Fixed as the square of 0.00001 of a host."""
FIGURES = 5
"""Number of columns in the array of an instance's load statistics. Fixed by :class:`LoadStats`,
which describes each column."""
VARIANCE = 2
"""Index (no unit) of the variance of the load among the columns of an instance's load statistics.
Fixed by the order of the columns in :class:`LoadStats`."""


@dataclasses.dataclass(frozen=True, slots=True)
class LoadStats:
    """Statistics of the loads of some instances in one policy, in the unit of the policy's profile
    (load per instance).

    at : Unix seconds of the last sample
    vms : uuids of the instances, in any order
    figures : float64 (V, 5), one row for each instance. The columns are: seconds for which the
        instance is known; mean of its load; variance of its load; short-term mean of its load, over
        about a quarter of an hour; and a covariance. The covariance is that of each load with the
        short-term mean at the previous sample
    unit : amount of the resource (CPUs, or bytes of memory) that a load of 1 stands for, such as
        the size of the largest host of an aggregate; NaN if not known
    """

    at: float = -np.inf
    vms: tuple[str, ...] = ()
    figures: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, FIGURES)))
    unit: float = np.nan

    def after(self, now: float, vms: tuple[str, ...], loads: np.ndarray,
              unit: float = np.nan, keeps_others: bool = False) -> 'LoadStats':
        """Return the statistics updated with one further sample of each instance. The statistics
        are converted to the unit of the samples, if both units are known.

        :param now: Unix seconds of the samples
        :param vms: all present instances; all other instances are forgotten by default
        :param loads: float64 (V,), the samples; NaN if not measured. The statistics of an instance
            with NaN do not change
        :param unit: as ``unit`` of this class, for the samples
        :param keeps_others: True to keep the statistics of all other instances, because the hosts
            of some instances could not be read
        """
        elapsed = now - self.at
        figures = self.figures * _conversion(self.unit, unit)
        known = dict(zip(self.vms, figures, strict=True)) if self.is_recent(now) else {}
        elapsed = max(elapsed, 0.0)    # another controller's clock may be behind
        others = sorted(known.keys() - {*vms}) if keeps_others else ()
        vms, loads = (*vms, *others), np.append(loads, np.full(len(others), np.nan))
        figures = np.array([known.get(vm, _UNKNOWN) for vm in vms]).reshape(-1, FIGURES)
        measured = ~np.isnan(loads)
        figures[measured] = _updated(figures[measured], loads[measured], elapsed)
        kept = figures[:, 0] > 0
        return LoadStats(now, tuple(np.array(vms, dtype=object)[kept]), figures[kept], unit)

    def is_recent(self, now: float) -> bool:
        """Return False if the last sample is so old that the statistics are discarded; True
        otherwise.

        :param now: Unix seconds
        """
        return abs(now - self.at) <= FORGOTTEN

    def known_seconds(self, vms: tuple[str, ...]) -> np.ndarray:
        """Return float64 (V,): the seconds for which each instance has been known, at most a day; 0
        for an unknown instance."""
        return self._slopes(vms, 1.0)[0]

    def variances(self, vms: tuple[str, ...]) -> np.ndarray:
        """Return float64 (V,): the variance of each instance's load; 0 for an unknown instance."""
        known = dict(zip(self.vms, self.figures[:, VARIANCE], strict=True))
        return np.array([known.get(vm, 0.0) for vm in vms], dtype=float)

    def expected(self, vms: tuple[str, ...], loads: np.ndarray, far: float = 1.0) -> np.ndarray:
        """Return float64 (V,): the expected mean load of each instance in the near future. For an
        unknown instance, the present load is returned.

        :param loads: float64 (V,), present loads; NaN if not measured. The result is NaN for these
            instances
        :param far: distance into the future, as a multiple of about half an hour; 0 is now
        """
        seconds, mean, slope = self._slopes(vms, far)
        return np.where(seconds > 0, mean + slope * (loads - mean), loads)

    def noise(self, vms: tuple[str, ...], far: float = 1.0) -> np.ndarray:
        """Return float64 (V,): how much of the variance of each load is noise, which is not likely
        to last; 0 for an unknown instance.

        A load is assumed to be the sum of two parts: one that lasts, and noise. The variance of the
        part that lasts is the covariance of the load with the future load. The rest of the variance
        is noise.

        :param far: distance into the future, as a multiple of about half an hour; 0 is now
        """
        seconds, _mean, slope = self._slopes(vms, far)
        return np.where(seconds > 0, (1.0 - slope) * self.variances(vms), 0.0)

    def _slopes(self, vms: tuple[str, ...],
                far: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays, float64 (V,) each: the seconds for which an instance has been known,
        its mean load, and a fraction. The fraction is the part of the present deviation from the
        mean load that is expected to remain at the time ``far``.

        :param far: distance into the future, as a multiple of about half an hour; 0 is now
        """
        known = dict(zip(self.vms, self.figures, strict=True))
        figures = np.array([known.get(vm, _UNKNOWN) for vm in vms]).reshape(-1, FIGURES)
        seconds, mean, variance, _quarter_hour, covariance = figures.T
        slope = np.divide(covariance, variance, out=np.ones(len(vms)),
                          where=variance > LEAST_VARIANCE).clip(0.0, 1.0)
        slope = (slope * seconds + AT_FIRST * AS_GOOD_AS) / (seconds + AS_GOOD_AS)
        return seconds, mean, slope ** far


_UNKNOWN = np.zeros(FIGURES)


def _conversion(before: float, after: float) -> np.ndarray:
    """Return float64 (5,): the factors that convert the statistics of loads to another unit; 1 if
    one of the units is not known.

    :param before, after: the units, as ``unit`` of :class:`LoadStats`
    """
    factor = before / after if before > 0 and after > 0 else 1.0
    return np.array([1.0, factor, factor ** 2, factor, factor ** 2])


def _updated(figures: np.ndarray, loads: np.ndarray, elapsed: float) -> np.ndarray:
    """Return the statistics updated with one sample of each instance. The statistics of new
    instances are initialised.

    :param figures: float64 (instances, 5), as in :class:`LoadStats`
    :param loads: float64, the sample of each instance
    :param elapsed: seconds since the last sample
    """
    seconds, mean, variance, quarter_hour, covariance = figures.T
    is_new = seconds <= 0
    passed = np.where(is_new, 1.0, elapsed)
    seconds = np.minimum(seconds + passed, DAY)
    part = np.minimum(passed / seconds, 1.0)    # for the first day, all samples weigh the same
    off = loads - mean
    # Weighted as West (CACM 1979) does, so that no sums of squares are subtracted.
    covariance = (1 - part) * (covariance + part * off * (quarter_hour - mean))
    variance = (1 - part) * (variance + part * off ** 2)
    mean = mean + part * off
    quarter_hour = quarter_hour + (1 - np.exp(-passed / SOON)) * (loads - quarter_hour)
    zero = np.zeros(len(loads))
    return np.where(is_new[:, None],
                    np.column_stack([np.ones(len(loads)), loads, zero, loads, zero]),
                    np.column_stack([seconds, mean, variance, quarter_hour, covariance]))
