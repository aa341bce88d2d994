"""The exporters that a Prometheus scrapes, and for each exporter the label of its series that has
the names of Nova's hosts."""

import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from kronos_nova import exception
from kronos_nova.metrics import joins
from kronos_nova.metrics import labels
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import Instance

NODE, LIBVIRT, CEILOMETER = 'node_exporter', 'libvirt exporter', 'ceilometer'
TARGETS = {NODE: 'node_memory_MemTotal_bytes', LIBVIRT: 'libvirt_up'}
"""For each exporter, a metric that has one series for each target."""
GUESTS = {LIBVIRT: 'libvirt_domain_info_virtual_cpus', CEILOMETER: 'ceilometer_memory_usage'}
"""For each exporter, a metric that has one series for each server."""
MEMORY = TARGETS[NODE]
CPUS = 'count without (cpu, mode) (node_cpu_seconds_total{mode="idle"})'
BOOTED = 'node_boot_time_seconds'
BOOTED_WITHIN = 1.0
"""Maximum difference in seconds between the boot times scraped at two addresses of one machine.
With a larger difference, the addresses count as two machines, even with the same host name. Raised,
two machines with the same name may count as one; lowered, one machine may count as two, because the
kernel computes the boot time from a clock that is adjusted. Chosen because a clock is adjusted by
less than a second between two scrapes."""

KINDS = ('name', 'uuid', 'display_name')
"""Attributes of an instance that may be the value of a label. If several attributes match equally
many servers, the first of them is used."""
MOST_VALUES = 20
"""Maximum number of values of a label that may name the cloud. Kronos searches for such a label if
one Prometheus scrapes several clouds. Labels with more values are ignored. Raised, Kronos also
tries labels that name racks or hosts; lowered, the label is not found if there are many clouds. Not
measured."""
MOST_ADDRESSES = 5
"""Maximum number of addresses that a check excludes from a query. If Prometheus scrapes a machine
at several addresses, the query may count the machine several times. To find this, the check repeats
the query without the second and further addresses of such machines. If the answer changes, the
check warns. Raised, the repeated query and the warning that quotes the addresses are longer;
lowered, fewer machines are checked. Chosen because one machine that changes the answer is enough
for the warning."""

_OF_ONE_TARGET = {'__name__', 'instance', 'job', 'nodename'}
_OF_THE_KERNEL = ('nodename', 'domainname', 'machine', 'release', 'sysname', 'version')
"""Labels of ``node_uname_info`` that describe the machine itself."""


#: A function that sends an instant query of PromQL.
Instant = Callable[[str], Vector]
#: A pair (label, value) that may select the series of one cloud.
Mark = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Naming:
    """A way to read the name of a host from a series. The name is in a label of the series itself,
    or in a label of ``node_uname_info``.

    label, pattern, replacement : arguments of ``label_replace()``
    is_join : true if ``label`` is a label of ``node_uname_info``. The series then get the label by
        a join, in which the address of the machine has to match. False if the series themselves
        have the label
    """

    label: str
    pattern: str
    replacement: str
    is_join: bool = False

    def __str__(self) -> str:
        rewritten = '' if self.pattern == labels.PLAIN[0] else f' by "{self.pattern}"'
        return f'{joins.METRIC} {self.label}{rewritten}' if self.is_join else (
            f'{self.label}{rewritten}')


DEFAULT = Naming('instance', '([^:]+).*', '$1')
"""The Naming that the recipes (example policies files) use."""


