"""Load metrics as Prometheus returns them: instant vectors and range matrices."""

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

KEYS = {IMBALANCE: 'imbalance_query', VM_PROFILE: 'vm_profile_query', CAPACITY: 'capacity_query',
        HOST_CAPACITY: 'host_capacity_query'}
"""{kind of a query for loads: key of a policy in the policies file that has the PromQL}"""


@dataclasses.dataclass(frozen=True, slots=True)
class MetricQuery:
    """A PromQL query of a policy. ``kind`` is one of the constants of this module, such as
    :data:`IMBALANCE`. ``policy`` is :data:`MIGRATION` for a query that belongs to no policy. In a
    snapshot, the recorded result of a query is found by ``policy`` and ``kind``. ``key`` is the key
    of the policies file that has the PromQL, for errors."""

    policy: str
    kind: str
    promql: str
    key: str = dataclasses.field(default='', compare=False)


class Sample(NamedTuple):
    """One series of an instant vector. ``value`` may be NaN or infinite; ``timestamp`` is in Unix
    seconds. The class is a named tuple, because there may be a sample for each instance, and named
    tuples are made five times faster than dataclasses."""

    labels: Mapping[str, str]
    value: float
    timestamp: float


@dataclasses.dataclass(frozen=True, slots=True)
class Vector:
    """The result of an instant query. ``warnings`` are the warnings of the metrics source, such as
    a list of Thanos stores that did not answer."""

    samples: tuple[Sample, ...]
    warnings: tuple[str, ...] = ()
    _by_label: dict = dataclasses.field(default_factory=dict, init=False, repr=False,
                                        compare=False)

    def by(self, label: str) -> Mapping[str, Sequence[Sample]]:
        """Return {value of ``label``: samples with this value}. Samples without the label are left
        out. The result is computed once for each label and then kept, because many aggregates use
        the same vector."""
        if label not in self._by_label:
            found = self._by_label[label] = collections.defaultdict(list)
            for sample in self.samples:
                if label in sample.labels:
                    found[sample.labels[label]].append(sample)
            found.default_factory = None
        return self._by_label[label]


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """One series of a range query. ``points`` are pairs of (Unix seconds, value) in time order."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Matrix:
    """The result of a range query. ``warnings`` are as of :class:`Vector`."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """The time range of a range query, in Unix seconds. There is a point every ``step`` seconds
    from ``first`` to ``last``, both included."""

    first: float
    last: float
    step: float
