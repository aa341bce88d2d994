"""Samples that are too old, or from the future, say nothing about the load of now."""

import dataclasses
import time
from collections.abc import Callable

from kronos_nova import exception
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Vector


def fresh(vector: Vector, now: float, max_age: float) -> Vector:
    """``vector`` without the samples further than ``max_age`` seconds from ``now``, in either
    direction; what was left out is told in a warning.

    A Prometheus stamps every sample of an instant query with the time of the evaluation, so what
    is caught here is a cache or a frontend that answers with old results, and clocks that differ.
    Series whose target went away vanish from the answer by themselves and count as not covered.
    """
    kept = tuple(s for s in vector.samples if abs(now - s.timestamp) <= max_age)
    dropped = len(vector.samples) - len(kept)
    if not dropped:
        return vector
    worst = max((now - sample.timestamp for sample in vector.samples), key=abs)
    warning = (f'{dropped} of {len(vector.samples)} samples are further than {max_age:g} s from '
               f'now (worst: {worst:.0f} s old) and were left out')
    return dataclasses.replace(vector, samples=kept, warnings=(*vector.warnings, warning))


class FreshSource:
    """A metrics source that lets only fresh samples through.

    :param max_age: seconds
    :param clock: Unix seconds
    """

    def __init__(self, source: MetricsSource, max_age: float,
                 clock: Callable[[], float] = time.time):
        self._source = source
        self._max_age = max_age
        self._clock = clock

    def query(self, query: MetricQuery) -> Vector:
        """As the source behind it, without old samples.

        :raises MetricsStale: it has samples, and all of them are too old
        """
        answer = self._source.query(query)
        vector = fresh(answer, self._clock(), self._max_age)
        if answer.samples and not vector.samples:
            raise exception.MetricsStale(
                source='Metrics', problem=f'{vector.warnings[-1]}; compare the clocks of this host '
                                          'and of Prometheus, and look for a cache between them')
        return vector
