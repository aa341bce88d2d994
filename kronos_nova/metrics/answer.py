"""Parsing of the answers of the Prometheus HTTP API.

The client of Prometheus and the reader of snapshots use the same functions, so both refuse the same
answers. The format is described at
https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
"""

import math
import re
from collections.abc import Sequence
from typing import Any
from typing import Literal

import msgspec

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.objects.metrics import Matrix
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Series
from kronos_nova.objects.metrics import Vector

MOST_WARNINGS = 20
"""Maximum number of warnings from one answer of Prometheus that a message quotes. Further warnings
are only counted. Raised, messages are longer; lowered, the message may leave out a Thanos store
that did not answer, because Thanos sends one warning for each such store. Not measured."""

MOST_LABELS = 100
"""Maximum number of labels of one series in an answer of Prometheus. An answer that has a series
with more labels is refused. Raised, a faulty exporter can take more memory; lowered, answers with
useful series are refused. Chosen above the usual values of ``label_limit`` in Prometheus. Not
measured."""

HEAD = 4096
"""Number of bytes at the beginning of an unexpected HTTP body that are searched for a title or an
error message to quote. Raised, more of the body is searched without use; lowered, a title that
comes later is not found. Not measured."""

_TITLE = re.compile(r'<title[^<>]{0,99}>([^<]{1,300})</title>', re.IGNORECASE)
_MESSAGE = re.compile(r'"(?:message|error)"\s{0,9}:\s{0,9}"([^"]{1,300})"')
_TAG = re.compile(r'<[^<>]{0,300}>')

_REMEDY = {
    'scalar': 'a policy needs one series a host: aggregate by the host label',
    'string': 'a policy needs one series a host: aggregate by the host label',
    'matrix': 'it selects a range: wrap it in rate() or avg_over_time()',
}


class _PlainSeries(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str]


class _PlainData(msgspec.Struct, rename={'result_type': 'resultType'}):
    result_type: Literal['vector']
    result: list[_PlainSeries]


class _PlainAnswer(msgspec.Struct, rename={'is_partial': 'isPartial'}):
    """A well-formed answer with an instant vector."""

    status: Literal['success']
    data: _PlainData
    warnings: object = None
    is_partial: object = None


_PLAIN = msgspec.json.Decoder(_PlainAnswer)


def read_vector(body: bytes, source: str) -> Vector:
    """Return the instant vector in the body of ``/api/v1/query``.

    :param source: name of the source in errors: a URL or a file
    :raises MetricsNotUnderstood: the body is not the API's JSON
    :raises MetricsQueryRefused: the body is the API's own error
    :raises MetricsNotAVector: the result is a scalar, a string, a matrix or native histograms
    """
    plain: Any = boundary.typed_json(body, _PLAIN)
    samples = None if plain is None else _plain_samples(plain.data.result)
    if samples is not None:
        said = {'warnings': plain.warnings, 'isPartial': plain.is_partial}
        return Vector(samples=samples, warnings=_warnings_of(said, source))
    answer = read_answer(body, source)
    return Vector(
        samples=tuple(_sample(series, source) for series in _result_of(answer, 'vector', source)),
        warnings=_warnings_of(answer, source))


def read_matrix(body: bytes, source: str) -> Matrix:
    """Return the series in the body of ``/api/v1/query_range``. Errors are those of
    :func:`read_vector`."""
    answer = read_answer(body, source)
    return Matrix(
        series=tuple(_series(series, source) for series in _result_of(answer, 'matrix', source)),
        warnings=_warnings_of(answer, source))


def read_answer(body: bytes, source: str) -> dict:
    """Parse an answer and check its status. Return the whole answer, with ``data`` unchecked.

    :raises MetricsNotUnderstood: the body is not the API's JSON
    :raises MetricsQueryRefused: ``status`` is ``error``
    """
    try:
        answer = boundary.json_of(body, 'the answer')
    except boundary.OutOfBounds as error:
        raise exception.MetricsNotUnderstood(
            source=source, problem=f'{_looks_like(body)}, not the JSON of a Prometheus API: '
                                   f'{error}') from error
    if not isinstance(answer, dict) or answer.get('status') not in ('success', 'error'):
        raise exception.MetricsNotUnderstood(
            source=source, problem='the answer is JSON, but not that of a Prometheus API, because '
                                   f'it has no "status": "{first_line(body)}"')
    if answer['status'] == 'error':
        kind = boundary.shown(answer.get('errorType'))
        raise exception.MetricsQueryRefused(
            source=source, kind=kind, problem=f'{kind}: {boundary.shown(answer.get("error"))}')
    if 'data' not in answer:
        raise exception.MetricsNotUnderstood(source=source, problem='the answer has no "data"')
    return answer


def _looks_like(body: bytes) -> str:
    line = first_line(body)
    said = f' ("{line}")' if line else ''
    start = body[:200].lstrip().lower()
    if start.startswith((b'<!doctype', b'<html', b'<?xml', b'<head')):
        return (f'an HTML page{said}: a page for people, such as a login or Grafana; set url to '
                'that of the API')
    return f'text{said}' if start else 'an empty answer'


