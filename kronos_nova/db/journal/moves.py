"""The moves in the journal: changes of their states, and queries for moves in progress and for past
moves."""

import collections
import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.db.retry import retried_unless_away
from kronos_nova.drain import states as drains
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import transitions
from kronos_nova.objects.move import REFUSED
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.snapshot import MoveUnderWay

if TYPE_CHECKING:
    from kronos_nova.cooldown.planning_history import PastTry

SEARCHED_FOR_EACH = 10
"""Maximum number of completed moves that are read for each pair that :meth:`Moves.predictions` may
return. A pair is the predicted and the actual duration of a move. The newest moves are read first.
The number is more than 1, because some moves are not live migrations or have no predicted duration.
Raised, the status command reads more rows; lowered, the status command may find too few
predictions. Chosen to limit the search: a search through a million moves without predictions took
4.9 s."""
MOST_COMPLETED = 50_000
"""Maximum number of completed moves that an evaluation reads. If there are more, the newest are
read. Raised, an evaluation takes more memory; lowered, older moves are ignored in clouds with very
many moves. Chosen to cover four weeks with about 1,800 moves a day."""
LONGEST_WAIT = datetime.timedelta(days=1)
"""Maximum time (1 day) from the last check of a move until the move's request to Nova. In a check,
Kronos decides whether the move still helps. Evaluations read the moves that were requested lately,
to recognise their migrations. A move that waited longer than this time is not found. Raised,
evaluations read more rows; lowered, the migrations of moves that waited longer count as requested
by users. Chosen above the default of ``stale_plan_age``, which is half an hour."""


