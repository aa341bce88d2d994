"""Consequences of the end of a move.

=====================================  =======================================
end of the move                        consequence
=====================================  =======================================
completed, or abandoned                none
failed, and will be tried again        none
failed for good after its worker died  none: the instance need not be the cause
failed for good by NovaClientError     none: the instance is not the cause
failed for good by PreFlightError      see below
failed for good by any other error     quarantine of the instance
=====================================  =======================================

After a PreFlightError, this module writes nothing. The next cycles read the refusal from the
journal; see :class:`kronos_nova.cycle.precheck.Precheck`.
"""

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.executor.ports import ExecutorPorts
from kronos_nova.objects import move as moves
from kronos_nova.objects.move import REFUSED

LOG = logging.getLogger(__name__)

HARMLESS = (exception.NovaClientError.__name__,)


def calls_for_quarantine(move: moves.MoveRecord) -> bool:
    """Return whether an instance has to be put into quarantine after its move has ended. The table
    of this module lists the cases."""
    return (move.state == moves.FAILED and move.error_type not in (*HARMLESS, REFUSED)
            and not move.adopted)


class OutcomeHandler:
    """A handler that carries out the consequences of the end of each move. The consequences are
    carried out once for each move; a repeated call has no effect.

    :param executor_ports: ExecutorPorts
    """

    def __init__(self, executor_ports: ExecutorPorts, options: ExecutorOptions):
        self.executor_ports = executor_ports
        self.options = options

    def settle(self, move_uuid: str) -> None:
        """Carry out the consequences of the end of a move.

        :raises MoveNotFound: there is no such move
        """
        self.settle_move(self.executor_ports.journal.move(move_uuid))

    def settle_move(self, move: moves.MoveRecord) -> None:
        if move.state not in moves.TERMINAL or move.settled_at is not None:
            return
        now = self.executor_ports.utcnow()
        if calls_for_quarantine(move):
            LOG.info('Instance %s is put into quarantine, and is not moved before the quarantine '
                     'ends: %s', move.instance_uuid, move.error)
            self.executor_ports.cooldowns.quarantine(move.instance_uuid, self.options.quarantine,
                                                     f'{move.error_type}: {move.error}', now)
        self.executor_ports.journal.settle(move.uuid, now)
