"""``kronos-engine``: the daemon that plans outside Nova, and sends planned moves to executors."""

import sys

from oslo_config import cfg

from kronos_nova import exception
from kronos_nova.cmd import daemon
from kronos_nova.cycle import aggregates
from kronos_nova.db import cycles
from kronos_nova.db import retention
from kronos_nova.db import switches
from kronos_nova.db.journal.queue import ENGINE
from kronos_nova.engine import cycle_scheduler
from kronos_nova.engine import guard
from kronos_nova.engine import locks
from kronos_nova.engine import planning_client
from kronos_nova.executor import service
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.metrics import prometheus
from kronos_nova.policies import loader

NAME = 'kronos-engine'
CHILD = 'kronos_nova.cmd.cycle'


class Engine:
    """The parts of kronos-engine. They plan in child processes, and send planned moves to
    executors."""

    def __init__(self, conf: cfg.ConfigOpts, arguments: list[str]):
        context = daemon.make_context(conf, aggregates.aggregates_in_scope(conf))
        journal = self._journal = context.executor_ports.journal
        self._guard = guard.Guard()
        self._planning = cycle_scheduler.CycleScheduler(
            conf, cycle_scheduler.SchedulerPorts(
                locks=locks.AggregateLocks(conf.kronos.coordination_url, conf.state_path,
                                           journal.worker),
                switches=switches.SwitchBoard(journal.database),
                cycles=cycles.Cycles(journal.database), journal=journal,
                utcnow=journal.database.utcnow,
                aggregate_hosts=lambda: OpenStackInventory(connect(conf)).aggregate_hosts()),
            planning_client.Command(CHILD, arguments))
        self._dispatch = service.DispatchService(context)
        self._pruner = retention.Pruner(conf, journal.database, journal.worker,
                                         journal.database.utcnow)

    def tick(self) -> None:
        utcnow = self._journal.database.utcnow
        self._journal.heartbeat(utcnow(), ENGINE)
        self._guard.run('dispatcher', self._dispatch.tick)
        self._guard.run('retention', self._pruner.tick)
        utcnow.check()
        self._planning.tick()

    def drain(self) -> None:
        """Abort the cycle in progress, and delete the record of this process."""
        self._planning.stop()
        self._guard.run('dispatcher', lambda: self._journal.retire(self._journal.database.utcnow()))
        self._dispatch.stop()


def check(conf: cfg.ConfigOpts) -> None:
    """Check the configuration before the engine starts.

    :raises ConfigurationError: the configuration has an error that an operator has to correct
    """
    daemon.refuse_unless_wanted(conf)
    aggregates.refuse_empty_scope(conf)
    loader.load(conf.kronos.policies_file)
    connect(conf)
    prometheus.from_conf(conf)


def main(argv: list[str] | None = None) -> int:
    """Run kronos-engine.

    :returns: the exit status: 0 after a signal to end, 1 for an unusable configuration
    """
    arguments = sys.argv[1:] if argv is None else argv
    try:
        conf = daemon.load_config(NAME, arguments)
        check(conf)
    except (exception.KronosException, cfg.Error) as error:
        print(f'{NAME}: {error}', file=sys.stderr)
        return 1
    daemon.serve(conf, NAME, lambda: Engine(conf, arguments))
    return 0
