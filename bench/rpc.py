"""The delay of nova-conductor's RPC by planning."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from bench import report

TARGET = 2.0
CLUSTER = 'c1000_10000'
MODES = ('threading', 'eventlet')


def register(subparsers):
    parser = subparsers.add_parser(
        'rpc', help='time of a conductor RPC, idle and while it plans 1,000 recorded hosts')
    parser.add_argument('--cycles', type=int, default=4, help='planning cycles per mode (4)')
    parser.add_argument('--pause', type=float, default=15.0,
                        help='idle seconds before each cycle and after the last (15)')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    rows, failures = [], []
    with tempfile.TemporaryDirectory(prefix='kronos-bench-') as folder:
        from bench import recording
        snapshot = pathlib.Path(folder) / 'snapshot'
        recording.write(CLUSTER, snapshot)
        for mode in MODES:
            idle, planning, cycles = _measure(mode, snapshot, args)
            quotient = _percentile(planning, 99) / _percentile(idle, 99)
            rows += [_row(mode, 'idle', idle, None), _row(mode, 'planning', planning, cycles)]
            if quotient > TARGET:
                failures.append(f'{mode}: p99 while planning is {quotient:.2f} times that of idle, '
                                f'target {TARGET:g}')
    columns = ('mode', 'phase', 'calls', 'median ms', 'p99 ms', 'max ms', 'cycles', 'cycle s',
               'moves')
    return report.Report(
        tables=(report.Table('conductor RPC object_class_action_versions', columns, rows),),
        failures=tuple(failures),
        notes=('One caller, 10 ms between calls, one conductor with two workers. A cycle reads and '
               'plans 1,000 hosts with 10,000 instances, in the process that the conductor starts.',
               ))


def _measure(mode, snapshot, args):
    """Return ([seconds of each call without a cycle], [seconds of each call during a cycle],
    [(begin, end, moves) of each cycle])."""
    from tests.e2e import box
    times = snapshot.parent / f'times-{mode}'
    times.touch()
    settings = box.Settings(computes=1, concurrency=mode, kronos=True)
    cloud = box.Cloud(settings)
    policies = snapshot / 'policies.yaml'
    cloud.configure(nova_conf={'kronos': {
        'automation': 'observe', 'aggregates': 'cluster', 'policies_file': policies,
        'evaluation_interval': 100_000}})
    [conductor] = cloud.nova.conductors
    conductor.process.run_instead([sys.executable, '-m', 'bench.conductor'])
    conductor.process.env.update(KRONOS_BENCH_SNAPSHOT=str(snapshot),
                                 KRONOS_BENCH_TIMES=str(times))
    with cloud:
        calls = _calls(cloud, times, args)
    cycles = [tuple(map(float, line.split())) for line in times.read_text().splitlines()]
    planning = [seconds for at, seconds in calls if _within(at, seconds, cycles)]
    idle = [seconds for at, seconds in calls if not _within(at, seconds, cycles)]
    return idle, planning, cycles


def _calls(cloud, times, args):
    """Call all the time, and let the conductor plan now and then."""
    # The first cycle, right after the start, is not measured.
    _wait_lines(times, 1)
    times.write_text('')
    probe = subprocess.Popen(
        [sys.executable, '-m', 'bench.rpc_probe', str(cloud.nova.compute_conf), 'compute1'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for cycle in range(1, args.cycles + 1):
        time.sleep(args.pause)
        cloud.database.query('kronos', "UPDATE cycles SET started_at = '2000-01-01'")
        _wait_lines(times, cycle)
    time.sleep(args.pause)
    output, _errors = probe.communicate(timeout=60)
    # What came before the connection was up says nothing.
    return json.loads(output)[20:]


def _wait_lines(path, count):
    from tests.e2e.box.processes import wait_for
    wait_for(lambda: len(path.read_text().splitlines()) >= count, 300,
             f'the conductor ended no cycle {count}', interval=0.5)


def _within(begun, seconds, cycles):
    return any(begin < begun + seconds and begun < end for begin, end, _moves in cycles)


def _percentile(values, percent):
    return statistics.quantiles(values, n=100)[percent - 1]


def _row(mode, phase, seconds, cycles):
    figures = [1000 * value for value in (
        statistics.median(seconds), _percentile(seconds, 99), max(seconds))]
    about = [None] * 3 if cycles is None else [
        len(cycles), statistics.mean(end - begin for begin, end, _moves in cycles),
        int(max(moves for _begin, _end, moves in cycles))]
    return (mode, phase, len(seconds), *figures, *about)
