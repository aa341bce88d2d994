"""Forecasts in the planning problem. A policy with a forecast has one more column of loads for each
hour that is forecast."""

import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova import exception
from kronos_nova.cycle.aggregates import Scope
from kronos_nova.cycle.metrics import MetricsReader
from kronos_nova.load import forecast
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.metrics.base import with_key
from kronos_nova.model import Problem
from kronos_nova.objects import metrics
from kronos_nova.objects.metrics import Matrix
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Series
from kronos_nova.objects.metrics import Times
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.plan import FORECAST_NOT_USED
from kronos_nova.objects.plan import FORECAST_USED
from kronos_nova.objects.plan import ForecastReport
from kronos_nova.policies import Policy
from kronos_nova.policies.models import Forecast
from kronos_nova.units import HOUR

MOST_SERIES = 200_000
"""Maximum number of time series in one Prometheus answer with past or predicted loads. A larger
answer is refused. Raised, a query that selects more series than needed takes more memory; lowered,
large clouds have no forecast. Chosen above the number of servers of one Nova deployment."""
MOST_POINTS = 200_000
"""Maximum number of data points that one query of past loads requests from Prometheus. If more
points are needed, several queries are sent. Raised, an answer takes more memory; lowered, more
queries are sent. Chosen because an answer with this number of points takes some 30 MiB."""
PAUSE = 900.0
"""Seconds for which a query of past loads is not repeated after it failed or returned no data.
Raised, forecasts are missing for longer after an outage of Prometheus; lowered, more evaluations
wait for a Prometheus that does not answer. Not measured."""


