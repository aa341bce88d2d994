"""The metrics source that queries a Prometheus API."""

import re
import time
from collections.abc import Callable

import tenacity
from oslo_config import cfg
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.conf import invalid_values
from kronos_nova.metrics import answer
from kronos_nova.metrics import keystone
from kronos_nova.metrics.endpoint import Endpoint
from kronos_nova.metrics.transport import Transport
from kronos_nova.objects.metrics import FORECAST
from kronos_nova.objects.metrics import HISTORY
from kronos_nova.objects.metrics import HOST_CAPACITY
from kronos_nova.objects.metrics import Matrix
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Series
from kronos_nova.objects.metrics import Times
from kronos_nova.objects.metrics import Vector

GROUP = 'kronos_prometheus'

LOG = logging.getLogger(__name__)

# Errors after which a request is repeated, because their cause may be temporary.
_PASSING = (exception.MetricsUnreachable, exception.MetricsTimeout, exception.MetricsUnavailable)


class PrometheusClient:
    """A client of a Prometheus API (Prometheus, Thanos, Mimir, VictoriaMetrics).

    :param max_retries: maximum number of retries of a request without an answer
    :param smoothing: ``(window, step)`` in seconds. Instead of the present value of a load, the
        average over the window is read, with one value for each step. None = loads are not averaged
    :param patience: seconds that all requests together may take, from the first request on
    :param sleep: function that waits between attempts
    """

    def __init__(self, endpoint: Endpoint, *, max_retries: int = 3,
                 smoothing: tuple[int, int] | None = None, patience: float = float('inf'),
                 sleep: Callable[[float], None] = time.sleep):
        self._transport = Transport(endpoint)
        self._smoothing = smoothing
        self._patience = patience
        self._deadline: float | None = None
        self._retrying = tenacity.Retrying(
            stop=lambda state: (state.attempt_number > max_retries
                                or self._seconds_left() <= 0.0),
            wait=tenacity.wait_random_exponential(multiplier=0.5, max=10),
            retry=tenacity.retry_if_exception_type(_PASSING),
            before_sleep=_log_retry, sleep=sleep, reraise=True)

    def query(self, query: MetricQuery) -> Vector:
        """Return the instant vector of a policy's query. Loads are averaged over the smoothing
        window.

        :raises MetricsError: the query has no usable answer; the subclass names the reason
        """
        return answer.read_vector(self.body(query), self._transport.source)

    def body(self, query: MetricQuery) -> bytes:
        """Return the body of the answer to :meth:`query` as the API sent it. Snapshots record this
        body."""
        return self._fetch('/api/v1/query', query=self._smoothed(query))

    def instant(self, promql: str) -> Vector:
        """Return the instant vector of any PromQL, without smoothing."""
        return answer.read_vector(self._fetch('/api/v1/query', query=promql),
                                  self._transport.source)

    def range(self, promql: str, start: float, end: float, step: float) -> tuple[Series, ...]:
        """Return the series of a range query. Times are Unix seconds, and both ends are
        included."""
        return self._range(promql, Times(start, end, step)).series

    def query_range(self, query: MetricQuery, times: Times) -> Matrix:
        """Return the series of a policy's query. The values are not averaged over the smoothing
        window, because the query itself returns mean values.

        :raises MetricsError: the query has no usable answer; the subclass names the reason
        """
        return self._range(query.promql, times)

    def _range(self, promql: str, times: Times) -> Matrix:
        body = self._fetch('/api/v1/query_range', query=promql, start=f'{times.first:.3f}',
                           end=f'{times.last:.3f}', step=f'{times.step:g}')
        return answer.read_matrix(body, self._transport.source)

    def runtime_info(self) -> dict:
        """Read the state of the server: start time, retention, configuration.

        :raises MetricsNotFound: the server has no page with its state, for example Thanos or
            VictoriaMetrics
        """
        body = self._fetch('/api/v1/status/runtimeinfo')
        return answer.read_answer(body, self._transport.source)['data']

    def _fetch(self, path: str, **parameters: str) -> bytes:
        return self._retrying(self._attempt, path, parameters)

    def _attempt(self, path: str, parameters: dict[str, str]) -> bytes:
        left = self._seconds_left()
        if left <= 0.0:
            raise self._overdue()
        try:
            return self._transport.fetch(path, parameters, left)
        except exception.MetricsTimeout as error:
            if left < self._transport.endpoint.timeout:
                raise self._overdue() from error
            raise

    def _overdue(self) -> exception.MetricsError:
        return exception.MetricsTimeout(
            source=self._transport.source,
            problem='all answers of this cycle together took longer than the '
                    f'{self._patience:g} s of total_timeout')

    def _seconds_left(self) -> float:
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._patience
        return self._deadline - now

    def _smoothed(self, query: MetricQuery) -> str:
        """Return the PromQL of a query. A query for loads is wrapped in an average over the
        smoothing window. The result has only series that the query itself has at present, because
        an average alone would have values for some time after an exporter has died. Other queries
        are returned unchanged: an average of a capacity would hide that a host was enlarged, and
        forecasts and histories are averages already."""
        if self._smoothing is None or query.kind in (HOST_CAPACITY, HISTORY, FORECAST):
            return query.promql
        window, step = self._smoothing
        return (f'avg_over_time((\n{query.promql}\n)[{window}s:{step}s]) and '
                f'(\n{query.promql}\n)')


