"""Checks for exporters whose series show that their answers are incomplete."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.metrics import exporters
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.units import GIB

NAMED = 3
"""Maximum number of exporters that a message names; further exporters are only counted. Raised,
messages are longer; lowered, an operator sees fewer examples. Chosen so that the names fit into one
line."""

STOPPED = 'libvirt_up == 0'
OTHER_PAGES = ('(node_memory_Hugetlb_bytes '
               '- node_memory_HugePages_Total * node_memory_Hugepagesize_bytes) > 0')
"""PromQL for the bytes of a host that are in huge pages of a size other than the default size.
node_exporter does not say how many of these bytes are free."""


def problems(instant: Callable[[str], Vector], snapshot: Snapshot) -> Iterator[str]:
    """Yield a sentence for each kind of data that exporters leave out. The sentence has the remedy.

    :param instant: function that sends an instant query; a query that fails yields no sentence
    """
    answers = [_by_instance(instant, promql) for promql in (STOPPED, OTHER_PAGES)]
    if not any(answers):
        return
    ours = _of_cloud(instant, snapshot)
    stopped, pages = ({name: value for name, value in found.items() if ours is None or name in ours}
                      for found in answers)
    if stopped:
        yield (f'{_listed(sorted(stopped))}: libvirt_up is 0, the libvirt exporter could not read '
               'all servers there, and has no series of the others. See its log, and whether '
               'libvirt answers; an exporter stops at a server that it cannot read')
    if pages:
        most = max(sorted(pages), key=lambda name: pages[name])
        yield (f'{_listed(sorted(pages))}: there are huge pages of another size than the default '
               f'one ({pages[most] / GIB:.3g} GiB at {most}). node_exporter does not say how much '
               'of them is free, so all of it counts as used memory. Make the size that servers '
               'use the default (kernel parameter default_hugepagesz), or write what is free to '
               'the textfile collector and add it to node_memory_MemAvailable_bytes')


def _of_cloud(instant: Callable[[str], Vector], snapshot: Snapshot) -> set[str] | None:
    """Return the set of the values of the label "instance" of all exporters on hosts of this cloud.
    The values are shortened for messages. Return None in two cases: Prometheus does not answer; or
    for some kind of exporter, no label has the names of this cloud's hosts."""
    hosts = [host.name for host in snapshot.hosts]
    try:
        found = exporters.find(instant, hosts, hosts, snapshot.instances)
    except exception.MetricsError:
        return None
    targets = [each for each in found.exporters if each.kind in exporters.TARGETS]
    if not all(each.naming for each in targets):
        return None
    return {_shown(labels) for each in targets for labels in each.hosts.values()}


def _shown(labels: Mapping[str, str]) -> str:
    return boundary.shown(labels.get('instance', ''), 80)


def _by_instance(instant: Callable[[str], Vector], promql: str) -> dict[str, float]:
    """Return the answer to an instant query as {value of the label "instance": value of the
    series}. The labels are shortened for messages. Without an answer, the result is empty."""
    try:
        samples = instant(promql).samples
    except exception.MetricsError:
        return {}
    return {_shown(sample.labels): sample.value for sample in samples}


def _listed(names: Sequence[str]) -> str:
    more = f' and {len(names) - NAMED} more' if len(names) > NAMED else ''
    return ', '.join(names[:NAMED]) + more