@dataclasses.dataclass(frozen=True, slots=True)
class Exporter:
    """An exporter, and the hosts whose series it has.

    kind : NODE, LIBVIRT or CEILOMETER
    naming : the way to read host names from the series; None if the series have no name of a host
        that Nova knows, or if no host name is needed
    hosts : {host: the labels of its series}
    shared : {name of a host: addresses of the machines}, if several machines report the same name
    by_case : true if no host is found, but hosts would be found if upper and lower case did not
        matter
    """

    kind: str
    naming: Naming | None
    hosts: Mapping[str, Mapping[str, str]]
    shared: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    by_case: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """The exporters and series that a Prometheus has for a cloud.

    selector : label matcher of the series of this cloud, such as ``region="one"``; '' if all series
        are of this cloud
    guest_label : the label by which series identify servers; '' if no series belongs to a server
    guest_kind : the attribute of Instance that equals the values of ``guest_label``; '' if no
        series belongs to a server
    guests : {host: uuids of Nova's servers that the host's libvirt exporter shows}
    anywhere : uuids of servers of Nova that have a series
    problems : texts about properties of the series that could not be determined, with remedies
    """

    exporters: tuple[Exporter, ...]
    selector: str = ''
    guest_label: str = ''
    guest_kind: str = ''
    guests: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    anywhere: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()

    def exporter(self, kind: str) -> Exporter | None:
        return next((each for each in self.exporters if each.kind == kind), None)


def find(instant: Callable[[str], Vector], hosts: Iterable[str], known: Iterable[str],
         instances: Sequence[Instance]) -> Found:
    """Return the exporters and series that Prometheus has for a cloud. The targets of each exporter
    are compared with the hosts and servers of the cloud.

    :param instant: function that sends an instant query
    :param hosts: names of the hosts for which exporters should have a series
    :param known: names of all hosts that Nova has
    :param instances: instances of these hosts
    :raises MetricsError: Prometheus does not answer
    """
    series = _Series(instant, frozenset(hosts), frozenset(known), tuple(instances))
    best, tied = series.best()
    problems = () if not tied else (
        f'hosts and servers fit {" and ".join(tied)} alike: series of two clouds cannot be '
        'distinguished; give the selector of yours with --match',)
    return dataclasses.replace(series.found(best), problems=problems)


def selected(instant: Callable[[str], Vector], selector: str, hosts: Iterable[str],
             known: Iterable[str], instances: Sequence[Instance]) -> Found:
    """Find exporters in the same way as :func:`find`, but only among the series that match a
    selector.

    :param selector: label matcher, such as ``region="one"``
    """
    label, _equals, value = selector.partition('=')
    series = _Series(instant, frozenset(hosts), frozenset(known), tuple(instances))
    return series.found((label.strip(), value.strip().strip('"')))


class _Machines:
    """The machines that node_exporter reports. Each machine has one or more addresses, a name and a
    start time.

    :param names: series of ``node_uname_info``
    :param starts: series of the start times
    """

    def __init__(self, names: Sequence[Sample], starts: Sequence[Sample]) -> None:
        self.names, self.starts = names, starts
        self._kernels, self._started = collections.defaultdict(set), collections.defaultdict(set)
        for sample in names:
            self._kernels[_address(sample)].add(
                tuple(sample.labels.get(label) for label in _OF_THE_KERNEL))
        for sample in starts:
            self._started[_address(sample)].add(sample.value)

    def marked(self, mark: Mark | None) -> '_Machines':
        return self if mark is None else _Machines(_marked(self.names, mark),
                                                   _marked(self.starts, mark))

    def other_addresses(self, instances: Iterable[str | None]) -> Iterator[str]:
        """Yield each value of the label ``instance`` that is a second or further address of a
        machine."""
        seen: dict[frozenset[tuple], list[str]] = collections.defaultdict(list)
        for instance in sorted(filter(None, instances)):
            address = joins.address(instance)
            known = seen[frozenset(self._kernels.get(address, ()))]
            if any(self.are_one((address, other)) for other in known):
                yield instance
            else:
                known.append(address)

    def are_one(self, addresses: Iterable[str]) -> bool:
        """Return true if all addresses are known to belong to one machine. Return false if they
        belong to several machines, or if this is not known."""
        addresses = tuple(addresses)
        if len(addresses) == 1:
            return True
        if not all(each in self._started and each in self._kernels for each in addresses):
            return False
        started = {value for each in addresses for value in self._started[each]}
        kernels = {value for each in addresses for value in self._kernels[each]}
        return len(kernels) == 1 and max(started) - min(started) <= BOOTED_WITHIN


