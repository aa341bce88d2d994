"""One query serves every aggregate of a cycle."""

from kronos_nova import exception
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Vector


class OncePerCycle:
    """Asks a source each question once and remembers the answer, or the error: a Prometheus that
    does not answer must not hold up every aggregate in turn. Make a new one every cycle."""

    def __init__(self, source: MetricsSource):
        self._source = source
        self._answers: dict[MetricQuery, Vector | exception.MetricsError] = {}

    def query(self, query: MetricQuery) -> Vector:
        """As the source behind it.

        :raises MetricsError: the source's, the same each time
        """
        if query not in self._answers:
            try:
                self._answers[query] = self._source.query(query)
            except exception.MetricsError as error:
                self._answers[query] = error
        answer = self._answers[query]
        if isinstance(answer, exception.MetricsError):
            raise answer
        return answer
