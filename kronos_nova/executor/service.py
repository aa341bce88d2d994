"""The dispatcher and the executor of a process, connected to the message broker."""

import dataclasses
from concurrent import futures

from oslo_config import cfg

from kronos_nova.db import switches
from kronos_nova.executor import broker
from kronos_nova.executor import delivery
from kronos_nova.executor import dispatcher
from kronos_nova.executor import executor
from kronos_nova.executor import late_arrivals
from kronos_nova.executor import outcome
from kronos_nova.executor import pending_stops
from kronos_nova.executor import runner
from kronos_nova.executor import switch_log
from kronos_nova.executor.compute import ComputeApi
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.executor.ports import ExecutorPorts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """The dependencies of DispatchService and ExecutionService, created after the process has
    forked.

    conf : ConfigOpts; ``[kronos_executor]`` is read again with every tick
    host : name of this host, which stays the same after a restart
    """

    conf: cfg.ConfigOpts
    host: str
    executor_ports: ExecutorPorts
    transports: broker.Transports


class DispatchService:
    """The service that sends moves to executors, handles the results of moves that have ended, and
    sends notifications.

    :param listens: True to receive results from the message broker as well as from the journal
    """

    def __init__(self, context: ServiceContext, listens: bool = True):
        options = ExecutorOptions.from_conf(context.conf)
        outcomes = outcome.OutcomeHandler(context.executor_ports, options)
        self._context = context
        self._outcomes = outcomes
        self._dispatcher = dispatcher.Dispatcher(
            context.executor_ports, broker.TaskSender(context.transports), outcomes, options)
        self._switch_log = switch_log.SwitchLog(
            switches.SwitchBoard(context.executor_ports.journal.database))
        self._listening = listens and broker.listen_for_results(
            context.transports, context.executor_ports.aggregates, outcomes.settle)
        self._delivery = _make_delivery(context)

    def tick(self) -> None:
        """Read the options again and do the work that is due.

        :raises DBError: the journal cannot be reached
        """
        options = ExecutorOptions.from_conf(self._context.conf)
        self._dispatcher.options = self._outcomes.options = options
        executor_ports = self._context.executor_ports
        pending_stops.settle(executor_ports.stops, executor_ports.journal.database,
                             executor_ports.journal.worker)
        self._switch_log.tick()
        self._dispatcher.tick()
        if self._delivery is not None:
            self._delivery.tick()

    def stop(self) -> None:
        if self._listening:
            self._listening.stop()
        if self._delivery is not None:
            self._delivery.stop()


def _make_delivery(context: ServiceContext) -> delivery.BackgroundDeliverer | None:
    """Return the BackgroundDeliverer that sends notifications; None if no notification topics are
    configured."""
    group, journal = context.conf.kronos, context.executor_ports.journal
    if not group.notification_topics:
        return None
    sender = broker.NotificationSender(context.transports, group.notification_topics, context.host)
    return delivery.BackgroundDeliverer(delivery.Deliverer(
        journal.database, journal.worker, sender.send, context.executor_ports.utcnow,
        lambda: group.notification_backlog))


class ExecutionService:
    """The service that accepts moves and carries them out.

    :param compute: ComputeApi
    """

    def __init__(self, context: ServiceContext, compute: ComputeApi):
        options = ExecutorOptions.from_conf(context.conf)
        executor_ports = context.executor_ports
        notifier = broker.ResultNotifier(context.transports, executor_ports.journal.worker)
        self._context = context
        pool = futures.ThreadPoolExecutor(context.conf.kronos_executor.worker_threads)
        self._late_arrivals = late_arrivals.LateArrivals(executor_ports, compute, pool)
        self._runner = runner.Runner(executor_ports, compute, notifier.announce, options)
        self._executor = executor.Executor(executor_ports, self._runner, pool, options)
        self._listening = broker.listen_for_tasks(
            context.transports, executor_ports.aggregates, context.host, self._executor.accept,
            executor_ports.stops)

    def tick(self, adopts: bool = True) -> int:
        """Read the options again, and take the next step of every move of this process.

        :param adopts: whether to take over moves of workers that died
        :returns: number of moves of this process
        :raises DBError: the journal cannot be reached
        """
        options = ExecutorOptions.from_conf(self._context.conf)
        self._executor.options = self._runner.options = options
        self._late_arrivals.tick()
        if not self._context.executor_ports.journal.aggregates_with_open_plans():
            self._executor.idle()
            return 0
        return self._executor.tick(adopts)

    def stop_taking(self) -> None:
        """Stop accepting moves. Moves that were accepted before continue with every tick."""
        self._listening.stop()

    def retire(self) -> None:
        """Stop the executor, and leave its moves to other workers."""
        self._executor.retire()
