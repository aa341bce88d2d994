"""The distance of plans of ``spread`` from the best there is."""

import statistics

import numpy as np

from bench import report
from kronos_nova.model import Problem


def register(subparsers):
    parser = subparsers.add_parser('quality', help='spread against a MILP\'s optimum, a lower '
                                                   'bound and greedy')
    parser.add_argument('--small', type=int, default=40, metavar='N',
                        help='random clusters that are compared with the optimum (default 40)')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--milp-seconds', type=float, default=60.0,
                        help='after which the MILP gives up on a cluster (default 60)')
    parser.add_argument('--budgets', type=int, nargs='*', default=[10, 50, 200])
    parser.add_argument('--largest', type=int, default=1000, metavar='HOSTS',
                        help='leave bigger clusters out')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    small = [_small(args.seed + n, args.milp_seconds) for n in range(args.small)]
    large = [row for name in _clusters(args.largest) for budget in args.budgets
             for row in [_large(name, budget)]]
    proven = [row for row in small if row[5] == 'proven']
    summary, failures = [], []
    if proven:
        ratios = [row[8] for row in proven]
        summary += [('clusters with a proven optimum', len(proven)),
                    ('median of spread / optimum', statistics.median(ratios)),
                    ('worst of spread / optimum', max(ratios)),
                    ('median of greedy / optimum', statistics.median(row[9] for row in proven)),
                    ('worst of greedy / optimum', max(row[9] for row in proven)),
                    ('most CPU seconds', max(row[10] for row in small))]
        failures += _misses([('median of spread / optimum', statistics.median(ratios), 1.02),
                             ('worst of spread / optimum', max(ratios), 1.05),
                             ('CPU seconds on a small cluster', summary[-1][1], 3.0)])
    if large:
        mean = float(np.exp(np.mean([np.log(row[5] / row[4]) for row in large])))
        summary += [('geometric mean of spread / greedy', mean)]
        failures += _misses([('geometric mean of spread / greedy', mean, 0.9),
                             ('CPU seconds on data/clusters', max(row[9] for row in large), 2.0)])
    return report.Report(tables=(
        report.Table('summary', ('figure', 'value'), summary),
        report.Table('combined imbalance for the same budget', (
            'cluster', 'budget', 'before', 'lower bound', 'greedy', 'spread', 'greedy moves',
            'spread moves', 'greedy CPU s', 'spread CPU s', 'installed', 'installed moves',
            'installed, restraint 0', 'installed, restraint 0, moves'), large),
        report.Table('against the optimum', (
            'seed', 'hosts', 'vms', 'budget', 'threshold', 'optimum is', 'optimum', 'spread',
            'spread / optimum', 'greedy / optimum', 'spread CPU s', 'installed / optimum',
            'installed, restraint 0 / optimum'), small)),
        notes=('Installed: one cycle of plan_cycle with the default options.',),
        failures=tuple(failures))


def _misses(figures):
    return [f'{name} is {value:.3f}, target at most {target}' for name, value, target in figures
            if value > target]


def _clusters(largest: int) -> list[str]:
    from bench import inputs
    return [name for name in inputs.cluster_names() if _host_count(name) <= largest]


def _host_count(name: str) -> int:
    return int(''.join(c for c in name.split('_')[0] if c.isdigit()))


def small_cluster(seed: int) -> tuple[Problem, int]:
    """Return a random cluster, and the number of moves that a plan may have."""
    from bench import inputs

    rng = np.random.default_rng(seed)
    hosts, vms, budget = (int(rng.integers(*span)) for span in ((6, 13), (40, 121), (2, 11)))
    threshold, fill = float(rng.choice([0, 0.02, 0.05, 0.1])), float(rng.choice([0.4, 0.55, 0.7]))
    return inputs.random_cluster(seed, hosts, vms, threshold, fill=fill), budget


def _small(seed: int, seconds: float) -> tuple:
    from bench import reference
    from bench import trial
    from kronos_nova.planners.greedy import Greedy
    from kronos_nova.planners.spread import Spread

    problem, budget = small_cluster(seed)
    optimum = reference.spread_optimum(problem, budget, seconds)
    spread, greedy = (trial.plan(kind(), problem, budget) for kind in (Spread, Greedy))
    installed, free = (trial.installed(problem, 'spread', budget, **options)
                       for options in ({}, {'restraint': 0.0}))
    is_proven = optimum.combined - optimum.bound <= 0.001 * optimum.combined
    return (seed, len(problem.hosts), len(problem.vms), budget, float(problem.thresholds[0]),
            'proven' if is_proven else 'best found',
            optimum.combined, spread.combined, spread.combined / optimum.combined,
            greedy.combined / optimum.combined, spread.seconds,
            installed.combined / optimum.combined, free.combined / optimum.combined)


def _large(name: str, budget: int) -> tuple:
    from bench import inputs
    from bench import reference
    from bench import trial
    from kronos_nova.model import Model
    from kronos_nova.model import State
    from kronos_nova.planners.greedy import Greedy
    from kronos_nova.planners.spread import Spread

    problem = inputs.cluster(name)
    spread, greedy = (trial.plan(kind(), problem, budget) for kind in (Spread, Greedy))
    installed, free = (trial.installed(problem, 'spread', budget, **options)
                       for options in ({}, {'restraint': 0.0}))
    return (name, budget, State(Model(problem)).combined(), reference.spread_bound(problem, budget),
            greedy.combined, spread.combined, greedy.moves, spread.moves, greedy.seconds,
            spread.seconds, installed.combined, installed.moves, free.combined, free.moves)
