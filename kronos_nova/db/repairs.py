"""The journal of repairs of allocations. A repair is recorded before the allocations are changed.
The record is kept after the repair, so that the repair can be undone."""

import datetime
import json
from collections.abc import Callable

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.error_text import error_text
from kronos_nova.db.retry import retried
from kronos_nova.objects import repair as repairs


class Repairs:
    """The journal of repairs in the control database.

    :param clock: returns the time
    """

    def __init__(self, database: Database, clock: Callable[[], datetime.datetime]):
        self.database = database
        self.clock = clock

    @retried
    def plan(self, repair: repairs.Repair) -> str:
        """Record the allocations that are about to be changed.

        :returns: uuid of the record
        """
        uuid = uuidutils.generate_uuid()
        with self.database.writer() as session:
            session.add(models.RepairRow(
                uuid=uuid, kind=repair.kind, instance_uuid=repair.instance_uuid,
                evidence=repair.evidence, before=json.dumps(repair.before),
                after=json.dumps(repair.after), state=repairs.PLANNED, created_at=self.clock()))
        return uuid

    def close(self, uuid: str, state: str, detail: str = '') -> None:
        """Record the end of a repair.

        :param uuid: uuid of the record
        :param state: ``healed``, ``failed`` or ``undone``
        :raises RepairUnrecorded: the database does not answer
        """
        try:
            self._close(uuid, state, detail)
        except db_exc.DBError as error:
            raise exception.RepairUnrecorded(repair=uuid, state=state,
                                             problem=error_text(error)) from error

    @retried
    def _close(self, uuid: str, state: str, detail: str) -> None:
        with self.database.writer() as session:
            row = session.get_one(models.RepairRow, uuid)
            row.state, row.detail, row.closed_at = state, detail, self.clock()

    @retried
    def get(self, uuid: str) -> repairs.Repair | None:
        """Return the repair with this uuid if the repair can be undone; else None. A repair can be
        undone if it has possibly changed allocations and was not undone before. Return None also if
        no repair has this uuid."""
        with self.database.reader() as session:
            row = session.get(models.RepairRow, uuid)
            if row is None or row.state not in (repairs.HEALED, repairs.PLANNED):
                return None
            return repairs.Repair(
                kind=row.kind, instance_uuid=row.instance_uuid, evidence=row.evidence,
                before=json.loads(row.before), after=json.loads(row.after))

    @retried
    def list(self, instance_uuid: str | None = None) -> list[models.RepairRow]:
        """Return all repairs, or only the repairs for one instance, the oldest first."""
        query = sa.select(models.RepairRow).order_by(models.RepairRow.created_at)
        if instance_uuid is not None:
            query = query.where(models.RepairRow.instance_uuid == instance_uuid)
        with self.database.reader() as session:
            return list(session.scalars(query))
