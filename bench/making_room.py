"""Room made for new servers, beside an integer program that shares nothing with the planner."""

import statistics
import time

import numpy as np

from bench import report
from bench import room_clouds

SECONDS = 60.0
"""Seconds of wall time that the reference has for one cloud."""


def register(subparsers):
    parser = subparsers.add_parser(
        'making_room', help='moves that make room for new servers, against an integer program')
    parser.add_argument('--clouds', type=int, default=60, metavar='N',
                        help='small clouds (default 60)')
    parser.add_argument('--seed', type=int, default=0, help='of the first cloud (default 0)')
    parser.add_argument('--hosts', type=int, default=1_000, metavar='N',
                        help='of the large cloud (default 1000)')
    parser.add_argument('--servers', type=int, default=30_000, metavar='N',
                        help='of the large cloud (default 30000)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    rows, failures, ratios, seconds = [], [], [], []
    found = missed = 0
    for seed in range(args.seed, args.seed + args.clouds):
        ours, other, took = compared(seed)
        seconds.append(took)
        if other is None:
            rows.append((seed, ours is not None, 'none', None, None, took))
            continue
        found += ours is not None
        missed += ours is None
        ratio = None if ours is None else ours / other if other else 1.0 if not ours else np.inf
        if ratio is not None:
            ratios.append(ratio)
        rows.append((seed, ours is not None, 'room', ours, other, took))
    share = found / max(found + missed, 1)
    summary = [('room exists', found + missed), ('found', found), ('share', round(share, 4)),
               ('GiB, median', statistics.median(ratios)), ('GiB, worst', max(ratios)),
               ('CPU s, worst', max(seconds))]
    if share < 0.98:
        failures.append(f'room found in {share:.3f} of the clouds that have it, target .98')
    if statistics.median(ratios) > 1.05 or max(ratios) > 1.25:
        failures.append('GiB above 1.05 of the least in the median, or 1.25 at worst')
    return report.Report(
        tables=(report.Table('clouds', ('seed', 'found', 'exists', 'MiB', 'least MiB', 'CPU s'),
                             rows),
                report.Table('summary', ('figure', 'value'), summary),
                report.Table('a large cloud', ('servers wanted', 'moves', 'room', 'CPU seconds'),
                             large(args.hosts, args.servers, args.seed))),
        failures=tuple(failures))


def wanted(snapshot, seed):
    """(shape, count) that does not fit as the cloud is: one to three of the largest flavor that
    the free room would hold if it were in one place."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.room import shapes
    from kronos_nova.room import slots
    rng = np.random.default_rng([seed, 48])
    for vcpus, memory in room_clouds.FLAVORS[::-1].tolist():
        shape = shapes.parse(f'{vcpus}:{memory}')
        counter = slots.Counter(snapshot, ConstraintRules(), [shape])
        count = counter.slots(0).total + int(rng.integers(1, 4))
        available = counter.problem.available
        free = counter.free[:len(available)][available].sum(axis=0)
        classes = dict(zip(counter.problem.resource_classes, free.tolist(), strict=True))
        if all(classes[name] >= amount * count for name, amount in shape.resources.items()):
            return shape, count
    return shape, count


def compared(seed):
    """(MiB of ours, MiB of the reference, CPU seconds); None where there is no room."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.planners.base import Limits
    from kronos_nova.room import making
    snapshot = room_clouds.cloud(seed)
    shape, count = wanted(snapshot, seed)
    begin = time.process_time()
    plan = making.plan(snapshot, ConstraintRules(), shape, count, Limits(budget=100_000))
    took = round(time.process_time() - begin, 2)
    ours = plan.memory_mb if len(plan.hosts) == count else None
    return ours, least(snapshot, shape, count), took


def least(snapshot, shape, count):
    """MiB of the servers that have to move, at least, so that new ones fit; None if they cannot."""
    from scipy import optimize
    from scipy import sparse
    hosts = list(snapshot.hosts)
    open_ = [host.service.is_available for host in hosts]
    servers = [each for each in snapshot.instances]
    kept = {}
    for aggregate in snapshot.aggregates:
        for name in aggregate.hosts:
            kept.setdefault(name, set()).add(aggregate.metadata[room_clouds.KEPT])
    at = {host.name: n for n, host in enumerate(hosts)}
    home = np.array([at[each.host] for each in servers])
    width = len(hosts)
    cells = np.arange(len(servers) * width).reshape(len(servers), width)
    new = len(servers) * width + np.arange(width)
    most = np.ones(cells.size + width)
    for n, each in enumerate(servers):
        for h, host in enumerate(hosts):
            admits = host.name not in kept or each.project_id in kept[host.name]
            if h != home[n] and not (open_[h] and admits and open_[home[n]]):
                most[cells[n, h]] = 0.0
    most[new] = [count if open_[h] and host.name not in kept else 0
                 for h, host in enumerate(hosts)]
    cost = np.zeros(len(most))
    for n, each in enumerate(servers):
        cost[cells[n]] = each.memory_mb
        cost[cells[n, home[n]]] = 0.0
    rows, columns, values, low, high = [], [], [], [], []

    def add(which, amounts, least_, most_):
        which = np.asarray(which).reshape(-1)
        rows.append(np.full(len(which), len(low)))
        columns.append(which)
        values.append(np.broadcast_to(amounts, which.shape).astype(float))
        low.append(least_)
        high.append(most_)

    for n in range(len(servers)):
        add(cells[n], 1.0, 1.0, 1.0)
    add(new, 1.0, count, count)
    for h, host in enumerate(hosts):
        for name in ('VCPU', 'MEMORY_MB'):
            add(np.append(cells[:, h], new[h]), np.append(
                [each.resources[name] for each in servers], shape.resources[name]),
                -np.inf, host.inventory[name].capacity)
    position = {each.uuid: n for n, each in enumerate(servers)}
    for group in snapshot.server_groups:
        inside = [position[uuid] for uuid in group.members if uuid in position]
        for h in range(width):
            if group.policy == 'anti-affinity':
                add(cells[inside, h], 1.0, -np.inf, 1.0)
            else:  # To Nova no member may leave the others.
                for n in inside:
                    if h != home[n]:
                        most[cells[n, h]] = 0.0
    matrix = sparse.csr_array((np.concatenate(values), (np.concatenate(rows),
                                                        np.concatenate(columns))))
    found = optimize.milp(cost, integrality=np.ones(len(most)),
                          bounds=optimize.Bounds(0.0, most), options={'time_limit': SECONDS},
                          constraints=optimize.LinearConstraint(matrix, low, high))
    return None if found.x is None else round(found.fun)


def large(hosts, servers, seed):
    """(servers wanted, moves, room, CPU seconds) of a large cloud."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.planners.base import Limits
    from kronos_nova.room import making
    snapshot = room_clouds.cloud(seed, hosts, servers)
    shape, count = wanted(snapshot, seed)
    begin = time.process_time()
    plan = making.plan(snapshot, ConstraintRules(), shape, count, Limits(budget=100_000))
    yield (f'{count} of {shape.name}', len(plan.moves), len(plan.hosts),
           round(time.process_time() - begin, 2))
