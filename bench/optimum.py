"""The share of existing plans that the search finds, on random clouds that no constant was chosen
by, and on a published mapping of servers to hosts."""

import dataclasses
import pathlib
import statistics
from collections.abc import Callable

import numpy as np

from bench import report
from kronos_nova.model import Model
from kronos_nova.model import Problem
from kronos_nova.model import State

CLASSES = 'E1', 'E2', 'E3'
SPREAD, PACK, RELIEVE = ('S3', 'S4', 'S5'), ('P3', 'P5', 'P6'), ('R',)
MARKS = 0.85, 0.75
"""``high`` and ``target`` of the clouds with hot hosts."""
MAPPED = 1, 3
"""Numbers of hosts of a mapping that are emptied at once."""
SECONDS = 30.0
"""Seconds of wall time that the reference has for one cloud."""


def register(subparsers):
    parser = subparsers.add_parser(
        'optimum', help='hosts that can be emptied, against those that are; plans of the other '
                        'modes against an integer program')
    parser.add_argument('--clouds', type=int, default=40, metavar='N',
                        help='clouds of each class (default 40)')
    parser.add_argument('--seed', type=int, default=0, help='of the first cloud (default 0)')
    parser.add_argument('--classes', nargs='+', default=list(CLASSES),
                        choices=(*CLASSES, *SPREAD, *PACK, *RELIEVE),
                        help='classes of clouds (default E1 E2 E3); those of spread, pack and '
                             'relieve take 5 to 30 s a cloud')
    parser.add_argument('--mapping', type=pathlib.Path, metavar='FILE',
                        help='mapping.json or mapping.json.xz of bytedance/'
                             'DRL-based-VM-Rescheduling: one or three hosts of it are emptied, as '
                             'many times as there are clouds of a class, and nothing else is done')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    seeds = range(args.seed, args.seed + args.clouds)
    if args.mapping is not None:
        table, failures = _mapping(args.mapping, seeds)
        return report.Report(tables=(table,), failures=tuple(failures))
    tables, failures = [], []
    for chosen, judge in ((CLASSES, _emptying), (SPREAD, _spreading), (PACK, _packing),
                          (RELIEVE, _relieving)):
        kinds = [kind for kind in chosen if kind in args.classes]
        if kinds:
            table, failed = judge(kinds, seeds)
            tables.append(table)
            failures += failed
    return report.Report(
        tables=tuple(tables),
        notes=('One cycle of plan_cycle with the default options and evacuate_disabled_hosts; of '
               'spread, pack and relieve without restraint. Each cloud of E1, E2 and E3 is made '
               'from an end in which its disabled hosts are empty.',
               f'The reference is an integer program of its own, at most {SECONDS:g} s a cloud. '
               'Plans are compared where an order for its end is found that puts no instance '
               'aside.'),
        failures=tuple(failures))


