"""Plans judged independently: the figures that Kronos reports of random clouds against a judge that
has no line in common with it."""

import collections
import dataclasses
import importlib.util
import pathlib
import tempfile
from typing import Any

from bench import report

MODES = 'spread', 'pack'
LOCKED, FULL = 'instance is locked, busy or not active', "'s capacity_threshold"
"""To empty a host that an operator disabled locked instances move as well; what is busy does not,
and is looked at here. They also go where a policy is above its threshold, if there is nowhere
else."""


def register(subparsers):
    parser = subparsers.add_parser(
        'judge', help='plans of random clouds, with aggregates that share hosts, before a judge '
                      'that is not part of Kronos')
    parser.add_argument('judge', type=pathlib.Path, metavar='FILE',
                        help='a Python module with judge(folder, report), which returns a '
                             'dictionary with a list of "errors"')
    parser.add_argument('--clouds', type=int, default=50, metavar='N')
    parser.add_argument('--seed', type=int, default=0)
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    judge = _load(args.judge)
    rows, failures, ratios = [], [], []
    for seed in range(args.seed, args.seed + args.clouds):
        for mode in MODES:
            for version in (1, 2):
                case = f'{seed} {mode} format {version}'
                moves, errors = _judged(judge, seed, mode, version)
                rows.append((case, moves, len(errors)))
                failures += [f'{case}: {error}' for error in errors]
        ratios.append((seed, *_with_groups_at_no_cost(seed)))
    worst = max((with_groups / max(without, 1e-9) for _seed, with_groups, without in ratios
                 if with_groups > without + 1e-9), default=1.0)
    if worst > 1.05:
        failures.append(f'with soft groups at no cost a cloud ends {worst:.3f} times as uneven as '
                        'without groups, target at most 1.05')
    return report.Report(tables=(
        report.Table('summary', ('figure', 'value'), [
            ('plans judged', len(rows)), ('moves', sum(row[1] for row in rows)),
            ('complaints', sum(row[2] for row in rows)),
            ('worst of soft groups at no cost / without groups', worst)]),
        report.Table('combined imbalance', ('seed', 'soft groups at no cost', 'without groups'),
                     ratios)), failures=tuple(failures))


def _load(path):
    spec: Any = importlib.util.spec_from_file_location('bench_judge', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.judge


def _judged(judge, seed, mode, version):
    """Return how many moves the plans have, and the judge's complaints."""
    from kronos_nova.record import render

    cloud = _cloud(seed, mode, version)
    with tempfile.TemporaryDirectory() as folder:
        found = render.as_object(render.Replayed(
            version, _replay(cloud, pathlib.Path(folder)), 'defaults', ''))
        _simplify(cloud, pathlib.Path(folder))
        errors = judge(folder, found)['errors']
    status = {row['uuid']: row for row in cloud.inventory['instances']}
    evacuations = {f'{aggregate["name"]} move {move["order"]}': status[move['instance_uuid']]
                   for aggregate in found['aggregates'] for move in aggregate['moves']
                   if move['phase'] == 'evacuate'}
    return (sum(len(aggregate['moves']) for aggregate in found['aggregates']),
            [error for error in errors if not _is_allowed(error, evacuations)])


def _is_allowed(error, evacuations):
    move, _, what = error.partition(': ')
    return move in evacuations and (
        what.endswith(FULL) or what == LOCKED and _is_only_locked(evacuations[move]))


def _is_only_locked(row):
    return row['locked'] and not row['task_state'] and row['status'] == 'ACTIVE'


def _with_groups_at_no_cost(seed):
    """Return the sum of the combined imbalances of all aggregates after the plans, first with soft
    groups that cost nothing, then without groups."""
    left = []
    for keep in (True, False):
        cloud = _cloud(seed, 'spread', 2)
        cloud.inventory['server_groups'] = [
            group for group in cloud.inventory['server_groups']
            if keep and group['policy'].startswith('soft-')]
        with tempfile.TemporaryDirectory() as folder:
            found = _replay(cloud, pathlib.Path(folder), soft_group_cost=0.0)
        left.append(sum(aggregate.combined_after for aggregate in found.aggregates))
    return left


def _cloud(seed, mode, version):
    """Return a random cloud in which every aggregate has a host that is up and enabled. Imbalances
    of other aggregates cannot be judged."""
    from tests.unit.record.clouds import Cloud

    cloud = Cloud(seed, mode)
    if version == 2:
        cloud.know_what_placement_holds()
    hosts = {host['name']: host for host in cloud.inventory['hosts']}
    inside = collections.Counter(name for each in cloud.inventory['aggregates']
                                 for name in each['hosts'])
    for names in (*(each['hosts'] for each in cloud.inventory['aggregates']),
                  [name for name in hosts if name not in inside]):
        hosts[names[-1]]['service'] = {'state': 'up', 'status': 'enabled', 'forced_down': False,
                                       'disabled_reason': None}
    for host in hosts.values():
        host['hypervisor_type'] = 'QEMU'
    return cloud


def _replay(cloud, folder, **chosen):
    from kronos_nova.cycle.options import EngineOptions
    from kronos_nova.record import replay

    options = EngineOptions(aggregates=None, include_unassigned_hosts=True,
                            evacuate_disabled_hosts=True, enforce_hard_affinity=True,
                            planning_time_limit=900.0)
    cloud.write(folder)
    recording, policies = replay.read(folder)
    return replay.replay(recording, policies, dataclasses.replace(options, **chosen),
                         replay.Durations(aggregate=0, instance=0, quarantine=0))


def _simplify(cloud, folder):
    """Write the policies as a judge without a parser of YAML can read them."""
    lines = ['policies:']
    for policy in cloud.policies()['policies']:
        rows = [f'{key}: {value}' for key, value in {**policy, 'host_label': 'host'}.items()]
        lines += [f'- {rows[0]}', *(f'  {row}' for row in rows[1:])]
    (folder / 'policies.yaml').write_text('\n'.join(lines) + '\n')
