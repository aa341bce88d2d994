"""Constant load under an installation: cycle after cycle until the thresholds are reached."""

from typing import Any

from bench import report
from kronos_nova.objects import plan

COLUMNS = ('cluster', 'threshold', 'budget', 'variant', 'cycles', 'hours', 'cpu', 'memory',
           'moves', 'GiB', 'GiB trimmed', 'CPU s', 'last outcome')
COMPARED = ('cluster', 'threshold', 'budget', 'variant', 'cycles / restraint 0',
            'hours / restraint 0', 'GiB / least known', 'least known is of', 'GiB / trimmed')
NEVER, NOT_YET = 'never', 'not yet'
MOST_CYCLES, MOST_GIB = 1.5, 1.1
"""Goals: cycles in ratio to ``restraint = 0``, GiB in ratio to the least known."""
PER_GIB = 0.001, 0.005
"""``min_gain_per_gib`` of the variants ``per GiB``, for all hosts of a cluster together: max - min
falls only when all hosts at its ends are repaired."""
SPLIT_NOTES = (
    'Hot minutes: of a host above 0.9 in a policy, in twelve hours of constant load. No server '
    'that is moved loads both hosts meanwhile. Cycles: a dash for never.',)


def register(subparsers):
    parser = subparsers.add_parser(
        'installed', help='constant load, cycle after cycle, with the options of an installation')
    parser.add_argument('--clusters', nargs='*', metavar='NAME',
                        help='of data/clusters (default: up to 100 hosts)')
    parser.add_argument('--thresholds', type=float, nargs='*', default=[0.05, 0.10, 0.25])
    parser.add_argument('--budgets', type=int, nargs='*', default=[10, 50])
    parser.add_argument('--restraints', type=float, nargs='*', default=[0.0, 1.0])
    parser.add_argument('--planner', action='append', default=[], metavar='NAME',
                        help='also this spread_planner, with restraint 0; may be given several '
                             'times')
    parser.add_argument('--no-more', action='store_true',
                        help='leave out the variants that only lower the least GiB known: '
                             'greedy, and spread with a price for each GiB')
    parser.add_argument('--cycles', type=int, default=40, metavar='N',
                        help='evaluations of a case at most (40)')
    parser.add_argument('--split', type=int, nargs='+', metavar='HOSTS',
                        help='instead, random clouds of so many hosts: in four aggregates, with a '
                             'quarter of the budget each, and in one')
    parser.add_argument('--seeds', type=int, default=2, help='such clouds of each size (2)')
    parser.add_argument('--random', type=int, default=0, metavar='N',
                        help='instead, N random clouds of 12 to 30 hosts')
    parser.add_argument('--seed', type=int, default=0, help='of the first random cloud (0)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from bench import inputs
    from bench import split

    if args.split:
        tables, failures = split.tables(args)
        return report.Report(tables=tables, failures=tuple(failures), notes=SPLIT_NOTES)
    names = args.clusters or [
        inputs.random_name(args.seed + n) for n in range(args.random)] or [
        name for name in inputs.cluster_names() if len(inputs.cluster(name).hosts) <= 100]
    rows, compared = [], []
    for name in names:
        for threshold in args.thresholds:
            for budget in args.budgets:
                found = [_row(name, threshold, budget, variant, args.cycles)
                         for variant in _variants(args, name).items()]
                rows += found
                compared += _compared(found)
    return report.Report(
        tables=(report.Table('restraint in ratio to none', COMPARED, compared),
                report.Table('cases', COLUMNS, rows)),
        failures=tuple(_failures(compared)),
        notes=('Cycles: plans until every policy was at or below its threshold; evaluations '
               'during cooldowns only count in the hours. Hours: until then, or until the last '
               'move. Never: no move was left; not yet: --cycles evaluations were over.',
               'GiB trimmed: of the same end, without the servers that could have stayed. The '
               'order of moves is not looked at.'))


def _variants(args, cluster):
    """Return the variants that are compared, as {name: options of ``[kronos]``}."""
    from bench import inputs

    found = {f'restraint {value:g}': {'restraint': value} for value in args.restraints}
    if not args.no_more:
        found['greedy'] = {'restraint': 0.0, 'spread_planner': 'greedy'}
        hosts = len(inputs.cluster(cluster).hosts)
        for price in PER_GIB:
            found[f'per GiB {price}'] = {'restraint': 0.0, 'min_gain_per_gib': price / hosts}
    return found | {name: {'restraint': 0.0, 'spread_planner': name} for name in args.planner}


def _row(name, threshold, budget, variant, most):
    from bench import inputs
    from bench import installation
    from bench import operation

    problem, (label, overrides) = inputs.cluster(name), variant
    found = operation.operate(
        operation.Installation(installation.Cloud(problem),
                               installation.policies(problem, 'spread', threshold, budget),
                               installation.conf(**overrides)), threshold, most)
    trimmed = None
    if found.cycles is not None:
        trimmed = trimmed_gib(problem, found.made, threshold)
    row = (name, threshold, budget, label, _cycles(found),
           found.hours, *found.imbalances, len(found.made), found.gib, trimmed,
           found.cpu_seconds, found.last)
    report.progress(row)
    return row


def _cycles(found):
    """Return the number of cycles until the threshold is reached; if it is not reached, NOT_YET if
    the last cycle still planned moves, otherwise NEVER."""
    if found.cycles is not None:
        return found.cycles
    return NOT_YET if plan.PLANNED in found.last else NEVER


def trimmed_gib(problem, made, threshold: float) -> float:
    """GiB of an end state, after servers went home that are not needed elsewhere, the largest
    first.

    :param problem: before the moves
    """
    import numpy as np

    from kronos_nova.model import TOLERANCE

    host = {name: n for n, name in enumerate(problem.hosts)}
    vm = {name: n for n, name in enumerate(problem.vms)}
    place = problem.vm_host.copy()
    for each in made:
        place[vm[each.move.instance_uuid]] = host[each.move.destination]
    scores, used = np.zeros(problem.scores.shape), np.zeros(problem.limits.shape)
    np.add.at(scores, place, problem.weights * problem.host_scale[place])
    np.add.at(used, place, problem.demands)
    gone = np.flatnonzero(place != problem.vm_host)
    for each in gone[np.argsort(-problem.memory_mb[gone], kind='stable')]:
        home, away = problem.vm_host[each], place[each]
        after = scores[[home, away]] + np.array([[1], [-1]]) * (
            problem.weights[each] * problem.host_scale[[home, away]])
        kept, scores[[home, away]] = scores[[home, away]].copy(), after
        is_even = (np.ptp(scores, axis=0) <= threshold + TOLERANCE).all()
        if is_even and (used[home] + problem.demands[each] <= problem.limits[home]).all():
            used[home] += problem.demands[each]
            used[away] -= problem.demands[each]
            place[each] = home
        else:
            scores[[home, away]] = kept
    return float(problem.memory_mb[place != problem.vm_host].sum()) / 1024


def _compared(found):
    """Yield the rows of the table :data:`COMPARED`, for the variants with restraint in one case.

    :param found: rows of :data:`COLUMNS`
    """
    cases = [dict(zip(COLUMNS, row, strict=True)) for row in found]
    base = next((case for case in cases if case['variant'] == 'restraint 0'), None)
    reached = [case for case in cases if case['cycles'] not in (NEVER, NOT_YET)]
    least: Any = min(reached, key=lambda case: case['GiB'], default=None)
    trimmed: Any = min((case['GiB trimmed'] for case in reached), default=None)
    for case in cases:
        if not case['variant'].startswith('restraint ') or case is base:
            continue
        is_there, is_comparable = case in reached, base in reached
        yield (*(case[name] for name in COMPARED[:4]),
               _ratio(case, base, 'cycles') if is_there and is_comparable
               else case['cycles'] if is_comparable else None,
               _ratio(case, base, 'hours') if is_there and is_comparable else None,
               (case['GiB'] + 1e-9) / (least['GiB'] + 1e-9) if is_there else None,
               least['variant'] if least else None,
               (case['GiB'] + 1e-9) / (trimmed + 1e-9) if is_there else None)


def _ratio(case, base, name):
    """Divide two figures, both of which may be 0."""
    return (case[name] + 1e-9) / (base[name] + 1e-9)


def _failures(compared):
    for row in compared:
        case = dict(zip(COMPARED, row, strict=True))
        what = f'{row[0]}, threshold {row[1]}, budget {row[2]}, {row[3]}'
        cycles, copied = case['cycles / restraint 0'], case['GiB / least known']
        if cycles in (NEVER, NOT_YET):
            yield f'{what}: threshold {cycles} reached, with restraint 0 it is'
        elif cycles is not None and cycles > MOST_CYCLES:
            yield f'{what} takes {cycles:.2f} times the cycles, target {MOST_CYCLES}'
        if copied is not None and copied > MOST_GIB:
            yield f'{what} copies {copied:.2f} times the least GiB known, target {MOST_GIB}'
