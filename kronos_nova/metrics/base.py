"""The protocol of metrics sources, from which load is read."""

from typing import Protocol

from kronos_nova import exception
from kronos_nova.objects.metrics import Matrix
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Times
from kronos_nova.objects.metrics import Vector


def with_key(error: exception.MetricsError, key: str) -> exception.MetricsError:
    """Return the error of a query. If the PromQL itself is wrong, the text of the returned error
    has the place where the PromQL is written.

    :param key: key of the policies file that has the PromQL; '' if it is not known
    """
    is_of_promql = isinstance(error, exception.MetricsQueryRefused | exception.MetricsNotAVector)
    if not key or not is_of_promql:
        return error
    return type(error)(source=error.kwargs['source'], problem=f'{key}: {error.kwargs["problem"]}')


class InstantSource(Protocol):
    """The protocol of a source that answers queries for metrics at one time. Implementations return
    answers unchanged, and do not check whether the values are plausible."""

    def query(self, query: MetricQuery) -> Vector:
        """Return the instant vector of a query.

        :raises MetricsError: the source does not answer or refuses the query, or the answer is not
            understood or is not a vector. The error is raised only after the implementation has
            retried
        """


class MetricsSource(InstantSource, Protocol):
    """The protocol of a source that answers queries for metrics, at one time and at several
    times."""

    def query_range(self, query: MetricQuery, times: Times) -> Matrix:
        """Return the series of a query, with values at several times. The errors are those of
        :meth:`query`. Only policies with a forecast need this method. The caller limits the number
        of times; the implementation limits the size of the answer and the time that the answer may
        take."""
