"""Diagnosis of labels: why series lack Nova's host names, and which change of the query adds these
names."""

import collections
import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from kronos_nova import boundary
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector


@dataclasses.dataclass(frozen=True, slots=True)
class Proposal:
    """A change of a query that gives its series the names that Nova uses.

    :ivar label: the label whose value has the host's name, or contains it
    :ivar pattern: pattern (RE2) that the whole value has to match, as in ``label_replace``
    :ivar replacement: the host name, in which ``$1`` stands for the first group of the pattern
    :ivar matches: number of hosts that would have a series after the change
    """

    label: str
    pattern: str
    replacement: str
    matches: int

    @property
    def is_plain(self) -> bool:
        """Return true if the values of the label are the names that Nova gives the hosts. It is
        then enough to change ``host_label`` of the policy. Return false if the query needs a
        ``label_replace``."""
        return (self.pattern, self.replacement) == PLAIN

    def remedy(self, host_label: str) -> str:
        """Return the line that an operator has to write into the policy."""
        label = boundary.shown(self.label, 80)
        if self.is_plain:
            return f'host_label: {label}'
        pattern = self.pattern.replace('\\', '\\\\')
        return (f'label_replace(QUERY, "{host_label}", "{self.replacement}", "{label}", '
                f'"{pattern}")')


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    """The comparison of the series of an answer with the hosts that Nova knows. Names are sorted.

    :ivar matched: hosts with a series
    :ivar missing: hosts without a series
    :ivar unknown: values of the label that are not names of hosts; '' stands for series without the
        label
    :ivar repeated: hosts with more than one series
    :ivar proposal: change of the query with which more hosts would match; None if no such change is
        found
    :ivar by_case: change of the query with which more hosts would match if upper and lower case did
        not matter; None if no such change is found
    """

    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    repeated: tuple[str, ...]
    proposal: Proposal | None
    by_case: Proposal | None = None


def _as_it_is(value: str) -> str:
    return value


def _without_port(value: str) -> str | None:
    name, colon, port = value.rpartition(':')
    return name if colon and port.isascii() and port.isdigit() else None


def _first_part(value: str) -> str | None:
    return value.partition(':')[0].partition('.')[0] or None


