"""Transactions of the command ``stop``, which ends moves and prevents the start of other moves."""

import dataclasses
from typing import Any
from typing import TypeVar

import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.db import switches
from kronos_nova.db.engine import Database
from kronos_nova.db.journal import plans
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves

_Statement = TypeVar('_Statement', sa.Select[Any], sa.Update)


@dataclasses.dataclass(frozen=True, slots=True)
class Stopped:
    """The effect of the command ``stop``.

    abandoned : number of moves that were given up before they began, including the moves of
        approved plans that had not started
    under_way : number of moves that are still in progress
    """

    abandoned: int
    under_way: int


class Stopping:
    """The transactions of the command ``stop`` on the journal.

    :param who: name that the journal records as the worker
    """

    def __init__(self, database: Database, who: str):
        self.database = database
        self.who = who

    def stop(self, switch: automation.Switch, let_finish: bool = False) -> Stopped:
        """Set a pause, and end the moves and the approved plans of its aggregate.

        All changes are made in one transaction, during which no plan and no move starts. The plans
        and moves that were ended never start, not even after the pause.

        :param switch: Switch of kind PAUSE
        :param let_finish: whether moves that were already requested from Nova may continue to their
            end
        """
        ended: dict[str, int] = {}
        left = self._stop(switch, let_finish, ended)
        return Stopped(abandoned=sum(ended.values()), under_way=left)

    @retried
    def _stop(self, switch: automation.Switch, let_finish: bool, ended: dict[str, int]) -> int:
        """Stop as in :meth:`stop`, and return the number of moves that are still in progress. Add
        to ``ended`` the number of moves that were given up, as {uuid of the move, or of the plan
        that had not started: number}. After a lost answer, ``ended`` still has those that an
        earlier try gave up."""
        why = f'Kronos was stopped: {switch}'
        every = switch.aggregate == automation.EVERY
        with rows.serialized(self.database, plans.PLANNING, rows.DISPATCH) as session:
            switches.put(session, switch)
            ended.update(plans.stop_approved(
                session, None if every else switch.aggregate, why, switch.set_at))
            gone = rows.abandon(session, self._within(switch, rows.moves_in(moves.NOT_BEGUN)),
                                switch.set_at, self.who, why)
            ended.update((move.uuid, 1) for move in gone)
            ending = (moves.CHECKING, moves.CLAIMING) if let_finish else moves.IN_FLIGHT
            session.execute(self._within(switch, sa.update(models.MoveRow).where(
                models.MoveRow.state.in_(ending)).values(abort_requested=True)))
            return session.scalars(self._within(switch, sa.select(sa.func.count()).select_from(
                models.MoveRow).where(models.MoveRow.state.in_(moves.IN_FLIGHT)))).one()

    @retried
    def knows(self, switch: automation.Switch) -> bool:
        """Return whether the control database already has the stop ``switch``. Another process may
        have recorded the stop."""
        event = models.SwitchEventRow
        with self.database.reader() as session:
            return session.scalars(sa.select(sa.func.count()).where(
                event.kind == switch.kind, event.aggregate == switch.aggregate,
                event.set_at == switch.set_at, event.set_by == switch.set_by)).one() > 0

    @staticmethod
    def _within(switch: automation.Switch, query: _Statement) -> _Statement:
        if switch.aggregate == automation.EVERY:
            return query
        return query.where(models.MoveRow.aggregate == switch.aggregate)
