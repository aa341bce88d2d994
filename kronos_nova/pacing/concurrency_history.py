"""How many moves were under way at a time."""

import bisect
import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence


def sharing(tries: Iterable[Mapping]) -> list[float]:
    """Of each move, how many there were on the busier of its two links while it was under way, on
    average.

    :param tries: each with ``source``, ``destination``, ``begun`` and ``ended`` in seconds
    """
    tries = list(tries)
    spans = collections.defaultdict(list)
    for each in tries:
        for side in ('source', 'destination'):
            spans[side, each[side]].append((each['begun'], max(each['begun'], each['ended'])))
    histories = {link: _ConcurrencyHistory(found) for link, found in spans.items()}
    return [max(1.0, *(histories[side, each[side]].during(each['begun'], each['ended'])
                       for side in ('source', 'destination'))) for each in tries]


class _ConcurrencyHistory:
    """How many of some spans of time there are at a time, summed up over time: a straight line
    from each beginning or end to the next."""

    def __init__(self, spans: Sequence[tuple[float, float]]):
        """:param spans: (begin, end) of each, in seconds; at least one"""
        changes = sorted([(begun, 1) for begun, _ended in spans]
                         + [(ended, -1) for _begun, ended in spans])
        self._times: list[float] = []
        self._counts: list[int] = []
        self._sums: list[float] = []
        count, total, last = 0, 0.0, changes[0][0]
        for at, change in changes:
            total += count * (at - last)
            count, last = count + change, at
            self._times.append(at)
            self._counts.append(count)
            self._sums.append(total)

    def during(self, begun: float, ended: float) -> float:
        """The mean; 0 of no time."""
        if ended <= begun:
            return 0.0
        return (self._until(ended) - self._until(begun)) / (ended - begun)

    def _until(self, at: float) -> float:
        last = bisect.bisect_right(self._times, at) - 1
        return self._sums[last] + self._counts[last] * (at - self._times[last])
