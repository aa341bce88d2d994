"""The rules of two scheduler filters of Nova that reserve hosts for some projects or flavors. The
filters read the metadata of aggregates."""

import operator
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.model.rules import Why
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot

TENANT_KEY = 'filter_tenant_id'
SPEC_PREFIX = 'aggregate_instance_extra_specs:'

Tenants = frozenset[str]
"""Projects for which a host is reserved; empty if all projects may use the host."""
Properties = frozenset[tuple[str, frozenset[str]]]
"""Metadata of a host's aggregates, as pairs of a key and its values."""
Specs = tuple[tuple[str, str], ...]
"""Metadata that the aggregates of an instance's host must have, as pairs (key, value)."""
Wanted = TypeVar('Wanted', bound=Hashable)
Offer = TypeVar('Offer', bound=Hashable)


class Isolation:
    """A constraint that forbids the moves that two scheduler filters of Nova would refuse. Both
    filters read the metadata of aggregates.

    * AggregateMultiTenancyIsolation: a host's aggregates may list projects in ``filter_tenant_id``,
      or in keys that begin with this word. Instances of other projects may then not use the host.
    * AggregateInstanceExtraSpecsFilter: a value of KEY of the host's aggregates must meet every
      extra spec ``aggregate_instance_extra_specs:KEY``.

    A filter that forbids no move gives no rule. Each distinct requirement of instances is compared
    only once with each distinct set of properties of hosts.
    """

    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> tuple[AllowedHosts, ...]:
        tenants, properties = _offers(problem, snapshot)
        by_uuid = {instance.uuid: instance for instance in snapshot.instances}
        instances = [by_uuid[uuid] for uuid in problem.vms]
        named: Tenants = frozenset().union(*set(tenants))

        def why_project(state: State, vm: int, host: int) -> str:
            return (f'the aggregates of {problem.hosts[host]} do not admit project '
                    f'{instances[vm].project_id}')

        def why_flavor(state: State, vm: int, host: int) -> str:
            wanted = ', '.join(f'{key}={value}' for key, value in _required(instances[vm]))
            return f'the aggregates of {problem.hosts[host]} do not offer {wanted}'

        return (*_rule([i.project_id if i.project_id in named else None for i in instances],
                       tenants, lambda project, kept: not kept or project in kept, why_project),
                *_rule([_required(i) for i in instances], properties, _admits, why_flavor))


def _rule(wanted: Sequence[Wanted], offers: Sequence[Offer],
          admits: Callable[[Wanted, Offer], bool], why: Why) -> tuple[AllowedHosts, ...]:
    """Return the rule that keeps instances off hosts that do not meet the instances' requirements.
    Return no rule if every host meets the requirements of every instance.

    :param wanted: requirements of each instance; hashable, so that equal requirements are compared
        once
    :param offers: properties of each host, also hashable
    :param admits: function of (requirements, properties) that returns whether the host meets the
        requirements
    """
    kinds = {each: n for n, each in enumerate(dict.fromkeys(wanted))}
    sorts = {each: n for n, each in enumerate(dict.fromkeys(offers))}
    allowed = np.array([[admits(one, offer) for offer in sorts] for one in kinds], dtype=bool)
    if allowed.all():
        return ()
    return (AllowedHosts(reason='isolation', why=why,
                         kind=np.array([kinds[each] for each in wanted]),
                         allowed=allowed[:, [sorts[offer] for offer in offers]]),)


def _offers(problem: Problem, snapshot: Snapshot) -> tuple[list[Tenants], list[Properties]]:
    """Return two lists with one entry for each host: the projects for which the host is reserved,
    and the metadata of the host's aggregates. Hosts in the same aggregates share one entry."""
    inside: dict[str, tuple[int, ...]] = {host: () for host in problem.hosts}
    for number, aggregate in enumerate(snapshot.aggregates):
        for host in inside.keys() & set(aggregate.hosts):
            inside[host] += (number,)
    found = {numbers: _offer([snapshot.aggregates[number] for number in numbers])
             for numbers in set(inside.values())}
    return ([found[numbers][0] for numbers in inside.values()],
            [found[numbers][1] for numbers in inside.values()])


def _offer(aggregates: Iterable[Aggregate]) -> tuple[Tenants, Properties]:
    tenants: set[str] = set()
    properties: dict[str, set[str]] = {}
    for aggregate in aggregates:
        for key, value in aggregate.metadata.items():
            words = {word.strip() for word in value.split(',')}
            if key.startswith(TENANT_KEY):
                tenants |= words
            else:
                properties.setdefault(key, set()).update(words)
    return frozenset(tenants), frozenset(
        (key, frozenset(values)) for key, values in properties.items())


def _required(instance: Instance) -> Specs:
    """Return the extra specs of an instance's flavor that the metadata of aggregates must match.
    The result is a sorted tuple of pairs (key without prefix, value)."""
    return tuple(sorted((key.removeprefix(SPEC_PREFIX), value)
                        for key, value in instance.flavor_extra_specs.items()
                        if key.startswith(SPEC_PREFIX)))


def _admits(specs: Specs, properties: Properties) -> bool:
    """Return True if a host's aggregates meet all of ``specs``; False otherwise."""
    offered = dict(properties)
    return all(any(_meets(value, wanted) for value in offered.get(key, frozenset()))
               for key, wanted in specs)


COMPARISONS: Mapping[str, Callable[[str, str], bool]] = {
    '=': lambda value, wanted: float(value) >= float(wanted),
    '==': lambda value, wanted: float(value) == float(wanted),
    '!=': lambda value, wanted: float(value) != float(wanted),
    '>=': lambda value, wanted: float(value) >= float(wanted),
    '<=': lambda value, wanted: float(value) <= float(wanted),
    's==': operator.eq, 's!=': operator.ne, 's<': operator.lt, 's<=': operator.le,
    's>': operator.gt, 's>=': operator.ge, '<in>': operator.contains}
"""{operator of Nova in the value of an extra spec: function of (value of metadata, wanted value)}.
The meaning is that of :mod:`nova.scheduler.filters.extra_specs_ops`."""


def _meets(value: str, wanted: str) -> bool:
    """Return True if a value of an aggregate's metadata meets the value of an extra spec, as Nova
    compares them; False otherwise, and if Nova's comparison fails."""
    words = wanted.split()
    sign, rest = (words[0], words[1:]) if words else ('', [])
    if sign == '<or>':
        return value in rest[::2]
    if sign == '<all-in>':
        return bool(rest) and all(word in value for word in rest)
    if sign not in COMPARISONS:
        return value == wanted
    try:
        return bool(rest) and COMPARISONS[sign](value, rest[0])
    except ValueError:
        return False
