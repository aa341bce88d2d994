"""``kronos-test-config --propose``: write a policies file that fits the exporters of a cloud."""

import dataclasses
import math
import os
import pathlib
import sysconfig
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_config import cfg

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cycle import options as engine_options
from kronos_nova.load import host_sizes
from kronos_nova.metrics import adaptation
from kronos_nova.metrics import exporters
from kronos_nova.metrics import joins
from kronos_nova.metrics import labels
from kronos_nova.metrics import ranges
from kronos_nova.metrics.exporters import Found
from kronos_nova.metrics.prometheus import PrometheusClient
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import PolicySet
from kronos_nova.units import MIB

DEFAULT_RECIPE = 'cpu-memory'
OF_CEILOMETER = {'cpu-memory': 'cpu-memory-ceilometer'}
"""Recipes (example policies files) for clouds whose series of servers come from ceilometer alone:
{recipe: the recipe that replaces it}."""

Labels = frozenset[tuple[str, str]]
"""Labels of a series: {(name, value)}."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    """One host, as Nova and the host's exporters describe it.

    state : ``warning`` if Nova and the exporters differ or a number is not known; otherwise ``ok``
    found_as : one text for each exporter that has series of the host. The text has the exporter and
        the value of the label "instance" in these series
    cpus : (number of processors by Nova, number by the exporters); None for a number not known
    memory_mb : (MiB of memory by Nova, MiB by the exporters); None for a number not known
    servers : (number of active servers by Nova, number of these servers that have series)
    """

    host: str
    state: str
    found_as: tuple[str, ...]
    cpus: tuple[float | None, float | None]
    memory_mb: tuple[float | None, float | None]
    servers: tuple[int, int | None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposed policies file, with the recipe and the exporters that it was made from.

    recipe : name of the recipe, the example policies file that was adapted
    namings : {exporter: text that says in which label its series have the names of hosts}
    selector : label matcher that selects the series of this cloud; '' if all series are of this
        cloud
    problems : sentences about faults and doubts in the series, which an operator has to resolve
    """

    recipe: str
    text: str
    namings: dict[str, str]
    selector: str
    hosts: tuple[HostRow, ...]
    problems: tuple[str, ...] = ()


def recipes() -> dict[str, pathlib.Path]:
    """Return {name: path} of the installed recipes (example policies files). If none are installed,
    return the recipes in the source tree."""
    for folder in (pathlib.Path(sysconfig.get_path('data')) / 'share/kronos/policies',
                   pathlib.Path(__file__).parents[2] / 'etc/kronos/policies'):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob('*.yaml'))}
    return {}


def make(conf: cfg.ConfigOpts, client: PrometheusClient, snapshot: Snapshot, recipe: str,
         selector: str = '') -> Proposal:
    """Find the exporters, and adapt a recipe (an example policies file) to them.

    :param selector: label matcher of this cloud's series, such as ``region="one"``. If it is empty,
        and Prometheus has series of other clouds too, this function finds a matcher itself
    :raises MetricsError: Prometheus does not answer
    :raises ConfigurationError: Prometheus has no series that the recipe needs
    """
    options = engine_options.from_conf(conf)
    needed = [host for host in snapshot.hosts
              if host.name in scoped(snapshot, options) and host.service.is_available]
    names = [host.name for host in needed]
    known = [host.name for host in snapshot.hosts]
    found = (exporters.selected(client.instant, selector, names, known, snapshot.instances)
             if selector else
             exporters.find(client.instant, names, known, snapshot.instances))
    _check(found)
    chosen = _chosen(recipe, found)
    text = _widened(client, adaptation.adapted(recipes()[chosen].read_text(), found))
    return Proposal(
        recipe=chosen, text=_header(chosen, found) + text, selector=found.selector,
        namings={each.kind: str(each.naming) if each.naming else 'names no host'
                 for each in found.exporters},
        hosts=tuple(_rows(client, snapshot, needed, found)),
        problems=(*found.problems, *_unnamed(found, known), *_shared(found)))


def scoped(snapshot: Snapshot, options: engine_options.EngineOptions) -> set[str]:
    """Return the names of the hosts that Kronos balances."""
    known = {UNASSIGNED, *(aggregate.name for aggregate in snapshot.aggregates)}
    return {host for scope in options.scopes(()) if scope in known
            for host in snapshot.hosts_of(scope)}


def write(path: str, text: str) -> None:
    """Write ``text`` to a new file.

    :raises ConfigurationError: the file exists, or cannot be written
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError as error:
        raise exception.ConfigurationError(
            what=path, problem=error.strerror or str(error),
            remedy='Name a file that does not exist, in a folder that you may write to.'
        ) from error
    with os.fdopen(descriptor, 'w', encoding='utf-8') as file:
        file.write(text)


def _check(found: Found) -> None:
    wanted = f'{{{found.selector}}}' if found.selector else ''
    correct = 'Correct --match, or let' if found.selector else 'Let'
    if found.exporter(exporters.NODE) is None:
        raise exception.ConfigurationError(
            what='Prometheus',
            problem=f'has no series {exporters.MEMORY}{wanted} of node_exporter',
            remedy=f'{correct} Prometheus scrape node_exporter on every compute host, or set '
                   '[kronos_prometheus] url to a Prometheus that scrapes node_exporter.')
    if not any(found.exporter(kind) for kind in exporters.GUESTS):
        raise exception.ConfigurationError(
            what='Prometheus', problem='has no series of servers, neither of a libvirt exporter '
            f'({exporters.GUESTS[exporters.LIBVIRT]}{wanted}) nor of ceilometer '
            f'({exporters.GUESTS[exporters.CEILOMETER]})',
            remedy=f'{correct} Prometheus scrape a libvirt exporter on every compute host.')


def _unnamed(found: Found, known: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each exporter whose series have no name of a host."""
    for each in found.exporters:
        if each.by_case:
            yield (f'{each.kind}: its names of hosts differ by upper and lower case alone; '
                   f'{labels.case_remedy(known)}')
        elif each.naming is None and not each.shared and each.kind in exporters.TARGETS:
            yield (f'{each.kind}: no label of {exporters.TARGETS[each.kind]} has the name of a '
                   f'host that Nova knows, and {joins.METRIC} has no such address; give both jobs '
                   'the same label "instance" (relabel_configs)')


