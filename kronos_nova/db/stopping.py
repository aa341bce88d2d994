"""Ending what is planned and under way, together with keeping anything new from being started."""

import dataclasses

import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.db import switches
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves


@dataclasses.dataclass(frozen=True, slots=True)
class Stopped:
    """What a stop met: how many moves were not begun and are abandoned, how many are under way."""

    abandoned: int
    under_way: int


class Stopping:
    """The journal as the command ``stop`` uses it.

    :param who: what is written down as the worker
    """

    def __init__(self, database, who):
        self.database = database
        self.who = who

    @retried
    def stop(self, switch, let_finish=False) -> Stopped:
        """Set a pause and end the moves of its aggregate, in one transaction that excludes the
        start of moves: once this has returned, none is started.

        :param switch: Switch of kind PAUSE
        :param let_finish: leave those alone that Nova was asked for already
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            switches.put(session, switch)
            gone = rows.abandon(session, self._of(switch, rows.moves_in(moves.NOT_BEGUN)),
                                switch.set_at, self.who, f'Kronos was stopped: {switch}')
            ending = (moves.CHECKING, moves.CLAIMING) if let_finish else moves.IN_FLIGHT
            session.execute(self._of(switch, sa.update(models.MoveRow).where(
                models.MoveRow.state.in_(ending)).values(abort_requested=True)))
            left = session.scalars(self._of(switch, sa.select(sa.func.count()).select_from(
                models.MoveRow).where(models.MoveRow.state.in_(moves.IN_FLIGHT)))).one()
            return Stopped(abandoned=len(gone), under_way=left)

    @staticmethod
    def _of(switch, query):
        if switch.aggregate == automation.EVERY:
            return query
        return query.where(models.MoveRow.aggregate == switch.aggregate)