class Moves:
    """The moves in the journal: the changes of their states, and queries for moves."""

    database: Database
    worker: str

    @retried_unless_away
    def knows(self, move_uuid: str) -> bool:
        """Return whether the journal has a move with this uuid, in any state."""
        with self.database.reader() as session:
            return session.get(models.MoveRow, move_uuid) is not None

    @retried
    def move(self, uuid: str) -> MoveRecord:
        """Return a move by its uuid.

        :raises MoveNotFound: there is no such move
        """
        with self.database.reader() as session:
            return rows.move_record(rows.find(session, models.MoveRow, uuid,
                                              exception.MoveNotFound(move=uuid)))

    @retried
    def moves(self, plan_uuid: str | None = None, states: Collection[str] | None = None,
              limit: int | None = None) -> list[MoveRecord]:
        """Return MoveRecords of the moves of one plan or of all plans. Moves of the newest plan
        come first; the moves of a plan are in the order of the plan. If ``states`` is given, only
        moves in one of these states are returned.

        :param limit: maximum number of moves; None for all
        """
        query = sa.select(models.MoveRow).order_by(
            models.MoveRow.created_at.desc(), models.MoveRow.plan_uuid, models.MoveRow.ordinal)
        if plan_uuid is not None:
            query = query.where(models.MoveRow.plan_uuid == plan_uuid)
        if states is not None:
            query = query.where(models.MoveRow.state.in_(states))
        with self.database.reader() as session:
            return [rows.move_record(row) for row in session.scalars(query.limit(limit))]

    @retried
    def moves_under_way(self) -> list[MoveUnderWay]:
        """Return a MoveUnderWay for each move that waits or is in progress."""
        move = models.MoveRow
        query = sa.select(move.instance_uuid, move.source, move.destination).where(
            move.state.in_((moves.PLANNED, *moves.IN_FLIGHT)),
        ).order_by(move.created_at, move.ordinal)
        with self.database.reader() as session:
            return [MoveUnderWay(**row._mapping) for row in session.execute(query)]

    @retried
    def advance(self, move: MoveRecord, new: str, now: datetime.datetime, detail: str = '',
                **values: Any) -> MoveRecord:
        """Bring a move of this worker to its next state, and save the columns ``values``.

        :param move: the MoveRecord as the worker knows it
        :returns: the MoveRecord as it is now
        :raises IllegalTransition: a move is not allowed to change from its state to the new state
        :raises MoveLost: another worker owns the move, or its state has changed
        """
        with self.database.writer() as session:
            return self._advance(session, move, new, now, detail, values)

    def _advance(self, session: orm.Session, move: MoveRecord, new: str,
                 now: datetime.datetime, detail: str, values: dict[str, Any]) -> MoveRecord:
        if new != move.state and not transitions.is_legal(move.state, new):
            raise exception.IllegalTransition(move=move.uuid, old=move.state, new=new)
        kept = count_changed(session, sa.update(models.MoveRow).where(
            models.MoveRow.uuid == move.uuid, models.MoveRow.owner == self.worker,
            models.MoveRow.state == move.state).values(state=new, **values))
        changed = dataclasses.replace(move, state=new, **values)
        if not kept:
            row = rows.find(session, models.MoveRow, move.uuid, exception.MoveLost(
                move=move.uuid, owner=None, state='deleted'))
            # An earlier try may have written the row, and its answer was lost. The values, most of
            # which have a time, show that the row is from this call.
            if not values or any(getattr(row, name) != value for name, value in
                                 {'owner': self.worker, 'state': new, **values}.items()):
                raise exception.MoveLost(move=move.uuid, owner=row.owner, state=row.state)
            return changed
        if new != move.state:
            rows.note(session, [move.uuid], (move.state, new), now, self.worker, detail,
                      has_failed='error_type' in values)
        return changed

    @retried
    def begin(self, move: MoveRecord, now: datetime.datetime,
              refusal: Callable[[orm.Session, plans.RunningPlan], str | None],
              **values: Any) -> MoveRecord:
        """Bring a move of this worker to MIGRATING, if the move may be started now. A move that
        only makes room is not started if the moves that need the room do not take place.

        Levels and pauses are changed under a lock. This function holds the same lock. So once a
        level or a pause has changed, no move starts under the old value.

        :param refusal: function that decides whether the move may be started now. Its arguments are
            the session and the move's RunningPlan. The function returns the reason why the move may
            not be started; None if the move may be started
        :returns: the MoveRecord as it is now
        :raises MoveHeld: the move may not be started now; nothing was written
        :raises MoveLost: another worker owns the move, or its state has changed
        """
        with rows.serialized(self.database, rows.DISPATCH) as session:
            why = (refusal(session, rows.running_plan(session.get(models.PlanRow, move.plan_uuid)))
                   or rows.serves_nothing(session, move))
            if why:
                raise exception.MoveHeld(move=move.uuid, reason=why)
            return self._advance(session, move, moves.MIGRATING, now, '', values)

    @retried
    def note_outage(self, uuid: str) -> None:
        """Record in a migrating move that its present attempt fails because of an outage: a service
        that Nova needs does not answer. If no move with this uuid is migrating, do nothing."""
        with self.database.writer() as session:
            session.execute(sa.update(models.MoveRow).where(
                models.MoveRow.uuid == uuid, models.MoveRow.state == moves.MIGRATING,
            ).values(outage=True))

    @retried
    def settle(self, uuid: str, now: datetime.datetime) -> None:
        """Record that an ended move is settled. A move is settled once the consequences of its end,
        such as a quarantine, are recorded."""
        with self.database.writer() as session:
            session.execute(sa.update(models.MoveRow).where(
                models.MoveRow.uuid == uuid, models.MoveRow.state.in_(moves.TERMINAL),
                models.MoveRow.settled_at.is_(None)).values(settled_at=now))

    @retried
    def unsettled(self, finished_before: datetime.datetime) -> list[MoveRecord]:
        """Return MoveRecords of the moves that ended before a time and are not settled yet. Only
        moves of plans in progress are included."""
        query = rows.moves_in(moves.TERMINAL).join(
            models.PlanRow, models.PlanRow.uuid == models.MoveRow.plan_uuid,
        ).where(models.PlanRow.state == plans.EXECUTING, models.MoveRow.settled_at.is_(None),
                models.MoveRow.finished_at < finished_before)
        with self.database.reader() as session:
            return [rows.move_record(row) for row in session.scalars(query)]

    @retried
    def durations(self, limit: int = 500) -> list[tuple[int, float]]:
        """Return [(memory in MiB, seconds)] of the newest completed live migrations. The seconds
        are counted from the request to Nova until the end of the migration."""
        query = sa.select(models.MoveRow.memory_mb, models.MoveRow.requested_at,
                          models.MoveRow.finished_at).where(
            models.MoveRow.state == moves.COMPLETED, models.MoveRow.requested_at.is_not(None),
            models.MoveRow.memory_mb > 0, models.MoveRow.kind == drains.LIVE,
        ).order_by(models.MoveRow.finished_at.desc()).limit(limit)
        with self.database.reader() as session:
            found = [(memory_mb, clock.seconds_between(begin, end))
                     for memory_mb, begin, end in session.execute(query)]
        return [(memory_mb, seconds) for memory_mb, seconds in found if seconds is not None]

    @retried
    def predictions(self, limit: int = 100) -> list[tuple[float, float]]:
        """Return [(expected seconds, actual seconds)] of the newest completed live migrations.
        Migrations without a predicted duration are left out."""
        move = models.MoveRow
        # Moves without a prediction are left out here, not by the query, which would read all moves
        # if none has one.
        query = sa.select(
            move.expected_seconds, move.requested_at, move.finished_at, move.kind,
        ).where(move.state == moves.COMPLETED).order_by(move.finished_at.desc()).limit(
            SEARCHED_FOR_EACH * limit)
        with self.database.reader() as session:
            found = [(expected, clock.seconds_between(begin, end))
                     for expected, begin, end, kind in session.execute(query)
                     if kind == drains.LIVE]
        return [(expected, seconds) for expected, seconds in found
                if expected is not None and seconds is not None][:limit]

    @retried
    def failures_of_drains(self, since: datetime.datetime) -> dict[str, list[str]]:
        """Return {instance uuid: [errors]} of the moves that were to empty a host, have failed
        since a time and are not tried again. Moves that Nova refused before they began are left
        out."""
        query = sa.select(models.MoveRow.instance_uuid, models.MoveRow.error).join(
            models.PlanRow, models.PlanRow.uuid == models.MoveRow.plan_uuid,
        ).where(models.PlanRow.purpose == automation.DRAIN, models.MoveRow.state == moves.FAILED,
                models.MoveRow.finished_at >= since, _was_not_refused(),
                ).order_by(models.MoveRow.finished_at)
        found = collections.defaultdict(list)
        with self.database.reader() as session:
            for uuid, error in session.execute(query):
                found[uuid].append(error or '')
        return dict(found)

    @retried
    def refused_since(self, since: datetime.datetime) -> dict[str, dict[str, str]]:
        """Return {instance uuid: {destination: error}} of the moves that Nova has refused to begin,
        since a time. A move that will be tried again is left out."""
        move = models.MoveRow
        query = sa.select(move.instance_uuid, move.destination, move.error).where(
            move.state == moves.FAILED, move.finished_at >= since, move.error_type == REFUSED,
            ).order_by(move.finished_at)
        found: dict[str, dict[str, str]] = collections.defaultdict(dict)
        with self.database.reader() as session:
            for uuid, destination, error in session.execute(query):
                found[uuid][destination] = error or ''
        return dict(found)

    @retried
    def newest_timeouts(self, instance_uuids: Collection[str]) -> list[MoveRecord]:
        """Return the MoveRecords of moves that failed because their migrations took too long. Of
        each of the given instances, only the newest failed move is considered."""
        move = models.MoveRow
        newest = {}
        with self.database.reader() as session:
            for row in session.scalars(sa.select(move).where(
                    move.state == moves.FAILED, move.instance_uuid.in_(instance_uuids),
                    ).order_by(move.finished_at)):
                newest[row.instance_uuid] = row
            return [rows.move_record(row) for row in newest.values()
                    if row.error_type == exception.MigrationTimeout.__name__]

    @retried
    def tries(self, since: datetime.datetime) -> 'list[PastTry]':
        """Return PastTries of the moves that completed or failed since a time, the oldest first.
        Moves that Nova refused before they began are left out."""
        ended = models.MoveRow
        query = sa.select(
            ended.instance_uuid, ended.source, ended.destination, ended.memory_mb, ended.state,
            ended.requested_at, ended.finished_at, ended.memory_processed,
            ended.memory_remaining, ended.expected_seconds,
        ).where(ended.state.in_((moves.COMPLETED, moves.FAILED)), ended.finished_at >= since,
                _was_not_refused()).order_by(ended.finished_at, ended.uuid)
        with self.database.reader() as session:
            rows = session.execute(query).all()
        return [_past_try(row, sharing) for row, sharing in zip(rows, _sharing(rows), strict=True)]

    @retried
    def moved_since(self, since: datetime.datetime) -> tuple[dict[str, int], dict[str, int]]:
        """Count the moves that were planned since a time. For a move that was checked again after
        it was planned, the time of the last check counts. Abandoned moves and moves that empty
        hosts are left out.

        :returns: ({project: number of moves}, {instance uuid: number of moves}). In the second
            dictionary, a move counts for the instance whose load caused the move, even if the move
            moved another instance
        """
        move = models.MoveRow

        def counts(column: orm.InstrumentedAttribute[str | None]) -> dict[str, int]:
            query = sa.select(column, sa.func.count()).where(
                move.checked_at >= since, move.state != moves.ABANDONED,
                move.phase != plans.EVACUATE, column.is_not(None)).group_by(column)
            return {str(name): count for name, count in session.execute(query)}

        with self.database.reader() as session:
            return counts(move.project_id), counts(move.caused_by)

    @retried
    def requested_since(self, since: datetime.datetime) -> set[tuple[str, str, str]]:
        """Return {(instance uuid, source, destination)} of the moves that were requested from Nova
        since a time."""
        move = models.MoveRow
        with self.database.reader() as session:
            return {tuple(row) for row in session.execute(
                sa.select(move.instance_uuid, move.source, move.destination).where(
                    move.checked_at >= since - LONGEST_WAIT, move.requested_at >= since))}

    @retried
    def emptied_since(self, since: datetime.datetime) -> set[tuple[str, str]]:
        """Return {(instance uuid, source)} of the moves that emptied a host and completed since a
        time."""
        move = models.MoveRow
        with self.database.reader() as session:
            return {tuple(row) for row in session.execute(
                sa.select(move.instance_uuid, move.source).where(
                    move.phase == plans.EVACUATE, move.state == moves.COMPLETED,
                    move.finished_at >= since))}

    @retried
    def completed_since(self, since: datetime.datetime,
                        aggregates: Collection[str] | None = None) -> Sequence[Any]:
        """Return the moves that were completed since a time, in the order in which they ended. If
        there are more than :data:`MOST_COMPLETED`, only the latest are returned.

        :param aggregates: names of the aggregates whose moves are returned; None for any
        :returns: rows with instance_uuid, source, destination and phase (the phase of planning that
            chose the move)
        """
        move = models.MoveRow
        query = rows.of_aggregates(sa.select(
            move.instance_uuid, move.source, move.destination, move.phase).where(
                move.state == moves.COMPLETED, move.finished_at >= since), aggregates)
        with self.database.reader() as session:
            return session.execute(query.order_by(move.finished_at.desc()).limit(
                MOST_COMPLETED)).all()[::-1]

    @retried
    def instances_moved_since(self, since: datetime.datetime) -> dict[str, int]:
        """Return {instance uuid: number of moves of the instance that were planned since a time}.
        For a move that was checked again after it was planned, the time of the last check counts.
        Abandoned moves and moves that empty hosts are left out."""
        move = models.MoveRow
        with self.database.reader() as session:
            # The rows are counted here, because databases read all moves for a GROUP BY on
            # instances.
            return dict(collections.Counter(session.scalars(sa.select(move.instance_uuid).where(
                move.checked_at >= since, move.state != moves.ABANDONED,
                move.phase != plans.EVACUATE))))

    @retried
    def events(self,
               move_uuid: str) -> list[tuple[datetime.datetime, str | None, str, str | None, str]]:
        """Return [(time, old state, new state, worker, detail)] of the changes of a move's state,
        the oldest first."""
        query = sa.select(models.MoveEventRow).where(
            models.MoveEventRow.move_uuid == move_uuid).order_by(models.MoveEventRow.id)
        with self.database.reader() as session:
            return [(e.at, e.old_state, e.new_state, e.worker, e.detail)
                    for e in session.scalars(query)]