@dataclasses.dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite of label values, with the same result as ``label_replace``.

    :ivar group: function of a value of a label. It returns the part of the value that the first
        group of ``pattern`` matches; None if ``pattern`` does not match. A regular expression is
        not used, because the time of its search could grow with the square of the value's length
    """

    pattern: str
    replacement: str
    group: Callable[[str], str | None]

    def name(self, value: str) -> str | None:
        group = self.group(value)
        return None if group is None else self.replacement.replace('$1', group)


PLAIN = ('(.*)', '$1')
"""Pattern and replacement for a label whose values are the names themselves."""

_AS_IT_IS = Rewrite(*PLAIN, _as_it_is)
_WITHOUT_PORT = Rewrite(r'(.*):\d+', '$1', _without_port)
_DOMAINS = 5
"""Maximum number of DNS domains that are appended to short host names in series, to find the full
host names of Nova. The most frequent domains of Nova's hosts are tried. If the result matches
hosts, a message proposes to append the domain in the query. Raised, the search takes longer;
lowered, hosts in less frequent domains are not found. Not measured."""

_SERIES = 20_000
"""Maximum number of series that are searched for a label with host names. The search is made when a
query finds too few hosts. Raised, a faulty exporter can make evaluations take longer; lowered, the
search leaves out some hosts of a large cloud. Chosen as two series for each of 10,000 hosts."""
_LABELS = 16
"""Maximum number of labels that are searched for host names, in addition to the label in the
policy. The most frequent labels are searched. Raised, the search takes longer; lowered, the search
may leave out the label with the host names. Not measured."""
LONGEST_NAME = 255
"""Maximum number of characters of a label's value that can be a host name. Longer values are
ignored. Fixed by RFC 1035."""


def diagnose(vector: Vector, host_label: str, hosts: Iterable[str],
             others: Iterable[str] = ()) -> Diagnosis:
    """Compare the series of an answer with the expected hosts, and propose a change of the query if
    a change helps.

    ``hosts`` may also be names of instances, which are then compared in place of hosts.

    :param others: known names that need no series
    """
    hosts = frozenset(hosts)
    found = collections.Counter(s.labels.get(host_label, '') for s in vector.samples)
    matched = hosts & found.keys()
    proposal = _propose(vector, host_label, hosts, len(matched))
    return Diagnosis(
        matched=tuple(sorted(matched)),
        missing=tuple(sorted(hosts - matched)),
        unknown=tuple(sorted(found.keys() - hosts - frozenset(others))),
        repeated=tuple(sorted(host for host in matched if found[host] > 1)),
        proposal=proposal,
        by_case=None if proposal or len(matched) == len(hosts) else _propose(
            vector, host_label, frozenset(map(str.casefold, hosts)), len(matched), str.casefold))


def case_remedy(hosts: Iterable[str]) -> str:
    """Return the remedy for names that differ only in upper and lower case."""
    hosts = tuple(hosts)
    action = ('lowercase' if all(host == host.lower() for host in hosts) else
              'uppercase' if all(host == host.upper() for host in hosts) else 'replace')
    return ('PromQL cannot change upper and lower case: give the targets the names that Nova has '
            f'(relabel_configs with "action: {action}")')


def _propose(vector: Vector, host_label: str, hosts: frozenset[str], matches: int,
             fold: Callable[[str], str] = _as_it_is) -> Proposal | None:
    """Return the Proposal that finds the most hosts. If several Proposals find equally many hosts,
    return the first, which changes the query least. Return None if no Proposal finds more hosts
    than ``matches``.

    :param fold: function that is applied to each value of a label before it is compared
    """
    best: Proposal | None = None
    samples = vector.samples[:_SERIES]
    for label in _labels_of(samples, host_label):
        values = [fold(value) for sample in samples
                  if len(value := sample.labels.get(label, '')) <= LONGEST_NAME
                  and value.isprintable()]
        for rewrite in rewrites(hosts):
            count = _matches(values, rewrite, hosts)
            if count > (best.matches if best else matches):
                best = Proposal(label, rewrite.pattern, rewrite.replacement, count)
    return best


def _labels_of(samples: Iterable[Sample], host_label: str) -> list[str]:
    """Return ``host_label``, followed by the :data:`_LABELS` most frequent other labels, sorted by
    name."""
    counts = collections.Counter(label for sample in samples for label in sample.labels)
    del counts['__name__'], counts[host_label]
    common = sorted(counts, key=lambda label: (-counts[label], label))[:_LABELS]
    return [host_label, *sorted(common)]


def candidates(samples: Sequence[Sample], first: str, hosts: Iterable[str]
               ) -> Iterator[tuple[str, Rewrite]]:
    """Yield pairs (label, Rewrite), the simplest first. The Rewrite of the label's values may give
    the names of hosts.

    :param first: the label to begin with
    """
    for label in _labels_of(samples[:_SERIES], first):
        for rewrite in rewrites(hosts):
            yield label, rewrite


def rewrites(hosts: Iterable[str]) -> Iterator[Rewrite]:
    """Yield the rewrites by which a label may give the names of hosts, the simplest first."""
    yield _AS_IT_IS
    yield _WITHOUT_PORT
    first_part = Rewrite(r'([^.:]+).*', '$1', _first_part)
    yield first_part
    # Nova may have the full names of hosts where the series have short ones.
    domains = collections.Counter(sorted(host.partition('.')[2] for host in hosts))
    del domains['']
    for domain, _count in domains.most_common(_DOMAINS):
        yield dataclasses.replace(first_part, replacement=f'$1.{domain}')


def _matches(values: Iterable[str], rewrite: Rewrite, hosts: frozenset[str]) -> int:
    """Return the number of hosts that have a series after a rewrite. Return 0 if one of the hosts
    has several series, because it is not known which series is right."""
    names = collections.Counter(filter(None, map(rewrite.name, values)))
    matched = hosts & names.keys()
    return 0 if any(names[host] > 1 for host in matched) else len(matched)
