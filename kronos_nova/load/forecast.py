"""Forecasts of loads for the next hours, from the same hours of yesterday and of last week.

The value a season (a day or a week) ago is a good forecast of a load with a daily or weekly
pattern. This is the *seasonal naive* forecast, with which all other forecasts are compared (Hyndman
& Athanasopoulos, Forecasting: Principles and Practice, 3rd ed., 5.2). It is not known in advance
whether a load follows a daily pattern, a weekly pattern or none. So five simple forecasts of each
load are made:

* the present value
* the value of yesterday
* the value of a week ago
* the value of yesterday plus the growth of the load since the present hour of yesterday
* the value of a week ago plus the growth of the load since the present hour of that day

The forecast is the weighted mean of the five. The weights are inverse to the mean square of their
errors during the last day (Bates & Granger, The Combination of Forecasts, Operational Research
Quarterly 20, 1969). Each lead (hours ahead) has its own weights. For the next hour, the present
value counts most; for later hours, the values a season ago. The M-competitions found that
combinations of simple forecasts are hard to beat (Makridakis et al., International Journal of
Forecasting 36, 2020).

The quality of a forecast is measured for the last day. For each hour of this day, the forecast is
computed with weights from other hours, and is compared with the actual load. All loads are means of
whole hours.
"""

import dataclasses

import numpy as np

ORIGINS = 24
"""Number of past hours (the last day) at which a forecast is computed, to compare the forecast with
the actual load. The origin of a forecast is the hour at which the forecast is made. Raised, a
change in the daily course of loads is noticed later; lowered, some hours of the day are never
compared. Fixed by the hours of a day."""
DAYS = 2 * ORIGINS + 1
"""Number of past hours whose mean loads are read for forecasts from the previous day: the last
complete hour, whose load counts as the present load; the 24 hours of :data:`ORIGINS` before it; and
the 24 hours before these. Fixed by :data:`ORIGINS`."""
WEEK_AGO = 7 * 24 + ORIGINS + 1
"""Number of hours between the current hour and the earliest load that a forecast needs. A forecast
uses the load of one week before the hour at which the forecast is made. Forecasts are made at the
last complete hour, and also at each of the 24 hours before (:data:`ORIGINS`), to compare these
forecasts with the actual loads. The earliest of these hours is 25 hours ago, and a week has 168
hours; the number is the sum. Fixed by :data:`ORIGINS` and the length of a week."""
LEAST_KNOWN = 3
"""Minimum number of past hours for which the error of a simple forecast has to be known before the
forecast is used. A simple forecast is a rule such as "as yesterday". Its error is the difference
between the forecast and the actual load. Several simple forecasts of a load are combined, the
better ones with larger weights. Raised, forecasts are available later after a start; lowered, a
simple forecast gets a large weight if it was right by chance for one hour. Not measured."""
LEAST_ORIGINS = 12
"""Minimum number of hours of the last day for which the error of a forecast has to be known before
the forecast is used. The error is the difference between the forecast and the actual load. Raised,
forecasts are used later after a start; lowered, a forecast may be used at night although its errors
are known only for hours of the daytime. Chosen as half a day; not measured."""
LEAST_ERROR = 1e-6
"""Square of a small error of a forecast, as a fraction of a host. Differences between forecasts
with smaller errors do not matter. The value has two uses:

* The value is added to the mean square error of each simple forecast, such as "as yesterday".
  Several simple forecasts of a load are combined, with weights inverse to these sums.
* A host gets no safety margin if the squared errors of its forecasts in the last day add up to at
  most this value.

Raised, good and moderate simple forecasts get nearly the same weight; lowered, a simple forecast
that was exact for some hours outweighs all others. Not measured."""
WORTH = 0.9
"""Ratio of two errors below which a forecast is used. The first is the error of the forecast; the
second is the error of the assumption that loads do not change. Raised, forecasts are used that may
be better only by chance; lowered, useful forecasts are not used. Not measured separately; ``bench
days --known`` measures the effect of forecasts."""
FAR_OFF = 3.0
"""Largest accepted ratio between the summed loads of a past hour and the present summed loads. The
larger sum is divided by the smaller sum. The query of past loads is assumed to have another unit in
two cases: the ratio is exceeded in every hour of the last day, and either the past sum is always
the larger one or the present sum is. Raised, a query in another unit is accepted; lowered, a cloud
that has just become busy causes an error. Chosen below the ratios that wrong units cause: 100 for
percent, and the number of cores of a host for cores."""
_ROWS = 4096
"""Number of loads whose forecasts are computed and compared with the actual loads in one step.
Raised, a step takes more memory; lowered, more steps are needed, which take more time. Chosen
because a step takes some tens of MiB."""


