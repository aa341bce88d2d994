"""Measurements of load: instant vectors and series, as Prometheus answers them."""

import collections
import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

IMBALANCE = 'imbalance'
VM_PROFILE = 'vm_profile'
CAPACITY = 'capacity'
HOST_CAPACITY = 'host_capacity'
HISTORY = 'history'
FORECAST = 'forecast'

# Of no policy, but of what is asked for moves.
MIGRATION = '_migration'
DIRTY_RATE = 'dirty_rate'
USED_MEMORY = 'used_memory'
LINK = 'link'
OF_MIGRATION = DIRTY_RATE, USED_MEMORY, LINK


@dataclasses.dataclass(frozen=True, slots=True)
class MetricQuery:
    """One query of a policy. ``kind`` is one of the words above; a recorded source answers by
    policy and kind. ``policy`` is :data:`MIGRATION` where it is of none."""

    policy: str
    kind: str
    promql: str


class Sample(NamedTuple):
    """One series of an instant vector; ``value`` may be NaN or infinite, ``timestamp`` in Unix
    seconds. A tuple, which is made in a fifth of the time: a profile has one an instance."""

    labels: Mapping[str, str]
    value: float
    timestamp: float


@dataclasses.dataclass(frozen=True, slots=True)
class Vector:
    """An answer. ``warnings`` are the source's own (Thanos names the stores that did not answer
    there)."""

    samples: tuple[Sample, ...]
    warnings: tuple[str, ...] = ()
    _by_label: dict = dataclasses.field(default_factory=dict, init=False, repr=False,
                                        compare=False)

    def by(self, label: str) -> Mapping[str, Sequence[Sample]]:
        """Return the samples by the value of ``label``, without samples that lack the label. The
        index is made once, so that many aggregates can use it."""
        if label not in self._by_label:
            found = self._by_label[label] = collections.defaultdict(list)
            for sample in self.samples:
                if label in sample.labels:
                    found[sample.labels[label]].append(sample)
            found.default_factory = None
        return self._by_label[label]


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """One series of a range query; ``points`` are ``(Unix seconds, value)`` in time order."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Matrix:
    """The answer to a range query; ``warnings`` as of :class:`Vector`."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """Moments of a range query in Unix seconds, ``first`` and ``last`` included."""

    first: float
    last: float
    step: float
