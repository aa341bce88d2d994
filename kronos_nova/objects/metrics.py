"""What was read of the load: instant vectors and series, as Prometheus answers them."""

import dataclasses
from collections.abc import Mapping

IMBALANCE = 'imbalance'
VM_PROFILE = 'vm_profile'
CAPACITY = 'capacity'
HOST_CAPACITY = 'host_capacity'


@dataclasses.dataclass(frozen=True, slots=True)
class MetricQuery:
    """One question of a policy. ``kind`` is one of the words above; a recorded source answers by
    policy and kind."""

    policy: str
    kind: str
    promql: str


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """One series of an instant vector; ``value`` may be NaN or infinite, ``timestamp`` in Unix
    seconds."""

    labels: Mapping[str, str]
    value: float
    timestamp: float


@dataclasses.dataclass(frozen=True, slots=True)
class Vector:
    """An answer. ``warnings`` are the source's own (Thanos names the stores that did not answer
    there)."""

    samples: tuple[Sample, ...]
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """One series of a range query; ``points`` are ``(Unix seconds, value)`` in time order."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]
