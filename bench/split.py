"""The same cloud in four aggregates and in one: what either costs and spares for each host."""

import numpy as np

from bench import inputs
from bench import installation
from bench import operation
from bench import report
from kronos_nova.objects.plan import HOT_SCORE

PARTS = 4
VMS_PER_HOST, FILL, CPU_FILL = 20, 0.6, 1.3
"""Parameters of the random clouds, with which some hosts are hot."""
HORIZON = 12 * 3600.0
"""Seconds for which hot hosts are counted: no case takes that long."""
MOST_APART = 1.15
"""Goal: the larger of two figures of a host in ratio to the smaller."""
COLUMNS = ('hosts', 'threshold', 'budget', 'restraint', 'seed', 'cycles, split', 'cycles, merged',
           'GiB a host, split', 'GiB a host, merged', 'hot minutes a host, none moved',
           'hot minutes a host, split', 'hot minutes a host, merged', 'CPU s')
MEANS = (*COLUMNS[:4], *COLUMNS[7:12], 'GiB, merged / split', 'hot minutes, merged / split')
UNIT, OF_NONE = 0.05, 0.01
"""Summands of both sides of a ratio, either of which may be 0: GiB of a host, and a part of the hot
minutes without any move."""


def tables(args) -> tuple[tuple[report.Table, ...], list[str]]:
    """Return the tables of all cases, and sentences about the goals that were missed."""
    rows = [_row(hosts, threshold, budget, restraint, seed, args.cycles)
            for hosts in args.split for threshold in args.thresholds for budget in args.budgets
            for restraint in args.restraints for seed in range(args.seed, args.seed + args.seeds)]
    means = [_mean(case, [row for row in rows if row[:4] == case])
             for case in dict.fromkeys(row[:4] for row in rows)]
    failures = [f'{row[0]} hosts, threshold {row[1]}, budget {row[2]}, restraint {row[3]:g}: '
                f'{name} is {ratio:.2f}, target within {MOST_APART}'
                for row in means for name, ratio in zip(MEANS[-2:], row[-2:], strict=True)
                if not 1 / MOST_APART <= ratio <= MOST_APART]
    return (report.Table('means over the seeds', MEANS, means),
            report.Table('in four aggregates, and in one', COLUMNS, rows)), failures


def _mean(case, rows):
    means = tuple(float(value) for value in np.mean([row[7:12] for row in rows], axis=0))
    split, merged, none, hot_split, hot_merged = means
    unit = OF_NONE * none + 1e-9
    return (*case, *means, (merged + UNIT) / (split + UNIT),
            (hot_merged + unit) / (hot_split + unit))


def _row(hosts, threshold, budget, restraint, seed, most):
    problem = inputs.random_cluster(seed, hosts, hosts * VMS_PER_HOST, threshold, fill=FILL,
                                    cpu_fill=CPU_FILL)
    parts = np.array_split(np.random.default_rng(seed).permutation(hosts), PARTS)
    quarters = {f'quarter{number}': part for number, part in enumerate(parts)}
    split, merged = (_operated(problem, aggregates, threshold, share, restraint, most)
                     for aggregates, share in ((quarters, -(-budget // PARTS)), (None, budget)))
    copied = [found.gib / hosts for found in (split, merged)]
    hot = [hot_minutes(problem, made) / hosts for made in ((), split.made, merged.made)]
    row = (hosts, threshold, budget, restraint, seed, split.cycles, merged.cycles, *copied, *hot,
           split.cpu_seconds + merged.cpu_seconds)
    report.progress(row)
    return row


def _operated(problem, aggregates, threshold, budget, restraint, most):
    return operation.operate(
        operation.Installation(installation.Cloud(problem, aggregates),
                               installation.policies(problem, 'spread', threshold, budget),
                               installation.conf(restraint=restraint)), threshold, most)


def hot_minutes(problem, made) -> float:
    """Return the minutes of hosts above :data:`HOT_SCORE` in a policy until :data:`HORIZON`. The
    load of a server arrives when its move ends."""
    cloud = installation.Cloud(problem)
    minutes, now = 0.0, 0.0
    for each in sorted(made, key=lambda each: each.ended_at):
        ended = min(each.ended_at - installation.BEGIN, HORIZON)
        minutes += _hot(cloud) * (ended - now) / 60
        cloud.move(each.move.instance_uuid, each.move.destination)
        now = ended
    return minutes + _hot(cloud) * (HORIZON - now) / 60


def _hot(cloud):
    return int((cloud.scores() > HOT_SCORE).any(axis=1).sum())
