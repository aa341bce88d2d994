"""The sizes of hosts, by which the profile (load per instance) of a policy is converted to one
unit.

A fraction of a host is a different amount on hosts of different sizes. The model needs one unit for
the loads of instances on all hosts of an aggregate. So the fractions of a profile are multiplied by
the sizes of their hosts. For each host, the score that a load of one unit adds to the host is
computed.
"""

import dataclasses
import re
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from kronos_nova.load.host_readings import NAMED
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.policies import Policy
from kronos_nova.policies.models import ABSOLUTE
from kronos_nova.policies.models import HOST_FRACTION
from kronos_nova.units import MIB

ALIKE = 1.05
"""Largest ratio of the CPUs or memory of two hosts at which the hosts count as equally large.
Raised, the load of a server on its new host may be computed wrong by this ratio; lowered, operators
have to configure the sizes of hosts that differ only in a few reserved CPUs. Not measured."""
CLASSES = {'VCPU': ('VCPU', 'PCPU'), 'MEMORY_MB': ('MEMORY_MB',)}
"""Resource classes of placement that are a host's size, by ``vm_profile_resource``."""
_CPU, _MEMORY = re.compile(r'v?cpus?|cores?'), re.compile(r'mem(ory)?|rss|ram')
_CONTENTION = re.compile(r'steal|delay|wait(ing)?|stall(ed)?|pressure|psi')
_COUNT = re.compile(r'count|servers?|instances?|guests?|domains?')
_USE = re.compile(r'seconds|time|usage|used?|util(i[sz]ation)?|busy|load|idle')
"""Words in names of metrics that measure use, in contrast to the number of CPUs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of some hosts for one policy.

    values : float64 (H,), size of each host; NaN if not known. The unit is the unit in which the
        policy's query about instances returns loads. If this query returns fractions of hosts, each
        size is a fraction of the largest host
    is_of_own_host : True if the sample of an instance has to be multiplied by the size of its host.
        This is so if samples are fractions of hosts, and the hosts may differ in size
    unit : amount of the resource (CPUs, or bytes of memory) that a size of 1 stands for; NaN if not
        known
    problem : reason why the hosts cannot be compared, with the remedy; '' if the hosts can be
        compared
    """

    values: np.ndarray
    is_of_own_host: bool = False
    unit: float = np.nan
    problem: str = ''

    @property
    def units(self) -> np.ndarray:
        """float64 (H,): the load that a sample of 1 stands for on each host, in the unit of
        instances' loads."""
        return self.values if self.is_of_own_host else np.ones(len(self.values))


def resource(policy: Policy) -> str | None:
    """Return the resource that a policy measures, VCPU or MEMORY_MB; None if the resource is not
    known. The resource is taken from the field ``vm_profile_resource`` of the policy. If this field
    is not set, the resource is derived from the words of the policy's name. If the name has no
    suitable word, the resource is derived from the metrics in the policy's query."""
    if policy.vm_profile_resource:
        return policy.vm_profile_resource
    name = _words(policy.name)
    if _any(_CONTENTION, name) or _any(_COUNT, name):
        return None
    if _any(_CPU, name) or _any(_MEMORY, name):
        return _named(_any(_CPU, name), _any(_MEMORY, name))
    metrics = [_words(each) for each in re.findall(
        r'[a-z_:]+', _bare(policy.vm_profile_query or policy.imbalance_query).lower())]
    if any(_any(_CONTENTION, each) for each in metrics):
        return None
    return _named(any(_any(_CPU, each) and _any(_USE, each) for each in metrics),
                  any(_any(_MEMORY, each) for each in metrics))


def _named(is_cpu: bool, is_memory: bool) -> str | None:
    if is_cpu == is_memory:
        return None
    return 'VCPU' if is_cpu else 'MEMORY_MB'


def _words(text: str) -> list[str]:
    return re.split(r'[^a-z]+', text)


def _any(pattern: re.Pattern, words: list[str]) -> bool:
    return any(pattern.fullmatch(word) for word in words)


def _bare(query: str) -> str:
    """Return a query without its comments and string literals."""
    return re.sub(r'#[^\n]*|"[^"]*"|\'[^\']*\'', ' ', query)


