"""The last evaluation of each aggregate, and the time at which the next evaluation is due."""

import datetime
import json
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova.db import counters
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.retry import retried
from kronos_nova.objects import plan as plans

MOST_DOUBLINGS = 4
"""Maximum number of doublings of the pause before an evaluation that an operator has requested. The
pause is doubled once for each evaluation of the aggregate that has failed since the last success.
Raised, the operator may get a result later after an outage; lowered, an evaluation that always
fails is repeated more often, which uses processor time. Chosen because four doublings make 160 s of
a pause of 10 s."""

LONGEST_PAUSE_SECONDS = 3600
"""Maximum seconds between two evaluations of an aggregate whose evaluations fail. Raised, the
aggregate is evaluated later after the cause was removed; lowered, evaluations that always fail use
more processor time. Not measured."""

CLOCKS_APART = 60
"""Maximum seconds by which the clocks of two controllers may differ. A stored time of an evaluation
that is too far in the future is ignored, because a wrong clock wrote the time. The limit is the
pause between evaluations plus these seconds. Raised, a wrong clock delays evaluations for longer;
lowered, a small difference counts as a wrong clock. Chosen as the default of Nova's option
``service_down_time``: such a difference of clocks makes Nova regard a service as down."""


EXPEDITED = datetime.timedelta(seconds=24 * LONGEST_PAUSE_SECONDS)
"""Time by which the start of the last evaluation is set back if the next evaluation has to begin at
once. Longer than every pause between evaluations, so that the next evaluation is due; and longer
than every evaluation, so that :func:`duration` can tell it from the duration of an evaluation.
Fixed."""


