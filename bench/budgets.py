"""One plan for each of many budgets: a larger budget must not end worse."""

import math

from bench import report

BUDGETS = 10, 20, 50, 100, 200, 400, 800, 1600
MODES = 'spread', 'pack', 'relieve', 'disabled', 'drain'
IN_TIME = 400
"""The budget at which the age limit is looked at."""
MOST_WORSE, MOST_LATE = 1.01, 1.02
"""Goals: an end in ratio to the best of the smaller budgets; an end at :data:`IN_TIME` in ratio to
a plan without the age limit of which all moves begin in time."""
COLUMNS = ('cluster', 'mode', 'restraint', 'budget', 'age limit', 'what is left', 'end', 'moves',
           'GiB', 'last begins, s', 'end / best smaller', 'CPU s')
TIMES = ('cluster', 'mode', 'restraint', 'budget', 'end', 'end without age limit',
         'moves without age limit', 'budget that fits', 'end of what fits', 'end / what fits')
WORDS = {'spread': 'combined imbalance', 'pack': 'hosts in use', 'relieve': 'load above high',
         'disabled': 'servers on disabled hosts', 'drain': 'servers on drained hosts'}


def register(subparsers):
    parser = subparsers.add_parser(
        'budgets', help='one plan for each of many budgets, with and without the age limit')
    parser.add_argument('--clusters', nargs='*', metavar='NAME',
                        help='of data/clusters, or an instance of BalCon such as "014" for mode '
                             'pack (default: all clusters up to --largest)')
    parser.add_argument('--largest', type=int, default=320, metavar='HOSTS',
                        help='leave bigger clusters out (320)')
    parser.add_argument('--modes', nargs='*', choices=MODES, default=MODES)
    parser.add_argument('--budgets', type=int, nargs='*', default=list(BUDGETS))
    parser.add_argument('--restraints', type=float, nargs='*', default=[0.0, 1.0],
                        help='of spread; the other modes know none')
    parser.add_argument('--threshold', type=float, default=0.05, help='of spread (0.05)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from bench import inputs
    from bench import one_plan

    names = args.clusters or [name for name in inputs.cluster_names()
                              if len(inputs.cluster(name).hosts) <= args.largest]
    rows, times = [], []
    for name in names:
        for mode in args.modes:
            for restraint in args.restraints if mode == 'spread' else (None,):
                case = one_plan.Case(name, mode, restraint, args.threshold)
                budgets = (None,) if mode == 'drain' else args.budgets
                for age in (True, False):
                    rows += _rows(case, budgets, age)
                if IN_TIME in budgets:
                    times.append(_in_time(case, rows))
    return report.Report(
        tables=(report.Table('what can begin in time', TIMES, times),
                report.Table('budgets', COLUMNS, rows)),
        failures=(*_worse(rows), *_late(times)),
        notes=('End: what is left of what the mode is to remove; less is better. Ratios are of '
               'ends that are at least what a plan may leave: with spread the threshold, without '
               'restraint half of it.',
               'What fits: the largest budget of which a plan without the age limit begins all its '
               'moves in time, and the end of that plan.'))


def _rows(case, budgets, age):
    """Yield the rows of the table with :data:`COLUMNS`, the smallest budget first."""
    best = math.inf
    for budget in sorted(budgets) if None not in budgets else budgets:
        found = case.planned(budget, age)
        ratio = _ratio(found.end, best, case.least) if best < math.inf else None
        best = min(best, found.end)
        row = (case.cluster, case.mode, case.restraint, budget, 'yes' if age else 'no',
               WORDS[case.mode], found.end, len(found.moves), found.gib, found.last_begins, ratio,
               found.cpu_seconds)
        report.progress(row)
        yield row


def _in_time(case, rows):
    """Return the row of the table with :data:`TIMES` for a case."""
    limited, free = ([row for row in rows if row[:5] == (
        case.cluster, case.mode, case.restraint, IN_TIME, age)][0] for age in ('yes', 'no'))
    fitting, fits = case.fitting(IN_TIME)
    row = (*limited[:4], limited[6], free[6], free[7], fitting, fits,
           _ratio(limited[6], fits, case.least))
    report.progress(row)
    return row


def _ratio(end, other, least):
    return max(end, least) / max(other, least)


def _worse(rows):
    for row in rows:
        case = dict(zip(COLUMNS, row, strict=True))
        ratio = case['end / best smaller']
        if ratio is not None and ratio > MOST_WORSE:
            yield (f'{row[0]}, {row[1]}, restraint {row[2]}, budget {row[3]}, age limit {row[4]}: '
                   f'{ratio:.3f} times the end of a smaller budget, target {MOST_WORSE}')


def _late(times):
    for row in times:
        if row[-1] > MOST_LATE:
            yield (f'{row[0]}, {row[1]}, restraint {row[2]}, budget {row[3]}: {row[-1]:.3f} times '
                   f'the end of what fits into the age limit, target {MOST_LATE}')
