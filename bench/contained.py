"""The cost of a fault in one aggregate to the others: their plan, and the time until it is made."""

import copy
import dataclasses
import gc
import random
import statistics
import time
from typing import Any

from bench import report

HEALTHY = 'healthy'

MOST = 1.1
"""Times what a cycle of the healthy aggregate takes without any fault."""


def register(subparsers):
    parser = subparsers.add_parser(
        'contained', help='plans and times of a healthy aggregate beside a faulty one')
    parser.add_argument('--hosts', type=int, default=60, help='of each aggregate')
    parser.add_argument('--vms', type=int, default=1200, help='of each aggregate')
    parser.add_argument('--repeat', type=int, default=7)
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    def planned(spoil, beside):
        cloud = Cloud(args.hosts, args.vms)
        spoil(cloud)
        gc.collect()
        return cloud.plan_good(beside)

    faults = {'none': lambda cloud: None, **FAULTS}
    undisturbed, _spent = planned(faults['none'], 'before')
    rows, failures = [], []
    for name, spoil in faults.items():
        plan, _spent = planned(spoil, 'before')
        # What both share, such as the answers, is read by the first, and has to be counted.
        # In pairs, so that what else the machine does hits both alike.
        pairs = [(planned(spoil, 'later')[1], planned(faults['none'], 'later')[1])
                 for _turn in range(args.repeat)]
        ratio = statistics.median(spent / base for spent, base in pairs)
        same = 'same' if plan == undisturbed else 'DIFFERENT'
        rows.append((name, len(plan.moves), same, min(spent for spent, _base in pairs), ratio))
        if same != 'same' or ratio > MOST:
            failures.append(f'{name}: {same} plan, {ratio:.2f} times the time')
    return report.Report(tables=(report.Table(
        'a healthy aggregate', ('fault of the other', 'moves', 'plan', 'CPU s', 'times none'),
        rows),), failures=tuple(failures), notes=(
            'CPU seconds of a cycle of both aggregates without what planning the faulty one takes, '
            f'the least of {args.repeat}; beside it the median of {args.repeat} ratios, each to a '
            'cycle without the fault right after it.',))


