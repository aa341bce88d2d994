"""Holds in the control database. A hold keeps room on hosts for new servers."""

import dataclasses
import datetime
import json
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects import hold as states
from kronos_nova.objects.hold import Hold
from kronos_nova.objects.shape import Shape

SHAPE = ('name', 'vcpus', 'memory_mb', 'disk_gb', 'id', 'extra_specs')
"""Attributes of a shape (the resources of one server) that are stored. The other attributes of a
shape are computed from the stored ones."""
JSON = ('shape', 'hosts', 'known', 'used', 'consumers')
"""Columns whose text is JSON."""
NO_CONSUMERS = json.dumps({})
"""Value of the column ``consumers`` of a hold that has no consumers."""


class Holds:
    """The table of holds. A hold keeps room on hosts for new servers. No other class writes the
    state of a hold."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def request(self, wanted: Hold) -> None:
        """Record a new hold."""
        with self.database.writer() as session:
            if session.get(models.HoldRow, wanted.uuid) is None:  # a lost try may have written it
                values = dataclasses.asdict(wanted) | {
                    'shape': {name: getattr(wanted.shape, name) for name in SHAPE}}
                session.add(models.HoldRow(**_columns(values)))

    @retried
    def in_states(self, wanted: Iterable[str]) -> list[Hold]:
        """Return the holds whose state is one of ``wanted``, the oldest request first."""
        with self.database.reader() as session:
            return read(session, wanted)

    def in_force(self) -> list[Hold]:
        """Return the holds in force: those that keep room on hosts and have not expired."""
        now = self.database.utcnow()
        return [each for each in self.in_states(states.KEPT) if each.expires_at > now]

    @retried
    def with_consumers(self) -> list[Hold]:
        """Return the holds, in any state, whose consumers may have allocations in placement. The
        oldest request comes first."""
        with self.database.reader() as session:
            row = models.HoldRow
            return [_hold(found) for found in session.scalars(sa.select(row).where(
                row.consumers != NO_CONSUMERS).order_by(row.requested_at, row.uuid))]

    @retried
    def get(self, uuid: str) -> Hold:
        """Return a hold by its uuid.

        :raises HoldNotFound: there is no hold with this uuid
        """
        with self.database.reader() as session:
            return _hold(rows.find(session, models.HoldRow, uuid,
                                   exception.HoldNotFound(hold=uuid)))

    @retried
    def note(self, hold: Hold, **values: Any) -> bool:
        """Save the columns ``values`` of a hold, unless the state of the hold has changed since the
        hold was read.

        :returns: whether the columns were saved
        """
        with self.database.writer() as session:
            return count_changed(session, sa.update(models.HoldRow).where(
                models.HoldRow.uuid == hold.uuid, models.HoldRow.state == hold.state,
            ).values(**_columns(values))) == 1

    @retried
    def enter(self, hold: Hold, new: str, **values: Any) -> bool:
        """Bring a hold to the state ``new``, and save the columns ``values``. Nothing is done if
        the state of the hold has changed since the hold was read.

        :returns: whether the state was changed
        :raises IllegalHoldTransition: a hold is not allowed to change from its state to the new
            state
        """
        if new not in states.HOLD_TRANSITIONS[hold.state]:
            raise exception.IllegalHoldTransition(hold=hold.uuid, old=hold.state, new=new)
        columns = _columns(values)
        with self.database.writer() as session:
            is_changed = count_changed(session, sa.update(models.HoldRow).where(
                models.HoldRow.uuid == hold.uuid, models.HoldRow.state == hold.state,
            ).values(state=new, **columns)) == 1
            # An earlier try may have written the row, and its answer was lost. The values show that
            # the row is from this call.
            return is_changed or bool(values) and rows.has(
                session, models.HoldRow, hold.uuid, state=new, **columns)

    def consumers(self) -> dict[str, tuple[Hold, str]]:
        """Return {uuid of a consumer: (Hold, host)} for the consumers in placement that keep room
        for holds. The consumer's allocations are on this host. A consumer is included even if its
        allocations are not made yet or are already removed."""
        return {uuid: (each, host) for each in self.with_consumers()
                for uuid, host in each.consumers.items()}

    def expire(self, now: datetime.datetime) -> list[Hold]:
        """End the holds that have reached their time of expiry.

        :returns: the holds that were ended
        """
        return [each for each in self.in_states(states.OPEN) if each.expires_at <= now
                and self.enter(each, states.EXPIRED, finished_at=now)]


def read(session: orm.Session, wanted: Iterable[str]) -> list[Hold]:
    """Return the holds whose state is one of ``wanted``, within a transaction. The oldest request
    comes first."""
    row = models.HoldRow
    return [_hold(found) for found in session.scalars(sa.select(row).where(
        row.state.in_([*wanted])).order_by(row.requested_at, row.uuid))]


def _columns(values: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(value) if name in JSON else value for name, value in values.items()}


def _hold(row: models.HoldRow) -> Hold:
    return rows.record(Hold, row, shape=Shape(**json.loads(row.shape)),
                       hosts=json.loads(row.hosts), known=tuple(json.loads(row.known)),
                       used=json.loads(row.used), consumers=json.loads(row.consumers))
