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

# Queries for figures about moves, which belong to no policy.
MIGRATION = '_migration'
DIRTY_RATE = 'dirty_rate'
USED_MEMORY = 'used_memory'
LINK = 'link'
OF_MIGRATION = DIRTY_RATE, USED_MEMORY, LINK


@dataclasses.dataclass(frozen=True, slots=True)
class MetricQuery:
    """A query of a policy. ``kind`` is one of the constants of this module, such as
    :data:`IMBALANCE`. ``policy`` is :data:`MIGRATION` for a query without a policy. Recorded
    answers are found by policy and kind."""

    policy: str
    kind: str
    promql: str


class Sample(NamedTuple):
    """One series of an instant vector. ``value`` may be NaN or infinite, ``timestamp`` is in Unix
    seconds. It is a tuple because a profile has a sample for each instance, and tuples are made
    five times faster."""

    labels: Mapping[str, str]
    value: float
    timestamp: float


@dataclasses.dataclass(frozen=True, slots=True)
class Vector:
    """The answer to an instant query. ``warnings`` are those of the source, such as Thanos' list of
    stores that did not answer."""

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
    """Times of a range query in Unix seconds: from ``first`` to ``last``, both included, every
    ``step``."""

    first: float
    last: float
    step: float
