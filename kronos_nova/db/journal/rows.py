"""Access to the rows of the journal: search, changes of the states of moves, and conversion of rows
to records."""

import contextlib
import dataclasses
import datetime
import json
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova import exception
from kronos_nova.db import cooldowns
from kronos_nova.db import counters
from kronos_nova.db import models
from kronos_nova.db import notifications
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import transitions

NOTHING = json.dumps([])
"""Value of the column ``depends_on`` of a move that depends on no other move."""
DISPATCH = 'dispatch'
"""Name of the lock that a transaction takes before it decides which moves run."""

_Row = TypeVar('_Row', bound=models.Base)
_Query = TypeVar('_Query', bound=sa.Select[Any])
_Record = TypeVar('_Record')


@contextlib.contextmanager
def serialized(database: Database, *names: str) -> Iterator[orm.Session]:
    """Open a session that may write, and hold some locks until the session ends. No other session
    can hold one of these locks at the same time.

    :param names: names of the locks; with several locks, PLANNING has to be the first
    """
    with database.writer() as session:
        lock = models.SerializationLockRow
        for name in names:
            session.execute(sa.update(lock).where(lock.name == name).values(passed=lock.passed + 1))
        yield session


def find(session: orm.Session, model: type[_Row], uuid: str, missing: Exception) -> _Row:
    """Return the row with a uuid.

    :raises missing: no row has this uuid
    """
    row = session.get(model, uuid)
    if row is None:
        raise missing
    return row


def has(session: orm.Session, model: type[models.Base], uuid: str, **values: object) -> bool:
    """Return whether the row of a uuid exists and has the columns ``values``. An earlier try may
    have written them, although its answer was lost. To show that they are from the same call, the
    values have to be unique, such as a time."""
    row = session.get(model, uuid)
    return row is not None and all(getattr(row, name) == value for name, value in values.items())


def moves_in(states: Iterable[str]) -> sa.Select[tuple[models.MoveRow]]:
    return sa.select(models.MoveRow).where(models.MoveRow.state.in_(states))


def of_aggregates(query: _Query, aggregates: Collection[str] | None) -> _Query:
    """Limit a query of moves to some aggregates.

    :param aggregates: names of aggregates; None for any
    """
    return query if aggregates is None else query.where(models.MoveRow.aggregate.in_(aggregates))


def transit(session: orm.Session, row: models.MoveRow, new: str, now: datetime.datetime,
            worker: str | None, detail: str = '', **values: object) -> bool:
    """Bring a move to the state ``new``, and save the columns ``values``. ``new`` may be the
    present state.

    :returns: whether the move was changed. Nothing is changed if the state or the owner of the move
        has changed since ``row`` was read
    :raises IllegalTransition: a move is not allowed to change from its state to the new state
    """
    old = row.state
    if new != old and not transitions.is_legal(old, new):
        raise exception.IllegalTransition(move=row.uuid, old=old, new=new)
    changed = count_changed(session, sa.update(models.MoveRow).where(
        models.MoveRow.uuid == row.uuid, models.MoveRow.state == old,
        models.MoveRow.owner == row.owner).values(state=new, **values))
    if changed:
        note(session, [row.uuid], (old, new), now, worker, detail)
    return bool(changed)


def abandon(session: orm.Session, query: sa.Select[tuple[models.MoveRow]], now: datetime.datetime,
            worker: str | None, why: str) -> list[models.MoveRow]:
    """Give up the moves that a query returns. The caller makes sure that none of these moves has
    begun.

    :param query: query of models.MoveRow
    :returns: rows of the moves that were given up
    """
    return [row for row in session.scalars(query).all() if transit(
        session, row, moves.ABANDONED, now, worker, why, finished_at=now, settled_at=now)]


def serves_nothing(session: orm.Session, move: models.MoveRow | moves.MoveRecord) -> str | None:
    """Return the reason why a move serves no other move any more: the move only makes room, and the
    moves that need this room do not take place. Return None for every other move.

    :param move: MoveRow or MoveRecord of a move that has not begun
    """
    if not move.only_makes_room:
        return None
    row = models.MoveRow
    others = session.execute(sa.select(
        row.ordinal, row.state, row.abort_requested, row.depends_on).where(
            row.plan_uuid == move.plan_uuid, row.depends_on != NOTHING)).all()
    served = {other.ordinal: other.abort_requested or other.state in moves.TERMINAL
              for other in others if move.ordinal in json.loads(other.depends_on)}
    if not all(served.values()):
        return None
    return ('only makes room for moves that do not take place: '
            f'{", ".join(map(str, sorted(served)))}' if served
            else 'only makes room for moves that were left out of the plan')


def note(session: orm.Session, uuids: Sequence[str], step: tuple[str | None, str],
         now: datetime.datetime, worker: str | None, detail: str = '',
         has_failed: bool = False) -> None:
    """Record that some moves have changed their state. The change is written to the history of each
    move and to the totals for monitoring, and notifications about it are queued. If the moves were
    abandoned before they began, the cooldowns of their instances end.

    :param step: (old state, new state)
    :param has_failed: True if the state changed because an attempt at the move failed
    """
    old, new = step
    session.execute(sa.insert(models.MoveEventRow), [
        {'move_uuid': uuid, 'at': now, 'old_state': old, 'new_state': new, 'worker': worker,
         'detail': detail} for uuid in uuids])
    if new in moves.TERMINAL:
        counters.count_ended(session, uuids)
    if new == moves.ABANDONED:
        cooldowns.end_unmoved(session, uuids, now)
    notifications.step(session, uuids, step, now, detail, has_failed)


def record(cls: type[_Record], row: object, **changed: object) -> _Record:
    """Return an object of the dataclass ``cls``. A field gets its value from ``changed``, or else
    from the column of ``row`` that has the same name."""
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(cls)  # type: ignore[arg-type]
              if field.name not in changed}
    return cls(**values, **changed)


def move_record(row: models.MoveRow) -> moves.MoveRecord:
    return record(moves.MoveRecord, row, depends_on=tuple(json.loads(row.depends_on)))


def running_plan(row: Any) -> plans.RunningPlan:
    """Make a RunningPlan from a row.

    :param row: row with a plan's uuid, aggregate, purpose and approved_at
    """
    return plans.RunningPlan(uuid=row.uuid, aggregate=row.aggregate, purpose=row.purpose,
                             is_approved=row.approved_at is not None)