class Cloud:
    """Two aggregates that share nothing, of hosts bad0, bad1 ... and good0, good1 ...; faults
    change rows of the bad."""

    def __init__(self, hosts, vms):
        from kronos_nova.objects import snapshot
        self.objects, rng = snapshot, random.Random(1)
        room = {'VCPU': snapshot.ResourceInventory(total=vms),
                'MEMORY_MB': snapshot.ResourceInventory(total=vms * 4096)}
        self.hosts = {f'{side}{n}': snapshot.Host(
            name=f'{side}{n}', uuid=f'{side}{n}', inventory=room,
            service=snapshot.Service(state='up', status='enabled'))
            for side in ('good', 'bad') for n in range(hosts)}
        self.instances = {f'{side}-vm{n}': snapshot.Instance(
            uuid=f'{side}-vm{n}', name=f'instance-{side}-{n}', display_name=f'{side}-vm{n}',
            host=f'{side}{rng.randrange(hosts)}', project_id=f'p{n % 20}', status='ACTIVE',
            vcpus=1, memory_mb=rng.choice((1024, 2048, 4096)), disk_gb=1,
            resources={'VCPU': 1, 'MEMORY_MB': 1024})
            for side in ('good', 'bad') for n in range(vms)}
        self.load = {uuid: rng.random() / (2 * vms / hosts) for uuid in self.instances}
        self.scores = dict.fromkeys(self.hosts, 0.05)
        for uuid, each in self.instances.items():
            self.scores[each.host] += self.load[uuid]
        self.groups = {f'{side}-g{n}': snapshot.ServerGroup(
            uuid=f'{side}-g{n}', name=f'g{n}', policy='soft-anti-affinity',
            members=tuple(f'{side}-vm{m}' for m in range(n, vms, vms // 10)))
            for side in ('good', 'bad') for n in range(10)}
        self.more = []

    @property
    def bad(self):
        return [uuid for uuid in self.instances if uuid.startswith('bad')]

    @staticmethod
    def change(rows, key, /, **values):
        rows[key] = dataclasses.replace(rows[key], **values)

    def query(self, query):
        from kronos_nova.objects import metrics
        values, label = ((self.load, 'uuid') if query.kind == metrics.VM_PROFILE
                         else (self.scores, 'host'))
        return metrics.Vector(tuple(metrics.Sample({label: name}, value, 0.0)
                                    for name, value in (*values.items(), *self.more)))

    def plan_good(self, beside):
        """Plan a healthy aggregate beside a faulty one, and return (its AggregateReport, CPU
        seconds without those for the faulty one).

        :param beside: name of the faulty aggregate; aggregates are planned in the order of their
            names
        """
        from kronos_nova.cycle import steps
        from kronos_nova.cycle.inputs import PlannerPorts
        from kronos_nova.cycle.options import EngineOptions
        from kronos_nova.policies import loader
        snapshot = self.objects.Snapshot(
            taken_at='', hosts=tuple(self.hosts.values()),
            instances=tuple(self.instances.values()), server_groups=tuple(self.groups.values()),
            aggregates=tuple(self.objects.Aggregate(name=name, uuid=side, hosts=tuple(
                host for host in self.hosts if host.startswith(side)))
                for side, name in (('bad', beside), ('good', HEALTHY))))
        spent_on_bad: list[float] = []
        source: Any = self    # answers no query of a forecast
        real = steps.Line.plan_alone

        def plan_alone(this, scope):
            begun = time.process_time()
            found = real(this, scope)
            if scope.name == beside:
                spent_on_bad.append(time.process_time() - begun)
            return found

        steps.Line.plan_alone = plan_alone  # type: ignore[method-assign]
        begun = time.process_time()
        try:
            found = steps.plan_cycle(
                snapshot, loader.parse(POLICIES),
                EngineOptions(include_unassigned_hosts=False,
                              spread_planner='greedy', evacuate_disabled_hosts=True,
                              enforce_hard_affinity=True),
                PlannerPorts(source=source, clock=lambda: 0.0, now=0.0))
        finally:
            steps.Line.plan_alone = real  # type: ignore[method-assign]
        spent = time.process_time() - begun - sum(spent_on_bad)
        return next(each for each in found.aggregates if each.name == HEALTHY), spent


POLICIES = b"""
policies:
- {name: cpu, mode: spread, weight: 1.0, threshold: 0.02, max_migrations_per_cycle: 30,
   imbalance_query: host, vm_profile_query: vm, vm_profile_label: uuid}
"""


def _each_instance(**values):
    def spoil(cloud):
        for uuid in cloud.bad:
            cloud.change(cloud.instances, uuid, **copy.deepcopy(values))
    return spoil


def _groups(**values):
    def spoil(cloud):
        for name in [name for name in cloud.groups if name.startswith('bad')]:
            cloud.change(cloud.groups, name, **values)
    return spoil


def _one_large_group(cloud):
    cloud.change(cloud.groups, 'bad-g0', members=tuple(cloud.bad), policy='anti-affinity')


def _disabled(cloud):
    for host in [name for name in cloud.hosts if name.startswith('bad')][:10]:
        cloud.change(cloud.hosts, host, service=cloud.objects.Service(
            state='up', status='disabled', disabled_reason='\x1b[2J' * 1000))


def _down(cloud):
    for host in [name for name in cloud.hosts if name.startswith('bad')]:
        cloud.change(cloud.hosts, host, service=cloud.objects.Service(
            state='down', status='enabled'))


def _no_exporter(cloud):
    for host in [name for name in cloud.scores if name.startswith('bad')]:
        del cloud.scores[host]


def _no_profile(cloud):
    for uuid in cloud.bad:
        del cloud.load[uuid]


def _scores(value):
    def spoil(cloud):
        for host in [name for name in cloud.scores if name.startswith('bad')]:
            cloud.scores[host] = value
    return spoil


def _profiles(value):
    def spoil(cloud):
        for uuid in cloud.bad:
            cloud.load[uuid] = value
    return spoil


def _no_inventory(cloud):
    for host in [name for name in cloud.hosts if name.startswith('bad')]:
        cloud.change(cloud.hosts, host, inventory={})


def _huge_inventory(cloud):
    for host in [name for name in cloud.hosts if name.startswith('bad')]:
        cloud.change(cloud.hosts, host, inventory={'VCPU': cloud.objects.ResourceInventory(
            total=2 ** 63, allocation_ratio=1e308)})


def _gone(cloud):
    for host in [name for name in cloud.hosts if name.startswith('bad')][:30]:
        cloud.hosts.pop(host)
        for uuid in [uuid for uuid, each in cloud.instances.items() if each.host == host]:
            cloud.instances.pop(uuid)


FAULTS = {
    'groups of 2**63 a host': _groups(policy='anti-affinity',
                                      rules={'max_server_per_host': 2 ** 63}),
    'group of all servers': _one_large_group,
    'names of groups': _groups(name='\x1b[2J[/x]' * 1000),
    'metadata never': _each_instance(metadata={'kronos:move': 'never'}),
    'metadata nonsense': _each_instance(metadata={'kronos:move': '\u202e' * 255}),
    'locks': _each_instance(locked=True),
    'one display name': _each_instance(display_name='[link=x]y'),
    'resources of 2**63': _each_instance(resources={'VCPU': 2 ** 63}),
    'hosts disabled': _disabled, 'hosts down': _down, 'hosts gone (a cell down)': _gone,
    'hosts without inventory': _no_inventory, 'inventories of 2**63': _huge_inventory,
    'no exporter': _no_exporter, 'no profile': _no_profile,
    'scores NaN': _scores(float('nan')), 'scores 1e308': _scores(1e308),
    'scores negative': _scores(-1.0), 'profiles NaN': _profiles(float('nan')),
    'profiles infinite': _profiles(float('inf')), 'profiles 7': _profiles(7.0),
}
"""Faults of tenants, exporters and hosts of the other aggregate."""