def _shared(found: Found) -> Iterator[str]:
    """Yield a sentence for each host name that belongs to more than one machine."""
    for each in found.exporters:
        for host, addresses in sorted(each.shared.items()):
            yield (f'{each.kind}: {host} is the name of {" and ".join(addresses)}, which are not '
                   'known to be one machine; scrape one of them, or give the label that yours have '
                   'with --match')


def _chosen(recipe: str, found: Found) -> str:
    if found.exporter(exporters.LIBVIRT) is not None:
        return recipe
    if recipe in OF_CEILOMETER:
        return OF_CEILOMETER[recipe]
    if recipe in OF_CEILOMETER.values():
        return recipe
    raise exception.ConfigurationError(
        what=f'The recipe {recipe}', problem='needs a libvirt exporter, but Prometheus has only '
        'series of ceilometer', remedy=f'Use the recipe {" or ".join(OF_CEILOMETER)}.')


def _widened(client: PrometheusClient, text: str) -> str:
    """Return the text of a policies file, with longer ranges in the queries whose ranges contain
    too few samples."""
    windows: dict[str, str] = {}
    for promql in _queries(policies.parse(text)):
        for window, longer in ranges.wider(client.instant, promql).items():
            windows[window] = max(windows.get(window, window), longer, key=ranges.seconds)
    return adaptation.with_windows(text, windows)


def _queries(policy_set: PolicySet) -> Iterator[str]:
    for policy in policy_set.active:
        yield from filter(None, (policy.imbalance_query, policy.vm_profile_query,
                                 policy.capacity_query, policy.host_capacity_query))


def _header(recipe: str, found: Found) -> str:
    lines = [f'Written by kronos-test-config --propose: {recipe}.yaml for these exporters.',
             *(f'{each.kind}: {len(each.hosts)} hosts by {each.naming}' for each in found.exporters
               if each.naming)]
    if found.selector:
        lines.append(f'Series of this cloud alone: {found.selector}')
    return ''.join(f'# {line}\n' for line in lines) + '#\n'


def _rows(client: PrometheusClient, snapshot: Snapshot, needed: Sequence[Host],
          found: Found) -> Iterator[HostRow]:
    """Yield a HostRow for each of the hosts ``needed``, which Kronos balances and which are
    available."""
    node = found.exporter(exporters.NODE)
    machines = {} if node is None else node.hosts
    cpus = _by_labels(client.instant(exporters.CPUS).samples)
    memory = _by_labels(client.instant(exporters.MEMORY).samples)
    sizes = {name: dict(zip((host.name for host in needed),
                            host_sizes.of_inventory(needed, name).tolist(), strict=True))
             for name in host_sizes.CLASSES}
    for host in needed:
        key = _key(machines.get(host.name, {}))
        servers = sum(each.host == host.name and each.status == 'ACTIVE'
                      for each in snapshot.instances)
        yield _row(host.name, tuple(
            f'{each.kind} {each.hosts[host.name].get("instance", "")}' for each in found.exporters
            if host.name in each.hosts),
            (_known(sizes['VCPU'][host.name]), cpus.get(key)),
            (_known(sizes['MEMORY_MB'][host.name] / MIB), _in_mib(memory.get(key))),
            (servers, _seen(found, snapshot, host.name)))


def _row(name: str, found_as: tuple[str, ...], cpus: tuple[float | None, float | None],
         memory_mb: tuple[float | None, float | None], servers: tuple[int, int]) -> HostRow:
    is_well = servers[0] == servers[1] and _are_alike(*cpus) and _are_alike(*memory_mb)
    return HostRow(host=name, state='ok' if is_well else 'warning', found_as=found_as, cpus=cpus,
                   memory_mb=memory_mb, servers=servers)


def _are_alike(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return False
    return max(one, other) <= host_sizes.ALIKE * min(one, other)


def _seen(found: Found, snapshot: Snapshot, host: str) -> int:
    """Return the number of active servers of a host that have a series. If there are libvirt
    exporters, the series have to come from the libvirt exporter of this host."""
    active = {each.uuid for each in snapshot.instances
              if each.host == host and each.status == 'ACTIVE'}
    if found.exporter(exporters.LIBVIRT) is None:
        return len(active & found.anywhere)
    return len(active & found.guests.get(host, frozenset()))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _in_mib(value: float | None) -> float | None:
    return None if value is None else value / MIB


def _key(series: Mapping[str, str]) -> Labels:
    return frozenset((name, value) for name, value in series.items() if name != '__name__')


def _by_labels(samples: Iterable[Sample]) -> dict[Labels, float]:
    """Return {labels of a series: its value}, without values that are NaN or infinite."""
    return {_key(sample.labels): sample.value for sample in samples if math.isfinite(sample.value)}
