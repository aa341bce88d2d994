"""How soon hosts are empty, and whether that was foreseen."""

import math

from bench import report

TARGET = 0.75
HOSTS = (5, 10, 20)
MOVES = 100
CAPS = ((4, 1, 2), (8, 2, 2))
"""In all, per source and per destination: the defaults, and what a network of 10 Gbit/s bears."""
COLUMNS = ('drain', 'caps', 'seed', 'seconds, first come', 'seconds, scheduled', 'ratio',
           'lower bound / first come')


def register(subparsers):
    parser = subparsers.add_parser(
        'makespan', help='drains of 100 moves over shared links, in virtual time')
    parser.add_argument('--seeds', type=int, default=3, help='clouds of each kind (3)')
    parser.add_argument('--hosts', type=int, nargs='*', default=HOSTS,
                        help='hosts that are emptied at once (5 10 20)')
    parser.add_argument('--link', type=float, default=1100.0,
                        help="MiB a second of a host's link, each way (1100)")
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    rows = [_row(args, hosts, caps, seed) for caps in CAPS for hosts in args.hosts
            for seed in range(args.seeds)]
    means = [(caps, *(math.exp(sum(math.log(row[n]) for row in some) / len(some))
                      for n in (5, 6))) for caps in dict.fromkeys(row[1] for row in rows)
             if (some := [row for row in rows if row[1] == caps])]
    failures = [f'with caps {caps} a drain takes {ratio:.2f} of the time of first come, target '
                f'{TARGET}' for caps, ratio, _least in means if ratio > TARGET]
    return report.Report(
        tables=(report.Table('geometric means', ('caps', 'ratio', 'lower bound / first come'),
                             means), report.Table('drains of 100 moves', COLUMNS, rows)),
        failures=tuple(failures),
        notes=('Caps: moves at once in all, per source, per destination. First come: the same '
               'plan, each move as soon as those before it leave room, as before there was a '
               'schedule. Nothing is known of durations but the memory of flavors.',))


def _row(args, hosts, caps, seed):
    from bench.makespan import drains
    from bench.makespan import world as worlds
    from kronos_nova.objects.move import Caps

    case = drains.Case((MOVES // hosts,) * hosts)
    network = worlds.Network(link=args.link, stream=args.link)
    names = ('max_concurrent_migrations', 'max_concurrent_per_source',
             'max_concurrent_per_destination')
    taken = []
    for in_order in (True, False):
        world = drains.cloud(case, network, seed)
        seconds, _moves = drains.Emptier(case, dict(zip(names, caps, strict=True)),
                                         in_order).run(world)
        taken.append(seconds)
    least = drains.least(world, case, Caps(total=caps[0], per_source=caps[1],
                                           per_destination=caps[2]))
    return (case.name, '/'.join(map(str, caps)), seed, *taken, taken[1] / taken[0],
            least / taken[0])
