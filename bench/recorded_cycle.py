"""A cycle on a snapshot: the process that a conductor of :mod:`bench.conductor` starts.

``KRONOS_BENCH_SNAPSHOT`` names the folder; a line with when the process was made and when the
cycle ended is added to ``KRONOS_BENCH_TIMES``. All that a live cycle loads is loaded, Nova with it.
"""

# First, as in the conductor's own child: it chooses the concurrency mode.
import kronos_nova.plugin.cycle  # noqa: F401  # isort: skip

import dataclasses
import os
import pathlib
import sys
import time

import psutil
from nova import objects

from bench import installation
from bench import recording
from kronos_nova.cycle import options
from kronos_nova.engine import planning_worker
from kronos_nova.record import replay

FOREVER = replay.Durations(aggregate=0, instance=0, quarantine=0)


def main():
    begun = psutil.Process().create_time()
    args = planning_worker.parse(__spec__.name, None)
    planning_worker.end_with_parent()
    objects.register_all()
    sys.stdin.readline()
    moves = _cycle()
    with pathlib.Path(os.environ['KRONOS_BENCH_TIMES']).open('a') as times:
        times.write(f'{begun} {time.time()} {moves}\n')
    # Each cycle is to be a whole one, with the loading of Nova in it.
    os.write(args.answers, f'{planning_worker.PLANNED} {planning_worker.LEAVES}\n'.encode())


def _cycle():
    """Return how many moves were planned."""
    chosen = dataclasses.replace(options.from_conf(installation.conf()),
                                 aggregates=(recording.AGGREGATE,))
    snapshot, policies = replay.read(os.environ['KRONOS_BENCH_SNAPSHOT'])
    report = replay.replay(snapshot, policies, chosen, FOREVER)
    return sum(len(aggregate.moves) for aggregate in report.aggregates)


if __name__ == '__main__':
    main()
