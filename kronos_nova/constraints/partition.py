"""Hosts in parts between which no instance moves: cells and availability zones."""

import numpy as np

from kronos_nova.model.rules import AllowedHosts

DEFAULT_ZONE = 'nova'


class Cell:
    @staticmethod
    def compile(problem, snapshot, rules):
        """A live migration cannot cross cells."""
        cells = {host.name: host.cell for host in snapshot.hosts}
        return _partition(problem, 'cell', [cells[host] for host in problem.hosts])


class Zone:
    @staticmethod
    def compile(problem, snapshot, rules):
        """Where an operator asks for it, an instance keeps its availability zone."""
        if not rules.restrict_to_az:
            return ()
        zones = {host: aggregate.availability_zone for aggregate in snapshot.aggregates
                 if aggregate.availability_zone for host in aggregate.hosts}
        return _partition(problem, 'availability zone',
                          [zones.get(host, DEFAULT_ZONE) for host in problem.hosts])


def _partition(problem, noun, part_of_host):
    names, part = np.unique(np.array(part_of_host, dtype=str), return_inverse=True)
    if len(names) < 2:
        return ()

    def why(state, vm, host):
        return (f'{problem.hosts[host]} is in {noun} {names[part[host]]}, the instance in '
                f'{names[part[problem.vm_host[vm]]]}')

    # No move crosses, so an instance stays in the part in which it is before any.
    return (AllowedHosts(reason='zone', why=why, kind=part[problem.vm_host],
                         allowed=np.arange(len(names))[:, None] == part),)
