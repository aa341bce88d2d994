"""Rating of the answer to a query: healthy, partial, stale or unreachable."""

import dataclasses
import enum
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.metrics import labels
from kronos_nova.metrics.base import InstantSource
from kronos_nova.metrics.base import with_key
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector

FEW = 10
"""Divisor (no unit) of the number of instances. The quotient is the number of instances that may
have several series without a warning. With 10, a tenth of the instances may; in small clouds, one
instance may. An instance has two series shortly after a live migration, or if its host is scraped
twice. Raised, a few live migrations at the same time cause a warning; lowered, a host that is
scraped twice causes no warning. Chosen because fewer than a tenth of the instances migrate at once,
and because a host of a small aggregate (fewer than ten hosts) has, on average, more than a tenth of
the instances."""

TOLERANCE = 1e-9
"""Rounding error, as a fraction of a host's capacity. A load that is lower than 0 or higher than 1
by no more than this error is not reported. Fixed by the planners, which tolerate the same error."""


class AnswerHealth(enum.Enum):
    """Ratings of an answer, from best to worst."""

    HEALTHY = 'healthy'
    PARTIAL = 'partial'
    STALE = 'stale'
    UNREACHABLE = 'unreachable'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The names that the series of an answer should have.

    :ivar label: the label that has the names
    :ivar names: names that need a series
    :ivar others: known names that need no series
    :ivar noun: noun for the names in messages
    :ivar moving: names of the instances that Nova is migrating. Each of them may have several
        series, because source and destination both report the instance until shortly after the
        migration. None if no name may have several series, because the names are those of hosts
    :ivar oldest: earliest permitted time of a sample, in Unix seconds. An older sample counts as
        missing. Prometheus gives each sample of an instant query the time of the query. If a sample
        is older, the answer comes from a cache, or a clock is wrong
    :ivar newest: latest permitted time of a sample, in Unix seconds. A later time means that a
        clock is wrong. The age of the sample is then not known
    """

    label: str
    names: frozenset[str]
    others: frozenset[str] = frozenset()
    noun: str = 'hosts'
    moving: frozenset[str] | None = None
    oldest: float = float('-inf')
    newest: float = float('inf')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of one query of a policy.

    :ivar detail: text for an operator; '' when healthy
    :ivar diagnosis: comparison of the names in the answer with the expected names; None if there
        was no answer
    :ivar out_of_range: expected names whose value is not in [0, 1], NaN included
    :ivar extreme: the value of the first name in ``out_of_range``; None if there is none
    :ivar is_whole: False if the source itself says that its answer is incomplete
    """

    state: AnswerHealth
    detail: str = ''
    diagnosis: labels.Diagnosis | None = None
    out_of_range: tuple[str, ...] = ()
    extreme: float | None = None
    is_whole: bool = True
    error: exception.MetricsError | None = None


def any_proposal(_proposal: labels.Proposal) -> bool:
    """Return True: each change of a query may be proposed."""
    return True


def examine(source: InstantSource, query: MetricQuery, expected: Expected,
            accepts: Callable[[labels.Proposal], bool] = any_proposal) -> Health:
    """Send a query and rate the answer. If the source raises an error, the answer is rated as
    unreachable, and the error is not raised again.

    :param accepts: called with a change of the query with which more names would match; returns
        whether the change may be proposed
    """
    try:
        vector = source.query(query)
    except exception.MetricsError as error:
        named = with_key(error, query.key)
        return Health(state=AnswerHealth.UNREACHABLE, detail=str(named), error=named)
    fresh = tuple(sample for sample in vector.samples if sample.timestamp >= expected.oldest)
    diagnosis = labels.diagnose(Vector(fresh), expected.label, expected.names, expected.others)
    if diagnosis.proposal and not accepts(diagnosis.proposal):
        diagnosis = dataclasses.replace(diagnosis, proposal=None)
    stale = len(vector.samples) - len(fresh)
    ahead = sum(sample.timestamp > expected.newest for sample in fresh)
    beyond = _out_of_range(fresh, expected)
    is_partial = diagnosis.missing or _is_doubled(diagnosis, expected) or vector.warnings
    state = AnswerHealth.PARTIAL if is_partial else AnswerHealth.HEALTHY
    return Health(state=AnswerHealth.STALE if stale or ahead else state,
                  detail='; '.join([*_doubts(vector), *_clocks(stale, ahead),
                                    *_details(diagnosis, expected)]),
                  diagnosis=diagnosis, out_of_range=tuple(sorted(beyond)),
                  extreme=beyond[min(beyond)] if beyond else None,
                  is_whole=not vector.warnings)


