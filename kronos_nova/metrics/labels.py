"""The label doctor: why series do not carry Nova's host names, and what would make them."""

import collections
import dataclasses
import re
from collections.abc import Iterable
from collections.abc import Iterator

from kronos_nova.objects.metrics import Vector


@dataclasses.dataclass(frozen=True, slots=True)
class Proposal:
    """How series could be given the names that Nova uses.

    :ivar label: the label to take the name from
    :ivar pattern: what to match all of it with (RE2, as ``label_replace`` does)
    :ivar replacement: the host name, ``$1`` being the first group
    :ivar matches: how many hosts would be found
    """

    label: str
    pattern: str
    replacement: str
    matches: int

    @property
    def is_plain(self) -> bool:
        """Whether the label as it is has the names, so that ``host_label`` is all to change."""
        return (self.pattern, self.replacement) == _AS_IT_IS

    def remedy(self, host_label: str) -> str:
        """What to write into the policy, for a person."""
        if self.is_plain:
            return f'host_label: {self.label}'
        pattern = self.pattern.replace('\\', '\\\\')
        return (f'label_replace(QUERY, "{host_label}", "{self.replacement}", "{self.label}", '
                f'"{pattern}")')


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the series of an answer have to do with the hosts that Nova knows; names sorted.

    :ivar matched: hosts with a series
    :ivar missing: hosts without one
    :ivar unknown: label values that are no host, '' for series without the label
    :ivar repeated: hosts with more than one series
    :ivar proposal: what would match more hosts, or None
    """

    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    repeated: tuple[str, ...]
    proposal: Proposal | None


_AS_IT_IS = ('(.*)', '$1')
_WITHOUT_PORT = (r'(.*):\d+', '$1')
_FIRST_PART = (r'([^.:]+).*', '$1')
_DOMAINS = 5


def diagnose(vector: Vector, host_label: str, hosts: Iterable[str],
             others: Iterable[str] = ()) -> Diagnosis:
    """Compare the series with the hosts that are expected, and propose a mapping if it helps.

    Works for the names of instances as well.

    :param others: known names that need no series
    """
    hosts = frozenset(hosts)
    found = collections.Counter(s.labels.get(host_label, '') for s in vector.samples)
    matched = hosts & found.keys()
    return Diagnosis(
        matched=tuple(sorted(matched)),
        missing=tuple(sorted(hosts - matched)),
        unknown=tuple(sorted(found.keys() - hosts - frozenset(others))),
        repeated=tuple(sorted(host for host in matched if found[host] > 1)),
        proposal=_propose(vector, host_label, hosts, len(matched)))


def _propose(vector, host_label, hosts, matches):
    """The candidate that finds most hosts; of those the one that changes least."""
    best = None
    for label in _labels_of(vector, host_label):
        for pattern, replacement in _rewrites(hosts):
            count = _matches(vector, label, pattern, replacement, hosts)
            if count > (best.matches if best else matches):
                best = Proposal(label, pattern, replacement, count)
    return best


def _labels_of(vector, host_label) -> list[str]:
    """The policy's own label first, then the others by name."""
    labels = {label for sample in vector.samples for label in sample.labels}
    return sorted(labels - {'__name__'}, key=lambda label: (label != host_label, label))


def _rewrites(hosts) -> Iterator[tuple[str, str]]:
    yield _AS_IT_IS
    yield _WITHOUT_PORT
    yield _FIRST_PART
    # Nova may know hosts by their full names where the series have short ones.
    domains = collections.Counter(sorted(host.partition('.')[2] for host in hosts))
    del domains['']
    for domain, _count in domains.most_common(_DOMAINS):
        yield _FIRST_PART[0], f'$1.{domain}'


def _matches(vector, label, pattern, replacement, hosts):
    """How many hosts get exactly one series; 0 as soon as one gets two, for then a choice
    between them would be a guess."""
    expression = re.compile(pattern, re.ASCII)
    names = collections.Counter()
    for sample in vector.samples:
        match = expression.fullmatch(sample.labels.get(label, ''))
        if match:
            names[replacement.replace('$1', match[1])] += 1
    matched = hosts & names.keys()
    return 0 if any(names[host] > 1 for host in matched) else len(matched)
