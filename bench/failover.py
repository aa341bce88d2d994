"""Verdicts on the loss of each host, beside an integer program that shares nothing with them."""

import dataclasses
import time
from collections import Counter

import numpy as np

from bench import report
from bench import room_clouds

LARGE = 1_000, 30_000
"""Hosts and servers of the cloud that the time is measured on."""


def register(subparsers):
    parser = subparsers.add_parser(
        'failover', help='whether servers of a lost host restart, against an integer program')
    parser.add_argument('--clouds', type=int, default=100, metavar='N',
                        help='small clouds, each host of which is lost (default 100)')
    parser.add_argument('--seed', type=int, default=0, help='of the first cloud (default 0)')
    parser.add_argument('--hosts', type=int, default=LARGE[0], metavar='N',
                        help=f'of the large cloud (default {LARGE[0]})')
    parser.add_argument('--servers', type=int, default=LARGE[1], metavar='N',
                        help=f'of the large cloud (default {LARGE[1]})')
    parser.set_defaults(run=run)


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """ours : the verdict; fits : whether a placement exists; is_valid : whether ours is one"""

    ours: str
    fits: bool | None
    is_valid: bool


def run(args) -> report.Report:
    from kronos_nova.room import failover
    counts, failures = Counter(), []
    for seed in range(args.seed, args.seed + args.clouds):
        for found in judged(seed):
            counts[found.ours, found.fits] += 1
            if is_wrong(found):
                failures.append(f'seed {seed}: {found}')
    total = sum(counts.values())
    unknown = sum(count for (ours, _fits), count in counts.items() if ours == failover.NOT_FOUND)
    if unknown > 0.03 * total:
        failures.append(f'{unknown} of {total} not found, at most 3 %')
    rows = [(ours, {True: 'a placement', False: 'none', None: 'not known'}[fits], count)
            for (ours, fits), count in sorted(counts.items(), key=str)]
    return report.Report(
        tables=(report.Table('verdicts', ('verdict', 'exists', 'hosts'), rows),
                report.Table('a large cloud', ('step', 'CPU seconds', 'verdicts'),
                             large(args.hosts, args.servers, args.seed))),
        failures=tuple(failures))


def is_wrong(found: Judged) -> bool:
    """Return whether a verdict contradicts what exists, or its placement breaks a rule."""
    from kronos_nova.room import failover
    return (found.ours == failover.FITS and not (found.is_valid and found.fits is not False)
            or found.ours == failover.DOES_NOT and found.fits is True)


