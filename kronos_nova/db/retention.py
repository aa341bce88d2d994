"""Deletion of rows that are older than their retention, a few at a time.

Rows that are still needed are kept, whatever their age:

- plans that wait or run, and the moves and reports of these plans
- quarantines without an end
- repairs that were not closed
- drains whose host was not released
"""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy import orm

from kronos_nova.db import future_times
from kronos_nova.db import leases
from kronos_nova.db import models
from kronos_nova.db import outbox
from kronos_nova.db import sums
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.holds import NO_CONSUMERS
from kronos_nova.db.retry import retried
from kronos_nova.drain import states as drains
from kronos_nova.objects import hold as holds
from kronos_nova.objects import maintenance as maintenances
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import repair as repairs
from kronos_nova.objects import task as tasks

LOG = logging.getLogger(__name__)

BATCH = 500
"""Maximum number of expired rows that one transaction deletes from one table. Raised, a transaction
holds locks for more than a few milliseconds; lowered, it takes longer until all expired rows are
deleted. Not measured."""

INTERVAL = datetime.timedelta(minutes=10)
"""Time (10 minutes) between two searches for rows that are too old. Raised, rows that are too old
stay longer; lowered, the database has more queries. Not measured."""

CORRECTION_INTERVAL = datetime.timedelta(minutes=1)
"""Time (1 minute) between two searches for times in the future. Raised, times that a wrong clock
wrote are in force for longer; lowered, the database has more queries. Not measured."""

PAUSE = datetime.timedelta(seconds=5)
"""Time (5 seconds) between two deletions while rows that are too old are left. Raised, many old
rows are deleted more slowly; lowered, the database has more load. Chosen so that 8 million rows of
a table can be deleted in a day, :data:`BATCH` rows at a time."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Days for which rows of the control database are kept. Rows about something that is still in
    progress are kept for longer, until it has ended. With 0 days, rows are kept for ever.

    operations : days for the records of operators' actions: switches (levels and pauses), drains,
        holds and maintenances
    """

    plans: int
    moves: int
    events: int
    reports: int
    repairs: int
    quarantines: int
    tasks: int
    operations: int
    notifications: int
    evaluations: int
    sums: int

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> 'Days':
        return cls(**{field.name: conf.kronos_database[f'{field.name}_retention_days']
                      for field in dataclasses.fields(cls)})


Old = tuple[type[models.Base], sa.Select[Any]]
"""The model of a table, and a query of the primary keys of its rows that are older than a time."""
Select = Callable[[datetime.datetime], Old]


class Pruner:
    """A periodic deletion of rows that are too old. Only one process at a time deletes rows.

    A service calls :meth:`tick` at any interval. Retention times are read again from ``conf`` for
    each deletion.
    """

    def __init__(self, conf: cfg.ConfigOpts, database: Database, worker: str,
                 clock: Callable[[], datetime.datetime]):
        self._conf = conf
        self._database = database
        self._leases = leases.Leases(database, worker, clock)
        self._clock = clock
        self._next = self._next_correction = clock()

    def tick(self) -> None:
        """Delete some rows that are too old, if a deletion is due and no other process has the
        lease for it.

        :raises DBError: the control database cannot be reached
        """
        now = self._clock()
        self._correct_times(now)
        if now < self._next <= now + INTERVAL:
            return
        self._next = now + INTERVAL
        if not self._leases.hold(leases.RETENTION, 2 * INTERVAL.total_seconds()):
            return
        dropped = Retention(self._database, Days.from_conf(self._conf)).step(now)
        if max(dropped.values(), default=0) == BATCH:
            self._next = now + PAUSE


    def _correct_times(self, now: datetime.datetime) -> None:
        """Correct times in the future, which a wrong clock wrote, if the last correction was at
        least CORRECTION_INTERVAL ago."""
        if now < self._next_correction <= now + CORRECTION_INTERVAL:
            return
        self._next_correction = now + CORRECTION_INTERVAL
        if not self._leases.hold(leases.RETENTION, 2 * INTERVAL.total_seconds()):
            return
        for name, number in future_times.FutureTimes(self._database).correct(now).items():
            LOG.warning('Control database: corrected the times of %d rows of table %s, which a '
                        'wrong clock had set in the future.', number, name)


class Retention:
    """The deletion of rows that are older than their retention periods.

    :param days: Days
    """

    def __init__(self, database: Database, days: Days):
        self.database = database
        self.days = days

    def step(self, now: datetime.datetime, batch: int = BATCH) -> dict[str, int]:
        """Delete rows that are too old, at most ``batch`` rows of each table.

        :param batch: maximum number of rows of each table
        :returns: {table: number of deleted rows}; every number is 0 if no row is too old
        """
        return {name: self._drop(name, select, now - datetime.timedelta(days=days), batch)
                for name, select, days in self._retention_periods() if days}

    def _retention_periods(self) -> Iterator[tuple[str, Select, float]]:
        """Yield (table, select, days) for each table whose old rows are deleted. ``days`` is the
        number of days for which rows of the table are kept. If one table refers to another, the
        referring table comes first."""
        for name, select in SELECTS.items():
            yield name, select, getattr(self.days, KEPT_AS.get(name, name))

    @retried
    def _drop(self, name: str, select: Select, before: datetime.datetime, batch: int) -> int:
        model, query = select(before)
        [key] = sa.inspect(model).primary_key
        with self.database.reader() as session:
            keys = session.scalars(query.limit(batch)).all()
        if not keys:
            return 0
        unsent = 0
        with self.database.writer() as session:
            if model is models.MoveRow:
                sums.add_moves(session, keys)
            elif model is models.NotificationRow:
                unsent = outbox.count_dropped(session, keys)
            for dependent in DEPENDENTS.get(model, ()):
                session.execute(sa.delete(dependent.class_).where(dependent.in_(keys)))
            dropped = count_changed(session, sa.delete(model).where(key.in_(keys)))
        if unsent:
            LOG.error('%d notifications were dropped: no broker accepted them during their '
                      'retention time ([kronos_database] notifications_retention_days).', unsent)
        return dropped


