"""Instances for which Nova refused several hosts. Such an instance is not moved for some cycles."""

import datetime
import json
from collections.abc import Iterable

import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried
from kronos_nova.objects.plan import Refusal

RestingInstance = tuple[Refusal, datetime.datetime, datetime.datetime]
"""(Refusal, time until which the instance is not moved, time of the refusal)."""


class Refusals:
    """The table of instances for which Nova refused several hosts."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def rest(self, refusals: Iterable[Refusal], seconds: float, now: datetime.datetime) -> None:
        """Record that some instances are not moved for ``seconds``, because Nova refused hosts for
        them. Expired records are deleted.

        :param refusals: a Refusal (an instance with the hosts that Nova refused) for each instance
        """
        until = now + datetime.timedelta(seconds=seconds)
        with self.database.writer() as session:
            session.execute(sa.delete(models.RefusalRow).where(models.RefusalRow.until <= now))
            for refusal in refusals:
                session.merge(models.RefusalRow(
                    instance_uuid=refusal.instance_uuid, until=until, refused_at=now,
                    hosts=json.dumps(refusal.hosts), reason=refusal.reason))

    @retried
    def resting(self, now: datetime.datetime) -> dict[str, float]:
        """Return {instance uuid: seconds until the instance may be moved again}."""
        return {refusal.instance_uuid: (until - now).total_seconds()
                for refusal, until, _refused_at in self.list(now)}

    @retried
    def list(self, now: datetime.datetime) -> 'list[RestingInstance]':
        """Return the RestingInstances, which are the instances that are not moved at present. The
        latest refusal comes first."""
        with self.database.reader() as session:
            rows = session.scalars(sa.select(models.RefusalRow).where(models.RefusalRow.until > now)
                                   .order_by(models.RefusalRow.refused_at.desc()))
            return [(Refusal(instance_uuid=row.instance_uuid, reason=row.reason,
                             hosts=tuple(json.loads(row.hosts))), row.until, row.refused_at)
                    for row in rows]