def judged(seed: int):
    """Yield the verdict on each host with servers of a small cloud, compared with the reference.
    Every second cloud has NUMA cells."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.room import failover
    snapshot = room_clouds.cloud(seed, has_cells=bool(seed % 2))
    judge = failover.failover_of(snapshot, ConstraintRules())
    for host in range(len(judge.problem.hosts)):
        name = judge.problem.hosts[host]
        if any(instance.host == name for instance in snapshot.instances):
            verdict, reference = judge.judge((host,)), Reference(snapshot, name)
            yield Judged(verdict.verdict, reference.exists(),
                         verdict.verdict != failover.FITS or reference.holds(verdict.placement))


class Reference:
    """The loss of one host as an integer program with a column for each server and place: a host,
    and the NUMA cells of it in which the server lies."""

    def __init__(self, snapshot, lost):
        self.lost = lost
        self.hosts = [host for host in snapshot.hosts
                      if host.service.is_available and host.name != lost]
        self.servers = [each for each in snapshot.instances if each.host == lost]
        self.groups = snapshot.server_groups
        kept = room_clouds.kept(snapshot)
        self.places = [
            (n, host.name, cells) for n, each in enumerate(self.servers) for host in self.hosts
            if host.name not in kept or each.project_id in kept[host.name]
            for cells in room_clouds.ways(host, len(each.cells))]
        self.where = {each.uuid: each.host for each in snapshot.instances if each.host != lost}
        self.free = {}
        for host in self.hosts:
            there = [each for each in snapshot.instances if each.host == host.name]
            self.free[host.name] = {
                name: inventory.capacity - sum(each.resources[name] for each in there)
                for name, inventory in host.inventory.items()}

    def holds(self, placement) -> bool:
        """Return whether a placement breaks no rule."""
        if placement.keys() != {each.uuid for each in self.servers}:
            return False
        return self.exists(placement) is True

    def exists(self, placement=None) -> bool | None:
        """Return whether a placement exists; None where the program does not say.

        :param placement: uuid to host, where servers have to be
        """
        from scipy import optimize
        columns = [place for place in self.places if placement is None
                   or placement[self.servers[place[0]].uuid] == place[1]]
        rows, low, high = [], [], []

        def add(wanted, least, most, value=lambda n: 1.0):
            rows.append([value(place[0]) if wanted(*place) else 0.0 for place in columns])
            low.append(least)
            high.append(most)

        for n in range(len(self.servers)):
            add(lambda m, *_place, n=n: m == n, 1.0, 1.0)
        for host in self.hosts:
            for name, free in self.free[host.name].items():
                add(lambda n, at, cells, name=host.name: at == name, -np.inf, free,
                    lambda n, name=name: self.servers[n].resources[name])
            for cell in host.cells or ():
                self._add_cell(add, host, cell)
        for group in self.groups:
            self._add_group(add, group)
        if not columns:
            return not self.servers
        found = optimize.milp(
            np.zeros(len(columns)), integrality=np.ones(len(columns)),
            bounds=optimize.Bounds(0.0, 1.0), options={'time_limit': 60.0},
            constraints=optimize.LinearConstraint(np.array(rows), low, high))
        return {0: True, 2: False}.get(found.status)

    def _add_cell(self, add, host, cell):
        free = {'PCPU': cell.pinned_cpus - cell.pinned_used,
                'MEMORY_MB': cell.memory_mb - cell.memory_used_mb}
        for name, amount in free.items():
            add(lambda n, at, cells: at == host.name and cell.id in cells, -np.inf, amount,
                lambda n, name=name: self.servers[n].resources[name] / len(self.servers[n].cells))

    def _add_group(self, add, group):
        inside = [n for n, each in enumerate(self.servers) if each.uuid in group.members]
        others = {self.where[member] for member in group.members if member in self.where}
        for host in self.hosts if inside else ():
            if group.policy == 'anti-affinity':
                add(lambda n, at, cells, name=host.name: n in inside and at == name, -np.inf,
                    0.0 if host.name in others else 1.0)
            elif others and host.name not in others:
                add(lambda n, at, cells, name=host.name: n in inside and at == name, -np.inf, 0.0)
            else:
                for other in inside[1:]:
                    add(lambda n, at, cells, name=host.name, other=other: (
                        n in (inside[0], other) and at == name), 0.0, 0.0,
                        lambda n: 1.0 if n == inside[0] else -1.0)


def large(hosts, servers, seed):
    """Yield (step, CPU seconds, verdicts) for a large cloud: first without a cache, then after one
    move."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.room import failover
    snapshot = room_clouds.cloud(seed, hosts, servers)
    known = {}

    def every(snapshot):
        judge = failover.failover_of(snapshot, ConstraintRules())
        for host, name in enumerate(judge.problem.hosts):
            known[name] = judge.judge((host,), known[name].placement if name in known else None)
        return dict(Counter(verdict.verdict for verdict in known.values()))

    moved = snapshot.instances[0]
    there = next(host.name for host in reversed(snapshot.hosts) if host.name != moved.host)
    after = dataclasses.replace(snapshot, instances=(
        dataclasses.replace(moved, host=there), *snapshot.instances[1:]))
    for name, given in (('cold', snapshot), ('after one move', after)):
        begin = time.process_time()
        found = every(given)
        yield name, round(time.process_time() - begin, 2), str(found)
