"""What is asked of the metrics source to predict how long moves take."""

import dataclasses
import math
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import field

from kronos_nova import exception
from kronos_nova.engine.measure import MetricsReader
from kronos_nova.objects import metrics
from kronos_nova.policies import MigrationQueries

MIB = 2**20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGuests:
    """By uuid of the instance: MiB a second that it writes, MiB to copy; by host: MiB a second of
    its link. ``warnings`` tell what was asked for in vain."""

    dirty: Mapping[str, float] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


NOTHING = MeasuredGuests()


def questions(queries: MigrationQueries) -> Iterator[metrics.MetricQuery]:
    """What is asked."""
    for kind in metrics.OF_MIGRATION:
        promql = getattr(queries, f'{kind}_query')
        if promql is not None:
            yield metrics.MetricQuery(metrics.MIGRATION, kind, promql)


def measure(queries: MigrationQueries, reader: MetricsReader) -> MeasuredGuests:
    """Ask what there is a query for. Where there is no answer, what is learnt holds; a figure that
    cannot be true (negative, not finite, of a link that carries nothing, given twice) is none."""
    found, warnings = {kind: {} for kind in metrics.OF_MIGRATION}, []
    for query in questions(queries):
        is_link = query.kind == metrics.LINK
        try:
            vector = reader.answer(query)
        except exception.MetricsError as error:
            warnings.append(f'migration.{query.kind}_query has no answer, and what was learnt of '
                            f'moves holds: {error}')
            continue
        found[query.kind] = _mib(vector.by(queries.host_label if is_link else queries.label),
                                 MIB if is_link else 0.0)
    return MeasuredGuests(dirty=found[metrics.DIRTY_RATE], used=found[metrics.USED_MEMORY],
                          links=found[metrics.LINK], warnings=tuple(warnings))


def _mib(samples, least):
    """{name: MiB} of bytes.

    :param least: bytes below which a figure cannot be true
    """
    return {name: some[0].value / MIB for name, some in samples.items()
            if len(some) == 1 and math.isfinite(some[0].value) and some[0].value >= least}