def first_line(body: bytes) -> str:
    """Return the first line of text in a body, for messages. If the body is HTML, the line is the
    title of the page. If the body is JSON, the line is its error message. The line is cut to a
    maximum length and has no control characters."""
    head = body[:HEAD].decode(errors='replace')
    found = _TITLE.search(head) or _MESSAGE.search(head)
    if found:
        return boundary.shown(' '.join(found[1].split()))
    lines = (' '.join(line.split()) for line in _TAG.sub(' ', head).splitlines())
    return boundary.shown(next(filter(None, lines), ''))


def _warnings_of(answer: dict, source: str) -> tuple[str, ...]:
    """Return the warnings of the source about its answer: ``warnings`` of Prometheus and Thanos,
    ``isPartial`` of VictoriaMetrics. The field ``infos`` is ignored, because infos are about the
    query."""
    warnings = answer.get('warnings') or []
    if not isinstance(warnings, list):
        raise exception.MetricsNotUnderstood(
            source=source, problem='"warnings" of the answer is not a list')
    # Prometheus 2.48 to 2.53 list these among the warnings, and only their text distinguishes them.
    warnings = [each for each in warnings if not str(each).startswith('PromQL info:')]
    if answer.get('isPartial') is True:
        warnings.append('some storage nodes did not answer (isPartial)')
    more = len(warnings) - MOST_WARNINGS
    said = [boundary.shown(warning) for warning in warnings[:MOST_WARNINGS]]
    return tuple(said + ([f'and {more} more warnings'] if more > 0 else []))


def _result_of(answer: dict, wanted: str, source: str) -> list:
    data = answer['data']
    kind = data.get('resultType') if isinstance(data, dict) else None
    if kind != wanted and kind in ('vector', *_REMEDY):
        raise exception.MetricsNotAVector(
            source=source, problem=f'the query gives a {kind}, not a {wanted}; '
                                   f'{_REMEDY.get(kind, "the API must support range queries")}')
    if kind != wanted or not isinstance(data.get('result'), list):
        raise exception.MetricsNotUnderstood(
            source=source, problem='"data" of the answer must have the "resultType" '
                                   f'"{wanted}" and a list "result"')
    return data['result']


def _plain_samples(result: Sequence[_PlainSeries]) -> tuple[Sample, ...] | None:
    """Return the samples of a result; None if a sample is malformed. All samples are checked
    together, because a check of each sample would take ten times as long, and a large cloud has
    many samples."""
    labels = [series.metric for series in result]
    times, values = zip(*[series.value for series in result], strict=True) if result else ((), ())
    if max(map(len, labels), default=0) > MOST_LABELS or not all(map(math.isfinite, times)):
        return None
    try:
        return tuple(map(Sample._make, zip(labels, map(float, values), times, strict=True)))
    except ValueError:
        return None


def _sample(series: Any, source: str) -> Sample:
    labels = _labels(series, source)
    if 'value' not in series:
        raise exception.MetricsNotAVector(
            source=source, problem=f'series {boundary.shown(labels)} has no plain value (a native '
                                   'histogram?); apply histogram_quantile(), or another function '
                                   'that returns plain values, to the histogram')
    timestamp, value = _point(series['value'], labels, source)
    return Sample(labels=labels, value=value, timestamp=timestamp)


def _series(series: Any, source: str) -> Series:
    labels = _labels(series, source)
    points = series.get('values')
    if not isinstance(points, list):
        raise exception.MetricsNotAVector(
            source=source, problem=f'series {boundary.shown(labels)} has no plain numbers as '
                                   'values (a native histogram?)')
    return Series(labels=labels, points=tuple(_point(point, labels, source) for point in points))


def _labels(series: Any, source: str) -> dict[str, str]:
    labels = series.get('metric') if isinstance(series, dict) else None
    if not isinstance(labels, dict) or not all(
            isinstance(value, str) for value in labels.values()):
        raise exception.MetricsNotUnderstood(
            source=source, problem='a series of the answer has no "metric" with labels as text')
    if len(labels) > MOST_LABELS:
        raise exception.MetricsNotUnderstood(
            source=source, problem=f'a series has {len(labels)} labels, more than {MOST_LABELS}')
    return labels


def _point(point: Any, labels: dict[str, str], source: str) -> tuple[float, float]:
    try:
        timestamp, value = point
        if not isinstance(value, str):
            raise TypeError('the value must be text')
        return boundary.number(timestamp, 'the time'), float(value)
    except (TypeError, ValueError, boundary.OutOfBounds) as error:
        raise exception.MetricsNotUnderstood(
            source=source, problem=f'series {boundary.shown(labels)} has the point '
                                   f'{boundary.shown(point, 80)}, not [seconds, "value"]'
        ) from error
