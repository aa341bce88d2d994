"""The trend of an aggregate's slots: the time until the aggregate is full. Slots are the number of
further servers that fit."""

import collections
import dataclasses
import math
import statistics
from collections.abc import Iterable

LEAST_DAYS = 7
"""Least number of days with data that are needed to predict when an aggregate will be full. The
data of a day is the number of further servers that fit (slots). Raised, the first prediction is
reported later; lowered, the difference between weekend and weekdays counts as a trend. Chosen as a
week."""
SURE = 2.0
"""Ratio of a trend's slope to the standard error of the slope, above which the trend is reported.
The trend shows how the slots of an aggregate change; slots are the number of further servers that
fit. Raised, fewer trends are reported; lowered, changes by chance are reported as trends. Chosen
because a trend is then reported by mistake in only one of twenty clouds without a trend."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The expected time until no further server of a flavor fits into an aggregate.

    days : number of days, from the last day with a known number of slots (how many more servers
        fit)
    error : uncertainty of ``days``, in days, computed from the uncertainty of the trend's slope.
        The uncertainty of the slope is :data:`SURE` times the standard error of the slope
    """

    days: float
    error: float


def full_in(points: Iterable[tuple[float, float]]) -> Trend | None:
    """Return the trend of slots, the number of further servers that fit. The trend is a straight
    line through the daily means of this number. Return None if fewer than :data:`LEAST_DAYS` days
    are known, or if it is not certain that the number decreases.

    :param points: (time in days, slots)
    """
    by_day = collections.defaultdict(list)
    for at, slots in points:
        by_day[math.floor(at)].append(slots)
    days = sorted(by_day)
    if len(days) < LEAST_DAYS:
        return None
    values = [statistics.fmean(by_day[day]) for day in days]
    slope, start = statistics.linear_regression(days, values)
    middle = statistics.fmean(days)
    spread = sum((day - middle) ** 2 for day in days)
    rest = sum((value - start - slope * day) ** 2 for day, value in zip(days, values, strict=True))
    error = math.sqrt(rest / (len(days) - 2) / spread)
    if slope >= 0 or -slope <= SURE * error:
        return None
    left = max(0.0, (start + slope * days[-1]) / -slope)
    return Trend(days=left, error=left * SURE * error / -slope)
