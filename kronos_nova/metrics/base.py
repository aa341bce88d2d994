"""The port through which load is read."""

from typing import Protocol

from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Vector


class MetricsSource(Protocol):
    """Answers instant queries. Adapters return what they were told and decide nothing."""

    def query(self, query: MetricQuery) -> Vector:
        """The instant vector of a query.

        :raises MetricsError: unreachable, refused, not a vector, not understood; after the
        adapter's own retries
        """
