"""What loads were during the last days, hour by hour: read once, and kept from cycle to cycle."""

import itertools

import numpy as np

from kronos_nova import exception
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Times

HOUR = 3600
MOST_SERIES = 200_000
"""Of an answer: more servers than a cloud of one Nova has."""
MOST_POINTS = 200_000
"""Of an answer: some 30 MiB while it is read. Asked is for so many hours at once as keep to it."""
PAUSE = 900.0
"""Seconds before it is asked again for what could not be read: the cycles between have no time to
lose with it."""


class HourlyHistory:
    """The means of whole hours of a query's series, told apart by a label.

    Hours are counted from 1970. A cycle of another hour asks for what is new, one of the same hour
    for nothing; of 30,000 series for 80 hours some 10 MiB are kept.
    """

    def __init__(self):
        self._rows = {}
        self._hours = {}
        self._rests_until, self._problem = -np.inf, None
        self._asked_at = -np.inf
        self.changes = 0

    def read(self, source: MetricsSource, query: MetricQuery, label: str, hours: list[int],
             now: float) -> None:
        """Have exactly these hours, in whatever way that is cheap.

        :param hours: sorted
        :raises MetricsError: some of them could not be read; what was is kept
        """
        missing = [hour for hour in hours if hour not in self._hours]
        if not missing and now >= self._asked_at + PAUSE and self._is_empty(hours[-1]):
            missing = hours[-1:]    # what stores it may be some minutes late
        if not missing:
            return
        if now < self._rests_until:
            raise self._problem
        self._forget(set(hours))
        self._asked_at = now
        try:
            self._fetch(source, query, label, missing)
        except exception.MetricsError as error:
            self._rests_until, self._problem = now + PAUSE, error
            raise
        finally:
            self.changes += 1

    def rows(self, names) -> np.ndarray:
        """intp (n,): where each of the names is in :meth:`matrix`, -1 where it is not."""
        return np.array([self._rows.get(name, -1) for name in names], dtype=np.intp)

    def matrix(self, hours: list[int]) -> np.ndarray:
        """float64 (rows, len(hours)), NaN = not known."""
        found = np.full((len(self._rows), len(hours)), np.nan)
        for column, hour in enumerate(hours):
            values = self._hours.get(hour, ())
            found[:len(values), column] = values
        return found

    def _is_empty(self, hour):
        return bool(np.isnan(self._hours[hour]).all())

    def _fetch(self, source, query, label, hours):
        at_once = 1    # until it is known how many series there are
        while hours:
            run = [hour for index, hour in enumerate(hours[:at_once]) if hour == hours[0] + index]
            # A mean of the hour before a moment: that hour's is asked for at its end.
            times = Times((run[0] + 1) * HOUR, (run[-1] + 1) * HOUR, HOUR)
            series = _whole(source.query_range(query, times), query).series
            self._store(series, label, run)
            at_once = max(1, min(len(hours), MOST_POINTS // max(len(series), 1)))
            hours = hours[len(run):]

    def _store(self, series, label, run):
        for each in series:
            if label in each.labels:
                self._rows.setdefault(each.labels[label], len(self._rows))
        table = np.full((len(self._rows), len(run)), np.nan, dtype=np.float32)
        count = np.zeros(table.shape, dtype=np.intp)
        for each in series:
            if label not in each.labels:
                continue
            row = self._rows[each.labels[label]]
            for at, value in each.points:
                column = round(at / HOUR) - 1 - run[0]
                if 0 <= column < len(run) and 0.0 <= value < np.inf:
                    count[row, column] += 1
                    table[row, column] = value
        # Series one after the other are of a server that was moved; which of two counts at a time
        # there is no telling.
        table[count > 1] = np.nan
        self._hours.update(zip(run, table.T.copy(), strict=True))

    def _forget(self, hours):
        """Leave out the other hours, and the series that no hour has."""
        kept = {hour: values for hour, values in self._hours.items() if hour in hours}
        known = np.zeros(len(self._rows), dtype=bool)
        for values in kept.values():
            known[:len(values)] |= ~np.isnan(values)
        self._rows = {name: row for row, name in enumerate(itertools.compress(self._rows, known))}
        self._hours = {hour: np.pad(values, (0, len(known) - len(values)),
                                    constant_values=np.nan)[known]
                       for hour, values in kept.items()}


def _whole(matrix, query):
    source = f'policy {query.policy}, {query.kind}'
    if matrix.warnings:
        raise exception.MetricsHistoryPartial(
            source=source, problem='the answer is not whole, or not sure: '
                                   + '; '.join(matrix.warnings))
    if len(matrix.series) > MOST_SERIES:
        raise exception.MetricsTooLarge(
            source=source, problem=f'{len(matrix.series)} series, more than {MOST_SERIES}')
    return matrix
