"""The protocol of metrics sources, from which load is read."""

from typing import Protocol

from kronos_nova.objects.metrics import Matrix
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Times
from kronos_nova.objects.metrics import Vector


class MetricsSource(Protocol):
    """The protocol of a source that answers queries for metrics. Implementations return the answers
    unchanged and do not judge them."""

    def query(self, query: MetricQuery) -> Vector:
        """Return the instant vector of a query.

        :raises MetricsError: unreachable, refused, not a vector, not understood; after the
        adapter's own retries
        """

    def query_range(self, query: MetricQuery, times: Times) -> Matrix:
        """Return the series of a query at some times. The errors are those of :meth:`query`. The
        method is called only where a policy has a forecast. The caller bounds the number of
        moments; the adapter bounds the size of the answer and the time that it takes."""
