"""Pairs that are out for a reason found outside the planner."""

import numpy as np


class _Pairs:
    """``hosts_of`` : instance index to the indexes of the hosts it may not go to."""

    def __init__(self, problem, pairs):
        vms = {uuid: index for index, uuid in enumerate(problem.vms)}
        hosts = {name: index for index, name in enumerate(problem.hosts)}
        self._hosts_of = {}
        for uuid, name in pairs:
            if uuid in vms and name in hosts:
                self._hosts_of.setdefault(vms[uuid], set()).add(hosts[name])

    @property
    def idle(self):
        return not self._hosts_of

    def mask(self, state, vm):
        permitted = np.ones(len(state.problem.hosts), dtype=bool)
        permitted[list(self._hosts_of.get(int(vm), ()))] = False
        return permitted

    def column(self, state, host):
        permitted = np.ones(len(state.problem.vms), dtype=bool)
        permitted[[vm for vm, hosts in self._hosts_of.items() if int(host) in hosts]] = False
        return permitted

    def permits(self, state, vm, host):
        return int(host) not in self._hosts_of.get(int(vm), ())


class SchedulerVeto(_Pairs):
    """Nova's own scheduler filters refused the host in a dry run."""

    reason = 'refused'

    def __init__(self, problem, snapshot, rules):
        self._reasons = rules.vetoes
        super().__init__(problem, rules.vetoes)

    def why(self, state, vm, host):
        problem = state.problem
        return self._reasons[problem.vms[vm], problem.hosts[host]]


class Returning(_Pairs):
    """The instance left that host not long ago: going back would be the start of a circle."""

    reason = 'cooldown'

    def __init__(self, problem, snapshot, rules):
        super().__init__(problem, rules.returns)

    def why(self, state, vm, host):
        return f'the instance left {state.problem.hosts[host]} not long ago'
