"""What is asked of the metrics source to predict how long moves take."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import field

from kronos_nova import exception
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects import metrics
from kronos_nova.policies import MigrationQueries

MIB = 2**20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """By uuid of the instance: MiB a second that it writes, MiB to copy; by host: MiB a second of
    its link. ``warnings`` tell what was asked for in vain."""

    dirty: Mapping[str, float] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


NOTHING = Measured()


def measure(queries: MigrationQueries, source: MetricsSource) -> Measured:
    """Ask what there is a query for. Where there is no answer, what is learnt holds; a figure that
    cannot be true (negative, not finite, of a link that carries nothing, given twice) is none."""
    warnings = []

    def ask(kind, promql, label, least):
        if promql is None:
            return {}
        try:
            vector = source.query(metrics.MetricQuery(metrics.MIGRATION, kind, promql))
        except exception.MetricsError as error:
            warnings.append(f'migration.{kind}_query has no answer, and what was learnt of moves '
                            f'holds: {error}')
            return {}
        return {name: samples[0].value / MIB for name, samples in vector.by(label).items()
                if len(samples) == 1 and math.isfinite(samples[0].value)
                and samples[0].value >= least}

    return Measured(
        dirty=ask(metrics.DIRTY_RATE, queries.dirty_rate_query, queries.label, 0.0),
        used=ask(metrics.USED_MEMORY, queries.used_memory_query, queries.label, 0.0),
        links=ask(metrics.LINK, queries.link_query, queries.host_label, MIB),
        warnings=tuple(warnings))
