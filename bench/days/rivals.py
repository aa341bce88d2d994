"""The rivals of Kronos. Moves of all are made by the same rules: so many
at once, and no more than there is room for."""

import json
import math
import pathlib
import subprocess
from typing import Any

import numpy as np

from bench.days import scenario as scenarios

TOTAL, PER_SOURCE, PER_DESTINATION = 4, 1, 2
"""Moves at once: the defaults of ``[kronos_executor]``."""
GIVEN_UP = 1800.0
"""Seconds after which a move that could not be started is not wanted any more."""


class NoMoves:
    """Leaves everything where it is.

    largest : hosts for which a strategy takes no more than minutes
    """

    name = 'no moves'
    largest = math.inf

    def begin(self, world):
        self.world = world

    def evaluate(self):
        pass

    def tick(self):
        return False

    def end(self):
        pass


class _Mover(NoMoves):
    """Makes the moves of a rival's plan, in their order."""

    def begin(self, world):
        super().begin(world)
        self._wanted = []

    def want(self, moves):
        """:param moves: (server, host)"""
        self._wanted = [(vm, host, self.world.now) for vm, host in moves]

    def tick(self):
        self._wanted = [move for move in self._wanted if not self._is_done(*move)]
        for vm, host, _since in self._wanted:
            if self._has_slot(vm, host) and self.world.may_start(vm, host):
                self.world.start(vm, host)
        return bool(self._wanted)

    def _is_done(self, vm, host, since):
        return self.world.place[vm] in (-1, host) or self.world.now - since > GIVEN_UP

    def _has_slot(self, vm, host):
        under_way = self.world.migrations.values()
        source = self.world.place[vm]
        return (len(under_way) < TOTAL
                and sum(move.source == source for move in under_way) < PER_SOURCE
                and sum(move.destination == host for move in under_way) < PER_DESTINATION)


class Watcher(_Mover):
    """OpenStack Watcher's ``workload_stabilization`` on CPU, with perfect metrics.

    Its threshold is of the standard deviation over the hosts, which of some twenty is a quarter of
    what is between the highest and the lowest.

    :param python: interpreter of an environment with python-watcher
    :param interval: seconds between two audits
    """

    name = 'Watcher'

    def __init__(self, python: str, interval: float, threshold: float):
        self._python, self._interval = python, interval
        self._parameters = {'metrics': ['instance_cpu_usage'],
                            'thresholds': {'instance_cpu_usage': threshold / 4}}

    def begin(self, world):
        super().begin(world)
        self._audited = -np.inf
        script = pathlib.Path(__file__).parent.with_name('watcher_audit.py')
        self._audits: Any = subprocess.Popen(
            [self._python, '-P', str(script), '--each-line'], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)

    def end(self):
        self._audits.stdin.close()
        self._audits.wait(60)

    def evaluate(self):
        if self.world.now - self._audited < self._interval or self.world.migrations:
            return
        self._audited = self.world.now
        self._audits.stdin.write(json.dumps(self._request()) + '\n')
        self._audits.stdin.flush()
        answer = json.loads(self._audits.stdout.readline() or self._give_up())
        self.want((int(vm.removeprefix('vm')), int(host.removeprefix('host')))
                  for vm, host in answer['moves'])

    def _give_up(self):
        raise RuntimeError(f'{self._python} cannot audit; is python-watcher installed there?')

    def _request(self):
        scenario, (_hosts, used) = self.world.scenario, self.world.seen()
        there = np.flatnonzero(self.world.available)
        inside = [vm for vm in self.world.present if self.world.place[vm] in there]
        return {'strategy': 'workload_stabilization', 'audits': 1, 'parameters': self._parameters,
                'cluster': {
                    'vcpu_ratio': scenarios.VCPU_RATIO,
                    'hosts': [{'name': f'host{host}', 'vcpus': scenario.cores, 'disk_gb': 100_000,
                               'memory_mb': scenario.memory_mb} for host in there],
                    'vms': [{'uuid': f'vm{vm}', 'host': f'host{self.world.place[vm]}',
                             'vcpus': int(scenario.vcpus[vm]),
                             'memory_mb': int(scenario.vm_memory_mb[vm]),
                             'mem_util_mb': int(scenario.vm_memory_mb[vm]),
                             'cpu_util': float(used[vm] * scenario.cores / scenario.vcpus[vm])}
                            for vm in inside]}}


class Oracle(_Mover):
    """Knows what comes. Every some hours it makes, as long as that pays, the move after which the
    hosts are most even and least hot in the hours to come.

    :param hours: how far it looks, and for how long it then does nothing
    """

    name = 'oracle'
    largest = 40
    HOT, HEAT, PRICE = .8, 50.0, 2e-4
    """Above which load a host counts as hot; how much more that counts than unevenness; and by how
    much the mean square of a host's distance from the mean has to fall for each GiB."""

    def __init__(self, hours: float = 6.0):
        self._samples = int(hours * 3600 / scenarios.STEP)

    def evaluate(self):
        if self.world.sample % self._samples == 0 or self._has_changed():
            self.want(self._plan())

    def _has_changed(self):
        return any(event.at == self.world.sample for event in self.world.scenario.events)

    def _plan(self):
        scenario, place = self.world.scenario, self.world.place.copy()
        end = self.world.sample - self.world.sample % self._samples + self._samples
        use = scenario.demand[self.world.sample:end] / scenario.cores
        loads = np.stack([use[:, place == host].sum(axis=1) for host in range(scenario.hosts)])
        free, hosts = self.world.free_mb(), np.flatnonzero(self.world.available)
        mean = loads[hosts].mean(axis=0)
        prices = self.PRICE * scenario.vm_memory_mb / 1024
        moves = {}
        while len(moves) < len(place):
            gain, vm, host = self._best(loads, use, place, free, hosts, mean, prices, moves)
            if gain <= 0:
                break
            for at, way in ((place[vm], -1), (host, 1)):
                loads[at] += way * use[:, vm]
                free[at] -= way * scenario.vm_memory_mb[vm]
            place[vm] = moves[vm] = host
        return moves.items()

    def _best(self, loads, use, place, free, hosts, mean, prices, moves):
        best = (0.0, -1, -1)
        now = {host: self._cost(loads[host], mean) for host in hosts}
        for source in hosts:
            vms = np.array([vm for vm in np.flatnonzero(place == source) if vm not in moves])
            if not len(vms):
                continue
            gone = now[source] - self._cost(loads[source] - use[:, vms].T, mean)
            for host in hosts:
                fits = self.world.scenario.vm_memory_mb[vms] <= free[host]
                gain = gone + now[host] - self._cost(loads[host] + use[:, vms].T, mean)
                gain = np.where(fits & (host != source), gain - prices[vms], -np.inf)
                best = max(best, (float(gain.max()), int(vms[gain.argmax()]), int(host)))
        return best

    def _cost(self, loads, mean):
        """Return the cost of loads (..., t) of one host as float64 (...): the mean square of their
        distance from ``mean``, and more for load above HOT."""
        over = np.maximum(loads - self.HOT, 0.0)
        return ((loads - mean) ** 2 + self.HEAT * over ** 2).mean(axis=-1)