def doubled(instant: Callable[[str], Vector]) -> dict[str, tuple[str, str]]:
    """Return the kinds of exporters that Prometheus scrapes several times on one machine: by
    several jobs, or at several addresses.

    :param instant: function that sends an instant query. If the query for a kind of exporter fails,
        this kind counts as scraped once
    :returns: {kind of exporter: (text such as "by several jobs", label matcher that leaves out the
        additional series)}
    """
    machines = _Machines(_samples(instant, joins.METRIC), _samples(instant, BOOTED))
    found = {}
    for kind, metric in TARGETS.items():
        samples = _samples(instant, metric)
        count = collections.Counter(sample.labels.get('instance') for sample in samples)
        again = [sample.labels for sample in samples if count[sample.labels.get('instance')] > 1]
        differing = sorted((label for label in {*itertools.chain(*again)}
                            if len({labels.get(label) for labels in again}) > 1
                            and label != 'instance'), key=lambda label: (label != 'job', label))
        if differing:
            values = collections.Counter(sample.labels.get(differing[0], '') for sample in samples)
            found[kind] = 'by several jobs', f'{differing[0]}="{values.most_common(1)[0][0]}"'
        elif others := sorted(machines.other_addresses(count)):
            escaped = '|'.join(map(re.escape, others[:MOST_ADDRESSES])).replace('\\', '\\\\')
            found[kind] = 'at several addresses', f'instance!~"{escaped}"'
    return found


