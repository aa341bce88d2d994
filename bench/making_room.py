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
                report.Table('large clouds', ('NUMA cells', 'servers wanted', 'moves', 'room',
                                              'CPU seconds'),
                             large(args.hosts, args.servers, args.seed))),
        failures=tuple(failures))


def wanted(snapshot, seed):
    """Return (shape, count) of new servers that do not fit without moves: one to three of the
    largest flavor for which the free room would suffice if it were on one host."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.room import slots
    rng = np.random.default_rng([seed, 48])
    has_cells = snapshot.hosts[0].cells is not None
    for vcpus, memory in room_clouds.FLAVORS[::-1].tolist():
        shape = room_clouds.shape(vcpus, memory, has_cells)
        counter = slots.SlotCounter(snapshot, ConstraintRules(), [shape])
        count = counter.slots(0).total + int(rng.integers(1, 4))
        available = counter.problem.available
        free = counter.free[:len(available)][available].sum(axis=0)
        classes = dict(zip(counter.problem.resource_classes, free.tolist(), strict=True))
        if all(classes[name] >= amount * count for name, amount in shape.resources.items()):
            return shape, count
    return shape, count


def compared(seed):
    """Return (MiB that the plan copies, MiB that the reference copies, CPU seconds of the plan).
    MiB are None where no room was found. Every second cloud has NUMA cells."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.planners.base import Limits
    from kronos_nova.room import making
    snapshot = room_clouds.cloud(seed, has_cells=bool(seed % 2))
    shape, count = wanted(snapshot, seed)
    begin = time.process_time()
    plan = making.plan(snapshot, ConstraintRules(), shape, count, Limits(budget=100_000))
    took = round(time.process_time() - begin, 2)
    ours = plan.memory_mb if len(plan.hosts) == count else None
    return ours, least(snapshot, shape, count), took


def least(snapshot, shape, count):
    """Return the least MiB of servers that have to move so that the new ones fit; None if they
    cannot fit."""
    return Least(snapshot, shape, count).solved()


class Least:
    """The ends in which new servers fit, as an integer program with a column for each server and
    place, and one for the new servers of each place. A place is a host, and the cells of it in
    which a server lies."""

    def __init__(self, snapshot, shape, count):
        self.hosts, self.servers = list(snapshot.hosts), list(snapshot.instances)
        self.shape, self.count = shape, count
        self.open = [host.service.is_available for host in self.hosts]
        self.kept = room_clouds.kept(snapshot)
        at = {host.name: n for n, host in enumerate(self.hosts)}
        self.home = [at[each.host] for each in self.servers]
        self.columns = []  # (server, or None for the new ones; host; cells)
        self._rows, self._low, self._high = [], [], []
        for n, each in enumerate(self.servers):
            self.columns += [(n, *place) for place in self._places(n, each)]
        self.columns += [(None, *place) for place in self._new_places()]
        self.most = np.array([count if n is None else 1.0 for n, _h, _cells in self.columns])
        self.cost = np.array([0.0 if n is None or self.home[n] == h else self.servers[n].memory_mb
                              for n, h, _cells in self.columns])
        for n in range(len(self.servers)):
            self._add(self._where(lambda m, h, cells, n=n: m == n), 1.0, 1.0)
        self._add(self._where(lambda m, h, cells: m is None), count, count)
        self._room()
        for group in snapshot.server_groups:
            self._group(group)

    def _places(self, n, server):
        """Yield the (host, cells) where a server can be: its present ones, or any of another
        host."""
        home = self.home[n]
        yield home, server.on_cells or ()
        for h, host in enumerate(self.hosts):
            if h != home and self.open[h] and self.open[home] and (
                    host.name not in self.kept or server.project_id in self.kept[host.name]):
                yield from ((h, cells) for cells in room_clouds.ways(host, len(server.cells)))

    def _new_places(self):
        for h, host in enumerate(self.hosts):
            if self.open[h] and host.name not in self.kept:
                yield from ((h, cells) for cells in room_clouds.ways(host, len(self.shape.cells)))

    def _where(self, wanted):
        return [column for column, each in enumerate(self.columns) if wanted(*each)]

    def _needs(self, n, name):
        resources = self.shape.resources if n is None else self.servers[n].resources
        return resources[name]

    def _add(self, columns, low, high, amounts=1.0):
        columns = np.asarray(columns, dtype=int)
        self._rows.append((np.full(len(columns), len(self._low)), columns,
                           np.broadcast_to(amounts, columns.shape).astype(float)))
        self._low.append(low)
        self._high.append(high)

    def _room(self):
        for h, host in enumerate(self.hosts):
            here = self._where(lambda n, place, cells, h=h: place == h)
            for name, inventory in host.inventory.items():
                self._add(here, -np.inf, inventory.capacity, [
                    self._needs(self.columns[column][0], name) for column in here])
            for cell in host.cells or ():
                inside = [column for column in here if cell.id in self.columns[column][2]]
                for name, most in (('PCPU', cell.pinned_cpus), ('MEMORY_MB', cell.memory_mb)):
                    self._add(inside, -np.inf, most, [
                        self._needs(n, name) / len(cells)
                        for n, _h, cells in (self.columns[column] for column in inside)])

    def _group(self, group):
        inside = {n for n, each in enumerate(self.servers) if each.uuid in group.members}
        for h in range(len(self.hosts)):
            here = self._where(lambda n, place, cells, h=h: place == h and n in inside)
            if group.policy == 'anti-affinity':
                self._add(here, -np.inf, 1.0)
                continue
            for column in here:  # To Nova no member may leave the others.
                if h != self.home[self.columns[column][0]]:
                    self.most[column] = 0.0

    def solved(self):
        from scipy import optimize
        from scipy import sparse
        rows, columns, values = (np.concatenate(part) for part in zip(*self._rows, strict=True))
        matrix = sparse.csr_array((values, (rows, columns)),
                                  shape=(len(self._low), len(self.columns)))
        found = optimize.milp(
            self.cost, integrality=np.ones(len(self.most)),
            bounds=optimize.Bounds(0.0, self.most), options={'time_limit': SECONDS},
            constraints=optimize.LinearConstraint(matrix, self._low, self._high))
        return None if found.x is None else round(found.fun)


def large(hosts, servers, seed):
    """Yield (whether it has NUMA cells, new servers, moves, servers that find room, CPU seconds)
    for large clouds."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.planners.base import Limits
    from kronos_nova.room import making
    for has_cells in (False, True):
        snapshot = room_clouds.cloud(seed, hosts, servers, has_cells=has_cells)
        shape, count = wanted(snapshot, seed)
        begin = time.process_time()
        plan = making.plan(snapshot, ConstraintRules(), shape, count, Limits(budget=100_000))
        yield (has_cells, f'{count} of {shape.name}', len(plan.moves), len(plan.hosts),
               round(time.process_time() - begin, 2))