def _is_doubled(diagnosis: labels.Diagnosis, expected: Expected) -> bool:
    """Return True if more names have several series than is permitted; False otherwise.

    No host may have several series. Instances in a live migration may have several series. Among
    the other instances, max(1, n / FEW) may have several series, for n instances with a series.
    """
    if expected.moving is None:
        return bool(diagnosis.repeated)
    left = set(diagnosis.repeated) - expected.moving
    return len(left) > max(1, len(diagnosis.matched) // FEW)


def _doubts(vector: Vector) -> Iterator[str]:
    if vector.warnings:
        yield (f'the answer is not whole: {"; ".join(vector.warnings)}: such answers are used only '
               'with accept_partial_metrics')


def _out_of_range(samples: Iterable[Sample], expected: Expected) -> dict[str, float]:
    """Return {name: value} of the expected names whose values are not in [0, 1]."""
    return {sample.labels[expected.label]: sample.value for sample in samples
            if sample.labels.get(expected.label) in expected.names
            and not -TOLERANCE <= sample.value <= 1.0 + TOLERANCE}


def _coverage_remedy(expected: Expected, diagnosis: labels.Diagnosis) -> str:
    """Return a text that recommends the option min_coverage; '' if the option would not help. It
    helps only if some hosts have samples and others have none."""
    can_help = expected.noun == 'hosts' and diagnosis.matched
    return '; min_coverage permits to plan without some' if can_help else ''


def _clocks(stale: int, ahead: int) -> Iterator[str]:
    for count, what in ((stale, 'too old'), (ahead, 'from the future')):
        if count:
            yield (f'{count} samples are {what}: compare the clocks of this host and of '
                   'Prometheus, and look for a cache between them')


def _details(diagnosis: labels.Diagnosis, expected: Expected) -> Iterator[str]:
    if diagnosis.missing:
        yield (f'{len(diagnosis.missing)} of {len(expected.names)} {expected.noun} '
               f'{plural.agreeing(len(diagnosis.missing), "have")} no series, such as '
               f'{diagnosis.missing[0]}{_coverage_remedy(expected, diagnosis)}')
    if diagnosis.unknown:
        yield (f'{len(diagnosis.unknown)} values of the label "{expected.label}" are none of the '
               f'{expected.noun}, such as "{boundary.shown(diagnosis.unknown[0], 80)}"')
    if diagnosis.repeated and not _is_doubled(diagnosis, expected):
        yield (f'{len(diagnosis.repeated)} {expected.noun} have more than one series, such as '
               f'{boundary.shown(diagnosis.repeated[0], 80)}, as during a live migration and '
               f'shortly after: if that stays, aggregate with "by ({expected.label})"')
    elif diagnosis.repeated:
        yield (f'{len(diagnosis.repeated)} {expected.noun} have more than one series: aggregate '
               f'with "by ({expected.label})"')
    if diagnosis.proposal and expected.noun == 'hosts':
        yield (f'{diagnosis.proposal.matches} would match with '
               f'{diagnosis.proposal.remedy(expected.label)}')
    if diagnosis.by_case and expected.noun == 'hosts':
        yield (f'{diagnosis.by_case.matches} differ by upper and lower case alone from the label '
               f'"{diagnosis.by_case.label}": {labels.case_remedy(expected.names)}')