def of_inventory(hosts: Sequence[Host], resource_class: str) -> np.ndarray:
    """Return float64 (H,): the total CPUs, or bytes of memory, of each host in placement; NaN if
    the host has no such inventory."""
    unit = MIB if resource_class == 'MEMORY_MB' else 1
    totals = [sum(host.inventory[name].total for name in CLASSES[resource_class]
                  if name in host.inventory) for host in hosts]
    return np.array([total * unit if total else np.nan for total in totals], dtype=float)


def of_flavors(instances: Sequence[Instance], resource_class: str) -> np.ndarray:
    """Return float64 (V,): the number of CPUs, or the bytes of memory, of each instance's
    flavor."""
    if resource_class == 'MEMORY_MB':
        return np.array([instance.memory_mb * MIB for instance in instances], dtype=float)
    return np.array([instance.vcpus for instance in instances], dtype=float)


def sizes(policy: Policy, hosts: Sequence[Host], queried: np.ndarray) -> Sizes:
    """Return the sizes of hosts for a policy.

    :param queried: float64 (H,), the answer to ``host_capacity_query``; 1 if the policy has no such
        query
    """
    if policy.host_capacity_query is not None:
        return Sizes(queried)
    if policy.profile_unit not in (ABSOLUTE, HOST_FRACTION):
        return Sizes(np.ones(len(hosts)))
    is_fraction = policy.profile_unit == HOST_FRACTION
    if policy.vm_profile_resource:
        return _by_inventory(hosts, policy.vm_profile_resource, is_fraction)
    differing = [name for name in CLASSES if _differ(of_inventory(hosts, name))]
    found = resource(policy)
    if not differing:
        return Sizes(np.ones(len(hosts)), unit=_largest(of_inventory(hosts, found)) if found
                     else np.nan)
    if found is None:
        return Sizes(np.ones(len(hosts)), problem=_unknown_size(hosts, differing[0]))
    return _by_inventory(hosts, found, is_fraction)


def unknown(policy: Policy, hosts: Sequence[Host], which: np.ndarray) -> Iterator[str]:
    """Yield the warning that some hosts are left out of the plan, because their sizes are not
    known. Yield nothing if there are no such hosts.

    :param which: bool (H,), true for hosts that have a score but no known size
    """
    if which.any():
        names = ', '.join(hosts[number].name for number in np.flatnonzero(which)[:NAMED].tolist())
        more = int(which.sum()) - NAMED
        what = 'host_capacity_query has no value' if policy.host_capacity_query else (
            f'placement has no inventory of {resource(policy)}')
        yield (f'the size of {names}{f" and {more} more" if more > 0 else ""} is not known, '
               f'because {what} there: left out of the plan')


def _by_inventory(hosts: Sequence[Host], resource_class: str, is_fraction: bool) -> Sizes:
    totals = of_inventory(hosts, resource_class)
    unit = _largest(totals) if is_fraction else 1.0
    return Sizes(totals if np.isnan(unit) else totals / unit, is_fraction, unit)


def _largest(totals: np.ndarray) -> float:
    """Return the largest size that is known; NaN if none is known."""
    known = totals[~np.isnan(totals)]
    return float(known.max()) if len(known) else np.nan


def _differ(totals: np.ndarray) -> bool:
    known = totals[~np.isnan(totals)]
    return bool(len(known)) and bool(known.max() > ALIKE * known.min())


def _unknown_size(hosts: Sequence[Host], resource_class: str) -> str:
    totals = of_inventory(hosts, resource_class) / (MIB if resource_class == 'MEMORY_MB' else 1)
    least, most = int(np.nanargmin(totals)), int(np.nanargmax(totals))
    return (f'hosts differ in size ({resource_class} of {hosts[least].name}: {totals[least]:g}, of '
            f'{hosts[most].name}: {totals[most]:g}), and nothing says what the profile is a share '
            'of. Give vm_profile_resource: VCPU or MEMORY_MB, or host_capacity_query; or '
            'vm_profile_unit: score for a measure that does not depend on the size of a host')
