"""Log messages about the levels and pauses that operators set, written by a service, because
commands do not write to the log of a service."""

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class SwitchLog:
    """The switch log of one worker. Any number of workers may run it at the same time, and each
    level and pause is logged by one of them.

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
