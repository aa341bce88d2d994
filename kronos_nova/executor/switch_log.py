"""Log messages about the levels and pauses that operators set. A service writes them, because
commands do not write to the log of a service."""

from oslo_log import log as logging

from kronos_nova.db.switches import SwitchBoard

LOG = logging.getLogger(__name__)


class SwitchLog:
    """The writer of log messages about levels and pauses in one worker. Any number of workers may
    have a SwitchLog at the same time. Each change is logged by one worker only.

    :param switches: SwitchBoard
    """

    def __init__(self, switches: SwitchBoard):
        self._switches = switches

    def tick(self) -> None:
        """Log the changes of levels and pauses that were not logged before.

        :raises DBError: the control database cannot be reached
        """
        for event in self._switches.untold():
            LOG.info('%s', event.sentence)
