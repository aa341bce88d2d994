"""A destination must be up, enabled and not forced down."""

import numpy as np

from kronos_nova.simulation.rules import Sets


class Availability:
    @staticmethod
    def compile(problem, snapshot, rules):
        services = {host.name: host.service for host in snapshot.hosts}

        def why(state, vm, host):
            name = state.problem.hosts[host]
            service = services[name]
            words = [service.state, service.status]
            words += ['forced down'] if service.forced_down else []
            return f'nova-compute of {name} is {", ".join(words)}'

        if problem.available.all():
            return ()
        return (Sets(reason='capacity', why=why, kind=np.zeros(len(problem.vms), dtype=np.intp),
                     allowed=problem.available[None, :]),)
