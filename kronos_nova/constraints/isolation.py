"""Hosts that are kept for some projects or some flavors, as Nova's own filters keep them."""

import numpy as np

from kronos_nova.model.rules import AllowedHosts

TENANT_KEY = 'filter_tenant_id'
SPEC_PREFIX = 'aggregate_instance_extra_specs:'


class Isolation:
    """Two rules of Nova's scheduler that aggregates' metadata state, so that no move is planned
    which they would refuse.

    AggregateMultiTenancyIsolation: where a host's aggregates name projects in ``filter_tenant_id``
    (or keys that begin so), others stay out. AggregateInstanceExtraSpecsFilter: every extra spec
    ``aggregate_instance_extra_specs:KEY`` must be among the values of KEY of the host's aggregates.
    Each is only applied where some aggregate or flavor asks for it.

    Projects that no host names are all alike, as are flavors that ask for the same and hosts that
    offer the same, so that the cost does not grow with projects times hosts.
    """

    @staticmethod
    def compile(problem, snapshot, rules):
        tenants, properties = _offers(problem, snapshot)
        by_uuid = {instance.uuid: instance for instance in snapshot.instances}
        instances = [by_uuid[uuid] for uuid in problem.vms]
        named = frozenset().union(*set(tenants))

        def why_project(state, vm, host):
            return (f'the aggregates of {problem.hosts[host]} do not admit project '
                    f'{instances[vm].project_id}')

        def why_flavor(state, vm, host):
            wanted = ', '.join(f'{key}={value}' for key, value in _asked(instances[vm]))
            return f'the aggregates of {problem.hosts[host]} do not offer {wanted}'

        return (*_rule([i.project_id if i.project_id in named else None for i in instances],
                       tenants, lambda project, kept: not kept or project in kept, why_project),
                *_rule([_asked(i) for i in instances], properties, _admits, why_flavor))


def _rule(wanted, offers, admits, why):
    """What each instance wants against what each host offers; both are hashable, and what is alike
    is asked about once."""
    kinds, sorts = ({each: n for n, each in enumerate(dict.fromkeys(all_))}
                    for all_ in (wanted, offers))
    allowed = np.array([[admits(one, offer) for offer in sorts] for one in kinds], dtype=bool)
    if allowed.all():
        return ()
    return (AllowedHosts(reason='isolation', why=why,
                         kind=np.array([kinds[each] for each in wanted]),
                         allowed=allowed[:, [sorts[offer] for offer in offers]]),)


def _offers(problem, snapshot):
    """For each host the projects it is kept for, and its aggregates' metadata, hashable; looked at
    once for all hosts that are in the same aggregates."""
    inside = {host: () for host in problem.hosts}
    for number, aggregate in enumerate(snapshot.aggregates):
        for host in inside.keys() & set(aggregate.hosts):
            inside[host] += (number,)
    found = {numbers: _offer([snapshot.aggregates[number] for number in numbers])
             for numbers in set(inside.values())}
    return tuple([found[numbers][n] for numbers in inside.values()] for n in (0, 1))


def _offer(aggregates):
    tenants, properties = set(), {}
    for aggregate in aggregates:
        for key, value in aggregate.metadata.items():
            words = {word.strip() for word in value.split(',')}
            if key.startswith(TENANT_KEY):
                tenants |= words
            else:
                properties.setdefault(key, set()).update(words)
    return frozenset(tenants), frozenset(
        (key, frozenset(values)) for key, values in properties.items())


def _asked(instance):
    """The extra specs that aggregates must offer, hashable."""
    return tuple(sorted((key.removeprefix(SPEC_PREFIX), value)
                        for key, value in instance.flavor_extra_specs.items()
                        if key.startswith(SPEC_PREFIX)))


def _admits(specs, properties):
    """Whether a host's aggregates have every wanted value.

    Of Nova's operators only ``<or>`` is understood; with any other the answer is no: better no
    move than one that Nova refuses.
    """
    offered = dict(properties)
    return all(offered.get(key, frozenset()) & _values(value) for key, value in specs)


def _values(wanted):
    if wanted.startswith('<or>'):
        return {word.strip() for word in wanted.split('<or>') if word.strip()}
    return {wanted}
