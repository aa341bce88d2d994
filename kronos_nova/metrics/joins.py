"""Proposals of a join with ``node_uname_info``, for series that name hosts by addresses.

In Kolla-Ansible and RHOSO, the label ``instance`` of an exporter is an address. The series
``node_uname_info`` of node_exporter has the address and the name of each host. A join with this
series therefore gives other series the names that Nova uses, even if the query has dropped all
labels except the address.
"""

import dataclasses
import re
from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from kronos_nova import exception
from kronos_nova.metrics import labels
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector

METRIC = 'node_uname_info'
NAME = 'nodename'
ADDRESS = 'kronos_address'

ADDRESS_PATTERN = '(.+?)(:[0-9]+)?'


@dataclasses.dataclass(frozen=True, slots=True)
class Join:
    """A join that gives the series of a query the names of hosts.

    key : label that has the address of the host in the query's series
    names : Proposal that derives the name of a host from a label of ``node_uname_info``
    """

    key: str
    names: labels.Proposal

    def around(self, promql: str, host_label: str) -> str:
        """Return a query that joins ``promql`` with ``node_uname_info``. In its result, the label
        ``host_label`` has the names of hosts."""
        pattern = self.names.pattern.replace('\\', '\\\\')
        return (f'label_replace({promql}, "{ADDRESS}", "$1", "{self.key}", "{ADDRESS_PATTERN}") '
                f'* on ({ADDRESS}) group_left ({host_label}) '
                f'max by ({ADDRESS}, {host_label}) (label_replace(label_replace({METRIC}, '
                f'"{ADDRESS}", "$1", "instance", "{ADDRESS_PATTERN}"), "{host_label}", '
                f'"{self.names.replacement}", "{self.names.label}", "{pattern}"))')


def propose(instant: Callable[[str], Vector], promql: str, vector: Vector, host_label: str,
            hosts: Iterable[str], matches: int) -> str | None:
    """Return a join of a query with ``node_uname_info``, as PromQL. In the result, the word
    ``QUERY`` stands for ``promql``.

    The join is sent as a test. Return None if the test fails, or if the join does not have series
    for more hosts than the query alone.

    :param instant: function that sends an instant query
    :param promql: the query
    :param vector: the answer to ``promql``
    :param matches: number of hosts that have a series in ``vector``
    """
    hosts = frozenset(hosts)
    try:
        join = _join(instant(METRIC).samples, vector.samples, host_label, hosts)
        if join is None:
            return None
        found = labels.diagnose(instant(join.around(f'(\n{promql}\n)', host_label)), host_label,
                                hosts)
    except exception.MetricsError:
        return None
    is_better = len(found.matched) > matches and not found.repeated
    return join.around('QUERY', host_label) if is_better else None


def _join(machines: Iterable[Sample], samples: Sequence[Sample], host_label: str,
          hosts: frozenset[str]) -> Join | None:
    by_address = {address(sample.labels.get('instance', '')): sample for sample in machines}
    names = _names(by_address, hosts)
    key = _key(samples, host_label, by_address)
    return None if names is None or key is None else Join(key, names)


def _names(by_address: Mapping[str, Sample],
           hosts: frozenset[str]) -> labels.Proposal | None:
    """Return a Proposal to read the names of hosts from a label of ``node_uname_info``. The label
    that names the most hosts is chosen. Return None if no label names a host."""
    found = labels.diagnose(Vector(tuple(by_address.values())), NAME, hosts)
    if found.proposal is not None:
        return found.proposal
    return labels.Proposal(NAME, *labels.PLAIN, len(found.matched)) if found.matched else None


def _key(samples: Sequence[Sample], host_label: str, addresses: Container[str]) -> str | None:
    """Return the label whose value is the address of a machine in the most samples; None if no
    label has the address of a machine."""
    best, most = None, 0
    for label in (host_label, 'instance', 'host'):
        count = sum(address(sample.labels.get(label, '')) in addresses for sample in samples)
        if count > most:
            best, most = label, count
    return best


def address(value: str) -> str:
    """Return an address without its port. The pattern :data:`ADDRESS_PATTERN` has the same effect
    in PromQL."""
    return re.sub(r':[0-9]{1,5}$', '', value, count=1) if value.rpartition(':')[0] else value
