"""Draw what the other benches found, for the documentation."""

import json
import pathlib
from typing import Any

from bench import report

SVG: Any = {'svg.fonttype': 'none', 'svg.hashsalt': 'kronos', 'font.size': 9}


def register(subparsers):
    parser = subparsers.add_parser('plots', help='draw a plan before and after, and time against '
                                                 'size')
    parser.add_argument('--scale', type=pathlib.Path, required=True, metavar='FILE',
                        help='JSON that "scale" wrote')
    parser.add_argument('--cluster', default='c32_320', metavar='NAME', help='of data/clusters')
    parser.add_argument('--budget', type=int, default=40)
    parser.add_argument('--to', type=pathlib.Path, default=pathlib.Path('doc/source/images'),
                        metavar='DIRECTORY')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    import matplotlib

    matplotlib.use('svg')
    matplotlib.rcParams.update(SVG)
    args.to.mkdir(parents=True, exist_ok=True)
    measured = json.loads(args.scale.read_text())['tables']['time and memory']
    drawn = (('bench-before-after', _before_after(args.cluster, args.budget)),
             ('bench-scale', _scale(measured)))
    for name, figure in drawn:
        figure.savefig(args.to / f'{name}.svg', metadata={'Date': None}, bbox_inches='tight')
    return report.Report(tables=(report.Table(
        'drawn', ('file',), [(str(args.to / f'{name}.svg'),) for name, _figure in drawn]),))


def _before_after(cluster: str, budget: int):
    import numpy as np
    from matplotlib import pyplot

    from bench import inputs
    from bench import trial
    from kronos_nova.model import State
    from kronos_nova.planners.base import Limits
    from kronos_nova.planners.greedy import Greedy
    from kronos_nova.planners.spread import Spread

    problem = inputs.cluster(cluster)
    figure, axes = pyplot.subplots(1, 3, figsize=(9, 2.6), sharey=True)
    for title, planner, axis in zip(('before', 'greedy', 'spread'), (None, Greedy, Spread), axes,
                                    strict=True):
        state, moves = State(trial.model_of(problem)), 0
        if planner:
            moves = len(planner().plan(state, Limits(budget=budget)))
        for policy, marker, scores in zip(problem.policies, 'o^', state.scores.T, strict=True):
            axis.plot(np.arange(len(scores)), scores, marker, markersize=3, label=policy)
        axis.set_title(f'{title}, {moves} moves, combined {state.combined():.3f}', fontsize=9)
        axis.set_xlabel('host')
    axes[0].set_ylabel('part of the host in use')
    axes[-1].legend(loc='upper right')
    return figure


def _scale(rows: list[dict]):
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(5, 3))
    for planner in dict.fromkeys(row['planner'] for row in rows):
        points = [(row['hosts'], row['CPU s']) for row in rows if row['planner'] == planner]
        axis.loglog(*zip(*points, strict=True), 'o-', markersize=3, label=planner)
    axis.set_xlabel('hosts, with 30 instances each')
    axis.set_ylabel('CPU seconds for 50 moves')
    axis.legend()
    return figure
