"""The effect of the planners' constants: plans with a quarter and four times a constant, against
plans with its own value.

Each variant is planned by a process of its own, in which the module of the constant is compiled
with the other value. So a value also counts where it was copied: in a default argument, or in
another module.
"""

import ast
import dataclasses
import importlib.machinery
import importlib.util
import json
import math
import os
import pkgutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench import report

FACTORS = 0.25, 4.0
CLASSES = 'S3', 'S4', 'S5', 'C', 'L', 'P3', 'P5', 'P6', 'B', 'R', 'E1', 'E2', 'E3'
CLUSTERS = 'c32_320', 'c100_1000', 'hetero100_1000', 'tight100_1000', 'cpuheavy32_320'
"""The clouds of the classes C and L, one for each seed."""
BUDGET = 50
"""Number of moves that a plan of class C may have."""
THRESHOLDS, BUDGETS = (0.05, 0.1, 0.25), (10, 50)
"""Thresholds of class L, and numbers of moves that a plan may have, one for each seed."""


def register(subparsers):
    parser = subparsers.add_parser(
        'constants', help='plans with a quarter of each constant of a planner, and with four '
                          'times it')
    parser.add_argument('modules', nargs='*', metavar='MODULE',
                        help='of kronos_nova.planners, such as "level" (default all)')
    parser.add_argument('--classes', nargs='+', default=list(CLASSES), choices=CLASSES,
                        help='classes of clouds, as in "bench optimum"; C, clusters of up to 100 '
                             'hosts without restraint; L, the same with the restraint of an '
                             'installation; B, instances of BalCon (default all)')
    parser.add_argument('--clouds', type=int, default=4, metavar='N',
                        help='clouds of each class (default 4)')
    parser.add_argument('--seed', type=int, default=0, help='of the first cloud (default 0)')
    parser.set_defaults(run=run)


@dataclasses.dataclass(frozen=True, slots=True)
class Constant:
    """A numeric constant of a module. ``value`` is a number, or nested tuples of numbers."""

    module: str
    name: str
    value: object

    def scaled(self, factor: float) -> object:
        return _scaled(self.value, factor)


def run(args) -> report.Report:
    names = args.modules or sorted(info.name for info in pkgutil.iter_modules(_planners()))
    found = [each for name in names for each in constants(f'kronos_nova.planners.{name}')]
    usual = _planned(args, None, None)
    rows, without_effect = [], []
    for constant in found:
        rates = []
        for factor in FACTORS:
            value = constant.scaled(factor)
            if value == constant.value:
                continue
            rates.append(_rate(usual, _planned(args, constant, value)))
            rows.append((constant.module.rpartition('.')[2], constant.name, repr(constant.value),
                         repr(value), *rates[-1]))
            print(*rows[-1], flush=True)
        if rates and not any(rate[0] for rate in rates):
            without_effect.append(f'{constant.module}.{constant.name}')
    return report.Report(tables=(report.Table('plans with another value', (
        'module', 'constant', 'value', 'instead', 'other plans', 'better', 'worse',
        'value, mean', 'CPU s, mean'), rows),), notes=(
            f'{len(usual)} clouds. "value, mean" is the geometric mean of the ratios of what is '
            'minimised first and differs: combined imbalance, hosts in use, hot hosts, servers '
            'left behind, GiB.',
            'No plan depends on: ' + (', '.join(without_effect) or 'none')))


def _planners():
    return _spec('kronos_nova.planners').submodule_search_locations


def _spec(module: str) -> Any:
    return importlib.util.find_spec(module)


def constants(module: str) -> list[Constant]:
    """Return the numeric constants of a module, in their order."""
    with open(_spec(module).origin) as source:
        tree = ast.parse(source.read())
    return [Constant(module, name, value) for name, node in _named(tree.body)
            if node.value is not None and (value := _number(node.value)) is not None]


