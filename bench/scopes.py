"""The cost of many server groups, projects and aggregates against a plain cloud."""

from bench import report

GROUPS, MEMBERS, SCOPES, PROJECTS = 5.0, 2.0, 2.0, 1.2
"""Seconds at most for the model of many groups, of one big group, for all scopes; and how many
times the plan for one project."""


def register(subparsers):
    parser = subparsers.add_parser('scopes', help='server groups, projects and aggregates')
    parser.add_argument('--groups', type=int, default=100_000,
                        help='server groups of three instances, as Nova allows: each instance is '
                             'in one (default 100,000)')
    parser.add_argument('--members', type=int, default=10_000,
                        help='members of the big group (default 10,000)')
    parser.add_argument('--repeat', type=int, default=3, help='the least of so many counts')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    def least(act, *arguments):
        return min(_seconds(act, *arguments) for _ in range(args.repeat))

    many, plain = _cloud(2000, 3 * args.groups), _cloud(2000, 3 * args.groups)
    many = _grouped(many, args.groups, 3)
    big = _grouped(_cloud(500, args.members), 1, args.members)
    alone = _cloud(500, args.members)
    one, projects = _cloud(500, 10_000), _cloud(500, 10_000, projects=10_000)
    wide = _cloud(10_000, 300_000, aggregates=200)
    rows = [(f'model of {args.groups:,} groups of 3', least(_model, many), least(_model, plain)),
            (f'model of a group of {args.members:,}', least(_model, big), least(_model, alone)),
            ('plan of 500 hosts, 10,000 projects', least(_plan, projects), least(_plan, one)),
            ('all scopes of 10,000 hosts in 200 aggregates', least(_scopes, wide), None)]
    figures = [(rows[0][0], rows[0][1], GROUPS), (rows[1][0], rows[1][1], MEMBERS),
               ('projects / one', rows[2][1] / rows[2][2], PROJECTS), (rows[3][0], rows[3][1],
                                                                      SCOPES)]
    return report.Report(
        tables=(report.Table('CPU seconds', ('what', 'with it', 'without'), rows),),
        failures=tuple(f'{name} is {value:.2f}, target at most {target}'
                       for name, value, target in figures if value > target))


def _cloud(hosts: int, vms: int, projects: int = 1, aggregates: int = 1):
    from kronos_nova.objects import snapshot

    rooms = {'VCPU': snapshot.ResourceInventory(total=4 * vms // hosts + 8)}
    names = [f'cmp{n:05}' for n in range(hosts)]
    up = snapshot.Service(state='up', status='enabled')
    return snapshot.Snapshot(
        taken_at='2026-11-20T12:00:00Z',
        hosts=tuple(snapshot.Host(name=name, uuid=name, service=up, inventory=rooms)
                    for name in names),
        instances=tuple(snapshot.Instance(
            uuid=f'vm{n:07}', name=f'instance-{n:08x}', display_name=f'vm{n}',
            host=names[(n * n + n // 7) % hosts], project_id=f'p{n % projects}', status='ACTIVE',
            vcpus=1, memory_mb=1024, disk_gb=1, resources={'VCPU': 1}) for n in range(vms)),
        aggregates=tuple(snapshot.Aggregate(
            name=f'a{n}', uuid=f'a{n}', hosts=tuple(names[n::aggregates]),
            metadata={'filter_tenant_id': ','.join(f'p{p}' for p in range(projects))}
            if projects > 1 else {}) for n in range(aggregates)))


def _grouped(cloud, count: int, size: int):
    import dataclasses

    from kronos_nova.objects import snapshot

    return dataclasses.replace(cloud, server_groups=tuple(snapshot.ServerGroup(
        uuid=f'g{n:06}', name=f'group {n}', policy='soft-anti-affinity',
        members=tuple(i.uuid for i in cloud.instances[n * size:(n + 1) * size]))
        for n in range(count)))


def _problem(cloud):
    import numpy as np

    from kronos_nova import model
    from kronos_nova.cycle.aggregates import ScopeIndex
    from kronos_nova.cycle.problem import MovesInFlight

    scope = ScopeIndex(cloud).scope('a0', MovesInFlight())
    hosts, vms, one = len(scope.hosts), len(scope.instances), np.ones(1)
    vm_host, uuids = scope.vm_host, tuple(i.uuid for i in scope.instances)
    room, _known = model.resources(scope.hosts, scope.instances, vm_host, cloud)
    load = np.random.default_rng(0).random((vms, 1)) * hosts / vms
    scores = np.zeros((hosts, 1))
    np.add.at(scores, vm_host, load)
    return model.Problem(
        hosts=scope.host_names, vms=uuids, policies=('cpu',), policy_weights=one,
        thresholds=one * 0.05, scores=scores, weights=load, host_scale=np.ones((hosts, 1)),
        capacity_scores=np.full((hosts, 1), np.nan), capacity_thresholds=one * np.inf,
        vm_host=vm_host, memory_mb=np.full(vms, 1024), movable=np.ones(vms, dtype=bool),
        available=scope.available, groups=model.groups(cloud, uuids, scope.host_names),
        **room)


def _model(cloud):
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.constraints.base import compile_model
    from kronos_nova.model import State

    return State(compile_model(_problem(cloud), cloud, ConstraintRules()))


def _plan(cloud):
    from kronos_nova.planners.base import Limits
    from kronos_nova.planners.spread import Spread

    return Spread().plan(_model(cloud), Limits(budget=50))


def _scopes(cloud):
    from kronos_nova.cycle.aggregates import ScopeIndex
    from kronos_nova.cycle.problem import MovesInFlight

    scopes, nothing = ScopeIndex(cloud), MovesInFlight()
    return [scopes.scope(aggregate.name, nothing) for aggregate in cloud.aggregates]


def _seconds(act, *arguments) -> float:
    import time

    begin = time.process_time()
    act(*arguments)
    return time.process_time() - begin