def _events(before: datetime.datetime) -> Old:
    event, move = models.MoveEventRow, models.MoveRow
    return event, sa.select(event.id).join(move, move.uuid == event.move_uuid).where(
        event.at < before, move.state.in_(moves.TERMINAL)).order_by(event.at)


def _moves(before: datetime.datetime) -> Old:
    move, plan = models.MoveRow, models.PlanRow
    # Other moves of a plan that still runs may depend on the end of this move.
    return move, sa.select(move.uuid).join(plan, plan.uuid == move.plan_uuid).where(
        move.state.in_(moves.TERMINAL), move.finished_at < before, move.settled_at.is_not(None),
        _is_over(plan))


def _is_over(plan: type[models.PlanRow]) -> sa.ColumnElement[bool]:
    return plan.state.not_in(plans.OPEN)


def _reports(before: datetime.datetime) -> Old:
    report, plan = models.ReportRow, models.PlanRow
    return report, sa.select(report.plan_uuid).join(
        plan, plan.uuid == report.plan_uuid,
    ).where(report.created_at < before, _is_over(plan),
            # A plan at level "observe" may have been made again since, and may still be approved.
            sa.func.coalesce(plan.last_seen_at, plan.created_at) < before,
            ).order_by(report.created_at)


def _plans(before: datetime.datetime) -> Old:
    plan, move = models.PlanRow, models.MoveRow
    return plan, sa.select(plan.uuid).where(
        plan.created_at < before, _is_over(plan),
        sa.func.coalesce(plan.finished_at, plan.last_seen_at, plan.created_at) < before,
        ~sa.exists().where(move.plan_uuid == plan.uuid)).order_by(plan.created_at)


def _repairs(before: datetime.datetime) -> Old:
    repair = models.RepairRow
    return repair, sa.select(repair.uuid).where(
        repair.created_at < before, repair.state != repairs.PLANNED).order_by(repair.created_at)


def _quarantines(before: datetime.datetime) -> Old:
    quarantine = models.QuarantineRow
    return quarantine, sa.select(quarantine.instance_uuid).where(quarantine.until < before)


def _tasks(before: datetime.datetime) -> Old:
    task = models.TaskRow
    return task, sa.select(task.migration_uuid).where(
        task.state.in_((tasks.EXPIRED, tasks.ORPHANED)), task.beat_at < before)


def _switch_events(before: datetime.datetime) -> Old:
    event = models.SwitchEventRow
    return event, sa.select(event.id).where(event.set_at < before)


def _drains(before: datetime.datetime) -> Old:
    drain, later = models.DrainRow, orm.aliased(models.DrainRow)
    is_repeated = sa.exists().where(later.host == drain.host,
                                    later.requested_at > drain.requested_at)
    return drain, sa.select(drain.uuid).where(
        drain.requested_at < before, drain.state.not_in((*drains.ACTIVE, drains.RELEASING)),
        (drain.state == drains.RELEASED) | is_repeated)


def _holds(before: datetime.datetime) -> Old:
    hold = models.HoldRow
    return hold, sa.select(hold.uuid).where(
        hold.requested_at < before, hold.state.not_in(holds.OPEN),
        hold.consumers == NO_CONSUMERS)


def _maintenances(before: datetime.datetime) -> Old:
    maintenance = models.MaintenanceRow
    return maintenance, sa.select(maintenance.uuid).where(
        maintenance.requested_at < before, maintenance.state == maintenances.DONE)


def _server_names(before: datetime.datetime) -> Old:
    name = models.ServerNameRow
    return name, sa.select(name.uuid).where(name.seen_at < before).order_by(name.seen_at)


def _evaluations(before: datetime.datetime) -> Old:
    evaluation = models.EvaluationRow
    return evaluation, sa.select(evaluation.id).where(
        evaluation.at < before).order_by(evaluation.at)


def _load_sums(before: datetime.datetime) -> Old:
    row = models.LoadSumRow
    return row, sa.select(row.id).where(row.day < before.date()).order_by(row.day)


def _move_sums(before: datetime.datetime) -> Old:
    row = models.MoveSumRow
    return row, sa.select(row.id).where(row.day < before.date()).order_by(row.day)


def _notifications(before: datetime.datetime) -> Old:
    notification = models.NotificationRow
    return notification, sa.select(notification.id).where(notification.at < before)


SELECTS = {'events': _events, 'reports': _reports, 'moves': _moves, 'plans': _plans,
           'repairs': _repairs, 'quarantines': _quarantines, 'tasks': _tasks,
           'switch_events': _switch_events, 'drains': _drains, 'maintenances': _maintenances,
           'holds': _holds,
           'server_names': _server_names, 'notifications': _notifications,
           'evaluations': _evaluations, 'load_sums': _load_sums, 'move_sums': _move_sums}
KEPT_AS = {'switch_events': 'operations', 'drains': 'operations', 'maintenances': 'operations',
           'holds': 'operations',
           'server_names': 'moves', 'load_sums': 'sums', 'move_sums': 'sums'}
"""{name of a table: field of :class:`Days` that applies to the table}, for tables without a field
of their own."""
DEPENDENTS = {models.MoveRow: (models.MoveEventRow.move_uuid,),
              models.PlanRow: (models.ReportRow.plan_uuid,)}
"""{table: columns of other tables that refer to its rows}. If a row is deleted, the rows that refer
to it are deleted with it, even if their own retention is longer."""
