"""Levels and pauses that commands set, and who set them, when and why."""

import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.db import notifications
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects import automation
from kronos_nova.objects.automation import Switch

CLEARED = ''
"""The value of an event that took a switch away."""


class SwitchBoard:
    """The switches in the control database."""

    def __init__(self, database):
        self.database = database

    @retried
    def read(self) -> automation.Switches:
        with self.database.reader() as session:
            return read(session)

    @retried
    def set(self, switch: Switch) -> None:
        """Set a switch. When this returns, every move that is started is started by it.

        A level for every aggregate takes the place of those that were set for single ones.
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            put(session, switch)

    @retried
    def clear(self, kind, aggregate, who) -> list[Switch]:
        """Take a switch away; for every aggregate, all of the kind.

        :param who: Switch with ``set_at``, ``set_by`` and ``reason`` of whoever does it
        :returns: the Switches that were taken away
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            query = sa.select(models.SwitchRow).where(models.SwitchRow.kind == kind)
            if aggregate != automation.EVERY:
                query = query.where(models.SwitchRow.aggregate == aggregate)
            gone = [_switch(row) for row in session.scalars(query)]
            for switch in gone:
                session.execute(sa.delete(models.SwitchRow).where(
                    models.SwitchRow.kind == kind, models.SwitchRow.aggregate == switch.aggregate))
                _note(session, kind, switch.aggregate, CLEARED, who)
            return gone

    @retried
    def history(self, limit=50) -> list[Switch]:
        """What was set and taken away (``value`` is then empty), the newest first."""
        with self.database.reader() as session:
            query = sa.select(models.SwitchEventRow).order_by(models.SwitchEventRow.id.desc())
            return [_switch(row) for row in session.scalars(query.limit(limit))]

    @retried
    def untold(self) -> list[Switch]:
        """What was set and taken away and is in nobody's log yet, the oldest first. Each is given
        to one who asks, and to no other."""
        with self.database.reader() as session:
            waiting = session.scalars(sa.select(models.SwitchEventRow.id).where(
                models.SwitchEventRow.told.is_(False)).order_by(models.SwitchEventRow.id)).all()
        return [event for number in waiting if (event := self._tell(number)) is not None]

    def _tell(self, number):
        with self.database.writer() as session:
            taken = session.execute(sa.update(models.SwitchEventRow).where(
                models.SwitchEventRow.id == number, models.SwitchEventRow.told.is_(False),
            ).values(told=True))
            return _switch(session.get(models.SwitchEventRow, number)) if taken.rowcount else None


def read(session) -> automation.Switches:
    """The switches as a transaction sees them."""
    return automation.Switches.from_switches(_switch(row) for row in session.scalars(
        sa.select(models.SwitchRow)))


def put(session, switch):
    """Set a switch within a transaction."""
    if (switch.kind, switch.aggregate) == (automation.LEVEL, automation.EVERY):
        session.execute(sa.delete(models.SwitchRow).where(
            models.SwitchRow.kind == automation.LEVEL))
    values = {'value': switch.value, 'set_at': switch.set_at, 'set_by': switch.set_by,
              'reason': switch.reason}
    session.merge(models.SwitchRow(kind=switch.kind, aggregate=switch.aggregate, **values))
    _note(session, switch.kind, switch.aggregate, switch.value, switch)


def _note(session, kind, aggregate, value, who):
    session.add(models.SwitchEventRow(
        kind=kind, aggregate=aggregate, value=value, set_at=who.set_at, set_by=who.set_by,
        reason=who.reason, told=False))
    notifications.switch(session, kind, aggregate, value, who)


def _switch(row):
    return rows.record(Switch, row)
