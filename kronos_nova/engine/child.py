"""One cycle in a process of its own, for the service that started it.

Exit status: 0 the cycle was carried through, whatever it found; 3 it was not, for a reason that has
to do with no aggregate in particular, and the log says why; another: it ended in the middle of it.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import datetime
import os
import signal
import socket
import sys
from collections.abc import Callable
from collections.abc import Iterable

from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import timeutils

from kronos_nova import exception
from kronos_nova.cooldown.memory import PastMove
from kronos_nova.db import drains
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import memory
from kronos_nova.db import names
from kronos_nova.db import switches
from kronos_nova.db import worker
from kronos_nova.engine import cycle
from kronos_nova.engine import options
from kronos_nova.inventory.base import InventorySource
from kronos_nova.metrics import prometheus
from kronos_nova.objects import snapshot
from kronos_nova.objects.dry_run import DryRun
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.policies import loader

LOG = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1

# Exit statuses. An error that nobody foresaw, or a signal, gives another one.
PLANNED, NOT_PLANNED = 0, 3

OOM_SCORE = 500
"""Of 1000: where memory runs out, the kernel takes this process before any that serves requests."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What is read of Nova; see :class:`kronos_nova.engine.cycle.CyclePorts`."""

    inventory: InventorySource
    history: Callable[[datetime.datetime], Iterable[PastMove]] = lambda since: ()
    dry_run: DryRun = not_asked


def parse(prog, argv):
    """Arguments as :class:`kronos_nova.engine.cycle_scheduler.CycleScheduler` gives them:
    ``scopes``, and the ``arguments`` that lead to the configuration."""
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument('--scopes', nargs='+', required=True)
    parser.add_argument('arguments', nargs='*')
    return parser.parse_args(argv)


def become():
    """Be a child that ends with its parent.

    :returns: a callable that tells whether the parent still lives
    """
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    with contextlib.suppress(OSError), open('/proc/self/oom_score_adj', 'w') as file:
        file.write(str(OOM_SCORE))
    if os.getppid() != parent:
        sys.exit(1)
    return lambda: os.getppid() == parent


def run(conf, make_sources, scopes, may_write):
    """Evaluate some of the aggregates in scope.

    :param make_sources: gives the Sources
    :returns: the exit status
    """
    try:
        database = db_engine.Database(db_engine.control_engine(conf))
        make_cycle(conf, database, make_sources(), scopes, may_write).run()
    except exception.KronosException as e:
        LOG.error('Nothing was planned for %s: %s', ', '.join(scopes), e)
        return NOT_PLANNED
    except db_exc.DBError as e:
        LOG.error('Nothing was planned for %s: a database does not answer: %s', ', '.join(scopes),
                  e)
        return NOT_PLANNED
    return PLANNED


def make_cycle(conf, database, sources, scopes, may_write):
    """
    :raises ConfigurationError: options or policies are wrong
    """
    ports = cycle.CyclePorts(
        inventory=sources.inventory, history=sources.history, dry_run=sources.dry_run,
        metrics=prometheus.for_cycle(conf), switches=switches.SwitchBoard(database),
        journal=journal.Journal(database, worker.name(socket.gethostname())),
        cooldowns=memory.Cooldowns(database), cycles=memory.Cycles(database),
        scores=memory.Scores(database), drains=drains.Drains(database),
        names=names.ServerNames(database))
    chosen = dataclasses.replace(
        options.from_conf(conf), include_unassigned_hosts=snapshot.UNASSIGNED in scopes,
        aggregates=tuple(scope for scope in scopes if scope != snapshot.UNASSIGNED))
    return cycle.Cycle(ports, loader.load(conf.kronos.policies_file), chosen,
                       cycle.CycleRules.from_conf(conf), timeutils.utcnow, may_write)