class HourlyHistory:
    """The hourly means of the series of one query. The values of two labels identify each series:
    its name and its host. A server that was moved has a series for each of its hosts.

    Hours are numbered from the beginning of 1970. The first cycle in an hour queries only the hours
    that are missing; later cycles in the same hour query nothing. The series of all hosts are kept,
    because the cycles may be for different aggregates. 30,000 series for 80 hours take some 10 MiB.

    hosts : the hosts of all series

    :param host_label: label with the host of a series; '' if series do not name hosts
    """

    def __init__(self, host_label: str = '') -> None:
        self._host_label = host_label
        self._rows: dict[tuple[str, str], int] = {}
        # The same by name, and the hosts of all series
        self._of_name: dict[str, list[tuple[int, str]]] = {}
        self.hosts: set[str] = set()
        self._hours: dict[int, np.ndarray] = {}
        self._rests_until = -np.inf
        self._problem: exception.MetricsError | None = None
        self._asked_at = -np.inf
        self.changes = 0

    def read(self, source: MetricsSource, query: MetricQuery, label: str, hours: list[int],
             now: float) -> None:
        """Read the hours that are missing, and drop all hours that are not in ``hours``.

        :param label: label with the name of a series
        :param hours: numbers of hours, sorted
        :raises MetricsError: some hours could not be read; the hours that were read are kept
        """
        missing = [hour for hour in hours if hour not in self._hours]
        if not missing and now >= self._asked_at + PAUSE and self._is_empty(hours[-1]):
            missing = hours[-1:]    # the series may be stored some minutes late
        if not missing:
            return
        if self._problem is not None and now < self._rests_until:
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
            self._index()

    def series(self, names: Sequence[str | None],
               ignored: Collection[str] = ()) -> Iterator[tuple[int, int, str]]:
        """Yield (position in ``names``, row in :meth:`matrix`, host) of each series of some names.

        :param ignored: hosts whose series are left out
        """
        for position, name in enumerate(names):
            for row, host in self._of_name.get(name, ()) if name is not None else ():
                if host not in ignored:
                    yield position, row, host

    def matrix(self, hours: list[int]) -> np.ndarray:
        """Return float64 (series, hours): the mean of each series in each of ``hours``; NaN = not
        known."""
        found = np.full((len(self._rows), len(hours)), np.nan)
        for column, hour in enumerate(hours):
            values = self._hours.get(hour, ())
            found[:len(values), column] = values
        return found

    def _index(self) -> None:
        self._of_name, self.hosts = {}, {host for _name, host in self._rows}
        for (name, host), row in self._rows.items():
            self._of_name.setdefault(name, []).append((row, host))

    def _is_empty(self, hour: int) -> bool:
        return bool(np.isnan(self._hours[hour]).all())

    def _fetch(self, source: MetricsSource, query: MetricQuery, label: str,
               hours: list[int]) -> None:
        at_once = 1  # one hour in the first query, from which the number of series becomes known
        while hours:
            run = [hour for index, hour in enumerate(hours[:at_once]) if hour == hours[0] + index]
            # The query returns means over the hour before a moment, so the moments are the ends of
            # hours.
            times = Times((run[0] + 1) * HOUR, (run[-1] + 1) * HOUR, HOUR)
            try:
                answer = source.query_range(query, times)
            except exception.MetricsError as error:
                raise with_key(error, query.key) from error
            series = _whole(answer, query).series
            self._store(series, label, run)
            at_once = max(1, min(len(hours), MOST_POINTS // max(len(series), 1)))
            hours = hours[len(run):]

    def _store(self, series: Sequence[Series], label: str, run: list[int]) -> None:
        series = [each for each in series if label in each.labels]
        rows = [self._rows.setdefault((each.labels[label], each.labels.get(self._host_label, '')),
                                      len(self._rows)) for each in series]
        table = np.full((len(self._rows), len(run)), np.nan, dtype=np.float32)
        count = np.zeros(table.shape, dtype=np.intp)
        for row, each in zip(rows, series, strict=True):
            for at, value in each.points:
                column = round(at / HOUR) - 1 - run[0]
                if 0 <= column < len(run) and 0.0 <= value < np.inf:
                    count[row, column] += 1
                    table[row, column] = value
        # Where two series have a value for the same hour, it is not known which is right.
        table[count > 1] = np.nan
        self._hours.update(zip(run, table.T.copy(), strict=True))

    def _forget(self, hours: Collection[int]) -> None:
        """Drop all hours except ``hours``, and the series that have no value in ``hours``."""
        kept = {hour: values for hour, values in self._hours.items() if hour in hours}
        known = np.zeros(len(self._rows), dtype=bool)
        for values in kept.values():
            known[:len(values)] |= ~np.isnan(values)
        self._rows = {name: row for row, name in enumerate(itertools.compress(self._rows, known))}
        self._hours = {hour: values[known[:len(values)]] for hour, values in kept.items()}


def _whole(matrix: Matrix, query: MetricQuery) -> Matrix:
    source = f'policy {query.policy}, {query.kind}'
    if matrix.warnings:
        raise exception.MetricsHistoryPartial(
            source=source, problem='the answer came with warnings: '
                                   + '; '.join(matrix.warnings))
    if len(matrix.series) > MOST_SERIES:
        raise exception.MetricsTooLarge(
            source=source, problem=f'the answer has {len(matrix.series)} series, more than '
                                   f'{MOST_SERIES}')
    return matrix


OTHER_UNIT = ('what it has for each hour of the last day is far off from what there is now: is '
              'history_query in the unit of vm_profile_query, or of imbalance_query?')


def _none() -> np.ndarray:
    return np.zeros((0, 0))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForecastColumns:
    """The forecast of one policy in an aggregate, as K additional columns of the planning problem.
    Each column has the loads that are forecast for one hour, or for the hour with the highest load
    if the policy has its own forecast query. ``is_faulty`` is True if a query of the forecast has
    no answer, or an answer in a unit other than that of the load.

    names : names of the columns; empty if the forecast is not used. ``detail`` then has the reason
    weights : float64 (V, K), forecast weights of the instances
    variances : float64 (V, K), variances of ``weights``
    scores : float64 (H, K), forecast scores of the hosts
    """

    judgement: forecast.Judgement
    detail: str = ''
    names: tuple[str, ...] = ()
    weights: np.ndarray = dataclasses.field(default_factory=_none)
    scores: np.ndarray = dataclasses.field(default_factory=_none)
    variances: np.ndarray = dataclasses.field(default_factory=_none)
    is_faulty: bool = False

    @property
    def state(self) -> str:
        return FORECAST_USED if self.names else FORECAST_NOT_USED


_Found = tuple[np.ndarray, np.ndarray, forecast.Judgement]
"""(forecast (N, hours ahead), its variance (N, hours ahead), its quality in the past)"""


@dataclasses.dataclass(frozen=True, slots=True)
class _Loads:
    """The N loads that a policy forecasts. There is one load for each instance of a scope, or one
    for each host.

    names : for each load, the value of the label by which its history is found. None if several
        instances share this value
    now : float64 (N,), present load in the unit of the history, NaN = not known
    unit : float64 (N,), factor for each load: a sample of the history times this factor is the
        weight of the instance, or the score of the host
    foreign : function of names of hosts, which returns the hosts of other clouds
    units : {host: factor for the samples of instances that were measured on this host}; empty if
        the loads are those of hosts
    """

    names: Sequence[str | None]
    now: np.ndarray
    unit: np.ndarray
    placed: forecast.PlacedLoads
    label: str
    foreign: Callable[[set[str]], set[str]]
    units: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def series(self, history: HourlyHistory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays, (S,) each, about the series of the loads, without those of other
        clouds: the positions of the loads, the rows in the history, and the factors that convert
        values to samples of the present hosts. A factor is 1 if the former host has no unit."""
        found = list(history.series(self.names, self.foreign(history.hosts)))
        loads, rows = (np.array([each[n] for each in found], dtype=np.intp) for n in (0, 1))
        units = np.array([self.units.get(host, np.nan) for _load, _row, host in found])
        return loads, rows, np.nan_to_num(units / self.unit[loads], nan=1.0)

    def past(self, history: HourlyHistory, hours: list[int]) -> np.ndarray:
        """Return float64 (N, hours): the loads in the past as samples of the present hosts; NaN =
        not known. Where two series of a load have a value for the same hour, it is not known which
        is right."""
        loads, rows, factors = self.series(history)
        values = history.matrix(hours)[rows] * factors[:, None]
        total = np.zeros((len(self.names), len(hours)))
        count = np.zeros(total.shape, dtype=np.intp)
        np.add.at(total, loads, np.nan_to_num(values))
        np.add.at(count, loads, ~np.isnan(values))
        return np.where(count == 1, total, np.nan)


def questions(policy: Policy) -> Iterator[MetricQuery]:
    """Yield the metric queries for the forecast of a policy. The answer to a query has a series
    for every instance, or a series for every host if
    :attr:`~kronos_nova.policies.Policy.is_forecast_by_vm` is False."""
    if policy.forecast is None:
        return
    settings = policy.forecast
    if settings.history_query:
        history, key = settings.history_query, 'forecast.history_query'
    else:
        key = metrics.KEYS[metrics.VM_PROFILE if policy.is_forecast_by_vm else metrics.IMBALANCE]
        history = f'avg_over_time((\n{getattr(policy, key)}\n)[1h:5m])'
    yield MetricQuery(policy.name, metrics.HISTORY, history, key)
    if settings.own_query:
        yield MetricQuery(policy.name, metrics.FORECAST, settings.own_query,
                          'forecast.vm_query' if settings.vm_query else 'forecast.host_query')


class ForecastCache:
    """A maker of load forecasts. Past loads that were read are kept for later cycles."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def forecasts(self, source: MetricsSource, feed: MetricsReader, policies: Sequence[Policy],
                  scope: Scope, problem: Problem, units: np.ndarray, now: float
                  ) -> dict[str, ForecastColumns]:
        """Return {name: forecast columns} of the policies with a forecast.

        :param units: float64 (H, P), factor from the sample of an instance to its weight, by the
            host on which the instance runs
        """
        found = {}
        for number, policy in enumerate(policies):
            if policy.forecast is not None:
                asked = _Asked(self._kept_for(policy), source, feed, policy, policy.forecast, now)
                found[policy.name] = asked.columns_of(scope, problem, units[:, number], number)
        return found

    def _kept_for(self, policy: Policy) -> '_Kept':
        """Return the cache of a policy. The cache is empty if the queries of the policy have
        changed."""
        queries = (policy.forecast, policy.vm_profile_query, policy.vm_profile_label,
                   policy.imbalance_query, policy.host_label)
        kept = self._kept.get(policy.name)
        if kept is None or kept.queries != queries:
            kept = self._kept[policy.name] = _Kept(queries, policy.host_label)
        return kept


class _Kept:
    def __init__(self, queries: tuple, host_label: str) -> None:
        self.queries = queries
        self.history, self.said = HourlyHistory(host_label), HourlyHistory(host_label)
        self.seasonal: forecast.Seasonal | None = None
        self.made_of: int | None = None


class _Asked:
    """A builder of the forecast of one policy in one cycle. The forecast is read from Prometheus,
    or made from past loads."""

    def __init__(self, kept: _Kept, source: MetricsSource, feed: MetricsReader, policy: Policy,
                 settings: Forecast, now: float) -> None:
        """:param settings: the settings of the policy's forecast"""
        self.kept, self.source, self.feed, self.policy, self.now = kept, source, feed, policy, now
        self.settings, self.hour = settings, int(now // HOUR)
        self.horizon = settings.horizon_hours
        self.questions = tuple(questions(policy))

    def columns_of(self, scope: Scope, problem: Problem, units: np.ndarray,
                   number: int) -> ForecastColumns:
        loads = self.loads(scope, problem, units, number)
        try:
            find = self.own if self.settings.own_query else self.seasonal
            ahead, variances, judgement = find(loads)
        except exception.MetricsError as error:
            return ForecastColumns(judgement=forecast.UNKNOWN, detail=str(error), is_faulty=True)
        if not judgement.is_known:
            return ForecastColumns(judgement=judgement,
                                   detail='too little of the last days is known')
        if not judgement.is_worth_it:
            return ForecastColumns(judgement=judgement, detail=(
                f'during the last day it was off by {judgement.error:.3g}, the present by '
                f'{judgement.present_error:.3g}'))
        if not self.is_of_unit(loads):
            return ForecastColumns(judgement=judgement, detail=OTHER_UNIT, is_faulty=True)
        return self.columns(problem, number, loads, (ahead, variances, judgement))

    def loads(self, scope: Scope, problem: Problem, units: np.ndarray, number: int) -> _Loads:
        policy, foreign = self.policy, self.feed.foreign
        if policy.is_forecast_by_vm:
            shared = self.feed.shared_names(policy.vm_profile_label_type)
            names = [None if name in shared else name for name in (
                getattr(each, policy.vm_profile_label_type) for each in scope.instances)]
            unit = units[problem.vm_host]
            now = problem.loads(of_leaving=False)[:, number] / unit
            return _Loads(names, now, unit, forecast.PlacedLoads(
                problem.vm_host, problem.host_scale[problem.vm_host, number] * unit,
                len(problem.hosts)), policy.vm_profile_label, foreign,
                dict(zip(problem.hosts, units.tolist(), strict=True)))
        hosts = np.arange(len(problem.hosts))
        return _Loads(
            problem.hosts, np.where(problem.available, problem.scores[:, number], np.nan),
            np.ones(len(hosts)), forecast.PlacedLoads(hosts, np.ones(len(hosts)), len(hosts)),
            policy.host_label, foreign)

    def is_of_unit(self, loads: _Loads) -> bool:
        days = list(range(self.hour - forecast.DAYS, self.hour))
        return forecast.is_of_unit(loads.past(self.kept.history, days), loads.now)

    def seasonal(self, loads: _Loads) -> _Found:
        kept, hour = self.kept, self.hour
        days = list(range(hour - forecast.DAYS, hour))
        week = list(range(hour - forecast.WEEK_AGO,
                          hour - forecast.WEEK_AGO + forecast.weeks(self.horizon)))
        history, = self.questions
        kept.history.read(self.source, history, loads.label, week + days, self.now)
        seasonal = kept.seasonal
        if seasonal is None or kept.made_of != kept.history.changes:
            seasonal = forecast.seasonal(kept.history.matrix(days), kept.history.matrix(week))
            kept.seasonal, kept.made_of = seasonal, kept.history.changes
        of, rows, factors = loads.series(kept.history)
        is_moved = (np.bincount(of, minlength=len(loads.names))[of] > 1) | (factors != 1.0)
        found = seasonal.select(_placed(rows[~is_moved], of[~is_moved], len(loads.names)))
        if is_moved.any():
            moved = np.unique(of[is_moved])
            found = found.with_rows(moved, forecast.seasonal(
                loads.past(kept.history, days)[moved], loads.past(kept.history, week)[moved]))
        judgement = found.judged(loads.placed)
        ahead = found.ahead
        if self.settings.quantile > 0.5 and judgement.is_worth_it:
            ahead = ahead + found.margins(loads.placed, self.settings.quantile)
        return ahead, found.variances(), judgement

    def own(self, loads: _Loads) -> _Found:
        hour, (history, said) = self.hour, self.questions
        samples = Vector(tuple(self.feed.of_this_cloud(
            self.policy, self.feed.answer(said).samples))).by(loads.label)
        alone = {name: found[0].value for name, found in samples.items() if len(found) == 1}
        ahead = np.array([np.nan if name is None else alone.get(name, np.nan)
                          for name in loads.names]).reshape(-1, 1)
        ahead[~((ahead >= 0.0) & np.isfinite(ahead))] = np.nan
        days = list(range(hour - forecast.DAYS, hour))
        past = self.kept.history
        past.read(self.source, history, loads.label, days, self.now)
        # A forecast that was made at the beginning of an hour is stored under the hour before.
        origins = list(range(hour - forecast.ORIGINS - 1, hour - 1))
        self.kept.said.read(self.source, said, loads.label, origins, self.now)
        judgement = forecast.judged_highest(
            loads.past(self.kept.said, origins), loads.past(past, days), self.horizon,
            loads.placed)
        return ahead, np.zeros(ahead.shape), judgement

    def columns(self, problem: Problem, number: int, loads: _Loads,
                found: _Found) -> ForecastColumns:
        ahead, variances, judgement = found
        now = problem.weights[:, number]
        scores, scale = problem.scores[:, number], problem.host_scale[problem.vm_host, number]
        if self.policy.is_forecast_by_vm:
            known = ~(np.isnan(ahead) | np.isnan(loads.now)[:, None])
            weights = np.where(known, ahead * loads.unit[:, None], now[:, None])
            shift = loads.placed.sums(np.where(known, ahead - loads.now[:, None], 0.0))
            columns = np.maximum(scores[:, None] + shift, 0.0)
            spread = np.where(known, variances * loads.unit[:, None] ** 2, 0.0)
        else:
            columns = np.where(np.isnan(ahead), scores[:, None], ahead)
            part = np.divide(columns, scores[:, None], out=np.ones(columns.shape),
                             where=scores[:, None] > 0)[problem.vm_host]
            weights = now[:, None] * part
            spread = variances[problem.vm_host] / np.bincount(
                problem.vm_host, minlength=len(problem.hosts))[problem.vm_host, None] / (
                scale ** 2)[:, None]
        return ForecastColumns(judgement=judgement, names=tuple(self.names(ahead.shape[1])),
                               weights=weights, scores=columns, variances=spread)

    def names(self, count: int) -> Iterator[str]:
        if self.settings.own_query:
            yield f'{self.policy.name} within {self.horizon} h'
            return
        for lead in range(count):
            yield f'{self.policy.name} in {lead} h' if lead else f'{self.policy.name} this hour'


def _placed(rows: np.ndarray, loads: np.ndarray, count: int) -> np.ndarray:
    """Return intp (count,): the row of each load; -1 for a load without a row.

    :param loads: the load of each of ``rows``
    """
    found = np.full(count, -1, dtype=np.intp)
    found[loads] = rows
    return found


def unused(policies: Sequence[Policy], why: str) -> dict[str, ForecastColumns]:
    """Return {name: ForecastColumns without columns} of the policies with a forecast, for cycles in
    which forecasts are not used.

    :param why: the reason, for reports
    """
    return {policy.name: ForecastColumns(judgement=forecast.UNKNOWN, detail=why)
            for policy in policies if policy.forecast is not None}


def warnings(forecasts: Mapping[str, ForecastColumns]) -> Iterator[str]:
    """Yield the texts for an operator about forecasts that could not be made."""
    for name, columns in sorted(forecasts.items()):
        if columns.is_faulty:
            yield f'{name}: planned without its forecast: {columns.detail}'


def policy_of_columns(policies: Sequence[Policy], forecasts: Mapping[str, ForecastColumns]
                      ) -> list[Policy]:
    """Return a list with the policy of each column of the problem that :func:`expanded` returns."""
    return [*policies, *(policy for policy in policies if policy.name in forecasts
                         for _column in forecasts[policy.name].names)]


def report(policy: str, forecasts: Mapping[str, ForecastColumns], problem: Problem,
         imbalances: np.ndarray) -> ForecastReport | None:
    """Return the ForecastReport of a policy; None if the policy has no forecast.

    :param problem: the problem that :func:`expanded` returns. Its columns are the policies and the
        hours of forecasts
    :param imbalances: float64 (P,), imbalance of each of these columns
    """
    if policy not in forecasts:
        return None
    columns = forecasts[policy]
    highest = max((float(imbalances[problem.policies.index(name)]) for name in columns.names),
                  default=None)
    errors = [None if np.isnan(each) else each for each in (
        columns.judgement.error, columns.judgement.present_error)]
    return ForecastReport(state=columns.state, detail=columns.detail, error=errors[0],
                          present_error=errors[1], imbalance=highest)


def expanded(problem: Problem, forecasts: Mapping[str, ForecastColumns],
             with_variances: bool) -> Problem:
    """Return the problem with an additional column for each forecast hour of a policy.

    Planners treat each column as a policy of its own. The columns of the measured loads come first
    and do not change. Each forecast column has the threshold of its policy. The weight of a
    forecast column is the weight of its policy, divided by the number of forecast columns of the
    policy. So load that lasts for all hours counts more than load that ends soon.

    :param with_variances: True to add the variances of forecasts, for planning that uses variances;
        False to leave them out
    """
    found = [(number, forecasts[name]) for number, name in enumerate(problem.policies)
             if name in forecasts and forecasts[name].names]
    if not found:
        return problem
    of = np.concatenate([np.arange(len(problem.policies)),
                         *[np.full(len(each.names), number) for number, each in found]])
    parts = np.concatenate([np.ones(len(problem.policies)),
                            *[np.full(len(each.names), 1 / len(each.names)) for _, each in found]])
    scores = np.column_stack([problem.scores, *[each.scores for _, each in found]])
    spread = np.column_stack([np.zeros(problem.weights.shape),
                              *[each.variances for _, each in found]])
    return dataclasses.replace(
        problem, policies=problem.policies + tuple(
            name for _, each in found for name in each.names),
        policy_weights=problem.policy_weights[of] * parts,
        thresholds=problem.thresholds[of], scores=scores,
        weights=np.column_stack([problem.weights, *[each.weights for _, each in found]]),
        host_scale=problem.host_scale[:, of],
        capacity_scores=problem.capacity_scores[:, of] + scores - problem.scores[:, of],
        capacity_thresholds=problem.capacity_thresholds[of],
        left_out=None if problem.left_out is None else problem.left_out[of],
        variances=spread if with_variances else None)
