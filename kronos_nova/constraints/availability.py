"""The rules that keep instances off hosts that cannot take instances, and off hosts whose load is
not known.

A host cannot take instances if its nova-compute is down, disabled or forced down, or if the host is
emptied now or later. The rule about unknown loads is relaxed if a host cannot be emptied otherwise.
"""

from collections.abc import Iterator

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.objects.snapshot import Snapshot


def is_up(problem: Problem, snapshot: Snapshot, rules: ConstraintRules) -> np.ndarray:
    """Return bool (H,): true for hosts that can take instances. Their nova-compute is up, enabled
    and not forced down, and they are not emptied now or later. Their load may be unknown."""
    services = {host.name: host.service for host in snapshot.hosts}
    return np.array([services[name].is_available and name not in rules.closed_hosts
                     for name in problem.hosts], dtype=bool)


class Availability:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot,
                rules: ConstraintRules) -> Iterator[AllowedHosts]:
        services = {host.name: host.service for host in snapshot.hosts}
        can_take = is_up(problem, snapshot, rules)

        def why(state: State, vm: int, host: int) -> str:
            name = problem.hosts[host]
            service = services[name]
            words = [service.state, service.status]
            words += ['forced down'] if service.forced_down else []
            if name in rules.closed_hosts:
                return f'{name} is emptied now or later'
            return f'nova-compute of {name} is {", ".join(words)}'

        kind = np.zeros(len(problem.vms), dtype=np.intp)
        if not can_take.all():
            yield AllowedHosts(reason='capacity', why=why, kind=kind, allowed=can_take[None, :])
        if (can_take & ~problem.available).any():
            yield AllowedHosts(reason='capacity', kind=kind, yields=True,
                               why=lambda state, vm, host: (
                           f'the load of {problem.hosts[host]} is not known'),
                               allowed=(problem.available | ~can_take)[None, :])
