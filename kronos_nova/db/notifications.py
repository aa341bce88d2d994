"""The types and bodies of notifications about changes of plans, moves, drains, levels and pauses.

Each function is called after a change, in the transaction that makes the change. Nothing is read or
written if notifications are off.
"""

import datetime
import json
from collections.abc import Collection
from typing import Any
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova import clock
from kronos_nova.db import models
from kronos_nova.db import outbox
from kronos_nova.db.engine import is_announced
from kronos_nova.drain import states as drains
from kronos_nova.objects import move as moves
from kronos_nova.objects import notification as n
from kronos_nova.objects.automation import Switch

_Row = TypeVar('_Row', bound=models.Base)

ENDS = {moves.COMPLETED: n.MOVE_END, moves.FAILED: n.MOVE_ERROR, moves.ABANDONED: n.MOVE_ABORT}


def plan(session: orm.Session, uuid: str, event_type: str, now: datetime.datetime) -> None:
    """Record a notification that a plan has changed."""
    if not is_announced(session):
        return
    row, move = _fresh(session, models.PlanRow, uuid), models.MoveRow
    counts = session.execute(sa.select(move.state, sa.func.count()).where(
        move.plan_uuid == uuid).group_by(move.state)).all()
    outbox.add(session, event_type, n.PlanPayload(
        plan_uuid=uuid, moves={state: count for state, count in sorted(counts)},
        reason=row.ended_because,
        **_same(row, n.PlanPayload, {'plan_uuid', 'moves', 'reason'})), now)


def step(session: orm.Session, uuids: Collection[str], states: tuple[str | None, str],
         now: datetime.datetime, detail: str, has_failed: bool) -> None:
    """Record notifications about moves whose state has changed. Some changes of state have no type
    of notification, so nothing is recorded for them.

    :param states: (old state, new state)
    :param has_failed: whether the state changed because a try of the moves failed
    """
    event_type = event_of(*states, has_failed)
    if event_type is None or not is_announced(session):
        return
    for uuid in uuids:
        row = _fresh(session, models.MoveRow, uuid)
        name = session.scalar(sa.select(models.ServerNameRow.name).where(
            models.ServerNameRow.uuid == row.instance_uuid))
        outbox.add(session, event_type, n.move_payload(row, name, detail), now)


def event_of(old: str | None, new: str, has_failed: bool) -> str | None:
    """Return the type of the notification about a change of a move's state; None if the change has
    no type of notification."""
    if new == moves.MIGRATING and old != new:
        return n.MOVE_START
    if new == moves.PLANNED and has_failed:
        return n.MOVE_ERROR
    return ENDS.get(new)


def switch(session: orm.Session, kind: str, aggregate: str, value: str, who: Switch) -> None:
    """Record a notification that a level or a pause was set or ended.

    :param who: object with the attributes ``set_at``, ``set_by`` and ``reason`` of the change
    """
    if is_announced(session):
        outbox.add(session, n.AUTOMATION_CHANGED, n.AutomationPayload(
            kind=kind, aggregate=aggregate, value=value, set_at=who.set_at, set_by=who.set_by,
            reason=who.reason), who.set_at)


def drain(session: orm.Session, uuid: str, before: str | None,
          now: datetime.datetime | None = None) -> None:
    """Record a notification that a drain has begun or ended, or is blocked.

    :param before: state of the drain before the change; None for a new drain
    """
    if not is_announced(session):
        return
    row = _fresh(session, models.DrainRow, uuid)
    event_type = _drain_event(before, row.state)
    if event_type is not None:
        blocked = json.loads(row.blocked)
        outbox.add(session, event_type, n.DrainPayload(
            drain_uuid=uuid, blocked_count=len(blocked),
            blocked=dict(sorted(blocked.items())[:n.MOST_BLOCKED]),
            **_same(row, n.DrainPayload, {'drain_uuid', 'blocked_count', 'blocked'})),
            now or clock.utcnow())


def _drain_event(before: str | None, after: str) -> str | None:
    was_active, is_active = before in drains.ACTIVE, after in drains.ACTIVE
    if was_active != is_active:
        return n.DRAIN_START if is_active else n.DRAIN_END
    return n.DRAIN_BLOCKED if after == drains.BLOCKED != before else None


def _fresh(session: orm.Session, model: type[_Row], uuid: str) -> _Row:
    """Read a row from the database again, and return it. The row has the changes that this
    transaction has made."""
    session.flush()
    return session.get_one(model, uuid, populate_existing=True)


def _same(row: models.Base, payload: type, but: Collection[str]) -> dict[str, Any]:
    """Return {name: value} of the columns of a row whose names are also fields of a payload. Names
    in ``but`` are left out."""
    return {name: getattr(row, name) for name in n.names(payload) if name not in but}
