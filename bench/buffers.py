"""A week of a cloud with a buffer: how long it is there, and what it costs in moves."""

import dataclasses
from typing import Any

from bench import report

GOAL_THERE, GOAL_MOVES = 0.995, 1.2


def register(subparsers):
    parser = subparsers.add_parser(
        'buffers', help='whether room for new servers is there, in a week of changing load')
    parser.add_argument('--size', default='20x200', metavar='HxV',
                        help='hosts and servers (20x200)')
    parser.add_argument('--days', type=int, default=7, metavar='N', help='of the week (7)')
    parser.add_argument('--keep', type=int, default=2, metavar='N',
                        help='servers that are to fit, each of half a host (2)')
    parser.add_argument('--threshold', type=float, default=0.25,
                        help='of the imbalance (0.25)')
    parser.add_argument('--load', type=float, default=0.5, help='of the hosts on average (0.5)')
    parser.add_argument('--seed', type=int, default=0)
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from bench.days import pipeline
    from bench.days import rivals
    from bench.days import scenario
    hosts, vms = map(int, args.size.split('x'))
    week = scenario.week(hosts, vms, args.load, args.seed, args.days)
    size = f'1:{week.memory_mb // 2}'
    policies = pipeline.POLICIES + f"""buffers:
- {{{{name: half, aggregate: _unassigned_, flavor: "{size}", keep: {args.keep}}}}}
"""
    # No move depends on whether hosts may be lost, which takes a fifth of the time.
    fixed: dict[str, Any] = {'failover_check_percent': 0}
    rows = [lived(week, strategy, args.threshold, size, args.keep) for strategy in (
        rivals.NoMoves(), pipeline.Kronos('Kronos', args.threshold, **fixed),
        pipeline.Kronos('Kronos, buffer', args.threshold, policies, **fixed))]
    (_name, _there, plain, *_more), (_buffer, there, moves, *_rest) = rows[1:]
    failures = []
    if there < GOAL_THERE:
        failures.append(f'the buffer is there {there:.2%} of the time, goal {GOAL_THERE:.1%}')
    if moves > GOAL_MOVES * plain:
        failures.append(f'{moves} moves, without a buffer {plain}, at most {GOAL_MOVES} times')
    return report.Report(
        tables=(report.Table('buffer', ('strategy', 'part of the time that it is there', 'moves',
                                        'GiB', 'hot minutes'), rows),),
        notes=(f'{args.keep} servers of half a host are to fit; Nova puts new servers where most '
               'memory is free.',), failures=tuple(failures))


@dataclasses.dataclass
class Watched:
    """A strategy, watched: in how many of the samples the buffer is there when it has acted."""

    strategy: Any
    size_mb: int
    keep: int
    samples: int = 0
    there: int = 0

    def begin(self, world):
        self.world = world
        self.strategy.begin(world)

    def evaluate(self):
        self.strategy.evaluate()

    def tick(self):
        return self.strategy.tick()

    def end(self):
        self.strategy.end()

    def look(self):
        """Count a sample."""
        free = self.world.free_mb()[self.world.available]
        self.samples += 1
        self.there += int((free // self.size_mb).clip(min=0).sum()) >= self.keep


def lived(week, strategy, threshold, size, keep):
    """Run a strategy through a week, and return (its name, part of the samples at whose end the
    buffer is free, moves, GiB copied, minutes of hot hosts)."""
    from bench.days import world as worlds

    class World(worlds.World):
        def turn(self, sample):
            if sample:
                watched.look()
            super().turn(sample)
    watched = Watched(strategy, int(size.split(':')[1]), keep)
    tally = worlds.live_in(World(week, threshold), watched)
    watched.look()
    moves, gib, _above, hot, *_more = tally.row()
    return strategy.name, watched.there / watched.samples, moves, gib, hot
