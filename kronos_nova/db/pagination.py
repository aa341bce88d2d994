"""Plans and scores a page at a time, for programs that read all of them."""

import sqlalchemy as sa

from kronos_nova import exception
from kronos_nova.db import models
from kronos_nova.db.journal import rows
from kronos_nova.db.retry import retried
from kronos_nova.objects.plan import PlanRecord


@retried
def plans(database, limit, marker=None, **wanted) -> list[PlanRecord]:
    """Plans without their reports, the newest first.

    :param marker: uuid of the last plan of the page before
    :param wanted: column to the value that it has to have; None is any
    :raises PlanNotFound: there is no such plan as the marker
    """
    plan = models.PlanRow
    query = _filtered(sa.select(plan), plan, wanted).order_by(
        plan.created_at.desc(), plan.uuid.desc()).limit(limit)
    with database.reader() as session:
        if marker is not None:
            last = rows.find(session, plan, marker, exception.PlanNotFound(plan=marker))
            query = query.where(sa.or_(
                plan.created_at < last.created_at,
                sa.and_(plan.created_at == last.created_at, plan.uuid < last.uuid)))
        return [rows.record(PlanRecord, row, report=None) for row in session.scalars(query)]


@retried
def scores(database, limit, marker=None):
    """{host: its models.ScoreRow rows} of some hosts, in the order of their names.

    :param marker: name of the last host of the page before
    """
    score = models.ScoreRow
    hosts = sa.select(score.host).distinct().order_by(score.host).limit(limit)
    if marker is not None:
        hosts = hosts.where(score.host > marker)
    with database.reader() as session:
        found = {host: [] for host in session.scalars(hosts)}
        for row in session.scalars(sa.select(score).where(
                score.host.in_(found)).order_by(score.host, score.policy)):
            found[row.host].append(row)
        return found


def _filtered(query, model, wanted):
    return query.where(*(getattr(model, name) == value for name, value in wanted.items()
                         if value is not None))
