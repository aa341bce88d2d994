"""Queries that return the plans page by page."""

import datetime
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects.plan import PlanRecord


@retried
def plans(database: Database, limit: int, marker: str | None = None,
          since: datetime.datetime | None = None, until: datetime.datetime | None = None,
          **wanted: str | None) -> list[PlanRecord]:
    """Return at most ``limit`` plans without their reports, the newest first.

    :param marker: uuid of the last plan of the previous page
    :param since: leave out plans that were made before this time
    :param until: leave out plans that were made after this time
    :param wanted: {column: value that it must have}; None permits any value
    :raises PlanNotFound: there is no plan with the uuid ``marker``
    """
    plan = models.PlanRow
    query = _filtered(sa.select(plan), plan, wanted).order_by(
        plan.created_at.desc(), plan.uuid.desc()).limit(limit)
    if since is not None:
        query = query.where(plan.created_at >= since)
    if until is not None:
        query = query.where(plan.created_at <= until)
    with database.reader() as session:
        if marker is not None:
            last = rows.find(session, plan, marker, exception.PlanNotFound(plan=marker))
            query = query.where(sa.or_(
                plan.created_at < last.created_at,
                sa.and_(plan.created_at == last.created_at, plan.uuid < last.uuid)))
        return [rows.record(PlanRecord, row, report=None) for row in session.scalars(query)]


def _filtered(query: sa.Select[Any], model: type[models.Base],
              wanted: Mapping[str, str | None]) -> sa.Select[Any]:
    return query.where(*(getattr(model, name) == value for name, value in wanted.items()
                         if value is not None))
