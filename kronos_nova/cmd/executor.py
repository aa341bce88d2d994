"""``kronos-executor``: the daemon that carries out moves through Nova's public API."""

import functools
import sys
import time

from oslo_config import cfg

from kronos_nova import exception
from kronos_nova.cmd import daemon
from kronos_nova.drain import disabling
from kronos_nova.engine import guard
from kronos_nova.executor import high_availability
from kronos_nova.executor import service
from kronos_nova.executor.openstack import OpenStackComputeApi
from kronos_nova.executor.openstack_hosts import OpenStackHostApi
from kronos_nova.inventory import connection
from kronos_nova.objects import snapshot

NAME = 'kronos-executor'

CLI_OPTS = [
    cfg.MultiStrOpt('aggregate', default=[], metavar='NAME',
                    help='Carry out the moves of this host aggregate; may be repeated.'),
    cfg.BoolOpt('unassigned', default=False,
                help='Carry out the moves of the hosts that are in no aggregate.'),
]


class ExecutorParts:
    """The parts of kronos-executor. One part sends due moves to all executors. Another part accepts
    moves and carries them out. A third part disables and enables hosts for drains. If a part raises
    an error, the error is logged once, and the other parts continue."""

    def __init__(self, conf: cfg.ConfigOpts):
        self._conf = conf
        self._guard = guard.Guard()
        context = daemon.make_context(conf, aggregates(conf))
        self._dispatch = service.DispatchService(context, listens=False)
        self._execution = service.ExecutionService(
            context, OpenStackComputeApi(connection.connect(conf)))
        self._drains = disabling.DrainService(
            context.executor_ports, OpenStackHostApi(connection.connect(conf)),
            lambda: conf.kronos_executor.ha_disabled_reasons, high_availability.for_conf(conf))

    def tick(self) -> None:
        self._guard.run('executor', self._execution.tick)
        self._guard.run('dispatcher', self._dispatch.tick)
        self._guard.run('drain service', self._drains.tick)

    def drain(self) -> None:
        """Continue the accepted moves for at most ``drain_timeout``, then leave the remaining moves
        to other executors. An outage of the database does not shorten this time."""
        self._execution.stop_taking()
        deadline = time.monotonic() + self._conf.kronos_executor.drain_timeout
        tick = functools.partial(self._execution.tick, adopts=False)
        # The result is None if the number of moves could not be read.
        while self._guard.run('executor', tick) != 0 and time.monotonic() < deadline:
            time.sleep(self._conf.kronos_executor.poll_interval)
        self._guard.run('executor', self._execution.retire)
        self._guard.run('dispatcher', self._dispatch.stop)


def aggregates(conf: cfg.ConfigOpts) -> list[str]:
    pool = [snapshot.UNASSIGNED] if conf.unassigned else []
    return [*dict.fromkeys(conf.aggregate), *pool]


def check(conf: cfg.ConfigOpts) -> None:
    """Check the configuration before the executor starts.

    :raises ConfigurationError: the configuration has an error that an operator has to correct
    """
    daemon.refuse_unless_wanted(conf)
    if not aggregates(conf):
        raise exception.ConfigurationError(
            what='the command line', problem='names no aggregate, so that there are no moves to '
            'carry out', remedy='Give --aggregate NAME or --unassigned.')
    connection.connect(conf)


def main(argv: list[str] | None = None) -> int:
    """Run kronos-executor.

    :returns: the exit status: 0 after a signal to end, 1 for an unusable configuration
    """
    cfg.CONF.register_cli_opts(CLI_OPTS)
    try:
        conf = daemon.load_config(NAME, sys.argv[1:] if argv is None else argv)
        check(conf)
    except (exception.KronosException, cfg.Error) as error:
        print(f'{NAME}: {error}', file=sys.stderr)
        return 1
    daemon.serve(conf, NAME, lambda: ExecutorParts(conf))
    return 0
