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
    """Whether a verdict contradicts what exists, or its placement breaks a rule."""
    from kronos_nova.room import failover
    return (found.ours == failover.FITS and not (found.is_valid and found.fits is not False)
            or found.ours == failover.DOES_NOT and found.fits is True)


def judged(seed: int):
    """The verdict on each host of a small cloud that has servers."""
    from kronos_nova.constraints.base import ConstraintRules
    from kronos_nova.room import failover
    snapshot = room_clouds.cloud(seed)
    judge = failover.failover_of(snapshot, ConstraintRules())
    for host in range(len(judge.problem.hosts)):
        name = judge.problem.hosts[host]
        if any(instance.host == name for instance in snapshot.instances):
            verdict, reference = judge.judge((host,)), Reference(snapshot, name)
            yield Judged(verdict.verdict, reference.exists(),
                         verdict.verdict != failover.FITS or reference.holds(verdict.placement))


class Reference:
    """The loss of one host as an integer program with a column for each server and host."""

    def __init__(self, snapshot, lost):
        self.lost = lost
        self.hosts = [host for host in snapshot.hosts
                      if host.service.is_available and host.name != lost]
        self.servers = [each for each in snapshot.instances if each.host == lost]
        self.groups = snapshot.server_groups
        kept = room_clouds.kept(snapshot)
        self.admits = {(each.uuid, host.name): host.name not in kept
                       or each.project_id in kept[host.name]
                       for each in self.servers for host in self.hosts}
        self.where = {each.uuid: each.host for each in snapshot.instances if each.host != lost}
        self.free = {}
        for host in self.hosts:
            there = [each for each in snapshot.instances if each.host == host.name]
            self.free[host.name] = [
                host.inventory[name].capacity - sum(each.resources[name] for each in there)
                for name in ('VCPU', 'MEMORY_MB')]

    def holds(self, placement) -> bool:
        """Whether a placement breaks no rule."""
        taken = {host.name: [0, 0] for host in self.hosts}
        if placement.keys() != {each.uuid for each in self.servers}:
            return False
        for each in self.servers:
            host = placement[each.uuid]
            if not self.admits.get((each.uuid, host), False):
                return False
            taken[host][0] += each.resources['VCPU']
            taken[host][1] += each.resources['MEMORY_MB']
        after = self.where | dict(placement)
        for group in self.groups:
            if not any(member in placement for member in group.members):
                continue
            places = Counter(after[member] for member in group.members if member in after)
            if group.policy == 'affinity' and len(places) > 1:
                return False
            if group.policy == 'anti-affinity' and max(places.values()) > 1:
                return False
        return all(taken[name][c] <= self.free[name][c] + 1e-6 for name in taken for c in (0, 1))

    def exists(self) -> bool | None:
        """Whether a placement exists; None where the program does not say."""
        from scipy import optimize
        servers, hosts = self.servers, self.hosts
        column = np.arange(len(servers) * len(hosts)).reshape(len(servers), len(hosts))
        rows, low, high = [], [], []

        def add(columns, values, least, most):
            row = np.zeros(column.size)
            row[columns] = values
            rows.append(row)
            low.append(least)
            high.append(most)

        for n in range(len(servers)):
            add(column[n], 1.0, 1.0, 1.0)
        for h, host in enumerate(hosts):
            for c, name in enumerate(('VCPU', 'MEMORY_MB')):
                add(column[:, h], [each.resources[name] for each in servers], -np.inf,
                    self.free[host.name][c])
        for group in self.groups:
            inside = [n for n, each in enumerate(servers) if each.uuid in group.members]
            others = {self.where[member] for member in group.members if member in self.where}
            for h, host in enumerate(hosts if inside else ()):
                if group.policy == 'anti-affinity':
                    add(column[inside, h], 1.0, -np.inf, 0.0 if host.name in others else 1.0)
                elif others and host.name not in others:
                    add(column[inside, h], 1.0, -np.inf, 0.0)
                else:
                    for n in inside[1:]:
                        add([column[inside[0], h], column[n, h]], [1.0, -1.0], 0.0, 0.0)
        most = np.array([[float(self.admits[each.uuid, host.name]) for host in hosts]
                         for each in servers]).reshape(-1)
        if not len(hosts):
            return not servers
        found = optimize.milp(
            np.zeros(column.size), integrality=np.ones(column.size),
            bounds=optimize.Bounds(0.0, most), options={'time_limit': 60.0},
            constraints=optimize.LinearConstraint(np.array(rows), low, high))
        return {0: True, 2: False}.get(found.status)


def large(hosts, servers, seed):
    """(step, CPU seconds, verdicts) of a large cloud: cold, and after one move."""
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
