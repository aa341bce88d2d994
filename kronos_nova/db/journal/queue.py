"""The journal's queue of moves that wait, and the workers that accept moves."""

import datetime
import json
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.db.retry import retried_as_update
from kronos_nova.objects import move as moves
from kronos_nova.pacing.slots import ConcurrencySlots

SCAN_LIMIT = 1000
"""Maximum number of waiting moves that one query of the executor reads. Raised, a query takes
longer; lowered, a move that may start is found later if many earlier moves in the queue have to
wait. Not measured."""
# Rows that a worker of the previous release wrote have no checked_at.
CHECKED_AT = sa.func.coalesce(models.MoveRow.checked_at, models.MoveRow.created_at)

# Roles of processes.
EXECUTOR = 'executor'
ENGINE = 'engine'


class Queue:
    """The queue in the journal. It has the moves that are to be carried out, and the workers that
    carry out moves."""

    database: Database
    worker: str

    @retried
    def dispatch(self, caps: moves.Caps, utcnow: Callable[[], datetime.datetime],
                 plan_uuids: Collection[str] | None = None,
                 stale_after: float | None = None) -> list[moves.MoveRecord]:
        """Dispatch planned moves that are due, as many as the limits of concurrent moves allow.

        Only one dispatcher at a time can do this, because it needs a lock. So no move is dispatched
        twice, and several dispatchers together do not exceed a limit. A dispatched move counts
        towards the limits even before a worker accepts it.

        :param caps: limits of concurrent moves
        :param utcnow: function that returns the present time, which is recorded as the time of the
            dispatch. It is called after the moves in progress are read. A move that waited for the
            end of another move is therefore never recorded as dispatched before this end
        :param plan_uuids: uuids of plans, to dispatch only their moves; None for all plans
        :param stale_after: seconds after which a move is too old to be started; None for no limit.
            The first move of a group (moves that improve the balance only together) is dispatched
            only if all moves of the group can start before they are too old
        :returns: MoveRecords, now DISPATCHED and without a worker
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            slots = ConcurrencySlots(caps, session.execute(_columns_of(moves.IN_FLIGHT)))
            if slots.is_full:
                return []
            now, going = utcnow(), []
            for waiting in session.execute(_ready(now, plan_uuids)).all():
                if slots.is_full:
                    break
                if (not _waits_for_another(session, waiting)
                        and _can_finish(session, waiting, now, stale_after)
                        and slots.enter(waiting)):
                    going.append(waiting.uuid)
            return self._let_go(session, going, now) if going else []

    def _let_go(self, session: orm.Session, uuids: list[str],
                now: datetime.datetime) -> list[moves.MoveRecord]:
        these = models.MoveRow.uuid.in_(uuids)
        session.execute(sa.update(models.MoveRow).where(these).values(
            state=moves.DISPATCHED, dispatched_at=now))
        rows.note(session, uuids, (moves.PLANNED, moves.DISPATCHED), now, self.worker)
        found = {row.uuid: row for row in session.scalars(sa.select(models.MoveRow).where(these))}
        return [rows.move_record(found[uuid]) for uuid in uuids]

    @retried_as_update
    def claim(self, uuid: str, now: datetime.datetime) -> moves.MoveRecord | None:
        """Accept a dispatched move, if no worker has accepted it. The same transaction records a
        sign of life of this worker.

        :returns: the MoveRecord, now CHECKING; None if another worker has accepted the move, or if
            the move is no longer dispatched
        """
        with self.database.writer() as session:
            taken = count_changed(session, sa.update(models.MoveRow).where(
                models.MoveRow.uuid == uuid, models.MoveRow.state == moves.DISPATCHED,
            ).values(owner=self.worker, state=moves.CHECKING))
            if not taken:
                return None
            self._beat(session, now)
            rows.note(session, [uuid], (moves.DISPATCHED, moves.CHECKING), now, self.worker)
            return rows.move_record(session.get_one(models.MoveRow, uuid))

    @retried
    def reclaim(self, now: datetime.datetime,
                dispatched_before: datetime.datetime) -> list[moves.MoveRecord]:
        """Change the state of dispatched moves that no worker has accepted to PLANNED, so that they
        are dispatched again. The messages that offered these moves to workers were probably lost.

        :param dispatched_before: only moves that were dispatched before this time
        :returns: MoveRecords, now PLANNED
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            lost = session.scalars(rows.moves_in((moves.DISPATCHED,)).where(
                models.MoveRow.dispatched_at < dispatched_before)).all()
            return [rows.move_record(row) for row in lost if rows.transit(
                session, row, moves.PLANNED, now, self.worker, 'no worker accepted it')]

    @retried
    def abandon(self, now: datetime.datetime, stale_before: datetime.datetime,
                forbidden: Mapping[str, str] | None = None) -> list[moves.MoveRecord]:
        """Give up planned moves that are no longer allowed to start.

        A move is given up in these cases:

        - it was planned or last checked before ``stale_before``
        - an operator aborted it
        - its plan is in ``forbidden``
        - it depends on a move that did not succeed
        - it only makes room, and the moves that need the room do not take place
        - another move of its group (moves that improve the balance only together) did not succeed,
          and no other move of the group is completed or in progress

        A move whose last attempt failed and that waits for another attempt becomes FAILED, unless
        an operator aborted it. All other moves become ABANDONED.

        :param forbidden: {uuid of a plan: reason why no more moves of the plan may start}
        :returns: MoveRecords of the moves, now ABANDONED or FAILED. The caller has to record the
            consequences of FAILED moves, such as quarantines
        """
        forbidden = forbidden or {}
        with rows.serialized(self.database, rows.DISPATCH) as session:
            query = rows.moves_in((moves.PLANNED,)).where(sa.or_(
                models.MoveRow.abort_requested, stale_before > CHECKED_AT,
                models.MoveRow.plan_uuid.in_(forbidden), models.MoveRow.group.is_not(None),
                models.MoveRow.depends_on != rows.NOTHING, models.MoveRow.only_makes_room))
            given_up: list[models.MoveRow] = []
            while more := [
                    row for row in session.scalars(query).all()
                    if (why := forbidden.get(row.plan_uuid)
                        or _why_not_any_more(session, row, stale_before))
                    and self._give_up(session, row, now, why)]:
                given_up += more    # these may have been the purpose of others
            return [rows.move_record(row) for row in given_up]

    @retried
    def give_up(self, reasons: Mapping[str, str], now: datetime.datetime) -> list[moves.MoveRecord]:
        """Give up some planned moves, and record a separate reason for each move.

        :param reasons: {uuid of a move: reason}
        :returns: MoveRecords of the moves, now ABANDONED or FAILED. The caller has to record the
            consequences of FAILED moves, such as quarantines
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            query = rows.moves_in((moves.PLANNED,)).where(models.MoveRow.uuid.in_(reasons))
            return [rows.move_record(row) for row in session.scalars(query).all()
                    if self._give_up(session, row, now, reasons[row.uuid])]

    def _give_up(self, session: orm.Session, row: models.MoveRow, now: datetime.datetime,
                 why: str) -> bool:
        if row.error_type is None or row.abort_requested:
            return rows.transit(session, row, moves.ABANDONED, now, self.worker, why,
                                finished_at=now, settled_at=now)
        return rows.transit(session, row, moves.FAILED, now, self.worker,
                            f'not tried again: {why}', finished_at=now)

    @retried
    def request_abort(self, uuid: str, who: str, now: datetime.datetime) -> None:
        """Request that the worker of a move aborts the move. The name of the user, ``who``, is
        recorded.

        :raises MoveNotFound: there is no such move
        :raises MoveEnded: the move has ended
        """
        with self.database.writer() as session:
            done = count_changed(session, sa.update(models.MoveRow).where(
                models.MoveRow.uuid == uuid, models.MoveRow.state.not_in(moves.TERMINAL),
            ).values(abort_requested=True))
            row = rows.find(session, models.MoveRow, uuid, exception.MoveNotFound(move=uuid))
            if not done:
                raise exception.MoveEnded(move=uuid, state=row.state)
            rows.note(session, [uuid], (row.state, row.state), now, who, 'asked to end it')

    @retried
    def mine(self) -> list[moves.MoveRecord]:
        """Return MoveRecords of this worker's moves in progress, in the order in which they became
        due."""
        query = rows.moves_in(moves.IN_FLIGHT).where(models.MoveRow.owner == self.worker).order_by(
            models.MoveRow.not_before, models.MoveRow.position, models.MoveRow.ordinal)
        with self.database.reader() as session:
            return [rows.move_record(row) for row in session.scalars(query)]

    @retried_as_update
    def heartbeat(self, now: datetime.datetime, role: str = EXECUTOR) -> None:
        """Record a sign of life of this worker."""
        with self.database.writer() as session:
            self._beat(session, now, role)

    def _beat(self, session: orm.Session, now: datetime.datetime, role: str = EXECUTOR) -> None:
        row = models.WorkerRow
        said = {'heartbeat_at': now, 'clock_skew': self.database.utcnow.skew()}
        known = count_changed(session, sa.update(row).where(
            row.name == self.worker).values(**said))
        if not known:
            session.execute(sa.insert(row).values(name=self.worker, role=role, **said))

    @retried
    def workers(self, since: datetime.datetime) -> list[tuple[str, str, datetime.datetime]]:
        """Return [(name, role, time of the last sign of life)] of the workers with a sign of life
        since a time."""
        with self.database.reader() as session:
            return [tuple(row) for row in session.execute(sa.select(
                models.WorkerRow.name, models.WorkerRow.role, models.WorkerRow.heartbeat_at,
            ).where(models.WorkerRow.heartbeat_at >= since).order_by(models.WorkerRow.name))]

    @retried
    def skewed_workers(self, since: datetime.datetime, most: float) -> list[tuple[str, float]]:
        """Return [(name, seconds by which its clock is ahead of the database)] of workers with
        wrong clocks. The seconds are negative if the clock is behind.

        :param since: only workers that have given a sign of life since this time
        :param most: maximum difference between a correct clock and the database's clock, in seconds
        """
        row = models.WorkerRow
        with self.database.reader() as session:
            return [tuple(each) for each in session.execute(sa.select(
                row.name, row.clock_skew).where(
                    row.heartbeat_at >= since, sa.func.abs(row.clock_skew) > most,
                ).order_by(row.name))]

    @retried
    def forget_workers(self, before: datetime.datetime) -> None:
        """Delete the records of workers that have ended. A worker counts as ended if its last sign
        of life is older than ``before`` and it owns no move in progress."""
        with self.database.writer() as session:
            owners = sa.select(models.MoveRow.owner).where(
                models.MoveRow.state.in_(moves.IN_FLIGHT), models.MoveRow.owner.is_not(None))
            session.execute(sa.delete(models.WorkerRow).where(
                models.WorkerRow.heartbeat_at < before, models.WorkerRow.name.not_in(owners)))

    @retried
    def owners(self) -> dict[str | None, datetime.datetime | None]:
        """Find the other workers that own a move in progress, and return when each gave its last
        sign of life.

        :returns: {worker: time of its last sign of life}; the time is None if no sign of life is
            recorded. A worker that ends normally gives up its moves in progress, which then have no
            owner. If there are such moves, the result also has the key None
        """
        move, row = models.MoveRow, models.WorkerRow
        query = sa.select(move.owner, row.heartbeat_at).outerjoin(
            row, row.name == move.owner).where(
            move.state.in_(moves.IN_FLIGHT), move.state != moves.DISPATCHED,
            sa.or_(move.owner.is_(None), move.owner != self.worker)).distinct()
        with self.database.reader() as session:
            return dict(session.execute(query).tuples().all())

    def adopt(self, now: datetime.datetime, silent: Mapping[str | None, datetime.datetime | None]
              ) -> list[moves.MoveRecord]:
        """Take over the moves in progress of workers that have died. A worker in ``silent`` keeps
        its moves if it has given another sign of life in the meantime.

        :param silent: {worker: time of its last sign of life} of the workers that count as dead,
            with the times that :meth:`owners` returned
        :returns: the MoveRecords, now owned by this worker. Their states are not changed
        """
        return self._adopt(now, silent, set())

    @retried
    def _adopt(self, now: datetime.datetime, silent: Mapping[str | None, datetime.datetime | None],
               taken: set[str]) -> list[moves.MoveRecord]:
        """Take over moves as in :meth:`adopt`, and add their uuids to ``taken``. After a lost
        answer, ``taken`` still has those that an earlier try took over."""
        with rows.serialized(self.database, rows.DISPATCH) as session:
            dead = [name for name, sign in silent.items()
                    if name is None or self._sign_of_life(session, name) == sign]
            has_no_owner = models.MoveRow.owner.is_(None) if None in dead else sa.false()
            query = rows.moves_in(moves.IN_FLIGHT).where(
                models.MoveRow.state != moves.DISPATCHED,
                sa.or_(models.MoveRow.owner.in_([name for name in dead if name]), has_no_owner))
            found = session.scalars(query).all()
            taken.update(row.uuid for row in found if rows.transit(
                session, row, row.state, now, self.worker,
                f'adopted from {row.owner or "a worker that has ended"}', owner=self.worker,
                adopted=True))
            for name in dead:
                session.execute(sa.delete(models.WorkerRow).where(
                    models.WorkerRow.name == name, models.WorkerRow.heartbeat_at == silent[name]))
            return [rows.move_record(row) for row in session.scalars(rows.moves_in(
                moves.IN_FLIGHT).where(models.MoveRow.uuid.in_(taken),
                                       models.MoveRow.owner == self.worker)).all()]

    @staticmethod
    def _sign_of_life(session: orm.Session, name: str) -> datetime.datetime | None:
        return session.scalar(sa.select(models.WorkerRow.heartbeat_at).where(
            models.WorkerRow.name == name))

    @retried
    def retire(self, now: datetime.datetime) -> None:
        """Record that this worker ends. Its moves that have not begun return to the queue. Other
        workers may take over its moves in progress at once."""
        with rows.serialized(self.database, rows.DISPATCH) as session:
            for row in session.scalars(rows.moves_in((moves.CHECKING,)).where(
                    models.MoveRow.owner == self.worker)).all():
                rows.transit(session, row, moves.PLANNED, now, self.worker, 'its worker ends',
                             owner=None)
            session.execute(sa.update(models.MoveRow).where(
                models.MoveRow.owner == self.worker, models.MoveRow.state.in_(moves.IN_FLIGHT),
            ).values(owner=None))
            session.execute(sa.delete(models.WorkerRow).where(models.WorkerRow.name == self.worker))


def _columns_of(states: Collection[str]) -> sa.Select[Any]:
    """Return a query of the moves that are in one of ``states``. The query selects only the columns
    that the limits of concurrent moves need, so it is much faster than a query of whole rows."""
    move = models.MoveRow
    return sa.select(move.uuid, move.plan_uuid, move.instance_uuid, move.source, move.destination,
                     move.depends_on, move.group, move.expected_seconds, move.checked_at,
                     move.created_at).where(move.state.in_(states))


def _ready(now: datetime.datetime, plan_uuids: Collection[str] | None) -> sa.Select[Any]:
    query = _columns_of((moves.PLANNED,)).where(models.MoveRow.not_before <= now).order_by(
        models.MoveRow.not_before, models.MoveRow.position, models.MoveRow.ordinal)
    if plan_uuids is not None:
        query = query.where(models.MoveRow.plan_uuid.in_(plan_uuids))
    return query.limit(SCAN_LIMIT)


def _before(session: orm.Session, row: Any) -> dict[int, str]:
    """Return {ordinal: state} of the moves on which a move depends. An ordinal is the number of a
    move in its plan."""
    ordinals = json.loads(row.depends_on)
    if not ordinals:
        return {}
    query = sa.select(models.MoveRow.ordinal, models.MoveRow.state).where(
        models.MoveRow.plan_uuid == row.plan_uuid, models.MoveRow.ordinal.in_(ordinals))
    return dict(session.execute(query).tuples().all())


def _waits_for_another(session: orm.Session, row: Any) -> bool:
    return any(state != moves.COMPLETED for state in _before(session, row).values())


def _why_not_any_more(session: orm.Session, row: models.MoveRow,
                      stale_before: datetime.datetime) -> str | None:
    if row.abort_requested:
        return 'aborted by an operator'
    if (row.checked_at or row.created_at) < stale_before:
        return 'too old: it was planned for a load that may have changed since'
    for ordinal, state in sorted(_before(session, row).items()):
        if state in (moves.FAILED, moves.ABANDONED):
            return f'depends on move {ordinal}, which is {state}'
    others = _rest_of_group(session, row)
    lost = [other for other in others if other.state in (moves.FAILED, moves.ABANDONED)]
    if lost and not _is_begun(others):
        return f'helps only together with move {lost[0].ordinal}, which is {lost[0].state}'
    return rows.serves_nothing(session, row)


def _rest_of_group(session: orm.Session, row: Any) -> Sequence[Any]:
    """Return the other moves in the group of a move, sorted by ordinal. Each row has the columns
    ordinal, state and expected_seconds."""
    if row.group is None:
        return []
    move = models.MoveRow
    return session.execute(sa.select(move.ordinal, move.state, move.expected_seconds).where(
        move.plan_uuid == row.plan_uuid, move.group == row.group, move.uuid != row.uuid,
    ).order_by(move.ordinal)).all()


def _is_begun(others: Iterable[Any]) -> bool:
    """Return whether at least one of the moves ``others`` is completed or in progress."""
    return any(other.state == moves.COMPLETED or other.state in moves.IN_FLIGHT
               for other in others)


def _can_finish(session: orm.Session, row: Any, now: datetime.datetime,
                stale_after: float | None) -> bool:
    """Return whether a move that is due may start. A group is a set of moves that improve the
    balance only together, so no move starts if its group could probably not be completed.

    The result is True in these cases:

    - the move has no group
    - another move of the group is completed or in progress
    - all moves of the group can start one after the other before they are too old

    :param stale_after: seconds after which a move is too old to be started; None for no limit
    """
    others = _rest_of_group(session, row)
    if not others or stale_after is None or _is_begun(others):
        return True
    needed = sum(seconds or 0.0 for seconds in (
        row.expected_seconds, *(other.expected_seconds for other in others[:-1])))
    return (now - (row.checked_at or row.created_at)).total_seconds() + needed <= stale_after
