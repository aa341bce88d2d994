"""The search of the planner ``level`` on published instances of the machine reassignment problem.
"""

import pathlib
import statistics

from bench import report

BEST = {
    'a1_1': 44306501, 'a1_2': 777532896, 'a1_3': 583005717, 'a1_5': 727578309,
    'a2_1': 161, 'a2_2': 720671548, 'a2_3': 1182260491, 'a2_4': 1680368578, 'a2_5': 307150821,
    'b_1': 3353533859, 'b_2': 1015569276, 'b_3': 157091678, 'b_4': 4677962661, 'b_5': 924769283}
"""Best published objectives. A: collected from papers about the ROADEF/EURO challenge 2012. B: team
S41 in 300 seconds on an i7-920 (Gavranović, Buljubašić and Demirović, Variable neighborhood search
for Google machine reassignment problem, ENDM 39, 2012). Of the other instances, the published lower
bound is used if its file is next to the model."""
TARGETS = {'a': 0.02, 'b': 0.05, 'x': 0.05}
"""Mean score of each set of instances, at most."""
COLUMNS = ('instance', 'machines', 'processes', 'before', 'after', 'best published', 'lower bound',
           'score', 'violations', 'processes moved', 'pairs rated', 'seconds', 'CPU s')


def register(subparsers):
    parser = subparsers.add_parser(
        'roadef', help='the search of level on instances of the ROADEF/EURO challenge 2012')
    parser.add_argument('files', nargs='+', type=pathlib.Path, metavar='FILE',
                        help='model_*.txt, with assignment_*.txt in the same directory; a '
                             'directory stands for all models in it and below it')
    parser.add_argument('--seconds', type=float, default=300.0,
                        help='wall time for each instance (300). The search is planned for this '
                             'time, and ends at this time at the latest')
    parser.add_argument('--jobs', type=int, default=2, metavar='N',
                        help='processes that search each instance at the same time, with other '
                             'random numbers each; every second one makes several shorter '
                             'searches; the best result counts (2)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from bench.roadef import reader

    try:
        instances = [reader.read(path) for path in reader.find(args.files)]
    except reader.InvalidFileError as error:
        raise SystemExit(str(error)) from None
    rows = []
    for instance in instances:
        rows.append(_solved(instance, args.seconds, args.jobs))
        report.progress(rows[-1])
    means = [(kind, len(scores), statistics.mean(scores), max(scores))
             for kind, scores in _scores(rows).items()]
    return report.Report(
        tables=(report.Table('mean scores', ('set', 'instances', 'mean score', 'worst'), means),
                report.Table('instances', COLUMNS, rows)),
        failures=tuple(failures(rows)),
        notes=('The score is (after - best published) / before, or with the lower bound where no '
               'best one is known. Objectives and violations are computed by an evaluator that '
               'shares no code with the search.',))


def failures(rows: list[tuple]) -> list[str]:
    """Return the targets that the rows of the table miss, a line each."""
    found = [f'{row[0]}: {row[8]} violations' for row in rows if row[8]]
    return found + [f'mean score {statistics.mean(scores):.4f} of set {kind}, target '
                    f'{TARGETS[kind]}' for kind, scores in _scores(rows).items()
                    if statistics.mean(scores) > TARGETS.get(kind, 1.0)]


def _scores(rows):
    """Return {set of instances: scores}, without the instances that have no score."""
    found = {}
    for row in rows:
        if row[7] is not None:
            found.setdefault(row[0][0], []).append(row[7])
    return found


def best_of(name: str) -> int | None:
    """Return the best published objective of an instance such as ``b_01``; None if none is
    known."""
    kind, _dash, number = name.partition('_')
    return BEST.get(f'{kind}_{number.lstrip("0")}')


def _solved(instance, seconds, jobs):
    """Return the row of the table for one instance."""
    from bench.roadef import evaluator
    from bench.roadef import search

    found = search.best(instance, seconds, jobs)
    before = evaluator.evaluate(instance, instance.assignment.tolist()).objective
    after = evaluator.evaluate(instance, found.assignment)
    best = best_of(instance.name)
    goal = instance.lower_bound if best is None else best
    score = None if goal is None else (after.objective - goal) / before
    moved = int((instance.assignment != found.assignment).sum())
    return (instance.name, len(instance.locations), len(instance.services), before,
            after.objective, best, instance.lower_bound, score, after.violated, moved,
            int(found.rated), found.seconds, found.cpu_seconds)
