"""The planning process that a conductor starts, with a clock at its pieces.

A line of JSON for every cycle is added to ``KRONOS_BENCH_CYCLES``: seconds of the processor since
the process began, the most memory that it had, and what each piece took.
"""

# First, as in the conductor's own child: it chooses the concurrency mode.
from kronos_nova.plugin import cycle as child_process  # isort: skip

import functools
import json
import os
import pathlib
import sys
import time

from kronos_nova.cycle import evaluation
from kronos_nova.cycle import observe
from kronos_nova.cycle import persist
from kronos_nova.cycle import solve
from kronos_nova.cycle import steps
from kronos_nova.metrics import prometheus
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.plugin import dry_run
from kronos_nova.plugin import inventory

_pieces = {}


def clocked(owner, name, piece):
    """Let ``owner.name`` add what it takes to ``piece``."""
    real = getattr(owner, name)

    @functools.wraps(real)
    def call(*args, **kwargs):
        cpu, wall = time.process_time(), time.monotonic()
        try:
            return real(*args, **kwargs)
        finally:
            spent = _pieces.setdefault(piece, [0.0, 0.0])
            spent[0] += time.process_time() - cpu
            spent[1] += time.monotonic() - wall
    setattr(owner, name, call)


def recorded(real):
    """Return a function that runs a cycle like ``real`` and appends its CPU seconds, memory and
    outcomes to a file."""
    @functools.wraps(real)
    def run(self):
        _pieces.clear()
        begun = time.monotonic()
        outcomes: list[str] = []
        try:
            report = real(self)
            outcomes = sorted({aggregate.outcome for aggregate in report.aggregates})
            return report
        finally:
            line = {'pid': os.getpid(), 'cpu': time.process_time(),
                    'wall': time.monotonic() - begun, 'peak': _peak(), 'pieces': _pieces,
                    'outcomes': outcomes}
            with pathlib.Path(os.environ['KRONOS_BENCH_CYCLES']).open('a') as file:
                file.write(json.dumps(line) + '\n')
    return run


def _peak():
    """Return the peak memory of this process in MiB since the last call, or since its start."""
    status = pathlib.Path('/proc/self/status').read_text()
    peak = int(status.partition('VmHWM:')[2].split()[0]) / 1024
    pathlib.Path('/proc/self/clear_refs').write_text('5')
    return peak


def main():
    clocked(inventory.InProcessInventory, 'read', 'reading the cloud')
    clocked(prometheus.PrometheusClient, 'query', 'reading metrics')
    clocked(steps, 'plan_cycle', 'plan_cycle: all of it')
    clocked(solve, 'run', 'planners')
    clocked(persist.ResultWriter, '_write_down', 'writing down')
    clocked(observe, 'planning_history', 'remembering')
    # nova-scheduler's work, and there is none here.
    dry_run.SchedulerDryRun = lambda: not_asked  # type: ignore
    evaluation.Cycle.run = recorded(evaluation.Cycle.run)  # type: ignore[method-assign]
    return child_process.main()


if __name__ == '__main__':
    sys.exit(main())