def _was_not_refused() -> sa.ColumnElement[bool]:
    return models.MoveRow.error_type.is_distinct_from(REFUSED)


def _past_try(row: Any, sharing: float) -> 'PastTry':
    # Imported late, because it imports numpy, which takes a third of the time of a command.
    from kronos_nova.cooldown.planning_history import PastTry
    lasted = clock.seconds_between(row.requested_at, row.finished_at)
    copied = row.memory_processed and row.memory_processed + (row.memory_remaining or 0)
    return PastTry(
        instance_uuid=row.instance_uuid, source=row.source, destination=row.destination,
        memory_mb=row.memory_mb, failed=row.state == moves.FAILED, sharing=sharing,
        processed_mb=copied and copied / 2**20, expected=row.expected_seconds, lasted=lasted,
        seconds=lasted if row.state == moves.COMPLETED else None)


def _sharing(rows: Sequence[Any]) -> list[float]:
    """Return, for each move, the mean number of moves that used the same network link at the same
    time, including the move itself. A move uses two links: the link of its source and that of its
    destination. The number for the busier link is returned.

    :param rows: rows of moves that have ended
    :returns: list with a number for each row
    """
    from kronos_nova.pacing import migration_history  # imported late, as above
    return migration_history.sharing({
        'source': row.source, 'destination': row.destination,
        'begun': (row.requested_at or row.finished_at).timestamp(),
        'ended': row.finished_at.timestamp()} for row in rows)
