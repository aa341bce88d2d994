"""Statistics of the loads of instances, which are kept from one evaluation to the next."""

import base64
import datetime
import json
import math
from collections.abc import Collection
from collections.abc import Mapping

import numpy as np
import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried
from kronos_nova.load import FIGURES
from kronos_nova.load import LoadStats


class LoadStatsStore:
    """The table of load statistics, with one row for each aggregate. Every evaluation replaces the
    row of its aggregate. A row has about 60 bytes for each instance and policy."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def read(self, aggregates: Collection[str] | None) -> dict[str, dict[str, LoadStats]]:
        """Return {aggregate: {policy: LoadStats}}. Aggregates that have no statistics are left out.

        :param aggregates: names, or None for all
        """
        with self.database.reader() as session:
            query = sa.select(models.AggregateLoadStatsRow)
            if aggregates is not None:
                query = query.where(models.AggregateLoadStatsRow.aggregate.in_(aggregates))
            return {row.aggregate: _unpacked(row.body) for row in session.scalars(query)}

    @retried
    def save(self, aggregate: str, stats: Mapping[str, LoadStats], now: datetime.datetime) -> None:
        """Save the statistics of an aggregate.

        :param stats: {policy: LoadStats}
        """
        with self.database.writer() as session:
            session.merge(models.AggregateLoadStatsRow(aggregate=aggregate, at=now,
                                                       body=_packed(stats)))


def _packed(stats: Mapping[str, LoadStats]) -> str:
    return json.dumps({
        policy: [found.at, found.vms,
                 base64.b64encode(found.figures.astype('<f4').tobytes()).decode(),
                 None if math.isnan(found.unit) else found.unit]
        for policy, found in stats.items()})


def _unpacked(body: str) -> dict[str, LoadStats]:
    return {policy: LoadStats(at, tuple(vms), np.frombuffer(
        base64.b64decode(figures), '<f4').astype(float).reshape(-1, FIGURES),
        math.nan if unit in ([], [None]) else unit[0])
        for policy, (at, vms, figures, *unit) in json.loads(body).items()}
