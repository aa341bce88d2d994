"""In one word, how good an answer is."""

import dataclasses
import enum
import math
from collections.abc import Iterable

from kronos_nova import exception
from kronos_nova.metrics import labels
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Vector


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
            hosts: Iterable[str], oldest: float = float('-inf')) -> Health:
    """Ask ``query`` and judge the answer by the hosts that it should cover. Raises nothing of the
    source's: an error is a state.

    :param oldest: Unix seconds; a sample from before is as good as none. A Prometheus stamps the
        samples of an instant query with the time of the evaluation, so this finds caches that
        answer with old results, and clocks that differ.
    """
    try:
        vector = source.query(query)
    except exception.MetricsError as error:
        return Health(state=State.UNREACHABLE, detail=str(error), error=error)
    fresh = tuple(sample for sample in vector.samples if sample.timestamp >= oldest)
    diagnosis = labels.diagnose(Vector(fresh), host_label, hosts)
    stale = len(vector.samples) - len(fresh)
    state = State.PARTIAL if diagnosis.missing or diagnosis.repeated else State.HEALTHY
    return Health(state=State.STALE if stale else state,
                  detail='; '.join([*vector.warnings, *_details(diagnosis, host_label, stale)]),
                  diagnosis=diagnosis, out_of_range=_out_of_range(fresh, host_label, diagnosis))


def _out_of_range(samples, host_label, diagnosis):
    known = set(diagnosis.matched)
    return tuple(sorted({
        sample.labels[host_label] for sample in samples
        if sample.labels.get(host_label) in known and not _is_fraction(sample.value)}))


def _is_fraction(value):
    return not math.isnan(value) and 0.0 <= value <= 1.0


def _details(diagnosis, host_label, stale):
    if stale:
        yield (f'{stale} samples are too old: compare the clocks of this host and of Prometheus, '
               'and look for a cache between them')
    if diagnosis.missing:
        total = len(diagnosis.matched) + len(diagnosis.missing)
        yield f'{len(diagnosis.missing)} of {total} hosts have no series'
    if diagnosis.repeated:
        yield (f'{len(diagnosis.repeated)} hosts have more than one: aggregate with '
               f'"by ({host_label})"')
    if diagnosis.proposal:
        yield (f'{diagnosis.proposal.matches} would match with '
               f'{diagnosis.proposal.remedy(host_label)}')
