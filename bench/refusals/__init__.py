"""Moves that Nova refuses in a mixed cloud, in a week that its own filters judge."""

import time

from bench import report

MOST = 0.2
"""Refused requests in 1,000 moves, at most."""
CHECKED, BEFORE = 'host_checks', 'before'
COLUMNS = ('way', 'moves', 'refused', 'in 1,000 moves', 'quarantines', 'questions to the scheduler',
           'requests of migrations', 'both, in a cycle', 'imbalance', 'CPU s')


def register(subparsers):
    parser = subparsers.add_parser(
        'refusals', help='moves that Nova refuses in a mixed cloud, judged by its own filters')
    parser.add_argument('--hosts', type=int, default=20)
    parser.add_argument('--vms', type=int, default=200)
    parser.add_argument('--days', type=int, default=7)
    parser.add_argument('--restraint', type=float, default=0.0,
                        help='of [kronos]; with more, fewer moves are made, and each evaluation '
                             'takes seconds, as the target cannot be reached (0)')
    parser.add_argument('--planner', default='greedy', help='spread_planner of [kronos] (greedy)')
    parser.add_argument('--threshold', type=float, default=0.25, help='of the imbalance (0.25)')
    parser.add_argument('--load', type=float, default=0.5, help='of the hosts on average (0.5)')
    parser.add_argument('--fill', type=float, default=0.85,
                        help='part of the memory of the hosts that servers have (0.85)')
    parser.add_argument('--seeds', type=int, default=1, help='weeks that are lived (1)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    rows, lacking = [], {}
    for way, options in ways(args.restraint, args.planner).items():
        found = [lived(args, seed, way, options) for seed in range(args.seeds)]
        rows.append(row(way, found))
        report.progress(rows[-1])
        lacking[way] = sum((counts.refused for counts, *_rest in found), start=type(
            found[0][0].refused)())
    tables = [report.Table(f'{args.seeds} weeks of {args.days} days, {args.hosts} hosts, '
                           f'{args.vms} servers', COLUMNS, rows)]
    said = [(way, lack, count) for way, counter in lacking.items()
            for lack, count in counter.most_common()]
    if said:
        tables.append(report.Table('Refused', ('way', 'lacking', 'requests'), said))
    return report.Report(tables=tuple(tables), failures=tuple(failures(rows)), notes=(
        'Each question and each request of a migration is one call of the scheduler, which asks '
        'placement for candidates. "before" is Kronos before requirements were known: with '
        '[kronos] host_checks empty, each server asked about by itself and in the state of the '
        'moment, moves that wait for others not at all, and servers whose move was refused in '
        'quarantine.',))


def ways(restraint: float, planner: str) -> dict[str, dict]:
    """Return the ways that are compared, as {name: options of ``[kronos]``}."""
    common = {'restraint': restraint, 'spread_planner': planner}
    if not restraint:
        common['max_moves_per_instance_and_week'] = 0
    return {BEFORE: {'host_checks': [], **common}, CHECKED: common}


def _strategy(way: str):
    from bench.refusals import world

    return world.KronosBefore if way == BEFORE else world.Kronos


def lived(args, seed: int, way: str, options: dict):
    """Live a week: what was asked and refused, the tally and CPU seconds."""
    from bench.days import scenario as scenarios
    from bench.days import tally as tallies
    from bench.days import world as days
    from bench.refusals import kinds
    from bench.refusals import world
    from bench.refusals.judge import Judge

    scenario = kinds.filled(
        scenarios.week(args.hosts, args.vms, args.load, seed, args.days), args.fill)
    mix = kinds.Mix.drawn(seed, args.hosts, len(scenario.vcpus))
    counts = world.Counts()
    begun = time.process_time()
    mixed = world.MixedWorld(scenario, args.threshold, Judge(mix, scenario))
    tally = days.live_in(mixed, _strategy(way)(way, args.threshold, counts, **options))
    return (counts, dict(zip(tallies.COLUMNS, tally.row(), strict=True)),
            time.process_time() - begun)


def row(way, found):
    """Return the values of the columns :data:`COLUMNS` for the simulated weeks of a way."""
    counts = [each for each, *_rest in found]
    moves = sum(tally['moves'] for _counts, tally, _seconds in found)
    refused = sum(each.refused.total() for each in counts)
    asked, requests, cycles = (sum(getattr(each, name) for each in counts)
                               for name in ('questions', 'requests', 'cycles'))
    return (way, moves, refused, 1000 * refused / max(moves, 1),
            sum(len(each.left_alone) for each in counts), asked, requests,
            (asked + requests) / cycles,
            sum(tally['mean imbalance'] for _counts, tally, _seconds in found) / len(found),
            sum(seconds for *_rest, seconds in found))


def failures(rows):
    """Yield what the rows miss, a line each."""
    found = {each[0]: dict(zip(COLUMNS, each, strict=True)) for each in rows}
    now, before = found[CHECKED], found[BEFORE]
    if now['in 1,000 moves'] > MOST:
        yield f'{now["in 1,000 moves"]:.2f} refused of 1,000 moves, target at most {MOST}'
    if now['quarantines']:
        yield f'{now["quarantines"]} healthy servers in quarantine, target 0'
    name = 'both, in a cycle'
    if now[name] > before[name]:
        yield f'{now[name]:.2f} calls of the scheduler in a cycle, {before[name]:.2f} before'
