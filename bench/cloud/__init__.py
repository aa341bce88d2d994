"""A whole cycle beside a cloud of any size: what it costs, and whether nova-conductor feels it."""

import itertools
import math

import numpy as np

from bench import report

COLUMNS = ('hosts', 'instances', 'cycle', 'CPU s', 'of it planners', 'the rest', 'wall s',
           'peak MiB', 'placement CPU s', 'database CPU s', 'requests', 'statements',
           'control database KiB')
SLOWER = 1.2
RPC = ('phase', 'calls', 'median ms', 'p99 ms', 'max ms', 'p99 of that of off', 'in 90 % of draws')
DRAWS = 1000
PIECES = ('hosts', 'instances', 'cycle', 'piece', 'CPU s', 'wall s')


def register(subparsers):
    parser = subparsers.add_parser(
        'cloud', help='what cycles, audits and the reconciler cost beside a cloud of any size')
    parser.add_argument('--hosts', type=int, default=200)
    parser.add_argument('--vms', type=int, default=6000)
    parser.add_argument('--hosts-per-aggregate', type=int, default=50)
    parser.add_argument('--migrations', type=int, default=1000,
                        help='live migrations that ended within the last hours (1000)')
    parser.add_argument('--changed', type=float, default=0.02,
                        help='part of the providers that change before each warm cycle (0.02)')
    parser.add_argument('--warm', type=int, default=3, help='cycles after the first (3)')
    parser.add_argument('--scope', type=int, metavar='N',
                        help='also measure cycles of the first N aggregates only')
    parser.add_argument('--failover-hosts', type=int, default=0, metavar='N',
                        help='[kronos] failover_hosts (0)')
    parser.add_argument('--buffer', metavar='FLAVOR',
                        help='have each aggregate keep room for two servers, such as 8:32768')
    parser.add_argument('--growth', action='store_true',
                        help='also measure a quarter and half of the size, and give the exponent')
    parser.add_argument('--audit', action='store_true',
                        help='also measure "kronos-manage allocations audit"')
    parser.add_argument('--reconciler', action='store_true',
                        help='also measure the first look at recent migrations')
    parser.add_argument('--rpc', type=int, metavar='ROUNDS',
                        help='measure nothing else but RPCs of a nova-conductor while its '
                             'reconciler is off, on, off, and while it plans')
    parser.add_argument('--phase', type=float, default=30.0,
                        help='seconds of each phase of --rpc (30)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from bench.cloud import trial
    if args.rpc:
        return _rpc(args, trial)
    tables, notes = [], []
    sizes = [4, 2, 1] if args.growth else [1]
    rows, pieces, audits, looks = [], [], [], []
    for part in sizes:
        size = _size(args, trial, part)
        with trial.Trial(size, args.failover_hosts, args.buffer) as cloud:
            found = cloud.cycles(1 + args.warm, args.changed)
            if args.scope:
                found += cloud.cycles(1 + args.warm, args.changed, args.scope)
            if args.audit:
                audits.append(cloud.audit())
            if args.reconciler:
                looks.append(cloud.reconcile())
        rows += [each.row(size) for each in found]
        pieces += [row for each in found for row in each.pieces(size)]
    tables.append(report.Table('cycles', COLUMNS, rows))
    tables.append(report.Table('pieces of cycles', PIECES, pieces))
    if audits:
        tables.append(report.Table('kronos-manage allocations audit', trial.AUDIT_COLUMNS, audits))
    if looks:
        tables.append(report.Table('reconciler at start', trial.RECONCILER_COLUMNS, looks))
    if args.growth:
        tables.append(report.Table('growth with the number of hosts', ('cycle', 'exponent'),
                                   list(_growth(rows))))
    notes.append(
        'MariaDB, placement (two processes) and the control database are real; Prometheus is a '
        'stand-in that answers at once. A cycle is one of the process that CycleScheduler starts; '
        'the dry run, which is work of nova-scheduler, is left out. A process that lives for '
        'several cycles pays for loading in its first.')
    return report.Report(tables=tuple(tables), notes=tuple(notes))


def _size(args, trial, part=1):
    return trial.Size(
        hosts=args.hosts // part, vms=args.vms // part,
        hosts_per_aggregate=args.hosts_per_aggregate, migrations=args.migrations)


def _rpc(args, trial):
    from bench.cloud import rpc
    with trial.Trial(_size(args, trial)) as cloud, rpc.Conductor(cloud) as conductor:
        found = conductor.measure(args.rpc, args.phase)
    calls = {phase: np.concatenate(rounds) for phase, rounds in found.items()}
    p99 = {phase: 1000 * np.quantile(took, 0.99) for phase, took in calls.items()}
    rows = [(phase, len(took), 1000 * np.median(took), p99[phase], 1000 * took.max(),
             p99[phase] / p99[rpc.OFF], _drawn(found[phase], found[rpc.OFF]))
            for phase, took in calls.items()]
    failures = [f'{phase}: p99 is {p99[phase] / p99[rpc.OFF]:.2f} times that of off, target '
                f'{SLOWER:g}' for phase in p99 if p99[phase] > SLOWER * p99[rpc.OFF]]
    return report.Report(
        tables=(report.Table('conductor RPC object_class_action_versions', RPC, rows),),
        failures=tuple(failures),
        notes=(f'One caller, 10 ms between calls; one conductor with {rpc.WORKERS} workers, '
               'MariaDB, placement and RabbitMQ on the same machine. The phases take turns; the '
               'first cycle, which loads Nova and reads everything, is not among them. How sure '
               f'a ratio is: {DRAWS:,} draws from the rounds, with replacement (bootstrap).',))


def _drawn(rounds, rounds_off):
    """Return the range in which the ratio of the 99th percentiles lies in nine of ten random draws,
    such as "0.98 to 1.07"."""
    rng = np.random.default_rng(0)

    def p99(rounds):
        drawn = rng.integers(len(rounds), size=len(rounds))
        return np.quantile(np.concatenate([rounds[number] for number in drawn]), 0.99)

    low, high = np.quantile([p99(rounds) / p99(rounds_off) for _draw in range(DRAWS)],
                            (0.05, 0.95))
    return f'{low:.2f} to {high:.2f}'


def _growth(rows):
    """Yield (cycle, exponent by which the CPU seconds outside the planners grow from the smallest
    size to the largest)."""
    name, rest = COLUMNS.index('cycle'), COLUMNS.index('the rest')
    for cycle, same in itertools.groupby(sorted(rows, key=lambda row: row[name]),
                                         key=lambda row: row[name]):
        by_size = sorted((row[0], row[rest]) for row in same)
        (few, least), (many, most) = by_size[0], by_size[-1]
        if many > few:
            yield cycle, math.log(most / least) / math.log(many / few)