def weeks(horizon: int) -> int:
    """Return the number of hours for which loads of the previous week are read for forecasts. The
    first of these hours is :data:`WEEK_AGO` hours before the current hour.

    :param horizon: number of hours that are forecast
    """
    return ORIGINS + 1 + horizon


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedLoads:
    """The present hosts of N loads. Forecasts are made for these loads.

    host : intp (N,), the present host of each load
    scale : float64 (N,), the score that one unit of the load adds to its host
    hosts : number of hosts
    """

    host: np.ndarray
    scale: np.ndarray
    hosts: int

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return float64 (hosts, ...): the score of each host, which is the sum of the loads on the
        host. NaN counts as 0.

        :param values: (N, ...), the loads
        """
        values = np.nan_to_num(values) * self.scale.reshape(-1, *[1] * (values.ndim - 1))
        found = np.zeros((self.hosts, *values.shape[1:]))
        np.add.at(found, self.host, values)
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """The quality of a forecast during the last day, as mean absolute errors of hosts' scores. The
    errors are NaN if too little of the day is known.

    error : error of the forecast
    present_error : error if the present load is used as the forecast
    """

    error: float
    present_error: float

    @property
    def is_known(self) -> bool:
        return not np.isnan(self.error)

    @property
    def is_worth_it(self) -> bool:
        return self.error < WORTH * self.present_error


UNKNOWN = Judgement(np.nan, np.nan)


@dataclasses.dataclass(frozen=True, slots=True)
class Seasonal:
    """The forecast of N loads for the current hour and the next hours. In the shapes, "hours" is
    the number of hours that are forecast. The errors are those of earlier forecasts, which were
    made in each of the 24 hours of the last day.

    ahead : float64 (N, hours), the forecasts; NaN if only the present load is known
    errors : float32 (N, hours, 24), forecast minus actual load; NaN if not known
    present_errors : float32 (N, hours, 24), the same errors for a forecast that assumes that the
        load does not change: the load at the time of the forecast is the forecast for all hours
    """

    ahead: np.ndarray
    errors: np.ndarray
    present_errors: np.ndarray

    def select(self, rows: np.ndarray) -> 'Seasonal':
        """Return the forecast of the loads ``rows``, in this order.

        :param rows: intp (n,), positions of the loads; -1 stands for an unknown load
        """
        picked = [np.take(each, rows, axis=0) for each in (
            self.ahead, self.errors, self.present_errors)] if len(self.ahead) else [
            np.full((len(rows), *each.shape[1:]), np.nan) for each in (
                self.ahead, self.errors, self.present_errors)]
        for each in picked:
            each[rows < 0] = np.nan
        return Seasonal(*picked)

    def with_rows(self, rows: np.ndarray, other: 'Seasonal') -> 'Seasonal':
        """Return the forecast in which that of the loads ``rows`` is replaced.

        :param rows: intp (n,), positions of the loads
        :param other: the forecast of the loads ``rows``, in their order
        """
        made = [each.copy() for each in (self.ahead, self.errors, self.present_errors)]
        for each, replaced in zip(made, (other.ahead, other.errors, other.present_errors),
                                  strict=True):
            each[rows] = replaced
        return Seasonal(*made)

    def judged(self, placed: PlacedLoads) -> Judgement:
        """Return the quality of the forecast of hosts' scores. The score of a host is the sum of
        the loads on the host. All loads count as if they had always been on their present hosts."""
        return _judged(placed.sums(self.errors), placed.sums(self.present_errors),
                       ~np.isnan(self.errors).all(axis=(0, 1)))

    def margins(self, placed: PlacedLoads, quantile: float) -> np.ndarray:
        """Return float64 (N, hours): the safety margin that is added to the forecast of each load.
        The margin of a host is the sum of the margins of its loads. In the fraction ``quantile`` of
        the hours, the load of a host is expected to stay below its forecast plus its margin.

        The margin of a host is a quantile of the amounts by which the host exceeded its forecast in
        the last day. This margin is divided among the loads on the host, in proportion to their
        contributions to the errors of the host (Euler's allocation; Tasche, arXiv:0708.2542). If a
        load moves to another host, its margin moves as well.
        """
        beyond, known = np.nan_to_num(-self.errors), ~np.isnan(self.errors).all(axis=0)
        of_host = placed.sums(beyond)
        wanted = np.stack([
            np.quantile(of_host[:, lead, hours], quantile, axis=1) if hours.any() else
            np.zeros(placed.hosts) for lead, hours in enumerate(known)], axis=1).clip(min=0.0)
        square = (of_host ** 2).sum(axis=2)
        each = np.divide(wanted, square, out=np.zeros_like(square), where=square > LEAST_ERROR)
        return (beyond * of_host[placed.host]).sum(axis=2) * each[placed.host]

    def variances(self) -> np.ndarray:
        """Return float64 (N, hours): the mean square of the errors of each load; 0 if the errors
        are not known."""
        known = ~np.isnan(self.errors)
        return np.divide((np.nan_to_num(self.errors) ** 2).sum(axis=2), known.sum(axis=2),
                         out=np.zeros(self.ahead.shape), where=known.any(axis=2))


def seasonal(days: np.ndarray, week: np.ndarray) -> Seasonal:
    """Return the forecast of loads from their past.

    :param days: float (N, 49), loads of the last 49 hours (:data:`DAYS`), ending with the last
        complete hour; NaN if not known
    :param week: float (N, 25 + hours), loads of the previous week, where "hours" is the number of
        hours to forecast. The first load is from 193 hours (:data:`WEEK_AGO`) before the current
        hour. The last load is from a week before the last forecast hour. NaN if not known
    """
    horizon = week.shape[1] - ORIGINS - 1
    made = Seasonal(np.empty((len(days), horizon)),
                    np.empty((len(days), horizon, ORIGINS), dtype=np.float32),
                    np.empty((len(days), horizon, ORIGINS), dtype=np.float32))
    for begin in range(0, len(days), _ROWS):
        rows = slice(begin, begin + _ROWS)
        for lead in range(horizon):
            made.ahead[rows, lead], made.errors[rows, lead], made.present_errors[rows, lead] = (
                _lead(days[rows], week[rows], lead))
    return made


def _lead(days: np.ndarray, week: np.ndarray,
          lead: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecast the loads of one hour. This hour is ``lead`` hours after the current hour.

    :returns: (forecasts, errors, present errors). The forecasts are float64 (loads,). The errors
        are float64 (loads, 24): one forecast is tested for each hour of the last day, as if it had
        been made in this hour for the hour ``lead`` hours later. The present errors are of the same
        shape: the errors of a forecast that loads do not change
    """
    last = days[:, ORIGINS:]
    yesterday = days[:, 1 + lead:ORIGINS + 2 + lead]
    then = week[:, 1 + lead:ORIGINS + 2 + lead]
    forecasts = np.stack([last, yesterday, yesterday + last - days[:, :ORIGINS + 1],
                          then, then + last - week[:, :ORIGINS + 1]])
    came = np.full((len(days), ORIGINS), np.nan)
    came[:, :ORIGINS - lead] = days[:, ORIGINS + 1 + lead:]
    off = forecasts[..., :ORIGINS] - came
    ahead = _combined(forecasts[..., -1:], _weights(off))[:, 0]
    errors = np.empty(came.shape)
    for half in (0, 1):  # each half is weighted by errors of the other half
        errors[:, half::2] = _combined(forecasts[..., half:ORIGINS:2],
                                       _weights(off[..., 1 - half::2])) - came[:, half::2]
    present = np.where(np.isnan(errors), np.nan, off[0])
    return np.maximum(ahead, 0.0), np.where(np.isnan(present), np.nan, errors), present


def _weights(off: np.ndarray) -> np.ndarray:
    """Return float64 (5, loads): the weights of the five simple forecasts of each load. A weight is
    inverse to the mean square of the forecast's errors.

    :param off: float64 (5, loads, hours), errors of the five simple forecasts
    """
    known = ~np.isnan(off)
    count = known.sum(axis=-1)
    square = (np.where(known, off, 0.0) ** 2).sum(axis=-1) / np.maximum(count, 1)
    return np.where(count >= LEAST_KNOWN, 1.0 / (square + LEAST_ERROR), 0.0)


def _combined(forecasts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return float64 (loads, hours): the weighted mean of the five simple forecasts. Forecasts that
    are NaN are left out. The first simple forecast is the present load. If no other one is known,
    the result is NaN.

    :param forecasts: float64 (5, loads, hours), the five forecasts
    :param weights: float64 (5, loads), weights of the forecasts
    """
    weights = np.where(np.isnan(forecasts), 0.0, weights[..., None])
    total, has_season = weights.sum(axis=0), weights[1:].any(axis=0)
    return np.divide((np.nan_to_num(forecasts) * weights).sum(axis=0), total,
                     out=np.full(total.shape, np.nan), where=has_season)


def is_of_unit(days: np.ndarray, now: np.ndarray) -> bool:
    """Return True if past loads seem to be in the unit of the present loads; False otherwise.

    The sum of the past loads in each hour of the last day is compared with the sum of the present
    loads. The result is False if the past sum is more than :data:`FAR_OFF` times the present sum in
    every hour, or less than the present sum divided by ``FAR_OFF`` in every hour.

    :param days: float (N, 49), as for :func:`seasonal`
    :param now: float64 (N,), the present loads; NaN if not known
    """
    days, now = days[:, -ORIGINS:], now[:, None]
    known = ~(np.isnan(days) | np.isnan(now))
    was, is_now = np.where(known, days, 0.0).sum(axis=0), np.where(known, now, 0.0).sum(axis=0)
    is_known = (was > 0) & (is_now > 0)
    ratio = was[is_known] / is_now[is_known]
    return not len(ratio) or bool(ratio.min() <= FAR_OFF and ratio.max() >= 1 / FAR_OFF)


def judged_highest(said: np.ndarray, days: np.ndarray, horizon: int,
                   placed: PlacedLoads) -> Judgement:
    """Return the quality of the forecasts that an operator's own query has made. Each of these
    forecasts is the highest load that is expected in the next ``horizon`` hours.

    :param said: float (N, 24), the forecast that was made at each hour of the last day
    :param days: float (N, 49), actual loads, as for :func:`seasonal`
    :param horizon: number of hours
    """
    known = ~np.isnan(said) & ~np.isnan(days[:, ORIGINS:-1])
    past = placed.sums(np.where(known.any(axis=1, keepdims=True), days, np.nan))
    came = np.stack([past[:, ORIGINS + 1 + lead:DAYS - horizon + 1 + lead]
                     for lead in range(horizon)]).max(axis=0)
    count = came.shape[1]
    present = past[:, ORIGINS:ORIGINS + count]
    forecast = placed.sums(np.where(known, said, days[:, ORIGINS:-1]))[:, :count]
    return _judged((forecast - came)[:, None], (present - came)[:, None],
                   known[:, :count].any(axis=0), min(LEAST_ORIGINS, count))


def _judged(errors: np.ndarray, present_errors: np.ndarray, known: np.ndarray,
            least: int = LEAST_ORIGINS) -> Judgement:
    """Return the quality of a forecast, from its errors in the past.

    :param errors: float64 (hosts, hours ahead, past hours), the errors of the forecast that was
        made at each past hour
    :param present_errors: float64, in the same shape, the errors if the load at each past hour is
        used as the forecast
    :param known: bool (past hours,), true for hours that count
    :param least: minimum number of hours that count; with fewer, the quality is unknown
    """
    if not len(errors) or known.sum() < least:
        return UNKNOWN
    return Judgement(float(np.abs(errors[..., known]).mean()),
                     float(np.abs(present_errors[..., known]).mean()))
