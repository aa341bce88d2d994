"""The selection of the moves that may start now, and their dispatch to executors."""

import dataclasses
import datetime
from collections.abc import Collection

from oslo_log import log as logging

from kronos_nova.db import drains
from kronos_nova.drain.states import ACTIVE
from kronos_nova.executor.broker import TaskSender
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.executor.outcome import OutcomeHandler
from kronos_nova.executor.ports import ExecutorPorts
from kronos_nova.objects.move import Caps
from kronos_nova.objects.plan import RunningPlan

LOG = logging.getLogger(__name__)


class Dispatcher:
    """The dispatcher in one worker. It sends the moves that may start now to the executors. Any
    number of workers may run a Dispatcher at the same time.

    :param executor_ports: ExecutorPorts
    :param sender: object whose ``cast(move)`` sends a task to the executors
    :param outcomes: OutcomeHandler
    """

    def __init__(self, executor_ports: ExecutorPorts, sender: TaskSender, outcomes: OutcomeHandler,
                 options: ExecutorOptions):
        self.executor_ports = executor_ports
        self.sender = sender
        self.outcomes = outcomes
        self.options = options

    def tick(self) -> None:
        """Give up moves that are too old, send out moves that may start now, and close plans that
        have ended.

        :raises DBError: the journal cannot be reached
        :raises ConfigurationError: nova.conf has an invalid level or maintenance window. Plans that
            have ended are closed nevertheless, but no move is given up or sent out
        """
        if not self.executor_ports.journal.aggregates_with_open_plans():
            return
        self._reclaim()
        try:
            self._start_what_may()
        finally:
            self._close()

    def _start_what_may(self) -> None:
        going, forbidden = self.executor_ports.permits.sort(
            self._ours(), self.executor_ports.utcnow())
        for move in self.executor_ports.journal.abandon(
                self.executor_ports.utcnow(), self._before(self.options.stale_plan_age), forbidden):
            LOG.info('Move %s of plan %s is abandoned before it began', move.uuid, move.plan_uuid)
            self.outcomes.settle_move(move)
        self._send_out(going)

    def _close(self) -> None:
        journal = self.executor_ports.journal
        for move in journal.unsettled(self._before(self.options.message_grace)):
            self.outcomes.settle_move(move)
        journal.close_plans(self.executor_ports.utcnow(),
                            datetime.timedelta(seconds=self.options.cooldown))

    def _reclaim(self) -> None:
        for move in self.executor_ports.journal.reclaim(self.executor_ports.utcnow(),
                                                          self._before(self.options.message_grace)):
            LOG.warning('No executor accepted move %s of aggregate %s in %.0f s; the move is sent '
                        'again. Check that an executor runs for the aggregate.', move.uuid,
                        move.aggregate,
                        self.options.message_grace)

    def _ours(self) -> list[RunningPlan]:
        return [plan for plan in self.executor_ports.journal.running_plans()
                if plan.aggregate in self.executor_ports.aggregates]

    def _send_out(self, going: Collection[str]) -> None:
        if going:
            for move in self.executor_ports.journal.dispatch(
                    self._with_drains(), self.executor_ports.utcnow, going,
                    self.options.stale_plan_age):
                self.sender.cast(move)

    def _with_drains(self) -> Caps:
        """Return the Caps (limits on concurrent moves). They contain the limits of nova.conf, and
        the limits that operators set for hosts that are drained."""
        return dataclasses.replace(self.options.caps, sources={
            drain.host: drain.parallel
            for drain in drains.Drains(self.executor_ports.journal.database).in_states(ACTIVE)
            if drain.parallel})

    def _before(self, seconds: float) -> datetime.datetime:
        return self.executor_ports.utcnow() - datetime.timedelta(seconds=seconds)
