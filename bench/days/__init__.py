"""Days and weeks in virtual time: what each strategy spares servers, and what it costs."""

import pathlib
import time
from typing import Any

from bench import report

KNOWN = 'pattern', 'jobs', 'none', 'planetlab'
CONSTANT = 'still', 'noise'


def register(subparsers):
    parser = subparsers.add_parser(
        'days', help='days and weeks of a cloud in virtual time, by Kronos and by others')
    parser.add_argument('--planetlab', type=pathlib.Path, metavar='FILE',
                        help='planetlab.npz: traces of PlanetLab, days of 288 samples in percent '
                             '(servers, samples); without it only the made-up week is lived')
    parser.add_argument('--days', nargs='*', metavar='NAME',
                        help='of that file (default: all); none leaves them out')
    parser.add_argument('--week', type=int, default=7, metavar='N',
                        help='days that the made-up week has (7); 0 leaves it out')
    parser.add_argument('--known', nargs='*', default=[], choices=sorted(KNOWN), metavar='KIND',
                        help='also days before which monitoring knows nine others: with a daily '
                             '"pattern" of office hours, with "jobs" that begin suddenly at times '
                             'of their own, with "none", or the last of those of "planetlab" '
                             '(none)')
    parser.add_argument('--known-days', type=int, default=1, metavar='N',
                        help='how many of them, but of PlanetLab (1)')
    parser.add_argument('--constant', nargs='*', default=[], choices=CONSTANT, metavar='KIND',
                        help='also days of constant load: "still", or with "noise" around even '
                             'means, where every move is made on noise alone (none)')
    parser.add_argument('--constant-days', type=int, default=1, metavar='N',
                        help='how many days these have (1)')
    parser.add_argument('--sizes', nargs='*', default=['20x200'], metavar='HxV',
                        help='hosts and servers (20x200)')
    parser.add_argument('--strategies', nargs='*', metavar='NAME',
                        help='(default: all that there are)')
    parser.add_argument('--restraint', nargs='*', default=[], type=float, metavar='N',
                        help='also Kronos with each of these values of [kronos] restraint (none)')
    parser.add_argument('--threshold', type=float, default=0.25,
                        help='of the imbalance (0.25)')
    parser.add_argument('--load', type=float, default=0.5, help='of the hosts on average (0.5)')
    parser.add_argument('--watcher-python', metavar='PATH',
                        help='interpreter of an environment with python-watcher; without it '
                             'Watcher is left out')
    parser.add_argument('--watcher-interval', type=float, default=600.0, metavar='SECONDS',
                        help='between two audits (600)')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--plots', type=pathlib.Path, metavar='DIRECTORY',
                        help='also draw them there')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from bench.days import bounds
    from bench.days import scenario as scenarios
    from bench.days import summary
    from bench.days import tally
    from bench.days import world

    columns = ('scenario', 'size', 'strategy', *tally.COLUMNS, 'CPU s')
    rows, tallies, alone, least = [], {}, 0.0, []
    for scenario in _scenarios(args):
        alone += bounds.unavoidable(scenario)
        first = len(rows)
        for strategy in _strategies(args, scenario.hosts):
            begun = time.process_time()
            found = world.live(scenario, strategy, args.threshold)
            seconds = time.process_time() - begun
            size = f'{scenario.hosts}x{len(scenario.vcpus)}'
            rows.append((scenario.name, size, strategy.name, *found.row(), seconds))
            report.progress(rows[-1])
            tallies[scenario.name, size, strategy.name] = found
        if rows[first:] and not scenario.events:
            least += summary.least_rows(columns, rows[first:], bounds.LeastGib(scenario))
    if args.plots:
        from bench.days import drawn
        drawn.save(tallies, args.threshold, args.plots)
    constant = [row for row in rows if row[0].startswith(scenarios.CONSTANT)]
    changing = [row for row in rows if row not in constant]
    tables = (report.Table('all days together', summary.COLUMNS, summary.rows(columns, changing)),
              report.Table('day by day', columns, changing),
              report.Table('constant load', columns, constant),
              report.Table('GiB that any strategy copies at least', summary.LEAST, least))
    return report.Report(
        tables=tuple(table for table in tables if table.rows),
        notes=(f'Threshold {args.threshold}, mean load {args.load}; time above the threshold is a '
               'part of the time, contention minutes are of servers whose host wants more than '
               'there is. The oracle knows what comes.',
               'With constant load and noise every move is made on noise alone: the means of the '
               'hosts are even from the beginning.',
               f'{alone:,.0f} hot host minutes are of a server that alone asks for more than 0.9 '
               'of a host.',
               'GiB at least: of any strategy that leaves as many hot host minutes, also one that '
               f'knows what comes. The goal leaves {summary.GOAL_HOT} of those of no moves with '
               f'{summary.GOAL_GIB} of the GiB of greedy.'))


def _scenarios(args):
    from bench.days import scenario

    for size in args.sizes:
        hosts, vms = map(int, size.split('x'))
        if args.planetlab:
            names = scenario.planetlab_days(args.planetlab) if args.days is None else args.days
            for day in names:
                yield scenario.planetlab(args.planetlab, day, hosts, vms, args.load, args.seed)
        for kind in args.known:
            if kind == 'planetlab':
                yield scenario.planetlab_row(args.planetlab, scenario.planetlab_days(
                    args.planetlab), hosts, vms, args.load, args.seed)
            else:
                yield scenario.ordinary(hosts, vms, args.load, args.seed, args.known_days, kind)
        for kind in args.constant:
            yield scenario.constant(hosts, vms, args.load, args.seed, args.constant_days,
                                    kind == 'noise')
        if args.week:
            yield scenario.week(hosts, vms, args.load, args.seed, args.week)


def _strategies(args, hosts):
    from bench.days import bounds
    from bench.days import day_known
    from bench.days import pipeline
    from bench.days import rivals

    free: dict[str, Any] = {'restraint': 0.0, 'max_moves_per_instance_and_week': 0}
    known: list[Any] = [
        rivals.NoMoves(),
        pipeline.Kronos('greedy', args.threshold, spread_planner='greedy', **free),
        pipeline.Kronos(f'greedy, {hosts // 2} moves', args.threshold,
                        pipeline.with_budget(hosts // 2), spread_planner='greedy', **free),
        pipeline.Kronos('Kronos', args.threshold),
        pipeline.Kronos('Kronos, forecast', args.threshold, pipeline.AHEAD),
        pipeline.Kronos('without restraint', args.threshold, **free),
        pipeline.Kronos('without restraint, forecast', args.threshold, pipeline.AHEAD, **free),
        pipeline.Kronos('relieve', args.threshold, pipeline.RELIEVE, **free),
        bounds.HabitsKnown(), rivals.Oracle(), day_known.DayKnown()]
    if args.watcher_python:
        known.append(rivals.Watcher(args.watcher_python, args.watcher_interval, args.threshold))
    restrained = [pipeline.Kronos(f'Kronos, restraint {amount:g}', args.threshold,
                                  restraint=amount) for amount in args.restraint]
    return restrained + [each for each in known if hosts <= each.largest
                         and (args.strategies is None or each.name in args.strategies)]
