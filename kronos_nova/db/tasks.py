"""Tasks: records of the migrations that conductor workers prepare. The records show which
migrations a dead worker has left."""

import datetime
from collections.abc import Callable
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.engine import count_changed
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.db.retry import retried_unless_away
from kronos_nova.objects import task as tasks


class Tasks:
    """The table of tasks, as one process uses it. A task is the record of a migration that a
    conductor worker prepares. If the worker dies, other processes find the task and end the
    migration.

    :param worker: name of this process
    :param clock: returns the time
    :param announcements: the control database with short timeouts, used by :meth:`announce`,
        because a request of Nova waits during this call; None to use ``database``
    """

    def __init__(self, database: Database, worker: str, clock: Callable[[], datetime.datetime],
                 announcements: Database | None = None):
        self.database = database
        self.announcements = announcements or database
        self.worker = worker
        self.clock = clock
        self._left: set[str] = set()
        # Values of the rows that could not be written, by key.
        self._unrecorded: dict[str, dict[str, Any]] = {}
        # Keys of tasks whose announcement failed, although the row may have been written.
        self._unused: set[str] = set()

    @retried_unless_away
    def announce(self, key: str, instance_uuid: str) -> None:
        """Record that this worker prepares a migration, before Nova has a record of the migration.
        If the database does not answer, the caller continues without a task, and the next
        :meth:`beat` deletes the row that may have been written nevertheless.

        :param key: a new uuid, which identifies the task until the task begins
        """
        try:
            self._add(key, instance_uuid, tasks.ANNOUNCED)
        except db_exc.DBConnectionError:
            self._unused.add(key)
            raise

    @retried
    def begin(self, key: str, migration_uuid: str) -> bool:
        """Record the migration of an announced task. The caller must not change anything for the
        migration before this call.

        :returns: whether this worker may continue; False if another process has taken the task
            away, because this worker seemed to be dead
        """
        return self._turn(key, tasks.ANNOUNCED, tasks.BEGUN, migration_uuid=migration_uuid)

    @retried
    def hand_over(self, migration_uuid: str) -> bool:
        """Record that the request to the source compute is about to be sent.

        :returns: whether this worker may continue; False if another process has taken the task
            away, because this worker seemed to be dead
        """
        return self._turn(migration_uuid, tasks.BEGUN, tasks.HANDED_OVER)

    @retried
    def end(self, *uuids: str) -> None:
        """Delete the record of a task. A repeated call does no harm.

        :param uuids: the uuids that the task has had: its key, and the uuid of its migration
        """
        with self.database.writer() as session:
            session.execute(_deletion(uuids))

    def leave(self, *uuids: str) -> None:
        """Stop recording signs of life for a task. Other processes will then treat the task as if
        its worker had died.

        :param uuids: the uuids that the task has had: its key, and the uuid of its migration
        """
        self._left.update(uuids)

    def record_later(self, instance_uuid: str) -> None:
        """Remember a request for a migration that failed before a task could be recorded. The next
        :meth:`beat` that reaches the database records the request as a task of a dead worker. If
        this process ends before that, the request is forgotten."""
        key = uuidutils.generate_uuid()
        self._unrecorded[key] = {
            'migration_uuid': key, 'instance_uuid': instance_uuid, 'worker': self.worker,
            'state': tasks.EXPIRED, 'beat_at': self.clock()}

    @retried
    def beat(self) -> None:
        """Record a sign of life of this worker and its tasks, except the tasks that were passed to
        :meth:`leave`. Record the requests that were passed to :meth:`record_later`."""
        unrecorded, unused = self._unrecorded.copy(), self._unused.copy()
        with self.database.writer() as session:
            if unused:
                session.execute(_deletion(unused))
            for values in unrecorded.values():
                session.merge(models.TaskRow(**values))  # an earlier try may have written the row
            session.execute(sa.update(models.TaskRow).where(
                models.TaskRow.worker == self.worker, models.TaskRow.state.in_(tasks.TAKEN),
                models.TaskRow.migration_uuid.not_in(tuple(self._left)),
            ).values(beat_at=self.clock()))
        for key in unrecorded:
            del self._unrecorded[key]
        self._unused -= unused

    @retried
    def dead(self, begun_before: datetime.datetime,
             handed_over_before: datetime.datetime) -> list[tasks.Task]:
        """Return the tasks that are recorded as lost, and the tasks whose worker has died. A worker
        counts as dead if its last sign of life for the task is older than a limit.

        :param begun_before: the limit, a time, for tasks that were not handed over to the source
            compute
        :param handed_over_before: the limit, a time, for tasks that were handed over to the source
            compute
        """
        row = models.TaskRow
        query = sa.select(row).where(sa.or_(
            row.state.in_((tasks.EXPIRED, tasks.ORPHANED)),
            sa.and_(row.state.in_((tasks.ANNOUNCED, tasks.BEGUN)), row.beat_at < begun_before),
            sa.and_(row.state == tasks.HANDED_OVER, row.beat_at < handed_over_before)))
        with self.database.reader() as session:
            return [rows.record(tasks.Task, found) for found in session.scalars(query)]

    @retried
    def in_progress(self) -> frozenset[str]:
        """Return the uuids of the migrations that have a task. While Nova has no record of the
        migration, the key of its task is returned in place of the uuid."""
        with self.database.reader() as session:
            return frozenset(session.scalars(sa.select(models.TaskRow.migration_uuid)))

    @retried
    def instances(self) -> frozenset[str]:
        """Return the uuids of the instances that have a task."""
        with self.database.reader() as session:
            return frozenset(session.scalars(sa.select(models.TaskRow.instance_uuid)))

    @retried
    def lose(self, task: tasks.Task) -> bool:
        """Take a task away from its worker. The worker can then not continue the migration.

        :returns: whether the task was taken away; False if the worker has continued the task since
            the task was read
        """
        taken = tasks.TAKEN.get(task.state)
        return taken is None or self._turn(task.migration_uuid, task.state, taken)

    @retried
    def find_lost(self, migration_uuid: str, instance_uuid: str) -> None:
        """Record that a migration was lost: no worker prepares the migration, and it has no task. A
        repeated call does no harm."""
        try:
            self._add(migration_uuid, instance_uuid, tasks.ORPHANED)
        except db_exc.DBDuplicateEntry:
            return

    def _add(self, uuid: str, instance_uuid: str, state: str) -> None:
        database = self.announcements if state == tasks.ANNOUNCED else self.database
        with database.writer() as session:
            session.add(models.TaskRow(
                migration_uuid=uuid, instance_uuid=instance_uuid, worker=self.worker, state=state,
                beat_at=self.clock()))

    def _turn(self, uuid: str, old: str, new: str, **changed: Any) -> bool:
        with self.database.writer() as session:
            turned = count_changed(session, sa.update(models.TaskRow).where(
                models.TaskRow.migration_uuid == uuid, models.TaskRow.state == old,
            ).values(state=new, **changed))
            if turned == 1:
                return True
            # An earlier try may have written the row, and its answer was lost.
            row = session.get(models.TaskRow, changed.get('migration_uuid', uuid))
            return row is not None and (row.state, row.worker) == (new, self.worker)


def _deletion(uuids: Collection[str]) -> sa.Delete:
    return sa.delete(models.TaskRow).where(models.TaskRow.migration_uuid.in_(uuids))
