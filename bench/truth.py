"""Load of hosts beside the load that plans promise, on clouds whose metrics are as exporters have
them: hosts of several sizes, memory that is overcommitted, shared or in huge pages, and exporters
that report some guests only."""

import dataclasses
import datetime

from bench import report

SIZES = (32, 128), (64, 256), (96, 512), (128, 1024)
"""CPUs and GiB of kinds of hosts."""
FLAVORS = (2, 4), (4, 8), (4, 32), (8, 32), (16, 64)
"""Virtual CPUs and GiB of servers."""
WITHIN = 0.03
"""Goal: distance of the load that a believed host has after all moves from the promised one."""
COLUMNS = ('cloud', 'hosts', 'kinds', 'ratio', 'shared', 'huge pages', 'partial', 'moves',
           'into unbelieved', 'furthest off', 'policy')


def register(subparsers):
    parser = subparsers.add_parser(
        'truth', help='generated clouds: the load after all moves, and what the plan promised')
    parser.add_argument('--clouds', type=int, default=40, help='how many (40)')
    parser.add_argument('--seed', type=int, default=0, help='of the first (0)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    rows = []
    for seed in range(args.seed, args.seed + args.clouds):
        rows.append(_row(seed))
        report.progress(rows[-1])
    cases = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    failures = [f'cloud {case["cloud"]}: {case["into unbelieved"]} moves into hosts that are not '
                'believed' for case in cases if case['into unbelieved']]
    failures += [f'cloud {case["cloud"]}: {case["furthest off"]:.3f} off in {case["policy"]}, goal '
                 f'{WITHIN}' for case in cases if case['furthest off'] > WITHIN]
    moves = sum(case['moves'] for case in cases)
    return report.Report(tables=(report.Table('clouds', COLUMNS, rows),), failures=tuple(failures),
                         notes=(f'{moves} moves in {len(cases)} clouds.',))


def _row(seed):
    from bench import installation
    from kronos_nova.cycle import options as engine_options
    from kronos_nova.cycle.inputs import PlannerPorts
    from kronos_nova.cycle.steps import plan_cycle
    from kronos_nova.policies import loader

    cloud = _cloud(seed)
    options = dataclasses.replace(
        engine_options.from_conf(installation.conf(min_coverage=0.5, restraint=0.0)),
        aggregates=('agg',), include_unassigned_hosts=False)
    found, = plan_cycle(
        cloud.snapshot(), loader.parse(POLICIES), options,
        PlannerPorts(source=cloud, clock=lambda: 0.0, now=installation.BEGIN)).aggregates
    unbelieved = {each.host for each in found.unbelieved if each.what == 'score'}
    doubted = {(each.host, each.policy) for each in found.unbelieved}
    for move in found.moves:
        cloud.place[move.instance_uuid] = move.destination
    off = [(abs(cloud.load(score.policy)[score.host] - score.after), score.policy)
           for score in found.host_scores if (score.host, score.policy) not in doubted]
    furthest, policy = max(off, default=(0.0, None))
    return (seed, len(cloud.sizes), len(set(cloud.sizes.values())), cloud.ratio, cloud.shared,
            len(cloud.huge), len(cloud.partial), len(found.moves),
            sum(move.destination in unbelieved for move in found.moves), furthest, policy)


POLICIES = """policies:
  - {name: cpu, mode: spread, weight: 0.5, threshold: 0.1, imbalance_query: cpu,
     host_capacity_query: cpus, vm_profile_query: guests, max_migrations_per_cycle: 20}
  - {name: memory, mode: spread, weight: 0.5, threshold: 0.1, imbalance_query: memory,
     vm_profile_resource: MEMORY_MB, vm_profile_query: guests, max_migrations_per_cycle: 20}
"""
"""One of the policies has amounts and the sizes of hosts, the other one fractions of the own host,
as files had them before there were sizes."""


class _Cloud:
    """A cloud, and a metrics source that answers as exporters would.

    sizes : host to (CPUs, GiB); place : server to host
    cores, touched : server to what it uses, CPUs and GiB
    shared : part of the guests' memory that pages in common save on each host
    huge : hosts whose guests are in huge pages; partial : hosts of which the exporter stops early
    """

    def __init__(self, rng):
        import numpy as np

        kinds = rng.choice(len(SIZES), int(rng.integers(2, 5)), replace=False)
        count = int(rng.integers(6, 15))
        self.sizes = {f'host{n:02}': SIZES[int(rng.choice(kinds))] for n in range(count)}
        self.ratio = float(rng.choice([1, 2, 4, 8, 16]))
        self.shared = float(rng.choice([0.0, 0.0, 0.1, 0.25]))
        names = list(self.sizes)
        self.huge = set(rng.choice(names, int(count * rng.choice([0, 0, 0.3])), replace=False))
        self.partial = {name for name in names if rng.random() < 0.1}
        self.place, self.cores, self.touched, self.flavors = {}, {}, {}, {}
        for name, (cpus, gib) in self.sizes.items():
            cpu_goal, memory_goal = rng.uniform(0.1, 0.85, 2)
            used = np.zeros(2)
            while (used < [cpu_goal * cpus, memory_goal * gib]).all():
                flavor = FLAVORS[int(rng.integers(len(FLAVORS)))]
                server = f'server-{len(self.place):04}'
                self.place[server], self.flavors[server] = name, flavor
                self.cores[server] = flavor[0] * float(rng.uniform(0.05, 0.9))
                self.touched[server] = flavor[1] * (
                    1.0 if name in self.huge else float(rng.uniform(0.3, 1.0)))
                used += self.cores[server], self.touched[server]

    def load(self, policy):
        """Return {host: its true load in a policy}."""
        amounts = self.cores if policy == 'cpu' else self.touched
        factor = 1.0 if policy == 'cpu' else 1.0 - self.shared
        sums = dict.fromkeys(self.sizes, 0.0)
        for server, host in self.place.items():
            sums[host] += amounts[server] * factor
        number = 0 if policy == 'cpu' else 1
        return {host: min(1.0, BASE + total / self.sizes[host][number])
                for host, total in sums.items()}

    def query(self, query):
        from kronos_nova.objects import metrics

        if query.kind == metrics.IMBALANCE:
            return self._vector('host', self.load(query.policy))
        if query.kind == metrics.HOST_CAPACITY:
            return self._vector('host', {host: size[0] for host, size in self.sizes.items()})
        shown, counts = {}, dict.fromkeys(self.sizes, 0)
        for server, host in self.place.items():
            counts[host] += 1
            if host in self.partial and counts[host] > 2:
                continue
            if query.policy == 'cpu':
                shown[server] = self.cores[server]
            else:
                shown[server] = self.touched[server] / self.sizes[host][1]
        return self._vector('uuid', shown)

    def _vector(self, label, values):
        from bench import installation
        from kronos_nova.objects import metrics

        return metrics.Vector(tuple(metrics.Sample({label: name}, value, installation.BEGIN)
                                    for name, value in values.items()))

    def snapshot(self):
        from bench import installation
        from kronos_nova.objects import snapshot

        return snapshot.Snapshot(
            taken_at=datetime.datetime.fromtimestamp(installation.BEGIN, datetime.UTC).isoformat(),
            hosts=tuple(snapshot.Host(
                name=name, uuid=name, service=snapshot.Service(state='up', status='enabled'),
                inventory={
                    'VCPU': snapshot.ResourceInventory(total=cpus, allocation_ratio=self.ratio * 4),
                    'MEMORY_MB': snapshot.ResourceInventory(
                        total=gib * 1024, allocation_ratio=2.0)})
                for name, (cpus, gib) in self.sizes.items()),
            instances=tuple(snapshot.Instance(
                uuid=server, name=server, display_name=server, host=host, project_id='bench',
                status='ACTIVE', vcpus=self.flavors[server][0],
                memory_mb=self.flavors[server][1] * 1024, disk_gb=0,
                resources={'VCPU': self.flavors[server][0],
                           'MEMORY_MB': self.flavors[server][1] * 1024})
                for server, host in self.place.items()),
            aggregates=(snapshot.Aggregate(name='agg', uuid='agg', hosts=tuple(self.sizes)),))


BASE = 0.02
"""Load of a host without servers."""


def _cloud(seed):
    import numpy as np

    return _Cloud(np.random.default_rng(seed))