class _Series:
    """The series from which two things are read: the targets of each exporter, and the servers that
    Prometheus knows. The series are queried once, when the object is made. A *mark* is a pair
    (label, value) that may select the series of one cloud."""

    def __init__(self, instant: Instant, hosts: frozenset[str], known: frozenset[str],
                 instances: Sequence[Instance]):
        self.hosts, self.known, self.instances = hosts, known, instances
        self.targets = {kind: instant(metric).samples for kind, metric in TARGETS.items()}
        self.machines = _Machines(_samples(instant, joins.METRIC), _samples(instant, BOOTED))
        self.guests = {kind: _samples(instant, metric) for kind, metric in GUESTS.items()}
        if not self.targets[LIBVIRT]:   # an exporter without libvirt_up
            self.targets[LIBVIRT] = tuple(_by_instance(self.guests[LIBVIRT]))

    def best(self) -> tuple[Mark | None, tuple[str, ...]]:
        """Find the pair (label, value) that selects the series of this cloud.

        Return (mark, rivals). ``mark`` is the pair, or None in three cases:

        * All series are of this cloud.
        * No pair fits this cloud better than all series together.
        * Several values of one label fit equally well. Only in this case, ``rivals`` is not empty:
          a tuple of label matchers with these values, such as ``region="one"``."""
        everything = self.found(None)
        if not self.may_be_of_several(everything):
            return None, ()
        marks = {mark: self.found(mark) for mark in self.marks()}
        fits = {mark: self.fit(found) for mark, found in marks.items()}
        most = max(fits.values(), default=(0, 0))
        best = [mark for mark, fit in fits.items() if fit == most]
        whole = self.fit(everything)
        if most <= whole:
            best = [mark for mark in best
                    if most == whole and self.leaves_out_others(marks[mark], mark)]
        if not best:
            return None, ()
        rivals = [mark for mark in best if mark[0] == best[0][0] and mark != best[0]]
        if rivals:
            return None, tuple(f'{label}="{value}"' for label, value in (best[0], *rivals))
        return best[0], ()

    def may_be_of_several(self, everything: Found) -> bool:
        """Return true if the series may be of several clouds, and false if all are of this cloud.

        Any of three signs of several clouds is enough: a host has no series or several series; a
        libvirt exporter is on a host that Nova does not know; no series of an exporter has the name
        of a host.

        :param everything: Found for all series
        """
        for each in everything.exporters:
            if each.naming is None:
                continue
            names = collections.Counter(map(_name_function(each.naming, self.machines),
                                            self.targets[each.kind]))
            if (each.hosts.keys() != self.hosts or any(names[host] > 1 for host in self.hosts)
                    or each.kind == LIBVIRT and names.keys() - self.known):
                return True
        return any(each.naming is None and each.kind in TARGETS for each in everything.exporters)

    def marks(self) -> Iterator[tuple[str, str]]:
        """Yield (label, value) for each value of each label that may distinguish clouds."""
        samples = [sample for kind in (LIBVIRT, NODE) for sample in self.targets[kind]]
        values: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for sample in samples:
            for label, value in sample.labels.items():
                values[label][value] += 1
        for label in sorted(values.keys() - _OF_ONE_TARGET):
            found = values[label]
            if 1 < len(found) <= MOST_VALUES and max(found.values()) > 1:
                yield from ((label, value) for value in sorted(found))

    def found(self, mark: Mark | None) -> Found:
        """Return the exporters and servers that are found among the series that ``mark`` selects.

        :param mark: pair (label, value); None for all series
        """
        machines = self.machines.marked(mark)
        exporters = [
            each for kind, samples in self.targets.items()
            if (each := _exporter(kind, _marked(samples, mark), machines, self.hosts)) is not None]
        kind = LIBVIRT if self.guests[LIBVIRT] else CEILOMETER
        guests = _marked(self.guests[kind], mark if kind == LIBVIRT else None)
        label, attribute = guest_label(guests, self.instances)
        if kind == CEILOMETER and guests:
            exporters.append(Exporter(CEILOMETER, None, {}))
        libvirt = next((each for each in exporters if each.kind == LIBVIRT), None)
        ours = {getattr(each, attribute): each.uuid for each in self.instances} if label else {}
        shown = [(sample, ours[sample.labels[label]]) for sample in guests
                 if sample.labels.get(label) in ours]
        return Found(tuple(exporters), f'{mark[0]}="{mark[1]}"' if mark else '', label, attribute,
                     self.by_host(libvirt, shown, machines),
                     frozenset(uuid for _sample, uuid in shown))

    def by_host(self, exporter: Exporter | None, shown: Iterable[tuple[Sample, str]],
                machines: _Machines) -> dict[str, frozenset[str]]:
        """Return {host: uuids of the servers whose series have the name of the host}.

        :param exporter: the libvirt exporter; with None, the result is empty
        :param shown: pairs (sample, uuid of the server that the sample is about)
        """
        if exporter is None or exporter.naming is None:
            return {}
        name_of = _name_function(exporter.naming, machines)
        found: dict[str | None, set[str]] = collections.defaultdict(set)
        for sample, uuid in shown:
            found[name_of(sample)].add(uuid)
        return {host: frozenset(found[host]) for host in self.known & found.keys()}

    def fit(self, found: Found) -> tuple[int, int]:
        """Return two numbers that rate how well the series in ``found`` match this cloud; higher
        numbers are better. The first is the number of hosts that an exporter shows, summed over the
        exporters. The second is the number of servers whose series have the same host as Nova,
        minus the number of servers whose series have another host."""
        place = {each.uuid: each.host for each in self.instances}
        right = [place[uuid] == host for host, uuids in found.guests.items() for uuid in uuids]
        return sum(len(each.hosts) for each in found.exporters), 2 * sum(right) - len(right)

    def leaves_out_others(self, found: Found, mark: Mark) -> bool:
        """Return true if ``mark``, a pair (label, value), selects all libvirt exporters on hosts
        that Nova knows, and no other libvirt exporter; false otherwise."""
        libvirt = found.exporter(LIBVIRT)
        if libvirt is None or libvirt.naming is None:
            return False
        label, value = mark
        name_of = _name_function(libvirt.naming, self.machines)
        return all((name_of(sample) in self.known) == (sample.labels.get(label) == value)
                   for sample in self.targets[LIBVIRT])


def _samples(instant: Instant, promql: str) -> tuple[Sample, ...]:
    try:
        return instant(promql).samples
    except exception.MetricsError:
        return ()


def _marked(samples: Sequence[Sample], mark: Mark | None) -> Sequence[Sample]:
    return samples if mark is None else tuple(
        sample for sample in samples if sample.labels.get(mark[0]) == mark[1])


def _by_instance(samples: Iterable[Sample]) -> Iterable[Sample]:
    return {sample.labels.get('instance', ''): sample for sample in samples}.values()


