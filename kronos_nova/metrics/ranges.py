"""Detection of range selectors in PromQL that are too short for the scrape interval.

For example, if a target is scraped every 300 s, ``rate(x[5m])`` has only one sample in its window.
``rate`` then has no result. The answer to the query lacks hosts, and does not say why.
"""

import dataclasses
import math
import re
from collections.abc import Callable
from collections.abc import Iterator

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.objects.metrics import Vector

ENOUGH = 4
"""Number of samples that a range in a query, such as ``[5m]``, should contain. If a range has too
few samples for a result, a warning advises a longer range, with this number of samples. Raised, the
advised range is longer, and rates follow changes of the load more slowly; lowered, a rate over the
advised range has no value after one lost scrape. Chosen because a rate needs two samples, one
sample may be missing, and another sample may be late."""

LONGER = (2, 3, 4, 6, 8, 12, 24)
"""Factors by which a query's range, such as ``[5m]``, is multiplied to find the scrape interval.
The factors are tried in this order, until the range has enough samples (:data:`ENOUGH`). Raised,
Prometheus counts more samples than necessary; lowered, a long scrape interval is not found. Chosen
because 24 times five minutes are two hours, which have enough samples even if Prometheus scrapes
every half hour."""

_NEED_TWO = {'rate', 'irate', 'increase', 'delta', 'idelta', 'deriv', 'predict_linear'}
_UNITS = {'ms': 0.001, 's': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800, 'y': 31536000}
"""Seconds in each unit of a duration in PromQL. Fixed by PromQL."""
_TEXT = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`'
_COMMENT = re.compile(rf'({_TEXT})|#[^\n]*')
_SELECTOR = re.compile(
    rf'(?P<selector>(?:[a-zA-Z_:][\w:]*\s*)?\{{(?:[^{{}}"\'`]|{_TEXT})*\}}|[a-zA-Z_:][\w:]*)\s*'
    r'\[\s*(?P<window>(?:[0-9]+(?:ms|[smhdwy]))+)\s*\]')
_DURATION = re.compile('([0-9]+)(ms|[smhdwy])')
_FUNCTION = re.compile(r'(\w+)\s*\(\s*(?:[0-9.]+\s*,\s*)?$')


@dataclasses.dataclass(frozen=True, slots=True)
class RangeSelector:
    """A range selector of a query.

    selector : metric name and matchers, in one line
    window : length of the range as it is written, such as 5m
    needed : least number of samples with which ``function`` has a result
    """

    selector: str
    window: str
    function: str
    needed: int

    @property
    def seconds(self) -> float:
        """Return the length of the window in seconds."""
        return seconds(self.window)

    def __str__(self) -> str:
        text = f'{self.selector}[{self.window}]'
        return boundary.shown(f'{self.function}({text})' if self.function else text, 200)


def ranges(promql: str) -> Iterator[RangeSelector]:
    """Yield each range selector of a query once. Subqueries are left out."""
    plain = _COMMENT.sub(lambda found: found[1] or '', promql)
    seen = set()
    for found in _SELECTOR.finditer(plain):
        function = _FUNCTION.search(plain[:found.start()])
        name = function[1] if function else ''
        each = RangeSelector(' '.join(found['selector'].split()), found['window'], name,
                     2 if name in _NEED_TWO else 1)
        if each not in seen:
            seen.add(each)
            yield each


def too_short(instant: Callable[[str], Vector], promql: str) -> Iterator[str]:
    """Yield a sentence for each range of a query that is too short. A range such as ``[5m]`` is too
    short if the metric has fewer samples in the range than the function around the range, such as
    ``rate()``, needs. Ranges of metrics without any sample are left out.

    :param instant: function that sends an instant query; a range whose query is not answered counts
        as long enough
    """
    for each, interval in _intervals(instant, promql):
        yield (f'{each} needs {each.needed} samples and samples come about every {interval:.3g} s: '
               f'widen [{each.window}] to [{_duration(ENOUGH * interval)}]')


def wider(instant: Callable[[str], Vector], promql: str) -> dict[str, str]:
    """Return {window with too few samples: longer window with enough samples}.

    :param instant: function that sends an instant query; a range whose query is not answered counts
        as long enough
    """
    found: dict[str, str] = {}
    for each, interval in _intervals(instant, promql):
        found[each.window] = max(found.get(each.window, ''), _duration(ENOUGH * interval),
                                 key=seconds)
    return found


def _intervals(instant: Callable[[str], Vector],
               promql: str) -> Iterator[tuple[RangeSelector, float]]:
    """Yield (RangeSelector, seconds between samples) for each range that is too short."""
    for each in ranges(promql):
        try:
            interval = _interval(instant, each)
        except exception.MetricsError:
            continue
        if interval is not None:
            yield each, interval


def _interval(instant: Callable[[str], Vector], each: RangeSelector) -> float | None:
    """Return the seconds between the samples of a range, if the range is too short. Return None if
    the range has enough samples for its function. Return None as well if the seconds cannot be
    determined: a range that is longer by the largest factor in :data:`LONGER` still has fewer than
    :data:`ENOUGH` samples.
    """
    if _samples(instant, each, 1) >= each.needed:
        return None
    for times in LONGER:
        count = _samples(instant, each, times)
        if count >= ENOUGH:
            return each.seconds * times / count
    return None


def seconds(window: str) -> float:
    """Return the length in seconds of a window such as 5m."""
    return sum(int(number) * _UNITS[unit] for number, unit in _DURATION.findall(window))


def _samples(instant: Callable[[str], Vector], each: RangeSelector, times: float) -> float:
    """Count the samples of each series of ``each.selector``, in a range that is ``times`` as long
    as ``each.window``. Return the median of these counts; 0 if there are no series.

    :param instant: function that sends a query and returns its Vector
    :param each: RangeSelector
    """
    window = max(1, round(each.seconds * times * 1000))
    vector = instant(f'quantile(0.5, count_over_time({each.selector}[{window}ms]))')
    return vector.samples[0].value if vector.samples else 0


def _duration(seconds: float) -> str:
    """Return a number of seconds as a duration of PromQL. The duration is rounded up to whole
    minutes, or to whole seconds if it is shorter than a minute."""
    minutes = math.ceil(round(seconds / 60, 3))
    return f'{minutes}m' if seconds >= 60 else f'{math.ceil(round(seconds, 3))}s'
