"""In one word, how good an answer is."""

import dataclasses
import enum
import math
from collections.abc import Iterable

from kronos_nova import exception
from kronos_nova.metrics import labels
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects.metrics import MetricQuery


class State(enum.Enum):
    """From best to worst."""

    HEALTHY = 'healthy'
    PARTIAL = 'partial'
    STALE = 'stale'
    UNREACHABLE = 'unreachable'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What one query of a policy is worth.

    :ivar detail: one line for a person, '' when healthy
    :ivar diagnosis: the hosts that were found; None when there was no answer
    :ivar out_of_range: hosts whose value is not in [0, 1], NaN included
    """

    state: State
    detail: str = ''
    diagnosis: labels.Diagnosis | None = None
    out_of_range: tuple[str, ...] = ()
    error: exception.MetricsError | None = None


def examine(source: MetricsSource, query: MetricQuery, host_label: str,
            hosts: Iterable[str]) -> Health:
    """Ask ``query`` and judge the answer by the hosts that it should cover. Raises nothing of the
    source's: an error is a state."""
    try:
        vector = source.query(query)
    except exception.MetricsStale as error:
        return Health(state=State.STALE, detail=str(error), error=error)
    except exception.MetricsError as error:
        return Health(state=State.UNREACHABLE, detail=str(error), error=error)
    diagnosis = labels.diagnose(vector, host_label, hosts)
    state = State.PARTIAL if diagnosis.missing or diagnosis.repeated else State.HEALTHY
    return Health(state=state, detail=_detail(diagnosis, host_label, vector.warnings),
                  diagnosis=diagnosis, out_of_range=_out_of_range(vector, host_label, diagnosis))


def _out_of_range(vector, host_label, diagnosis):
    known = set(diagnosis.matched)
    return tuple(sorted({
        sample.labels[host_label] for sample in vector.samples
        if sample.labels.get(host_label) in known and not _is_fraction(sample.value)}))


def _is_fraction(value):
    return not math.isnan(value) and 0.0 <= value <= 1.0


def _detail(diagnosis, host_label, warnings):
    parts = list(warnings)
    if diagnosis.missing:
        total = len(diagnosis.matched) + len(diagnosis.missing)
        parts.append(f'{len(diagnosis.missing)} of {total} hosts have no series')
    if diagnosis.repeated:
        parts.append(f'{len(diagnosis.repeated)} hosts have more than one: aggregate with '
                     f'"by ({host_label})"')
    if diagnosis.proposal:
        parts.append(f'{diagnosis.proposal.matches} would match with '
                     f'{diagnosis.proposal.remedy(host_label)}')
    return '; '.join(parts)