def _exporter(kind: str, samples: Sequence[Sample], machines: _Machines,
              hosts: frozenset[str]) -> Exporter | None:
    """Return the Exporter of a kind; None if it has no series. A Naming is a way to read the name
    of a host from a series. The Exporter gets the Naming that finds the most of ``hosts``, and the
    hosts that this Naming finds."""
    if not samples:
        return None
    best: Naming | None = None
    named: dict[str, Sample] = {}
    shared: dict[str, tuple[str, ...]] = {}
    for naming in _namings(samples, machines, hosts):
        found, others = _named(samples, naming, machines, hosts)
        if len(found) > len(named):
            best, named, shared = naming, found, others
        elif best is None and len(others) > len(shared):
            shared = others
    return Exporter(kind, best, {host: sample.labels for host, sample in named.items()}, shared,
                    best is None and not shared and _is_by_case(samples, machines, hosts))


def _is_by_case(samples: Sequence[Sample], machines: _Machines, hosts: frozenset[str]) -> bool:
    folded = {host.casefold() for host in hosts}
    return any((name := name_of(sample)) is not None and name.casefold() in folded
               for naming in _namings(samples, machines, hosts)
               for name_of in [_name_function(naming, machines)] for sample in samples)


def _namings(samples: Sequence[Sample], machines: _Machines,
             hosts: frozenset[str]) -> Iterator[Naming]:
    """Yield the possible Namings (ways to read host names from series), the simplest first."""
    yield DEFAULT
    for label, rewrite in labels.candidates(samples, 'instance', hosts):
        yield Naming(label, rewrite.pattern, rewrite.replacement)
    for rewrite in labels.rewrites(hosts):
        if machines.names:
            yield Naming(joins.NAME, rewrite.pattern, rewrite.replacement, is_join=True)


def _named(samples: Iterable[Sample], naming: Naming, machines: _Machines,
           hosts: frozenset[str]) -> tuple[dict[str, Sample], dict[str, tuple[str, ...]]]:
    """Find the hosts of samples by a Naming. Return two dicts: {host: sample} for names that one
    machine has, and {host: sorted addresses} for names that several machines have."""
    name_of = _name_function(naming, machines)
    found: dict[str, dict[str, Sample]] = collections.defaultdict(dict)
    for sample in samples:
        host = name_of(sample)
        if host is not None and host in hosts:
            found[host][_address(sample)] = sample
    named: dict[str, Sample] = {}
    shared: dict[str, tuple[str, ...]] = {}
    for host, by_address in found.items():
        if machines.are_one(by_address):
            named[host] = by_address[min(by_address)]
        else:
            shared[host] = tuple(sorted(by_address))
    return named, shared


def _address(sample: Sample) -> str:
    return joins.address(sample.labels.get('instance', ''))


def _name_function(naming: Naming, machines: _Machines) -> Callable[[Sample], str | None]:
    rewrite = functools.partial(_rewritten, naming)
    if not naming.is_join:
        return lambda sample: rewrite(sample.labels.get(naming.label, ''))
    names: dict[str, set[str | None]] = collections.defaultdict(set)
    for machine in machines.names:
        names[_address(machine)].add(rewrite(machine.labels.get(naming.label, '')))
    known = {address: next(iter(found)) for address, found in names.items() if len(found) == 1}
    return lambda sample: known.get(_address(sample))


def _rewritten(naming: Naming, value: str) -> str | None:
    """Return the name of the host that ``label_replace()`` would make from a value; None if the
    pattern does not match the value."""
    if len(value) > labels.LONGEST_NAME:
        return None
    found = re.fullmatch(naming.pattern, value)
    return naming.replacement.replace('$1', found[1]) if found else None


def guest_label(samples: Sequence[Sample], instances: Sequence[Instance]) -> tuple[str, str]:
    """Return the pair (label, name of an attribute of Instance) by which series identify servers.
    The result is the pair whose label values match the attribute of the most instances; ('', '') if
    no pair matches an instance."""
    best, most = ('', ''), 0
    for label in ('domain', 'resource', 'uuid', *sorted(
            {label for sample in samples for label in sample.labels} - _OF_ONE_TARGET)):
        values = {sample.labels.get(label) for sample in samples}
        for attribute in KINDS:
            count = collections.Counter(getattr(each, attribute) for each in instances)
            found = sum(count[value] == 1 for value in values)
            if found > most:
                best, most = (label, attribute), found
    return best
