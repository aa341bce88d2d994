"""The time until hosts are empty, beside its prediction."""

import dataclasses
import statistics

from bench import report

TARGET = 0.75
ERROR = 0.15
HOSTS = (5, 10, 20)
MOVES = 100
CAPS = '4/1/2', '8/2/2'
"""In all, per source and per destination: the defaults, and what a network of 10 Gbit/s bears."""
COLUMNS = ('drain', 'caps', 'seed', 'seconds, first come', 'seconds, scheduled', 'ratio',
           'lower bound / first come')


def register(subparsers):
    parser = subparsers.add_parser(
        'makespan', help='drains of 100 moves over shared links, in virtual time')
    parser.add_argument('--seeds', type=int, default=3, help='clouds of each kind (3)')
    parser.add_argument('--hosts', type=int, nargs='*', default=HOSTS,
                        help='hosts that are emptied at once (5 10 20)')
    parser.add_argument('--caps', nargs='*', default=CAPS, metavar='N/N/N',
                        help='moves at once in all, per source and per destination '
                             f'({" ".join(CAPS)})')
    parser.add_argument('--link', type=float, default=1100.0,
                        help="MiB a second of a host's link, each way (1100)")
    parser.add_argument('--rounds', type=int, default=3,
                        help='drains one after the other, of other hosts each; all are predicted, '
                             'the first is compared with first come (3)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    drained, foretold = [], []
    for caps in args.caps:
        for hosts in args.hosts:
            for seed in range(args.seeds):
                case, rounds = _lived(args, hosts, caps, seed)
                drained.append(case)
                foretold += rounds
    means = [(caps, *(_mean(row[n] for row in drained if row[1] == caps) for n in (5, 6)))
             for caps in dict.fromkeys(row[1] for row in drained)]
    errors = [(number, statistics.median(own), statistics.median(usual))
              for number in dict.fromkeys(row[0] for row in foretold)
              for own, usual in [zip(*(row[1:] for row in foretold if row[0] == number),
                                     strict=True)]]
    failures = [f'with caps {caps} a drain takes {ratio:.2f} of the time of first come, target '
                f'{TARGET}' for caps, ratio, _least in means if ratio > TARGET]
    failures += [f'in round {number} the median error of durations is {own:.0%}, target '
                 f'{ERROR:.0%}' for number, own, _usual in errors[1:] if own > ERROR]
    return report.Report(
        tables=(report.Table('geometric means', ('caps', 'ratio', 'lower bound / first come'),
                             means), report.Table('drains of 100 moves', COLUMNS, drained),
                report.Table('median error of predicted durations', (
                    'round', 'by the plan', 'by size, as before'), errors)),
        failures=tuple(failures),
        notes=('Caps: moves at once in all, per source, per destination. First come: the same '
               'plan, each move as soon as those before it leave room, as before there was a '
               'schedule. In the first round nothing is known of durations but the memory of '
               'flavors. The error is |predicted - taken| / taken, predicted when the plan is '
               'made; by size: the median of the moves nearest in size that ended before it.',))


def _mean(ratios):
    """Geometric."""
    return statistics.geometric_mean(ratios)


def _lived(args, hosts, caps, seed):
    """Simulate a drain, and return (its row of the table, [(round, error, error of a prediction by
    size) of each move])."""
    from bench.makespan import drains
    from bench.makespan import world as worlds
    from kronos_nova.objects.move import Caps

    total, per_source, per_destination = map(int, caps.split('/'))
    options = {'max_concurrent_migrations': total, 'max_concurrent_per_source': per_source,
               'max_concurrent_per_destination': per_destination}
    case = drains.Case((MOVES // hosts,) * hosts)
    network = worlds.Network(link=args.link, stream=args.link)
    taken = []
    for in_order in (True, False):
        world = drains.cloud(case, network, seed)
        rounds = drains.Emptier(case, options, in_order).run(
            world, 1 if in_order else args.rounds)
        taken.append(rounds[0].seconds)
        if in_order:
            least = drains.least(world, case, Caps(
                total=total, per_source=per_source, per_destination=per_destination))
    row = (case.name, caps, seed, *taken, taken[1] / taken[0],
           least / taken[0])
    return row, [(number, *_errors(move, each.observed)) for number, each in enumerate(rounds, 1)
                 for move in each.moves if move.state == 'completed']


def _errors(move, observed):
    from kronos_nova.executor import progress

    taken = (move.finished_at - move.requested_at).total_seconds()
    by_size = progress.expected_seconds(dataclasses.replace(move, expected_seconds=None), observed)
    return tuple(abs(seconds - taken) / taken
                 for seconds in (move.expected_seconds, by_size or 0.0))
