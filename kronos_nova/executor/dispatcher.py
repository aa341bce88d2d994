"""Decides which moves may go now, and sends them out."""

import dataclasses
import datetime

from oslo_log import log as logging

from kronos_nova.db import drains
from kronos_nova.objects.drain import ACTIVE

LOG = logging.getLogger(__name__)


class Dispatcher:
    """One worker's part in sending moves out; any number of workers may do it side by side.

    :param ports: ExecutorPorts
    :param sender: what carries a task to the executors: has ``cast(move)``
    :param outcomes: OutcomeHandler
    """

    def __init__(self, ports, sender, outcomes, options):
        self.ports = ports
        self.sender = sender
        self.outcomes = outcomes
        self.options = options

    def tick(self):
        """Give up what is too old, send out what is due, close what has ended.

        :raises DBError: the journal cannot be reached
        :raises ConfigurationError: nova.conf does not tell what may be sent out; the rest was done
        """
        if not self.ports.journal.aggregates_with_open_plans():
            return
        self._reclaim()
        try:
            self._start_what_may()
        finally:
            self._close()

    def _start_what_may(self):
        going, forbidden = self.ports.permits.sort(self._ours(), self.ports.utcnow())
        for move in self.ports.journal.abandon(
                self.ports.utcnow(), self._before(self.options.stale_plan_age), forbidden):
            LOG.info('Move %s of plan %s is given up before it began', move.uuid, move.plan_uuid)
            self.outcomes.settle_move(move)
        self._send_out(going)

    def _close(self):
        journal = self.ports.journal
        for move in journal.unsettled(self._before(self.options.message_grace)):
            self.outcomes.settle_move(move)
        now = self.ports.utcnow()
        for aggregate in journal.close_plans(now):
            self.ports.cooldowns.cool('aggregate', [aggregate], now + datetime.timedelta(
                seconds=self.options.cooldown), now)

    def _reclaim(self):
        for move in self.ports.journal.reclaim(self.ports.utcnow(),
                                                 self._before(self.options.message_grace)):
            LOG.warning('Nobody took on move %s of aggregate %s in %.0f s; is there an executor '
                        'for it?', move.uuid, move.aggregate, self.options.message_grace)

    def _ours(self):
        return [plan for plan in self.ports.journal.running_plans()
                if plan.aggregate in self.ports.aggregates]

    def _send_out(self, going):
        if going:
            for move in self.ports.journal.dispatch(self._caps(), self.ports.utcnow, going):
                self.sender.cast(move)

    def _caps(self):
        """The caps, with those that drains have of their own."""
        return dataclasses.replace(self.options.caps, sources={
            drain.host: drain.parallel
            for drain in drains.Drains(self.ports.journal.database).in_states(ACTIVE)
            if drain.parallel})

    def _before(self, seconds):
        return self.ports.utcnow() - datetime.timedelta(seconds=seconds)