class Cycles:
    """The times and results of the last evaluation of each aggregate.

    A time that is too far in the future was written by a wrong clock, and is ignored; see
    :data:`CLOCKS_APART`.
    """

    def __init__(self, database: Database):
        self.database = database

    @retried
    def due(self, aggregates: Iterable[str], now: datetime.datetime, interval: float,
            favour: tuple[str | None, float] = (None, 0)) -> list[str]:
        """Return the aggregates that are due for an evaluation, in the order of ``aggregates``.

        An aggregate is due if its last evaluation began at least ``interval`` seconds ago, and no
        failure has postponed its next evaluation.

        :param favour: (name of this worker, seconds). If another worker evaluated an aggregate
            last, the aggregate is due these seconds later for this worker. So the other worker can
            evaluate it first
        """
        worker, head_start = favour
        since = now - datetime.timedelta(seconds=interval)
        others_since = since - datetime.timedelta(seconds=head_start)
        row = models.CycleRow
        with self.database.reader() as session:
            recent = set(session.scalars(sa.select(row.aggregate).where(sa.or_(
                _is_after(row.started_at, since, now, interval), _is_postponed(now, interval),
                sa.and_(row.worker != worker,
                        _is_after(row.started_at, others_since, now, interval))))))
        return [aggregate for aggregate in aggregates if aggregate not in recent]

    @retried
    def begin(self, aggregate: str, worker: str, now: datetime.datetime, interval: float,
              is_ordered: bool = False) -> bool:
        """Begin an evaluation of an aggregate, if the evaluation is due.

        An evaluation is due if the last evaluation began at least ``interval`` seconds ago, and no
        failure has postponed the next evaluation.

        :param is_ordered: True if an operator has requested the evaluation. Postponements are then
            ignored. Instead, each failure since the last success doubles ``interval``, at most
            :data:`MOST_DOUBLINGS` times
        :returns: True if this call has begun the evaluation; False if the evaluation is not due
            yet, or if another worker has begun it
        """
        with self.database.writer() as session:
            row = session.get(models.CycleRow, aggregate)
            if row is not None and (row.worker, row.started_at) == (worker, now):
                return True     # An earlier try wrote the row, and its answer was lost.
            if is_ordered and row is not None:
                interval *= 2.0 ** min(row.failures, MOST_DOUBLINGS)
            due = now - datetime.timedelta(seconds=interval)
            begun = count_changed(session, sa.update(models.CycleRow).where(
                models.CycleRow.aggregate == aggregate,
                ~_is_after(models.CycleRow.started_at, due, now, interval),
                sa.true() if is_ordered else sa.or_(
                    models.CycleRow.not_before.is_(None), ~_is_postponed(now, interval)),
            ).values(started_at=now, worker=worker))
            if row is None:
                session.add(models.CycleRow(aggregate=aggregate, started_at=now, worker=worker))
                begun = 1
            return bool(begun)

    @retried
    def expedite(self, aggregate: str) -> None:
        """Make the next evaluation of an aggregate due at once. Nothing is changed in two cases: a
        failure has postponed the next evaluation, or an evaluation of the aggregate is in
        progress."""
        row = models.CycleRow
        with self.database.writer() as session:
            found = session.get(row, aggregate)
            if found is not None and found.finished_at and found.finished_at >= found.started_at:
                found.started_at -= EXPEDITED

    @retried
    def end(self, aggregate: str, now: datetime.datetime, outcome: str, imbalanced: bool,
            report: str, doubted: Iterable[tuple[str, str]] = ()) -> None:
        """Save the end and the result of an evaluation.

        :param imbalanced: whether a policy was above its threshold
        :param report: JSON of the evaluation's AggregateReport
        :param doubted: pairs (policy, host) whose score failed a check; the evaluation did not use
            these scores
        """
        with self.database.writer() as session:
            row = session.get_one(models.CycleRow, aggregate)
            row.finished_at, row.outcome, row.report = now, outcome, report
            row.imbalanced_cycles = row.imbalanced_cycles + 1 if imbalanced else 0
            row.failures, row.not_before = 0, None
            row.doubted = json.dumps(sorted(doubted)) if doubted else None
            if outcome not in plans.BLIND:
                row.good_at = now
            counters.add(session, counters.CYCLES, aggregate=aggregate, outcome=outcome)

    @retried
    def fail(self, aggregates: Collection[str], now: datetime.datetime, interval: float) -> None:
        """Record that the last evaluation of each aggregate in ``aggregates`` failed, because the
        process died during the evaluation. Postpone the next evaluation of each of these
        aggregates. Aggregates whose last evaluation has ended are not changed.

        :param interval: seconds between evaluations that succeed. The next evaluation is postponed
            by ``interval`` after the first failure. Each further failure in a row doubles the
            pause, up to :data:`LONGEST_PAUSE_SECONDS`
        """
        with self.database.writer() as session:
            for row in session.scalars(sa.select(models.CycleRow).where(
                    models.CycleRow.aggregate.in_(aggregates),
                    sa.or_(models.CycleRow.finished_at.is_(None),
                           models.CycleRow.finished_at < models.CycleRow.started_at))):
                row.outcome, row.failures = plans.FAILED, row.failures + 1
                counters.add(session, counters.CYCLES, aggregate=row.aggregate,
                             outcome=plans.FAILED)
                pause = min(interval * 2.0 ** min(row.failures - 1, 16),
                            max(LONGEST_PAUSE_SECONDS, interval))
                row.not_before = now + datetime.timedelta(seconds=pause)

    @retried
    def failed(self) -> set[str]:
        """Return the names of the aggregates whose last evaluation failed. An evaluation has failed
        if its process died before the evaluation ended."""
        with self.database.reader() as session:
            return set(session.scalars(sa.select(models.CycleRow.aggregate).where(
                models.CycleRow.failures > 0)))

    @retried
    def evaluated(self, since: datetime.datetime, now: datetime.datetime) -> set[str]:
        """Return the names of the aggregates of which an evaluation has begun or ended after
        ``since``."""
        row = models.CycleRow
        with self.database.reader() as session:
            return set(session.scalars(sa.select(row.aggregate).where(sa.or_(
                _is_after(row.started_at, since, now, 0),
                _is_after(row.finished_at, since, now, 0)))))

    @retried
    def imbalanced(self) -> dict[str, int]:
        """Return {aggregate: number of its last evaluations in a row that found a policy above its
        threshold}."""
        with self.database.reader() as session:
            return dict(session.execute(sa.select(
                models.CycleRow.aggregate, models.CycleRow.imbalanced_cycles)).tuples().all())

    @retried
    def doubted(self) -> dict[str, frozenset[tuple[str, str]]]:
        """Return the scores that failed a check in the last evaluation, as {aggregate: set of
        (policy, host)}. Aggregates without such scores are left out."""
        with self.database.reader() as session:
            rows = session.execute(sa.select(
                models.CycleRow.aggregate, models.CycleRow.doubted).where(
                    models.CycleRow.doubted.is_not(None))).all()
        return {aggregate: frozenset(map(tuple, json.loads(pairs))) for aggregate, pairs in rows}

    @retried
    def of_aggregate(self, aggregate: str) -> models.CycleRow | None:
        """Return the last evaluation of an aggregate, as a models.CycleRow; None if there was
        none."""
        with self.database.reader() as session:
            return session.get(models.CycleRow, aggregate)

    @retried
    def last(self) -> Sequence[models.CycleRow]:
        """Return the last evaluation of every aggregate, as models.CycleRow rows."""
        with self.database.reader() as session:
            return session.scalars(
                sa.select(models.CycleRow).order_by(models.CycleRow.aggregate)).all()


def duration(row: models.CycleRow) -> datetime.timedelta | None:
    """Return the duration of the last evaluation of an aggregate. Return None if the evaluation is
    in progress, or if the clock was set back during the evaluation."""
    if row.finished_at is None or row.finished_at < row.started_at:
        return None
    return (row.finished_at - row.started_at) % EXPEDITED


def _is_after(column: orm.InstrumentedAttribute[Any], time: datetime.datetime,
              now: datetime.datetime, seconds: float) -> sa.ColumnElement[bool]:
    """Return an SQL condition, which is true if the time in ``column`` is later than ``time``.

    The condition is false for a time more than ``seconds`` + :data:`CLOCKS_APART` after ``now``,
    because such a time comes from a wrong clock.
    """
    return sa.and_(column > time,
                   column <= now + datetime.timedelta(seconds=seconds + CLOCKS_APART))


def _is_postponed(now: datetime.datetime, interval: float) -> sa.ColumnElement[bool]:
    return _is_after(models.CycleRow.not_before, now, now, max(LONGEST_PAUSE_SECONDS, interval))
