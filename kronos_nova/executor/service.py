"""The parts of a process that carries out moves, put together over the broker."""

import dataclasses
import datetime
from collections.abc import Callable
from concurrent import futures

from kronos_nova.db.journal import Journal
from kronos_nova.db.memory import Cooldowns
from kronos_nova.executor import broker
from kronos_nova.executor import dispatcher
from kronos_nova.executor import executor
from kronos_nova.executor import runner
from kronos_nova.executor import settlement
from kronos_nova.executor.options import Options


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What both services need; to be made after the process has forked.

    aggregates : whose moves this process is for, the pool of unassigned hosts among them
    """

    journal: Journal
    cooldowns: Cooldowns
    transports: broker.Transports
    options: Options
    aggregates: tuple[str, ...]
    utcnow: Callable[[], datetime.datetime]


class DispatchService:
    """Sends moves out and draws the consequences of how they end.

    :param listens: whether to take results from the broker too, and not from the journal alone
    """

    def __init__(self, means: Means, listens: bool = True):
        settling = settlement.Settlement(means.journal, means.cooldowns, means.options.quarantine,
                                         means.utcnow)
        self._journal = means.journal
        self._dispatcher = dispatcher.Dispatcher(
            means.journal, broker.Courier(means.transports), settling, means.cooldowns,
            means.options, means.utcnow, means.aggregates)
        self._listening = listens and broker.listen_for_results(
            means.transports, means.aggregates, settling.settle)

    def tick(self):
        """:raises DBError: the journal cannot be reached"""
        if self._journal.aggregates_with_open_plans():
            self._dispatcher.tick()

    def stop(self):
        if self._listening:
            self._listening.stop()


class ExecutionService:
    """Takes moves on and carries them out.

    :param compute: ComputeApi
    :param threads: how many moves are attended to at the same time
    """

    def __init__(self, means: Means, compute, threads: int):
        announcer = broker.Announcer(means.transports, means.journal.worker,
                                     means.options.max_retries)
        self._journal = means.journal
        self._executor = executor.Executor(
            means.journal,
            runner.Runner(means.journal, compute, announcer.announce, means.options, means.utcnow),
            futures.ThreadPoolExecutor(threads), means.options, means.utcnow, means.aggregates)
        self._listening = broker.listen_for_tasks(
            means.transports, means.aggregates, means.journal.worker, self._executor.accept)

    def tick(self):
        """
        :returns: how many moves this process has under way
        :raises DBError: the journal cannot be reached
        """
        if not self._journal.aggregates_with_open_plans():
            return 0
        return self._executor.tick()

    def stop_taking(self):
        """Take nothing on any more; what is under way goes on with every tick."""
        self._listening.stop()

    def retire(self):
        """Leave what is under way to others."""
        self._executor.retire()
