"""Which worker carries out which live migration task: who dies in the middle can be told."""

import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.db.retry import retried
from kronos_nova.objects import task as tasks


class Tasks:
    """:param worker: name of this process
    :param clock: gives the time, UTC without a zone
    """

    def __init__(self, database, worker, clock):
        self.database = database
        self.worker = worker
        self.clock = clock

    @retried
    def begin(self, migration_uuid: str, instance_uuid: str) -> None:
        """Say that this worker is at it, before anything outside changes."""
        with self.database.writer() as session:
            session.add(models.Task(
                migration_uuid=migration_uuid, instance_uuid=instance_uuid, worker=self.worker,
                state=tasks.BEGUN, beat_at=self.clock()))

    @retried
    def hand_over(self, migration_uuid: str) -> bool:
        """Say that the source compute is about to be told.

        :returns: False if this worker was taken for dead meanwhile: it must stop
        """
        return self._turn(migration_uuid, tasks.BEGUN, tasks.HANDED_OVER)

    @retried
    def end(self, migration_uuid: str) -> None:
        """Forget a task; harmless when repeated."""
        with self.database.writer() as session:
            session.execute(sa.delete(models.Task).where(
                models.Task.migration_uuid == migration_uuid))

    @retried
    def beat(self) -> None:
        """Say that this worker and its tasks live."""
        with self.database.writer() as session:
            session.execute(sa.update(models.Task).where(
                models.Task.worker == self.worker).values(beat_at=self.clock()))

    @retried
    def dead(self, begun_before, handed_over_before) -> list[tasks.Task]:
        """Tasks whose worker was last heard of before that, by state, and those known as lost."""
        rows = models.Task
        query = sa.select(rows).where(sa.or_(
            rows.state == tasks.LOST,
            sa.and_(rows.state == tasks.BEGUN, rows.beat_at < begun_before),
            sa.and_(rows.state == tasks.HANDED_OVER, rows.beat_at < handed_over_before)))
        with self.database.reader() as session:
            return [tasks.Task(migration_uuid=row.migration_uuid, worker=row.worker,
                               instance_uuid=row.instance_uuid, state=row.state)
                    for row in session.scalars(query)]

    @retried
    def under_way(self) -> frozenset[str]:
        """The migrations that some worker has begun and not ended."""
        with self.database.reader() as session:
            return frozenset(session.scalars(sa.select(models.Task.migration_uuid)))

    @retried
    def lose(self, task: tasks.Task) -> bool:
        """Take a task away from its worker, who can hand it over no more.

        :returns: False if it went on meanwhile
        """
        return task.state == tasks.LOST or self._turn(task.migration_uuid, task.state, tasks.LOST)

    def _turn(self, migration_uuid, old, new):
        with self.database.writer() as session:
            turned = session.execute(sa.update(models.Task).where(
                models.Task.migration_uuid == migration_uuid,
                models.Task.state == old).values(state=new))
            return turned.rowcount == 1