def _log_retry(state: tenacity.RetryCallState) -> None:
    assert state.outcome is not None and state.next_action is not None
    LOG.warning('Attempt %(number)d of a query failed, and is repeated in %(seconds).1f s: '
                '%(error)s',
                {'error': state.outcome.exception(), 'number': state.attempt_number,
                 'seconds': state.next_action.sleep})


def for_cycle(conf: cfg.ConfigOpts) -> PrometheusClient:
    """Return a client for one cycle, made by :func:`from_conf`. All requests of the client together
    take at most ``total_timeout``."""
    return from_conf(conf, patience=conf.kronos_prometheus.total_timeout)


def from_conf(conf: cfg.ConfigOpts, patience: float = float('inf')) -> PrometheusClient:
    """Make the client that ``[kronos_prometheus]`` of an ``oslo.config`` object configures.

    :param patience: seconds for all answers together
    :raises ConfigurationError: a value is invalid, or options contradict each other
    """
    # oslo.config refuses an invalid value only when the option is read.
    invalid_values.refuse(conf, GROUP)
    group = conf.kronos_prometheus
    _check(group)
    endpoint = Endpoint(
        url=group.url, timeout=group.timeout, max_bytes=group.max_answer_mib << 20,
        bearer_token=group.bearer_token, bearer_token_file=group.bearer_token_file,
        username=group.username, password=group.password, ca_file=group.ca_file,
        cert_file=group.cert_file, key_file=group.key_file, tenant_header=group.tenant_header,
        tenant=group.tenant,
        keystone=keystone.from_conf(conf, group.auth_section, group.timeout)
        if group.auth_section else None)
    smoothing = (group.smoothing_window, group.smoothing_step) if group.smoothing_window else None
    return PrometheusClient(endpoint, max_retries=group.max_retries, smoothing=smoothing,
                            patience=patience)


def _check(group: cfg.ConfigOpts.GroupAttr) -> None:
    contradictions = (
        (bool(re.search('/api/v1(/.*)?$', group.url)), 'url', 'it ends with the path of the API',
         'Remove /api/v1 and what follows: Kronos adds it.'),
        ('@' in group.url.partition('//')[2].partition('/')[0], 'url', 'it contains credentials',
         'Set username and password instead: a URL appears in logs.'),
        (sum(map(bool, (group.bearer_token, group.bearer_token_file, group.username,
                        group.auth_section))) > 1,
         'bearer_token',
         'more than one of bearer_token, bearer_token_file, username and auth_section is set',
         'Keep one.'),
        (group.auth_section == GROUP, 'auth_section', 'it names its own group',
         'Name another group of this file, such as "placement".'),
        (bool(group.key_file) and not group.cert_file, 'key_file', 'cert_file is not set',
         'Set both or neither.'),
        (0 < group.smoothing_window < group.smoothing_step, 'smoothing_window',
         'it is shorter than smoothing_step', 'Make it several steps long, or 0.'),
    )
    for is_wrong, option, problem, remedy in contradictions:
        if is_wrong:
            raise exception.ConfigurationError(what=f'[kronos_prometheus] {option}',
                                               problem=problem, remedy=remedy)
