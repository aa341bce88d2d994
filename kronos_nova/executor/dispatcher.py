"""Decides which moves may go now, and sends them out."""

import datetime

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class Dispatcher:
    """One worker's part in sending moves out; any number of workers may do it side by side.

    :param journal: kronos_nova.db.journal.Journal
    :param courier: what carries a task to the executors: has ``cast(move)``
    :param settlement: Settlement
    :param cooldowns: kronos_nova.db.memory.Cooldowns
    :param aggregates: send out only moves of these, or of any when None
    """

    def __init__(self, journal, courier, settlement, cooldowns, options, utcnow, aggregates=None):
        self.journal = journal
        self.courier = courier
        self.settlement = settlement
        self.cooldowns = cooldowns
        self.options = options
        self.utcnow = utcnow
        self.aggregates = aggregates

    def tick(self):
        """Give up what is too old, send out what is due, close what has ended.

        :raises DBError: the journal cannot be reached
        """
        now = self.utcnow()
        self.journal.abandon(now, self._before(self.options.stale_plan_age))
        for move in self.journal.take_back(now, self._before(self.options.message_grace)):
            LOG.warning('Nobody took on move %s of aggregate %s in %.0f s; is there an executor '
                        'for it?', move.uuid, move.aggregate, self.options.message_grace)
        for move in self.journal.dispatch(self.options.caps, self.utcnow, self.aggregates):
            self.courier.cast(move)
        for move in self.journal.unsettled(self._before(self.options.message_grace)):
            self.settlement.settle_move(move)
        for aggregate in self.journal.close_plans(self.utcnow()):
            self.cooldowns.cool('aggregate', [aggregate], self.utcnow() + datetime.timedelta(
                seconds=self.options.cooldown))

    def _before(self, seconds):
        return self.utcnow() - datetime.timedelta(seconds=seconds)
