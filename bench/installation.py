"""A cloud as a cycle of an installation sees it: snapshot, policies, metrics and options, all made
in memory from a :class:`kronos_nova.model.Problem`."""

import datetime
import uuid

import numpy as np
import yaml
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.model import TOLERANCE
from kronos_nova.model import Problem
from kronos_nova.objects import metrics
from kronos_nova.objects import snapshot
from kronos_nova.policies import PolicySet
from kronos_nova.policies import loader

AGGREGATE = 'cluster'
BEGIN = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC).timestamp()
MARKS = 0.9, 0.8
"""``high`` and ``target`` of the policies of mode ``relieve``."""
PINNED = {'kronos:move': 'never'}
"""Metadata of servers that may not be moved."""
FULL = 1.0
"""``capacity_threshold`` of the policies of mode ``pack``."""


def conf(**overrides) -> cfg.ConfigOpts:
    """Return a configuration with the default options of an installation.

    :param overrides: options of ``[kronos]`` with other values
    """
    found = cfg.ConfigOpts()
    kronos_conf.register_opts(found)
    found([], default_config_files=[])
    for name, value in overrides.items():
        found.set_override(name, value, 'kronos')
    return found


class Cloud:
    """Servers of constant load on hosts; a metrics source that is always right.

    The load of a server moves with the server. A server weighs on every host what the problem says.

    now : Unix seconds
    place : intp (V,), host of each server
    disabled : indexes of the hosts whose service is disabled
    """

    def __init__(self, problem: Problem, aggregates: dict[str, np.ndarray] | None = None,
                 imbalance_over: float = 1.0):
        """
        :param aggregates: name to indexes of hosts; None is one aggregate with all hosts
        :param imbalance_over: as the policies have it
        """
        self.problem, self.now, self._over = problem, BEGIN, imbalance_over
        self.place, self.disabled = problem.vm_host.copy(), set()
        self._vm = {name: vm for vm, name in enumerate(problem.vms)}
        self._host = {name: host for host, name in enumerate(problem.hosts)}
        self._instances = [self._instance(vm) for vm in range(len(problem.vms))]
        if aggregates is None:
            aggregates = {AGGREGATE: np.arange(len(problem.hosts))}
        self.aggregates = {name: np.asarray(hosts) for name, hosts in aggregates.items()}

    def move(self, instance_uuid: str, destination: str) -> None:
        vm = self._vm[instance_uuid]
        self.place[vm] = self._host[destination]
        self._instances[vm] = self._instance(vm)

    def scores(self) -> np.ndarray:
        """Return the score of each host in each policy as float64 (H, P)."""
        scores = np.zeros(self.problem.scores.shape)
        np.add.at(scores, self.place,
                  self.problem.weights * self.problem.host_scale[self.place])
        return scores

    def imbalances(self) -> np.ndarray:
        """Return the imbalance of each policy as float64 (P,): the highest minus the lowest score
        of the enabled hosts that count, in the aggregate in which this is largest."""
        scores = self.scores()
        return np.max([self._imbalances(scores[np.setdiff1d(hosts, list(self.disabled))])
                       for hosts in self.aggregates.values()], axis=0)

    def _imbalances(self, scores):
        if self._over < 1.0:
            left_out = int((1.0 - self._over) * len(scores) + TOLERANCE)
            scores = np.sort(scores, axis=0)[left_out:len(scores) - left_out]
        return np.ptp(scores, axis=0)

    def is_balanced(self, threshold: float) -> bool:
        return bool((self.imbalances() <= threshold + TOLERANCE).all())

    def snapshot(self) -> snapshot.Snapshot:
        names = self.problem.hosts
        return snapshot.Snapshot(
            taken_at=datetime.datetime.fromtimestamp(self.now, datetime.UTC).isoformat(),
            hosts=tuple(self._host_row(host) for host in range(len(names))),
            instances=tuple(self._instances),
            server_groups=tuple(snapshot.ServerGroup(
                uuid=group.uuid, name=group.name, members=tuple(
                    self.problem.vms[vm] for vm in group.members),
                policy=('' if group.hard else 'soft-') + (
                    'anti-affinity' if group.anti else 'affinity'))
                for group in self.problem.groups),
            aggregates=tuple(snapshot.Aggregate(
                name=name, uuid=_uuid(name), hosts=tuple(names[host] for host in hosts))
                for name, hosts in self.aggregates.items()))

    def query(self, query: metrics.MetricQuery) -> metrics.Vector:
        """Answer a query of :func:`policies`. What servers ask for beyond all that their host has
        is shown neither of the host nor of them."""
        column = self.problem.policies.index(query.policy)
        scores = self.scores()[:, column]
        if query.kind == metrics.VM_PROFILE:
            share = 1 / np.maximum(scores, 1.0)
            return self._vector('uuid', self.problem.vms,
                                self.problem.weights[:, column] * share[self.place])
        if query.kind == metrics.HOST_CAPACITY:
            return self._vector('host', self.problem.hosts, 1 / self.problem.host_scale[:, column])
        return self._vector('host', self.problem.hosts, np.minimum(scores, 1.0))

    def _vector(self, label, names, values):
        return metrics.Vector(tuple(
            metrics.Sample({label: name}, value, self.now)
            for name, value in zip(names, values.tolist(), strict=True)))

    def _host_row(self, host):
        name = self.problem.hosts[host]
        return snapshot.Host(
            name=name, uuid=_uuid(name), service=snapshot.Service(
                state='up', status='disabled' if host in self.disabled else 'enabled'),
            inventory={each: snapshot.ResourceInventory(total=int(limit)) for each, limit in zip(
                self.problem.resource_classes, self.problem.limits[host], strict=True)})

    def _instance(self, vm):
        problem, name = self.problem, self.problem.vms[vm]
        resources = dict(zip(problem.resource_classes, map(int, problem.demands[vm]), strict=True))
        return snapshot.Instance(
            uuid=name, name=f'instance-{vm:08x}', display_name=f'vm{vm}',
            host=problem.hosts[self.place[vm]], project_id='bench', status='ACTIVE',
            vcpus=resources['VCPU'], memory_mb=resources['MEMORY_MB'], disk_gb=0,
            resources=resources, metadata={} if problem.movable[vm] else PINNED)


