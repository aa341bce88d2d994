"""Balancing plans that are cut short: is the cloud worse than before?"""

import collections
import dataclasses
import itertools
import statistics
from collections.abc import Sequence

from bench import report

WORSE, OUTSIDE, GROUP = 0.10, 0.02, 3
"""Goals: part of all prefixes that is worse than the start, part that is worse and does not end
within a group, and the median number of moves of a group."""
ROUNDING = 1e-9


def register(subparsers):
    parser = subparsers.add_parser(
        'prefixes', help='how often a balancing plan that is cut short is worse than none')
    parser.add_argument('--small', type=int, default=40, metavar='N',
                        help='random clusters (default 40)')
    parser.add_argument('--seed', type=int, default=0, help='of the first one (default 0)')
    parser.add_argument('--budgets', type=int, nargs='*', default=[10, 50, 200],
                        help='of the clusters of data/clusters')
    parser.add_argument('--largest', type=int, default=1000, metavar='HOSTS',
                        help='leave bigger clusters out')
    parser.add_argument('--restraints', type=float, nargs='*', default=[1.0, 0.0])
    parser.set_defaults(run=run)


@dataclasses.dataclass(frozen=True, slots=True)
class Prefixes:
    """The prefixes of one plan or of several.

    :ivar count: of all
    :ivar worse: after which the combined imbalance is higher than before the plan
    :ivar outside: of those, the ones that do not end within a group
    :ivar most: by how much the combined imbalance is highest above that before the plan
    :ivar groups: number of moves of each group
    """

    count: int = 0
    worse: int = 0
    outside: int = 0
    most: float = 0.0
    groups: tuple[int, ...] = ()

    def __add__(self, other: 'Prefixes') -> 'Prefixes':
        return Prefixes(self.count + other.count, self.worse + other.worse,
                        self.outside + other.outside, max(self.most, other.most),
                        self.groups + other.groups)


def prefixes(combined: Sequence[float], groups: Sequence[int | None]) -> Prefixes:
    """Judge the prefixes of a plan.

    :param combined: combined imbalance before the plan and after each move
    :param groups: of each move the number of its group, or None
    """
    within = [here is not None and here == after
              for here, after in zip(groups, (*groups, None)[1:], strict=True)]
    worse = [value > combined[0] + ROUNDING for value in combined[1:]]
    return Prefixes(
        count=len(worse), worse=sum(worse),
        outside=sum(is_worse and not inside
                    for is_worse, inside in zip(worse, within, strict=True)),
        most=max(0.0, *(value - combined[0] for value in combined[1:])) if worse else 0.0,
        groups=tuple(collections.Counter(
            number for number in groups if number is not None).values()))


def run(args) -> report.Report:
    from bench import inputs
    from bench import quality

    rows, total = [], dict.fromkeys(args.restraints, Prefixes())
    cases = [(f'random {args.seed + n}', *quality.small_cluster(args.seed + n))
             for n in range(args.small)]
    cases += [(name, inputs.cluster(name), budget)
              for name, budget in itertools.product(inputs.cluster_names(), args.budgets)
              if len(inputs.cluster(name).hosts) <= args.largest]
    for (name, problem, budget), restraint in itertools.product(cases, args.restraints):
        found = _of_plan(problem, budget, restraint)
        total[restraint] += found
        rows.append((name, budget, restraint, *_figures(found)))
    return report.Report(
        tables=(report.Table('all plans', ('restraint', *COLUMNS),
                             [(restraint, *_figures(found)) for restraint, found in total.items()]),
                report.Table('plans', ('cluster', 'budget', 'restraint', *COLUMNS), rows)),
        failures=tuple(failure for restraint, found in total.items()
                       for failure in _misses(restraint, found)),
        notes=('Worse: the combined imbalance after the prefix is above that before the plan.',))


COLUMNS = ('prefixes', 'worse', 'worse, part', 'worse outside groups', 'outside, part',
           'most above start', 'groups', 'median group', 'largest group')


def _figures(found):
    return (found.count, found.worse, found.worse / found.count if found.count else None,
            found.outside, found.outside / found.count if found.count else None, found.most,
            len(found.groups), statistics.median(found.groups) if found.groups else None,
            max(found.groups, default=None))


def _misses(restraint, found):
    for name, value, most in (
            ('part of worse prefixes', found.worse / max(found.count, 1), WORSE),
            ('part of worse prefixes outside groups', found.outside / max(found.count, 1), OUTSIDE),
            ('median group', statistics.median(found.groups) if found.groups else 0, GROUP)):
        if value > most:
            yield f'restraint {restraint:g}: {name} is {value:.3f}, target at most {most}'


def _of_plan(problem, budget, restraint) -> Prefixes:
    from bench import installation
    from bench import operation
    from kronos_nova.model import Model
    from kronos_nova.model import State

    case = operation.Installation(
        installation.Cloud(problem),
        installation.policies(problem, 'spread', float(problem.thresholds[0]), budget),
        installation.conf(restraint=restraint))
    [found] = case.evaluate()
    vms, hosts = ({name: n for n, name in enumerate(names)}
                  for names in (problem.vms, problem.hosts))
    state = State(Model(problem))
    combined = [state.combined()]
    for move in found.moves:
        state.move(vms[move.instance_uuid], hosts[move.destination])
        combined.append(state.combined())
    return prefixes(combined, [getattr(move, 'group', None) for move in found.moves])
