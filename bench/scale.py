"""Time and memory of the planners against the size of the cluster."""

import multiprocessing
import resource

import numpy as np

from bench import report

SIZES = (100, 316, 1000, 3162, 10000)
PER_HOST = 30
CYCLE = 'cycle of '
"""Before a mode: a whole cycle of an installation."""


def register(subparsers):
    parser = subparsers.add_parser('scale', help='time and peak memory of the planners')
    parser.add_argument('--planner', action='append', choices=('greedy', 'spread', 'pack'),
                        help='may be given several times (default: all)')
    parser.add_argument('--installed', action='store_true',
                        help='also whole cycles with the options of an installation')
    parser.add_argument('--hosts', type=int, nargs='*', default=list(SIZES))
    parser.add_argument('--budget', type=int, default=50)
    parser.add_argument('--time-limit', type=float, default=10.0)
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    rows, exponents = [], []
    cycles = [f'{CYCLE}{mode}' for mode in ('spread', 'pack')] if args.installed else []
    for planner in (*(args.planner or ('greedy', 'spread', 'pack')), *cycles):
        measured = [_apart(planner, hosts, args.budget, args.time_limit) for hosts in args.hosts]
        rows += measured
        if len(measured) > 1:
            sizes, seconds = np.log([row[1] for row in measured]), np.log(
                [max(row[4], 1e-4) for row in measured])
            exponents.append((planner, float(np.polyfit(sizes, seconds, 1)[0])))
    return report.Report(tables=(
        report.Table('time and memory', (
            'planner', 'hosts', 'vms', 'moves', 'CPU s', 'input MiB', 'peak above input, MiB',
            'peak / input'), rows),
        report.Table('growth', ('planner', 'exponent of time against hosts'), exponents)),
        notes=('Reading the input is left out. Peak memory is what the process grew by beside the '
               'input.',
               'Cycle of: plan_cycle with the default options. What it reads comes from memory, '
               'and is part of its seconds and of its peak.'))


def _apart(*arguments) -> tuple:
    """Measure a plan in a process of its own, so that its peak memory is that of one plan."""
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        return pool.apply(measure, arguments)


def measure(planner: str, hosts: int, budget: int, time_limit: float) -> tuple:
    import time

    from bench import inputs

    problem = _cluster(inputs, planner, hosts)
    size = sum(value.nbytes for value in vars(problem).values() if isinstance(value, np.ndarray))
    plan = (_cycle if planner.startswith(CYCLE) else _plan)(planner, problem, budget, time_limit)
    before, start = _peak(), time.process_time()
    moves = len(plan())
    seconds, grown = time.process_time() - start, _peak() - before
    return (planner, hosts, len(problem.vms), moves, seconds, size / 2**20, grown / 2**20,
            grown / size)


def _plan(planner, problem, budget, time_limit):
    """Return a function that makes the plan of a planner without the rest of a cycle."""
    import time

    from bench import trial
    from kronos_nova.model import State
    from kronos_nova.objects import plan
    from kronos_nova.planners import base
    from kronos_nova.planners.base import Limits

    chosen, state = base.load(planner, (plan.SPREAD, plan.PACK)), State(trial.model_of(problem))
    return lambda: chosen.plan(state, Limits(budget=budget, clock=time.monotonic,
                                             deadline=time.monotonic() + time_limit))


def _cycle(planner, problem, budget, time_limit):
    """Return a function that runs a cycle of an installation and returns its moves."""
    from bench import installation
    from bench import operation

    case = operation.Installation(
        installation.Cloud(problem),
        installation.policies(problem, planner.removeprefix(CYCLE), budget=budget),
        installation.conf(planning_time_limit=time_limit))
    return lambda: case.evaluate()[0].moves


def _cluster(inputs, planner: str, hosts: int):
    if planner.endswith('pack'):
        return inputs.random_cluster(1, hosts, hosts * PER_HOST, mode='pack')
    return inputs.random_cluster(1, hosts, hosts * PER_HOST)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