def policies_file(problem: Problem, mode: str, threshold: float, budget: int,
                  marks: tuple[float, float] = MARKS, imbalance_over: float = 1.0) -> str:
    """Return a policies file, as an operator writes it, with the policies of a problem."""
    high, target = marks
    more = {'spread': {'threshold': threshold}, 'relieve': {'high': high, 'target': target},
            'pack': {'threshold': threshold, 'capacity_threshold': FULL}}[mode]
    if imbalance_over < 1.0:
        more |= {'imbalance_over': imbalance_over}
    return yaml.safe_dump({'policies': [
        {'name': name, 'mode': mode, 'weight': float(weight), 'max_migrations_per_cycle': budget,
         'imbalance_query': f'recorded_{name}', 'vm_profile_query': f'recorded_vm_{name}',
         **({'capacity_query': f'recorded_capacity_{name}'} if mode == 'pack' else {}),
         **({'host_capacity_query': f'recorded_size_{name}'} if _differ(problem) else {}), **more}
        for name, weight in zip(problem.policies, problem.policy_weights, strict=True)]})


def policies(problem: Problem, mode: str = 'spread', threshold: float = 0.05,
             budget: int = 50, marks: tuple[float, float] = MARKS,
             imbalance_over: float = 1.0) -> PolicySet:
    return loader.parse(policies_file(problem, mode, threshold, budget, marks, imbalance_over))


def _differ(problem):
    """Return whether hosts differ in size, so that policies have to say what a server weighs
    where."""
    return bool((problem.host_scale != 1.0).any() or (problem.limits != problem.limits[0]).any())


def _uuid(name):
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
