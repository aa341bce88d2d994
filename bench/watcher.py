"""Kronos beside OpenStack Watcher: the same clusters, in one run."""

import dataclasses
import json
import pathlib
import subprocess
import sys

from bench import report

BOTH = {'metrics': ['instance_cpu_usage', 'instance_ram_usage'],
        'thresholds': {'instance_cpu_usage': 0.05, 'instance_ram_usage': 0.05}}
FINER = {**BOTH, 'thresholds': {'instance_cpu_usage': 0.02, 'instance_ram_usage': 0.02}}
ALL = 1 << 30


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A strategy of Watcher, its parameters, how many audits one after the other, and on how many
    hosts at most: some take hours on a thousand."""

    label: str
    strategy: str
    parameters: dict
    audits: int = 1
    largest: int = ALL


SPREADING = (
    Row('stabilization, default', 'workload_stabilization', {}),
    Row('stabilization, both, ten audits', 'workload_stabilization', BOTH, 10, 320),
    Row('stabilization, both, 0.02, thirty audits', 'workload_stabilization', FINER, 30, 100),
    Row('workload_balance', 'workload_balance', {}, largest=320),
)
PACKING = (
    Row('vm_workload_consolidation', 'vm_workload_consolidation', {}),
    Row('node_resource_consolidation, specify', 'node_resource_consolidation',
        {'host_choice': 'specify'}, largest=320),
)
TIME_SHARE = 0.7
"""Share of the time that a strategy took after which spread has to stop: it then still has to put
its moves in order."""
COLUMNS = ('cluster', 'planner', 'CPU s', 'moves', 'GiB to copy', 'cpu max − min',
           'memory max − min', 'hosts', 'hosts over 100 %', 'moves placement refuses')


def register(subparsers):
    parser = subparsers.add_parser('watcher', help='beside strategies of OpenStack Watcher')
    parser.add_argument('--python', default=sys.executable, metavar='PATH',
                        help='interpreter of an environment with python-watcher (default: this '
                             'one); see the documentation of the benches')
    parser.add_argument('--clusters', nargs='*', metavar='NAME',
                        help='of data/clusters (default: up to 100 hosts)')
    parser.add_argument('--timeout', type=float, default=900.0,
                        help='seconds after which a strategy of Watcher is given up')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from bench import inputs

    names = args.clusters or [
        name for name in inputs.cluster_names() if len(inputs.cluster(name).hosts) <= 100]
    spreading, packing, failures = [], [], []
    for name in names:
        size = len(inputs.cluster(name).hosts)
        theirs = [_theirs(args, name, 'spread', row) for row in SPREADING if size <= row.largest]
        ours = [_spread(name, row) for row in theirs if row[3]]
        installed = [_installed(name, row) for row in theirs if row[3]]
        spreading += [row for rows in zip([r for r in theirs if r[3]], ours, installed, strict=True)
                      for row in rows] + [row for row in theirs if not row[3]]
        failures += _lost_spreading([row for row in theirs if row[3]], ours)
        theirs = [_theirs(args, name, 'pack', row) for row in PACKING if size <= row.largest]
        pack = _pack(name)
        packing += [*theirs, pack, _installed_pack(name)]
        failures += _lost_packing(theirs, pack)
    return report.Report(tables=(
        report.Table('spreading; spread has at most the moves and the time of the row above it',
                     COLUMNS, spreading),
        report.Table('packing', COLUMNS, packing)), failures=tuple(failures),
        notes=('A dash for the CPU seconds: given up after the timeout, or it failed.',
               'Kronos installed: one cycle of plan_cycle with the default options; spreading, '
               'with at most the moves of the strategy; its seconds are those of the whole cycle.'))


def _theirs(args, cluster: str, mode: str, row: Row) -> tuple:
    from bench import inputs
    from bench import trial

    request = {'cluster': inputs.read(f'clusters/{cluster}'), 'strategy': row.strategy,
               'parameters': row.parameters, 'audits': row.audits}
    script = pathlib.Path(__file__).with_name('watcher_audit.py')
    try:
        answer = json.loads(subprocess.run(
            [args.python, '-P', str(script)], input=json.dumps(request), text=True, check=True,
            timeout=args.timeout, capture_output=True).stdout)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return (cluster, f'Watcher {row.label}', *[None] * 8)
    problem = inputs.cluster(cluster, mode)
    vms = {uuid: n for n, uuid in enumerate(problem.vms)}
    hosts = {host['name']: n for n, host in enumerate(request['cluster']['hosts'])}
    moves = [(vms[uuid], hosts[host]) for uuid, host in answer['moves']]
    return _row(cluster, f'Watcher {row.label}', trial.judge(problem, moves, answer['seconds']))


def _spread(cluster: str, theirs: tuple) -> tuple:
    from bench import inputs
    from bench import trial
    from kronos_nova.planners.spread import Spread

    found = trial.plan(Spread(), inputs.cluster(cluster, threshold=0.0), theirs[3],
                       TIME_SHARE * theirs[2])
    return _row(cluster, 'Kronos spread', found)


def _installed(cluster: str, theirs: tuple) -> tuple:
    from bench import inputs
    from bench import trial

    return _row(cluster, 'Kronos installed',
                trial.installed(inputs.cluster(cluster), 'spread', theirs[3]))


def _pack(cluster: str) -> tuple:
    from bench import inputs
    from bench import trial
    from kronos_nova.planners.pack import Pack

    problem = inputs.cluster(cluster, 'pack')
    return _row(cluster, 'Kronos pack', trial.plan(Pack(), problem, 2 * len(problem.vms)))


def _installed_pack(cluster: str) -> tuple:
    from bench import inputs
    from bench import trial

    problem = inputs.cluster(cluster, 'pack')
    return _row(cluster, 'Kronos pack installed',
                trial.installed(problem, 'pack', 2 * len(problem.vms)))


def _row(cluster: str, label: str, found) -> tuple:
    return (cluster, label, found.seconds, found.moves, found.memory_gib, *found.imbalances,
            found.hosts, found.overfull, found.refused)


def _lost_spreading(theirs, ours) -> list[str]:
    """Spread is to be no worse in CPU time, moves, either imbalance and moves that placement
    refuses."""
    return [f'{mine[0]}: spread is worse than {other[1]} in {COLUMNS[n]}'
            for other, mine in zip(theirs, ours, strict=True)
            for n in (2, 3, 5, 6, 9) if mine[n] > other[n]]


def _lost_packing(theirs, ours) -> list[str]:
    lost = [f'{ours[0]}: {other[1]} leaves {other[7]} hosts, pack {ours[7]}'
            for other in theirs if other[7] is not None and not other[8] and other[7] < ours[7]]
    if ours[8]:
        lost.append(f'{ours[0]}: pack leaves {ours[8]} hosts over 100 %')
    return lost
