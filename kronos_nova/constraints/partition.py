"""Hosts in parts between which no instance moves: cells and availability zones."""

import numpy as np

DEFAULT_ZONE = 'nova'


class _Partition:
    """``parts`` : intp (H,), the part each host is in, an index of ``names``."""

    reason = 'excluded'
    noun = 'part'

    def __init__(self, part_of_host):
        self._names, self._parts = np.unique(np.array(part_of_host, dtype=str),
                                             return_inverse=True)

    @property
    def idle(self):
        return len(self._names) < 2

    def mask(self, state, vm):
        return self._parts == self._parts[state.vm_host[vm]]

    def column(self, state, host):
        return self._parts[state.vm_host] == self._parts[host]

    def permits(self, state, vm, host):
        return bool(self._parts[state.vm_host[vm]] == self._parts[host])

    def why(self, state, vm, host):
        here, there = self._parts[state.vm_host[vm]], self._parts[host]
        return (f'{state.problem.hosts[host]} is in {self.noun} {self._names[there]}, the instance '
                f'in {self._names[here]}')


class Cell(_Partition):
    """A live migration cannot cross cells."""

    noun = 'cell'

    def __init__(self, problem, snapshot, rules):
        cells = {host.name: host.cell for host in snapshot.hosts}
        super().__init__([cells[host] for host in problem.hosts])


class Zone(_Partition):
    """Where an operator asks for it, an instance keeps its availability zone."""

    noun = 'availability zone'

    def __init__(self, problem, snapshot, rules):
        zones = {host: aggregate.availability_zone for aggregate in snapshot.aggregates
                 if aggregate.availability_zone for host in aggregate.hosts}
        self._restricted = rules.restrict_to_az
        super().__init__([zones.get(host, DEFAULT_ZONE) for host in problem.hosts])

    @property
    def idle(self):
        return not self._restricted or super().idle
