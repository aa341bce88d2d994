"""One cycle in a process of its own, started by a conductor.

Exit status: 0 the cycle was carried through, whatever it found; 1 it was not, and the log says why.
"""

from nova import monkey_patch  # isort: skip

monkey_patch.patch(backend='threading')  # as Nova's own binaries, before anything else

# ruff: noqa: E402
import argparse
import ctypes
import dataclasses
import os
import signal
import sys

import nova.conf
from nova import config
from nova import objects
from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import timeutils

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import memory
from kronos_nova.engine import cycle
from kronos_nova.engine import options
from kronos_nova.metrics import prometheus
from kronos_nova.objects import snapshot
from kronos_nova.plugin import dry_run
from kronos_nova.plugin import inventory
from kronos_nova.policies import loader

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

NICENESS = 10
"""A cycle may take its time; the conductor beside it may not."""

PR_SET_PDEATHSIG = 1


def die_with(parent):
    """Have the kernel end this process when the conductor that started it dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(1)


def make_cycle(conf, database, scopes, may_write):
    """A cycle over the in-process inventory for some of the aggregates in scope.

    :raises ConfigurationError: options or policies are wrong
    """
    ports = cycle.Ports(
        inventory=inventory.InProcessInventory(), metrics=prometheus.from_conf(conf),
        journal=journal.Journal(database, f'{conf.host}:{os.getpid()}'),
        cooldowns=memory.Cooldowns(database), cycles=memory.Cycles(database),
        scores=memory.Scores(database), refuses=dry_run.SchedulerDryRun())
    chosen = dataclasses.replace(
        options.from_conf(conf), include_unassigned_hosts=snapshot.UNASSIGNED in scopes,
        aggregates=tuple(scope for scope in scopes if scope != snapshot.UNASSIGNED))
    return cycle.Cycle(ports, loader.load(conf.kronos.policies_file), chosen,
                       cycle.Rules.from_conf(conf), timeutils.utcnow, may_write)


def main(argv=None):
    parser = argparse.ArgumentParser(prog=__spec__.name)
    parser.add_argument('--scopes', nargs='+', required=True)
    parser.add_argument('arguments', nargs='*')
    args = parser.parse_args(argv)
    parent = os.getppid()
    die_with(parent)
    os.nice(NICENESS)
    # RPC too: the addresses of cells are made from the options of its transport.
    config.parse_args(['nova-conductor', *args.arguments])
    kronos_conf.register_opts(CONF)
    logging.setup(CONF, 'nova')
    objects.register_all()
    try:
        database = db_engine.Database(db_engine.control_engine(CONF))
        make_cycle(CONF, database, args.scopes, lambda: os.getppid() == parent).run()
    except exception.KronosException as e:
        LOG.error('Nothing was planned for %s: %s', ', '.join(args.scopes), e)
        return 1
    except db_exc.DBError as e:
        LOG.error('Nothing was planned for %s: a database does not answer: %s',
                  ', '.join(args.scopes), e)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
