"""How often the search finds what exists, on random clouds that nothing was chosen by."""

import statistics

from bench import report

CLASSES = 'E1', 'E2', 'E3'


def register(subparsers):
    parser = subparsers.add_parser('optimum', help='hosts that can be emptied, against those that '
                                                   'are')
    parser.add_argument('--clouds', type=int, default=40, metavar='N',
                        help='clouds of each class (default 40)')
    parser.add_argument('--seed', type=int, default=0, help='of the first cloud (default 0)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    rows, failures = [], []
    for kind in CLASSES:
        found = [emptied(kind, seed) for seed in range(args.seed, args.seed + args.clouds)]
        for slack in sorted({each[0] for each in found}):
            some = [each for each in found if each[0] == slack]
            _slack, whole, others, wrong, seconds = zip(*some, strict=True)
            rows.append((kind, slack, len(some), sum(whole), sum(others), sum(wrong),
                         statistics.median(seconds), max(seconds)))
            least = len(some) if slack >= 0.01 else 0.98 * len(some)
            if sum(whole) < least:
                failures.append(f'{kind}, slack {slack}: {sum(whole)} of {len(some)} emptied')
            if sum(wrong):
                failures.append(f'{kind}, slack {slack}: {sum(wrong)} times "cannot" is wrong')
    return report.Report(
        tables=(report.Table('hosts emptied, where all servers can leave', (
            'class', 'slack', 'clouds', 'emptied', 'others give way', '"cannot" is wrong',
            'CPU s, median', 'most'), rows),),
        notes=('One cycle of plan_cycle with the default options and evacuate_disabled_hosts. Each '
               'cloud is made from an end in which its disabled hosts are empty.',),
        failures=tuple(failures))


def emptied(kind: str, seed: int) -> tuple[float, bool, int, bool, float]:
    """(slack, whether all servers left, moves of others, whether it was called proven that one
    could not, seconds of the processor)"""
    import numpy as np

    from bench import installation
    from bench import operation
    from bench import optimum_classes

    problem = optimum_classes.emptying(kind, seed)
    cloud = installation.Cloud(problem)
    cloud.disabled = set(np.flatnonzero(problem.draining).tolist())
    case = operation.Installation(cloud, installation.policies(problem, 'spread', 1.0, 1000),
                                  installation.conf(evacuate_disabled_hosts=True))
    [found] = case.evaluate()
    disabled = {problem.hosts[host] for host in cloud.disabled}
    leaving = {vm for vm, host in zip(problem.vms, problem.vm_host.tolist(), strict=True)
               if host in cloud.disabled}
    moved = {move.instance_uuid for move in found.moves}
    others = sum(move.source not in disabled for move in found.moves)
    return (optimum_classes.SLACKS[seed % len(optimum_classes.SLACKS)], leaving <= moved, others,
            any(each.is_proven for each in found.unplaced), case.cpu_seconds)