def _named(body: list[ast.stmt]) -> Iterator[tuple[str, ast.Assign | ast.AnnAssign | ast.keyword]]:
    """Yield (name, node with the value) of each constant, of each argument of an object that is a
    constant, such as "BUDGET.nodes", and of each default value of a dataclass, such as
    "Tuning.effort"."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from ((f'{node.name}.{field.target.id}', field) for field in node.body
                        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                        and field.value is not None)
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name) or not target.id.isupper():
            continue
        yield target.id, node
        if isinstance(node.value, ast.Call):
            yield from ((f'{target.id}.{each.arg}', each) for each in node.value.keywords)


def _number(node: ast.expr) -> object:
    """Return the number, or nested tuple of numbers, of an expression; None for others."""
    if any(isinstance(part, (ast.Name, ast.Call, ast.Dict)) for part in ast.walk(node)):
        return None
    value = eval(compile(ast.Expression(node), 'constant', 'eval'), {})  # noqa: S307
    return value if _is_numeric(value) else None


def _is_numeric(value) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_numeric, value))
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _scaled(value, factor):
    if isinstance(value, tuple):
        return tuple(_scaled(each, factor) for each in value)
    return type(value)(math.ceil(value * factor)) if isinstance(value, int) else value * factor


def _planned(args, constant: Constant | None, value) -> list[list[float]]:
    """Return [figures that are minimised, most important first; CPU seconds last] of each cloud.

    :param constant: constant with another value; None to plan as installed
    """
    command = [sys.executable, '-m', 'bench.constants', json.dumps({
        'module': constant and constant.module, 'name': constant and constant.name,
        'value': repr(value), 'classes': args.classes,
        'seeds': list(range(args.seed, args.seed + args.clouds))})]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True,
                          env=os.environ | {'PYTHONHASHSEED': '0'})
    return json.loads(done.stdout)


def _rate(usual: list[list[float]], other: list[list[float]]) -> tuple:
    """Return (plans that differ, better, worse, geometric mean of the values' ratios, ratio of the
    CPU seconds)."""
    better = worse = 0
    ratios = []
    for ours, theirs in zip(usual, other, strict=True):
        differs = next(((was, now) for was, now in zip(ours[:-1], theirs[:-1], strict=True)
                        if was != now), None)
        if differs is None:
            ratios.append(1.0)
            continue
        was, now = differs
        better, worse = better + (now < was), worse + (now > was)
        ratios.append((now + 1e-3) / (was + 1e-3))
    seconds = [sum(each[-1] for each in figures) for figures in (other, usual)]
    return better + worse, better, worse, statistics.geometric_mean(ratios), seconds[0] / seconds[1]


class ChangedLoader(importlib.machinery.SourceFileLoader):
    """A loader of a module in which a constant has another value."""

    def __init__(self, fullname: str, path: str, name: str, value: str):
        super().__init__(fullname, path)
        self.constant, self.value = name, value

    def get_code(self, fullname):
        tree = ast.parse(self.get_source(fullname) or '')
        node: Any = dict(_named(tree.body))[self.constant]
        node.value = ast.copy_location(ast.parse(self.value, mode='eval').body, node.value)
        return compile(ast.fix_missing_locations(tree), self.path, 'exec')


class Changing(importlib.machinery.PathFinder):
    """A finder of one module, which it loads with another value of a constant."""

    def __init__(self, module: str, name: str, value: str):
        self.module, self.name, self.value = module, name, value

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[override]
        if fullname != self.module:
            return None
        spec: Any = super().find_spec(fullname, path, target)
        spec.loader = ChangedLoader(fullname, spec.origin, self.name, self.value)
        return spec


def plan_all(classes: list[str], seeds: list[int]) -> list[list[float]]:
    """Plan the clouds of classes, and return the figures of each, CPU seconds last."""
    return [_plan(kind, seed) for kind in classes for seed in seeds]


def _plan(kind: str, seed: int) -> list[float]:
    from bench import inputs
    from bench import optimum
    from bench import optimum_classes
    from bench import trial

    if kind in optimum.CLASSES:
        found = optimum.leave(optimum_classes.emptying(kind, seed))
        return [not found.is_whole, found.others, found.seconds]
    if kind == 'C':
        mode, budget = 'spread', BUDGET
        problem = inputs.cluster(CLUSTERS[seed % len(CLUSTERS)])
    elif kind == 'L':
        return _leveled(inputs.cluster(CLUSTERS[seed % len(CLUSTERS)]),
                        THRESHOLDS[seed % len(THRESHOLDS)], BUDGETS[seed % len(BUDGETS)])
    elif kind == 'B':
        names = inputs.balcon_names()
        mode, problem = 'pack', inputs.balcon(names[seed % len(names)])
        budget = 2 * len(problem.vms)
    else:
        mode, problem, budget = optimum.cloud(kind, seed)
    moves, seconds = trial.cycle(problem, mode, budget, optimum.MARKS, restraint=0)
    if mode == 'spread':
        return [*optimum.combined(problem, moves), optimum.gib(problem, moves), seconds]
    if mode == 'pack':
        hosts, cost = optimum.freed(problem, moves)
        return [len(problem.hosts) - hosts, cost, seconds]
    at_target, at_mark, gib = optimum.relieved(problem, moves)
    return [len(problem.hosts) - at_target, len(problem.hosts) - at_mark, gib, seconds]


def _leveled(problem, threshold: float, budget: int) -> list[float]:
    """Plan as an installation does, and return [excess that is left, GiB, CPU seconds]."""
    import numpy as np

    from bench import optimum
    from bench import trial
    from kronos_nova.model import State
    from kronos_nova.planners import level

    problem = dataclasses.replace(
        problem, thresholds=np.full(len(problem.policies), threshold))
    moves, seconds = trial.cycle(problem, 'spread', budget)
    state = State(trial.model_of(problem))
    left = level.excess(state.after(moves), level.band_of(state))
    return [round(left, 6), optimum.gib(problem, moves), seconds]


if __name__ == '__main__':
    task = json.loads(sys.argv[1])
    if task['module']:
        sys.meta_path.insert(0, Changing(task['module'], task['name'], task['value']))
    print(json.dumps(plan_all(task['classes'], task['seeds'])))
