"""The planning process, which runs cycles for the service that started it.

Each line of the standard input is an order: names of aggregates, as JSON. The answer to an order
has two words. The first word is 0 if the cycle was completed, with or without a plan. The first
word is 3 if a general problem prevented the cycle; the problem is in the log. The second word is
``stays`` if the process accepts another order, and ``leaves`` if it ends. If the process ends
without an answer, the cycle was not completed.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import datetime
import functools
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.cycle import evaluation
from kronos_nova.cycle import options
from kronos_nova.cycle.forecast_columns import ForecastCache
from kronos_nova.cycle.losses import LossJudge
from kronos_nova.cycle.ports import MakeRequester
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import worker
from kronos_nova.engine import gc_tuning
from kronos_nova.inventory.base import InventorySource
from kronos_nova.metrics import prometheus
from kronos_nova.objects import snapshot
from kronos_nova.objects.dry_run import DryRun
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.placement.room_allocations import RoomAllocations
from kronos_nova.policies import loader

LOG = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
"""Number of the ``prctl`` option with which a process gets a signal when its parent process ends
(no unit). Fixed by Linux."""

PLANNED, NOT_PLANNED = 0, 3
"""Status codes with which a planning process answers an order of its parent process. ``PLANNED``:
the cycle was completed. ``NOT_PLANNED``: a problem prevented the cycle, and the log has the
problem. Fixed by the protocol between the two processes."""
STAYS, LEAVES = 'stays', 'leaves'

OOM_SCORE = 500
"""Points that are added to the score of the planning process for the out-of-memory killer of Linux.
The killer ends the process with the highest score. Linux permits from -1000 to 1000 points. Raised,
Linux may kill this process although other processes use more memory; lowered, Linux may kill a
process that serves requests instead. Not measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Sources of data from Nova and placement for a planning process. The fields have the same
    meaning as in :class:`kronos_nova.cycle.evaluation.CyclePorts`."""

    inventory: InventorySource
    history: Callable[[datetime.datetime], Iterable[PastMove]] = lambda since: ()
    dry_run: DryRun = not_asked
    requesters: tuple[MakeRequester, ...] = ()
    room_allocations: RoomAllocations | None = None


Dependencies = tuple[db_engine.Database, Sources, ForecastCache, LossJudge]
"""The objects that a planning process makes once and uses for all orders."""


def parse(prog: str, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line that :class:`kronos_nova.engine.planning_client.PlanningClient` makes
    for a planning process. In the result, ``answers`` is the file descriptor to which answers are
    written. ``arguments`` are the arguments that name the configuration files."""
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument('--answers', type=int, required=True)
    parser.add_argument('arguments', nargs='*')
    return parser.parse_args(argv)


def end_with_parent() -> Callable[[], bool]:
    """Make this process end when its parent process ends. Also make the process ignore SIGHUP, and
    add :data:`OOM_SCORE` to its score for the out-of-memory killer.

    :returns: a callable that returns whether the parent process is still alive
    """
    parent = os.getppid()
    # SIGHUP is meant for the parent, which reads its configuration again.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    with contextlib.suppress(OSError), open('/proc/self/oom_score_adj', 'w') as file:
        file.write(str(OOM_SCORE))
    if os.getppid() != parent:
        sys.exit(1)
    return lambda: os.getppid() == parent


def serve(conf: cfg.ConfigOpts, make_sources: Callable[[], Sources], answers: int,
          may_write: Callable[[], bool]) -> int:
    """Carry out orders until the parent closes the standard input, the process uses too much
    memory, or the process has run many cycles.

    :param make_sources: function that makes the Sources. It is called once, and the Sources are
        used for all orders
    :param answers: file descriptor to which answers are written
    :param may_write: callable that returns whether cycles may still write to the control database
    :returns: the exit status
    """
    @functools.cache
    def dependencies() -> Dependencies:
        made = db_engine.control_database(conf), make_sources(), ForecastCache(), LossJudge()
        gc_tuning.exempt_loaded_objects()
        return made

    gc_tuning.collect_rarely()
    for number, order in enumerate(sys.stdin, 1):
        status = run(conf, dependencies, json.loads(order), may_write)
        _give_memory_back()
        leaves = (number >= conf.kronos.planner_max_cycles
                  or _resident_mb() > conf.kronos.planner_max_memory)
        try:
            os.write(answers, f'{status} {LEAVES if leaves else STAYS}\n'.encode())
        except BrokenPipeError:  # the parent was stopped during the cycle
            break
        if leaves:
            break
    return 0


def _give_memory_back() -> None:
    """Give the free memory of this process back to the kernel, so that the process does not grow
    with each cycle."""
    gc.collect()
    with contextlib.suppress(AttributeError):  # of glibc alone
        ctypes.CDLL(None).malloc_trim(0)


def _resident_mb() -> int:
    """Return the resident memory of this process in MiB."""
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') >> 20


def run(conf: cfg.ConfigOpts, dependencies: Callable[[], Dependencies], scopes: Sequence[str],
        may_write: Callable[[], bool]) -> int:
    """Evaluate some aggregates in one cycle, and log a problem that prevents the cycle.

    :param dependencies: function that returns the Database, the Sources, the ForecastCache and the
        LossJudge
    :returns: PLANNED or NOT_PLANNED
    """
    try:
        make_cycle(conf, *dependencies(), scopes, may_write).run()
    except (exception.KronosException, cfg.Error) as e:  # oslo.config checks values late
        LOG.error('Aggregates %s could not be planned: %s', ', '.join(scopes), e)
        return NOT_PLANNED
    except db_exc.DBError as e:
        LOG.error('Aggregates %s could not be planned, because a database does not answer: %s',
                  ', '.join(scopes), db_engine.first_line(e))
        return NOT_PLANNED
    return PLANNED


def make_cycle(conf: cfg.ConfigOpts, database: db_engine.Database, sources: Sources,
               forecast_cache: ForecastCache, loss_judge: LossJudge, scopes: Sequence[str],
               may_write: Callable[[], bool]) -> evaluation.Cycle:
    """Return the Cycle that evaluates some aggregates.

    :raises ConfigurationError: options or policies are wrong
    """
    cycle_ports = evaluation.CyclePorts.over(
        database, journal.Journal(database, worker.name(socket.gethostname())),
        inventory=sources.inventory, history=sources.history, dry_run=sources.dry_run,
        requesters=sources.requesters, room_allocations=sources.room_allocations,
        metrics=prometheus.for_cycle(conf), forecast_cache=forecast_cache, loss_judge=loss_judge)
    chosen = dataclasses.replace(
        options.from_conf(conf), include_unassigned_hosts=snapshot.UNASSIGNED in scopes,
        aggregates=tuple(scope for scope in scopes if scope != snapshot.UNASSIGNED))
    return evaluation.Cycle(cycle_ports, loader.load(conf.kronos.policies_file), chosen,
                            evaluation.CycleRules.from_conf(conf), database.utcnow, may_write)
