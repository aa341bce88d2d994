"""The common part of daemons: the configuration, and a process that works in short steps until a
signal ends it.

SIGTERM ends the daemon in an orderly way, and a further SIGTERM changes nothing. SIGINT to the
process group ends the daemon at once. After SIGHUP the daemon reads again the options that may
change while it runs. Policies are read again in every cycle, without a signal.
"""

from oslo_service import backend  # isort: skip

backend.init_backend(backend.BackendType.THREADING)  # before oslo.messaging selects eventlet

# ruff: noqa: E402
import functools
import socket
import threading
import time
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
from typing import Protocol

import cotyledon
import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log as logging

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.cmd import manage
from kronos_nova.conf import invalid_values
from kronos_nova.cycle import levels
from kronos_nova.db import cooldowns
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal
from kronos_nova.db import migrate
from kronos_nova.db import worker
from kronos_nova.engine import guard
from kronos_nova.executor import broker
from kronos_nova.executor import pending_stops
from kronos_nova.executor import permits
from kronos_nova.executor import service
from kronos_nova.executor.ports import ExecutorPorts
from kronos_nova.policies import windows

LOG = logging.getLogger(__name__)

LAST_SECONDS = 30
"""Seconds for which a service that ends may save its state. The seconds of the option
``drain_timeout``, for which the service waits for its work, come first. If the service still runs
after both times, it is killed. Raised, a process that hangs is killed later; lowered, a process is
killed while it saves its state. Not measured."""


def load_config(prog: str, arguments: list[str]) -> cfg.ConfigOpts:
    """Read Nova's configuration into the process-wide ConfigOpts, and return it. The process-wide
    object is needed because oslo.messaging reads some options only from there.

    :param arguments: the command line
    """
    messaging.set_transport_defaults(broker.CONTROL_EXCHANGE)
    return manage.load_service_config(cfg.CONF, prog, arguments)


def refuse_unless_wanted(conf: cfg.ConfigOpts) -> None:
    """Refuse to start a daemon unless ``[kronos] run_in`` is ``daemons``, and the options of the
    process itself have valid values. Other invalid values are logged by the parts that use them.

    :raises ConfigurationError: nova-conductor does the work, or a value is invalid
    """
    invalid_values.refuse(conf, kronos_conf.executor.GROUP.name)
    if conf.kronos.run_in != 'daemons':
        raise exception.ConfigurationError(
            what='[kronos] run_in', problem=f'is {conf.kronos.run_in}, so that nova-conductor does '
            'the work of this daemon',
            remedy='Set it to "daemons", here and in the nova.conf of every nova-conductor, and '
                   'restart the conductors.')


def make_context(conf: cfg.ConfigOpts, aggregates: Iterable[str]) -> service.ServiceContext:
    """Return the ServiceContext, which has the dependencies of a daemon's services. This function
    may be called only after the daemon has forked.

    :raises DatabaseVersionError: the control database is not at the revision of this code
    """
    stops = pending_stops.for_conf(conf)
    database, host = db_engine.control_database(conf), socket.gethostname()
    migrate.check(database.engine, migrate.CONTROL)
    return service.ServiceContext(
        conf=conf, host=host, transports=broker.Transports(conf),
        executor_ports=ExecutorPorts(
            journal=journal.Journal(database, worker.name(host)),
            cooldowns=cooldowns.Cooldowns(database), utcnow=database.utcnow,
            monotonic=time.monotonic, is_clock_right=database.utcnow.is_right,
            permits=permits.Permits(database, functools.partial(levels.defaults, conf),
                                    functools.partial(windows.may_start, conf), stops.hold),
            stops=stops, aggregates=tuple(aggregates)))


class Parts(Protocol):
    """The protocol of the object that does the work of a daemon."""

    def tick(self) -> None:
        """Do the work that is due."""

    def drain(self) -> None:
        """Leave the work before the process ends."""


class Daemon(cotyledon.Service):
    """A process that calls ``tick()`` of an object every ``poll_interval`` until it is terminated.

    :param make_parts: callable that returns the object, called after the fork. The object's
        ``drain()`` is called before the process ends
    """

    def __init__(self, worker_id: Any, conf: cfg.ConfigOpts, name: str,
                 make_parts: Callable[[], Parts]):
        super().__init__(worker_id)
        self.name = name  # type: ignore[misc]  # cotyledon declares the name of the class alone
        self._name = name
        self._conf = conf
        self._make_parts = make_parts
        self._parts: Parts | None = None
        self._guard = guard.Guard()
        self._ending, self._ended = threading.Event(), threading.Event()

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self._guard.run(self._name, self._tick)
                self._ending.wait(self._conf.kronos_executor.poll_interval)
            if self._parts is not None:
                self._guard.run(self._name, self._parts.drain)
        finally:
            self._ended.set()

    def _tick(self) -> None:
        if self._parts is None:
            self._parts = self._make_parts()
        self._parts.tick()

    def terminate(self) -> None:
        LOG.info('%s ends', self.name)
        self._ending.set()
        self._ended.wait()

    def reload(self) -> None:
        LOG.info('%s reads its configuration again', self.name)
        try:
            _refuse_invalid(self._conf)
            self._conf.mutate_config_files()
        except (cfg.Error, exception.ConfigurationError, logging.LogConfigError) as error:
            # An error that was raised here would end the process, and its moves in progress would
            # be left to other processes.
            LOG.error('%s continues with the options that it has, because its configuration cannot '
                      'be read again: %s. Correct it, and send SIGHUP again.', self.name, error)


def _refuse_invalid(conf: cfg.ConfigOpts) -> None:
    """Read the configuration files of ``conf`` into another ConfigOpts, and check the options that
    may change while the daemon runs.

    :raises cfg.Error: a file cannot be read, or an option has an invalid value
    :raises ConfigurationError: an aggregate has no valid level of automation
    """
    fresh = kronos_conf.read_again(conf)
    mutable = {(module.GROUP.name, option.dest) for module in kronos_conf.GROUPS
               for option in module.OPTS if option.mutable}
    wrong = {key: problem for key, problem in invalid_values.values(fresh).items()
             if key in mutable}
    if wrong:
        raise cfg.Error(invalid_values.described(wrong))
    levels.defaults(fresh)  # oslo.config does not check the levels of single aggregates


def serve(conf: cfg.ConfigOpts, name: str, make_parts: Callable[[], Parts]) -> None:
    """Run the daemon with this name until a signal ends it."""
    manager = cotyledon.ServiceManager(
        graceful_shutdown_timeout=int(conf.kronos_executor.drain_timeout) + LAST_SECONDS)
    manager.add(Daemon, workers=1, args=(conf, name, make_parts))
    manager.run()
