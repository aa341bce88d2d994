"""Tells the log what operators do: their commands run elsewhere, and write nothing there."""

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class SwitchLog:
    """One worker's part; any number of workers may do it side by side, and each level and pause is
    in the log of one of them.

    :param switches: SwitchBoard
    """

    def __init__(self, switches):
        self._switches = switches

    def tick(self):
        """Log the changes of switches that were not logged before.

        :raises DBError: the control database cannot be reached
        """
        for event in self._switches.untold():
            LOG.info('%s', event.sentence)
