"""Hosts that are kept for some projects or some flavors, as Nova's own filters keep them."""

import numpy as np

TENANT_KEY = 'filter_tenant_id'
SPEC_PREFIX = 'aggregate_instance_extra_specs:'


class Isolation:
    """Two rules of Nova's scheduler that aggregates' metadata state, so that no move is planned
    which they would refuse.

    AggregateMultiTenancyIsolation: where a host's aggregates name projects in ``filter_tenant_id``
    (or keys that begin so), others stay out. AggregateInstanceExtraSpecsFilter: every extra spec
    ``aggregate_instance_extra_specs:KEY`` must be among the values of KEY of the host's aggregates.
    Each is only applied where some aggregate or flavor asks for it.
    """

    reason = 'excluded'

    def __init__(self, problem, snapshot, rules):
        tenants = [set() for _host in problem.hosts]
        properties = [{} for _host in problem.hosts]
        index = {name: number for number, name in enumerate(problem.hosts)}
        for aggregate in snapshot.aggregates:
            for number in (index[name] for name in aggregate.hosts if name in index):
                for key, value in aggregate.metadata.items():
                    words = {word.strip() for word in value.split(',')}
                    properties[number].setdefault(key, set()).update(words)
                    if key.startswith(TENANT_KEY):
                        tenants[number] |= words
        wants = [_wanted(instance) for instance in _in_order(problem, snapshot)]
        # Instances that want the same share a row, of which a cloud has few.
        kinds = {want: number for number, want in enumerate(dict.fromkeys(wants))}
        self._kind = np.array([kinds[want] for want in wants], dtype=np.intp)
        self._allowed = np.array([
            [(not tenants[host] or project in tenants[host]) and _offers(properties[host], specs)
             for host in range(len(problem.hosts))] for project, specs in kinds], dtype=bool)
        self._wants = wants

    @property
    def idle(self):
        return bool(self._allowed.all())

    def mask(self, state, vm):
        return self._allowed[self._kind[vm]]

    def column(self, state, host):
        return self._allowed[self._kind, host]

    def permits(self, state, vm, host):
        return bool(self._allowed[self._kind[vm], host])

    def why(self, state, vm, host):
        project, specs = self._wants[vm]
        asked = ', '.join(f'{key}={value}' for key, value in specs)
        return (f'the aggregates of {state.problem.hosts[host]} do not admit project {project}'
                + (f' with {asked}' if asked else ''))


def _in_order(problem, snapshot):
    """The problem's instances, in its order."""
    instances = {instance.uuid: instance for instance in snapshot.instances}
    return (instances[uuid] for uuid in problem.vms)


def _wanted(instance):
    """(project, extra specs that aggregates must offer); hashable."""
    return instance.project_id, tuple(sorted(
        (key.removeprefix(SPEC_PREFIX), value)
        for key, value in instance.flavor_extra_specs.items() if key.startswith(SPEC_PREFIX)))


def _offers(properties, specs):
    """Whether a host's aggregates have every wanted value.

    Of Nova's operators only ``<or>`` is understood; with any other the answer is no: better no
    move than one that Nova refuses.
    """
    return all(properties.get(key, set()) & _values(value) for key, value in specs)


def _values(wanted):
    if wanted.startswith('<or>'):
        return {word.strip() for word in wanted.split('<or>') if word.strip()}
    return {wanted}
