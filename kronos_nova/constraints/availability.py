"""A destination must be up, enabled and not forced down."""

import numpy as np


class Availability:
    reason = 'capacity'
    idle = False

    def __init__(self, problem, snapshot, rules):
        self._available = problem.available
        self._services = {host.name: host.service for host in snapshot.hosts}

    def mask(self, state, vm):
        return self._available

    def column(self, state, host):
        return np.full(len(state.problem.vms), self._available[host])

    def permits(self, state, vm, host):
        return bool(self._available[host])

    def why(self, state, vm, host):
        name = state.problem.hosts[host]
        service = self._services[name]
        words = [service.state, service.status, *(['forced down'] if service.forced_down else [])]
        return f'nova-compute of {name} is {", ".join(words)}'