def _emptying(kinds, seeds):
    rows, failures = [], []
    for kind in kinds:
        found = [emptied(kind, seed) for seed in seeds]
        for slack in sorted({each[0] for each in found}):
            some = [each for each in found if each[0] == slack]
            _slack, whole, others, wrong, seconds = zip(*some, strict=True)
            rows.append((kind, slack, len(some), sum(whole), sum(others), sum(wrong),
                         statistics.median(seconds), max(seconds)))
            least = len(some) if slack >= 0.01 else 0.98 * len(some)
            if sum(whole) < least:
                failures.append(f'{kind}, slack {slack}: {sum(whole)} of {len(some)} emptied')
            if sum(wrong):
                failures.append(f'{kind}, slack {slack}: {sum(wrong)} times "cannot" is wrong')
    return report.Table('hosts emptied, where all servers can leave', (
        'class', 'slack', 'clouds', 'emptied', 'others give way', '"cannot" is wrong',
        'CPU s, median', 'most'), rows), failures


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A plan beside the reference's.

    ours, other : what the class is judged by, of the plan and of the reference
    is_proven : no end is better than the reference's
    is_orderable : an order for the reference's end is found
    seconds : of the processor, for the plan
    """

    ours: tuple[float, ...]
    other: tuple[float, ...]
    is_proven: bool
    is_orderable: bool
    seconds: float


def compared(kind: str, seed: int, **overrides) -> Pair:
    """Plan one cloud, and let the reference end it.

    :param kind: a class of spread, pack or relieve
    :param overrides: options of ``[kronos]`` with other values
    """
    from bench import optimum_reference as reference
    from bench import trial

    value: Callable[..., tuple[float, ...]]
    mode, problem, budget = cloud(kind, seed)
    if mode == 'spread':
        end = reference.spread(problem, budget, SECONDS)
        value, most = combined, reference.CEILING
    elif mode == 'pack':
        end = reference.pack(problem, budget, SECONDS)
        value, most = freed, reference.CEILING
    else:
        end = reference.relieve(problem, budget, SECONDS, *MARKS)
        value, most = relieved, MARKS[1]
    moves, seconds = trial.cycle(problem, mode, budget, MARKS, restraint=0, **overrides)
    other = end.moves if end is not None else []
    return Pair(value(problem, moves), value(problem, other),
                end is not None and end.is_proven,
                end is not None and reference.has_order(
                    problem, other, np.full(len(problem.policies), most)), seconds)


def cloud(kind: str, seed: int) -> tuple[str, Problem, int]:
    """Return (mode, problem, number of moves that a plan may have) of a cloud.

    :param kind: a class of spread, pack or relieve
    """
    from bench import optimum_classes as classes

    if kind in SPREAD:
        return 'spread', *classes.spreading(kind, seed)
    if kind in PACK:
        return 'pack', *classes.packing(kind, seed)
    return 'relieve', *classes.relieving(seed)


def combined(problem: Problem, moves: list[tuple[int, int]]) -> tuple[float]:
    """Return the combined imbalance after the moves, as a tuple of one."""
    return (_ended(problem, moves).combined(),)


def freed(problem: Problem, moves: list[tuple[int, int]]) -> tuple[int, float]:
    """Return (number of hosts that the moves free, cost of the moves: their GiB and 4 more for
    each)."""
    before, after = (_ended(problem, each).guests for each in ([], moves))
    return int(((before > 0) & (after == 0)).sum()), gib(problem, moves) + 4 * len(moves)


def relieved(problem: Problem, moves: list[tuple[int, int]]) -> tuple[int, int, float]:
    """Hot hosts at their targets, and at their marks, after the moves; GiB."""
    scores = _ended(problem, moves).scores
    high, target = MARKS
    hot = (problem.scores > high).any(axis=1)
    at_target, at_mark = ((scores[hot] <= mark + 1e-9).all(axis=1).sum() for mark in (target, high))
    return int(at_target), int(at_mark), gib(problem, moves)


def _ended(problem, moves):
    return State(Model(problem)).after(moves)


def gib(problem: Problem, moves: list[tuple[int, int]]) -> float:
    """Return the memory of the moved instances."""
    return sum(int(problem.memory_mb[vm]) for vm, _host in moves) / 1024


def _spreading(kinds, seeds):
    rows, failures = [], []
    for kind in kinds:
        pairs = [compared(kind, seed) for seed in seeds]
        same, others = ([pair for pair in pairs if pair.is_orderable is wanted]
                        for wanted in (True, False))
        ratios = [pair.ours[0] / pair.other[0] for pair in same] or [float('nan')]
        rest = [pair.ours[0] / pair.other[0] for pair in others] or [float('nan')]
        rows.append((kind, len(pairs), sum(pair.is_proven for pair in pairs), len(same),
                     statistics.median(ratios), max(ratios), max(rest), *_seconds(pairs)))
        if statistics.median(ratios) > 1.005 or max(ratios) > 1.05:
            failures.append(f'{kind}: {max(ratios):.3f} of the best imbalance')
    return report.Table('combined imbalance, against the best end', (
        'class', 'clouds', 'proven', 'with an order', 'ratio, median', 'worst',
        'worst without an order', 'CPU s, median', 'most'), rows), failures


def _packing(kinds, seeds):
    rows, failures = [], []
    for kind in kinds:
        pairs = [compared(kind, seed) for seed in seeds]
        same = [pair for pair in pairs if pair.is_orderable]
        fewer = sum(pair.ours[0] < pair.other[0] for pair in same)
        ratios = [pair.ours[1] / pair.other[1] for pair in same
                  if pair.ours[0] == pair.other[0] > 0] or [float('nan')]
        rows.append((kind, len(pairs), sum(pair.is_proven for pair in pairs), len(same), fewer,
                     sum(pair.ours[0] > pair.other[0] for pair in same),
                     statistics.median(ratios), max(ratios), *_seconds(pairs)))
        if fewer > 0.02 * len(same) or statistics.median(ratios) > 1.01 or max(ratios) > 1.10:
            failures.append(f'{kind}: {fewer} times fewer hosts, {max(ratios):.3f} of the cost')
    return report.Table('hosts freed, against the best end', (
        'class', 'clouds', 'proven', 'with an order', 'fewer hosts', 'more hosts', 'cost, median',
        'worst', 'CPU s, median', 'most'), rows), failures


def _relieving(kinds, seeds):
    rows, failures = [], []
    for kind in kinds:
        pairs = [compared(kind, seed) for seed in seeds]
        same = [pair for pair in pairs if pair.is_orderable]
        fewer = sum(pair.ours[:2] < pair.other[:2] for pair in same)
        ratios = [pair.ours[2] / pair.other[2] for pair in same
                  if pair.ours[:2] == pair.other[:2] and pair.other[2]] or [float('nan')]
        rows.append((kind, len(pairs), sum(pair.is_proven for pair in pairs), len(same), fewer,
                     statistics.median(ratios), max(ratios), *_seconds(pairs)))
        if fewer or statistics.median(ratios) > 1.0 or max(ratios) > 1.05:
            failures.append(f'{kind}: {fewer} times fewer hosts, {max(ratios):.3f} of the GiB')
    return report.Table('hot hosts relieved, against the best end', (
        'class', 'clouds', 'proven', 'with an order', 'fewer hosts', 'GiB, median', 'worst',
        'CPU s, median', 'most'), rows), failures


def _seconds(pairs):
    seconds = [pair.seconds for pair in pairs]
    return statistics.median(seconds), max(seconds)


def emptied(kind: str, seed: int) -> tuple[float, bool, int, bool, float]:
    """Empty hosts of a cloud and return (slack, whether all servers left, moves of other servers,
    whether a proof was reported that not all can leave, CPU seconds)."""
    from bench import optimum_classes

    found = leave(optimum_classes.emptying(kind, seed))
    slack = optimum_classes.SLACKS[seed % len(optimum_classes.SLACKS)]
    return slack, found.is_whole, found.others, found.is_proven, found.seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Leaving:
    """One cycle in which servers leave disabled hosts.

    is_whole : all of them leave
    others : moves of servers of other hosts
    is_proven : "cannot leave" was called proven of one
    seconds : of the processor
    """

    is_whole: bool
    others: int
    is_proven: bool
    seconds: float


def leave(problem: Problem) -> Leaving:
    """Empty the hosts that the problem drains, in one cycle with the default options."""
    from bench import installation
    from bench import operation

    cloud = installation.Cloud(problem)
    cloud.disabled = set(np.flatnonzero(problem.draining).tolist())
    case = operation.Installation(cloud, installation.policies(problem, 'spread', 1.0, 1000),
                                  installation.conf(evacuate_disabled_hosts=True))
    [found] = case.evaluate()
    disabled = {problem.hosts[host] for host in cloud.disabled}
    leaving = {vm for vm, host in zip(problem.vms, problem.vm_host.tolist(), strict=True)
               if host in cloud.disabled}
    return Leaving(is_whole=leaving <= {move.instance_uuid for move in found.moves},
                   others=sum(move.source not in disabled for move in found.moves),
                   is_proven=any(each.is_proven for each in found.unplaced),
                   seconds=case.cpu_seconds)


def _mapping(path, seeds):
    from bench import optimum_classes

    rows, failures = [], []
    for count in MAPPED:
        found = [leave(optimum_classes.mapped(path, count, seed)) for seed in seeds]
        whole = sum(each.is_whole for each in found)
        rows.append((count, len(found), whole, max(each.others for each in found),
                     sum(each.is_proven for each in found), *_seconds(found)))
        if whole < len(found):
            failures.append(f'{count} hosts: {whole} of {len(found)} times emptied')
    return report.Table('hosts of a published mapping emptied', (
        'hosts', 'times', 'emptied', 'others give way, most', '"cannot" is said',
        'CPU s, median', 'most'), rows), failures
