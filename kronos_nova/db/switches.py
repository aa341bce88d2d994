"""Levels and pauses (together: switches) that commands set, with the user, the time and the
reason."""

import dataclasses
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova.db import models
from kronos_nova.db import notifications
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects import automation
from kronos_nova.objects.automation import Switch

CLEARED = ''
"""Value of the event that records the end of pauses or stops of an aggregate."""


class SwitchBoard:
    """The tables of levels and pauses that commands set."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def read(self) -> automation.Switches:
        with self.database.reader() as session:
            return read(session)

    @retried
    def set(self, switch: Switch) -> None:
        """Set a switch, which is a level or a pause. Once this function has returned, no move
        starts under the old value.

        A level that is set for all aggregates together (``*``) replaces the levels of single
        aggregates. Nothing changes if the same level is already in force and no new reason is
        given. Nothing changes either if the same user has already set the same pause for the same
        reason.
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            put(session, switch)

    def resume(self, who: Switch, everyone: bool = False) -> list[Switch]:
        """End the pauses and stops of an aggregate. If the aggregate is ``*``, all pauses and stops
        end, including the ones for single aggregates.

        :param who: Switch with the aggregate, and ``set_at``, ``set_by`` and ``reason`` of the
            caller
        :param everyone: whether to end the pauses and stops of all users; otherwise only the
            caller's own pauses and stops end
        :returns: the Switches that ended
        """
        ended: dict[int, Switch] = {}
        self._resume(who, everyone, ended)
        return [ended[number] for number in sorted(ended)]

    @retried
    def _resume(self, who: Switch, everyone: bool, found: dict[int, Switch]) -> None:
        """End the pauses and stops, and add them to ``found`` as {id: Switch}. After a lost answer,
        ``found`` still has those that an earlier try ended."""
        with rows.serialized(self.database, rows.DISPATCH) as session:
            query = sa.select(models.SwitchRow).where(models.SwitchRow.kind == automation.PAUSE)
            if who.aggregate != automation.EVERY:
                query = query.where(models.SwitchRow.aggregate == who.aggregate)
            if not everyone:
                query = query.where(models.SwitchRow.set_by == who.set_by)
            ended = []
            for row in session.scalars(query.order_by(models.SwitchRow.id)).all():
                # MariaDB compares texts without regard to case.
                if not everyone and row.set_by != who.set_by:
                    continue
                ended.append(_switch(row))
                found[row.id] = ended[-1]
                session.delete(row)
            session.flush()
            for aggregate in dict.fromkeys(each.aggregate for each in ended):
                left = read(session).pauses.get(aggregate, ())
                why = '; '.join(filter(None, [who.reason, *(f'still {each}' for each in left)]))
                _note(session, automation.PAUSE, aggregate, CLEARED,
                      dataclasses.replace(who, reason=why))

    @retried
    def history(self, limit: int = 50) -> list[Switch]:
        """Return the changes of switches, the newest first. A change that ended pauses or stops of
        an aggregate has an empty ``value``."""
        with self.database.reader() as session:
            query = sa.select(models.SwitchEventRow).order_by(models.SwitchEventRow.id.desc())
            return [_switch(row) for row in session.scalars(query.limit(limit))]

    @retried
    def untold(self) -> list[Switch]:
        """Return the changes of switches that were not logged yet, the oldest first. Each change is
        returned only once, and to only one process."""
        with self.database.reader() as session:
            waiting = session.scalars(sa.select(models.SwitchEventRow.id).where(
                models.SwitchEventRow.told.is_(False)).order_by(models.SwitchEventRow.id)).all()
        return [event for number in waiting if (event := self._tell(number)) is not None]

    def _tell(self, number: int) -> Switch | None:
        with self.database.writer() as session:
            is_first = count_changed(session, sa.update(models.SwitchEventRow).where(
                models.SwitchEventRow.id == number, models.SwitchEventRow.told.is_(False),
            ).values(told=True))
            return _switch(session.get_one(models.SwitchEventRow, number)) if is_first else None


def read(session: orm.Session) -> automation.Switches:
    """Return the switches in force, within a transaction."""
    return automation.Switches.from_switches(_switch(row) for row in session.scalars(
        sa.select(models.SwitchRow)))


def put(session: orm.Session, switch: Switch) -> None:
    """Set a switch within a transaction. A level replaces the level in force. A pause is added to
    the pauses in force."""
    row = models.SwitchRow
    query = sa.select(row).where(row.kind == switch.kind)
    is_level = switch.kind in automation.OF_LEVELS
    if not is_level or switch.aggregate != automation.EVERY:
        query = query.where(row.aggregate == switch.aggregate)
    known = session.scalars(query).all()
    if _is_set(known, switch, is_level):
        return
    if is_level:
        for each in known:
            session.delete(each)
        session.flush()
    session.add(row(kind=switch.kind, aggregate=switch.aggregate, value=switch.value,
                    set_at=switch.set_at, set_by=switch.set_by, reason=switch.reason))
    _note(session, switch.kind, switch.aggregate, switch.value, switch)


def _is_set(known: Sequence[models.SwitchRow], switch: Switch, is_level: bool) -> bool:
    """Return whether ``switch`` is already set, so that setting it again would change nothing.

    A level is set if it is in force and ``switch`` gives no new reason. A pause is set if the same
    user has set it for the same reason.
    """
    if is_level:
        return [(each.aggregate, each.value) for each in known] == [
            (switch.aggregate, switch.value)] and switch.reason in ('', known[0].reason)
    return any((each.value, each.set_by, each.reason) == (
        switch.value, switch.set_by, switch.reason) for each in known)


def _note(session: orm.Session, kind: str, aggregate: str, value: str, who: Switch) -> None:
    session.add(models.SwitchEventRow(
        kind=kind, aggregate=aggregate, value=value, set_at=who.set_at, set_by=who.set_by,
        reason=who.reason, told=False))
    notifications.switch(session, kind, aggregate, value, who)


def _switch(row: models.SwitchRow | models.SwitchEventRow) -> Switch:
    return rows.record(Switch, row)
