"""A metrics source that answers queries with the answers recorded in a snapshot."""

import functools
import os
import pathlib

from kronos_nova import exception
from kronos_nova.metrics import answer
from kronos_nova.objects import metrics
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Vector
from kronos_nova.policies import PolicySet
from kronos_nova.record.problems import Problems

_NEEDED = {metrics.IMBALANCE: 'imbalance_query', metrics.CAPACITY: 'capacity_query',
           metrics.HOST_CAPACITY: 'host_capacity_query'}


class RecordedMetrics:
    """The answers of Prometheus that a snapshot has. The answer to a query is found by the policy
    and the kind of the query, and not by its PromQL, which may have changed since the recording."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._read = functools.cache(self._read_file)

    def query(self, query: MetricQuery) -> Vector:
        """Return the recorded vector. Answers to queries about instances or migrations may be
        missing in a snapshot; the vector is then empty. Answers to queries for forecasts are not
        recorded.

        :raises MetricsNotFound: the query is for a forecast
        :raises MetricsError: the recorded answer is an error of Prometheus
        """
        if query.kind == metrics.FORECAST:
            raise _no_past()
        return self._read(query.policy, query.kind)

    def query_range(self, query: MetricQuery, times: metrics.Times) -> metrics.Matrix:
        """Raise an error, because a snapshot has no answers to queries over a range of time.

        :raises MetricsNotFound: always
        """
        raise _no_past()

    def _read_file(self, policy: str, kind: str) -> Vector:
        path = self._path(policy, kind)
        if kind in (metrics.VM_PROFILE, *metrics.OF_MIGRATION) and not os.path.exists(path):
            return Vector(samples=())
        return answer.read_vector(path.read_bytes(), str(path.relative_to(self._folder)))

    def check(self, policies: PolicySet) -> None:
        """Check that all answers that the policies need are recorded and valid.

        :raises SnapshotError: answers are missing or invalid; the message has a line for each
        """
        problems = Problems(self._folder)
        for policy in policies.active:
            for kind, option in _NEEDED.items():
                path = self._path(policy.name, kind)
                if getattr(policy, option) is not None and not os.path.isfile(path):
                    problems.add(str(path.relative_to(self._folder)),
                                 f'is missing, and policy {policy.name} needs it')
            for kind in (*_NEEDED, metrics.VM_PROFILE):
                self._try(policy.name, kind, problems)
        for kind in metrics.OF_MIGRATION:
            self._try(metrics.MIGRATION, kind, problems)
        problems.raise_if_any()

    def _try(self, policy: str, kind: str, problems: Problems) -> None:
        path = self._path(policy, kind)
        if not os.path.isfile(path):
            return
        try:
            self._read(policy, kind)
        except exception.MetricsNotUnderstood as error:
            problems.add(str(path.relative_to(self._folder)), error.kwargs['problem'])
        except OSError as error:
            problems.add(str(path.relative_to(self._folder)), f'cannot be read: {error.strerror}')
        # The file may be a recorded error of the API. It is valid, and the policy has no data.
        except exception.MetricsError:
            return

    def _path(self, policy: str, kind: str) -> pathlib.Path:
        return self._folder / 'metrics' / policy / f'{kind}.json'


def _no_past() -> exception.MetricsNotFound:
    return exception.MetricsNotFound(
        source='the snapshot', problem='the load of earlier days, which a forecast needs, is not '
                                       'recorded')
