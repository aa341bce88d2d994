"""Room for some hosts' worth of instances stays free."""

import numpy as np

from kronos_nova.simulation import TOLERANCE


class Reserve:
    """In every resource class, what is free on the available hosts in use stays at least the size
    of the ``reserve_hosts`` largest hosts.

    Counted on hosts in use, so that packing does not fill the last gap and then have the empty
    hosts switched off. Where less is free already, a move must not make it less still. Only two
    kinds of moves change the sum: those that empty a host, and those that come from a host which
    is not counted.
    """

    reason = 'capacity'

    def __init__(self, problem, snapshot, rules):
        self._count = rules.reserve_hosts
        largest = np.sort(problem.limits[problem.available], axis=0)[::-1]
        self._needed = largest[:self._count].sum(axis=0)

    @property
    def idle(self):
        return self._count == 0

    def mask(self, state, vm):
        return self._enough(state, np.array([vm]), np.arange(len(state.problem.hosts)))

    def column(self, state, host):
        return self._enough(state, np.arange(len(state.problem.vms)), np.array([host]))

    def permits(self, state, vm, host):
        return bool(self._enough(state, np.array([vm]), np.array([host]))[0])

    def why(self, state, vm, host):
        return f'the hosts in use would keep less than {self._count} hosts\' worth of room free'

    def _enough(self, state, vms, hosts):
        """bool (n,) for one instance and many hosts, or many instances and one host."""
        problem = state.problem
        free = problem.limits - state.used
        guests = np.bincount(state.vm_host, minlength=len(problem.hosts))
        in_use = problem.available & (guests > 0)
        now = free[in_use].sum(axis=0)
        demands, sources = problem.demands[vms], state.vm_host[vms]
        empties = (guests[sources] == 1)[:, None]
        left = np.where(empties, -free[sources], demands) * problem.available[sources][:, None]
        entered = np.where(in_use[hosts][:, None], 0.0, free[hosts]) - demands
        then = now + left + entered
        return ((then >= self._needed - TOLERANCE) | (then >= now - TOLERANCE)).all(axis=1)
