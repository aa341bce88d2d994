"""The last score of each host in each policy, for Nova's scheduler."""

import collections
import datetime
from collections.abc import Collection
from collections.abc import Mapping

import sqlalchemy as sa

from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried

WEIGHT_TOLERANCE = 1e-6
"""Difference between two sums of policies' weights (no unit) up to which the sums count as equal.
Raised, a host without the score of a policy with a small weight has a sum; lowered, rounding errors
leave out hosts. Fixed as the tolerance with which the weights of a policies file sum to 1."""


class Scores:
    """The table of the last score of every host in every policy, for nova-scheduler."""

    def __init__(self, database: Database):
        self.database = database

    @retried
    def replace(self, mode: str, weights: Mapping[str, float],
                scores: Mapping[str, Mapping[str, float]], now: datetime.datetime) -> None:
        """Save scores of hosts, in place of the earlier scores of the same hosts.

        :param mode: mode of the policies: ``spread``, ``pack`` or ``relieve``
        :param weights: {policy: weight}
        :param scores: {host: {policy: score}}
        """
        with self.database.writer() as session:
            session.execute(sa.delete(models.ScoreRow).where(models.ScoreRow.host.in_(list(scores))))
            rows = [{'host': host, 'policy': policy, 'mode': mode, 'weight': weights[policy],
                     'value': value, 'at': now}
                    for host, values in scores.items() for policy, value in values.items()]
            if rows:
                session.execute(sa.insert(models.ScoreRow), rows)

    @retried
    def hosts(self) -> list[str]:
        """Return the names of the hosts that have scores."""
        with self.database.reader() as session:
            return list(session.scalars(sa.select(models.ScoreRow.host).distinct()))

    @retried
    def of_hosts(self, names: Collection[str]) -> dict[str, list[models.ScoreRow]]:
        """Return {host: scores of the host, in the order of the policies}. Hosts that have no
        scores are left out."""
        score, found = models.ScoreRow, collections.defaultdict(list)
        with self.database.reader() as session:
            for row in session.scalars(sa.select(score).where(
                    score.host.in_(names)).order_by(score.host, score.policy)):
                found[row.host].append(row)
        return dict(found)

    @retried
    def combined(self, not_before: datetime.datetime) -> dict[str, tuple[str, float]]:
        """Return {host: (mode, combined score)}. The combined score is the sum of weight × score
        over all policies. Scores that are older than ``not_before`` are left out. A host is left
        out if it lacks the score of a policy that other hosts have, because its sum would be too
        low."""
        with self.database.reader() as session:
            score = models.ScoreRow
            rows = session.execute(sa.select(
                score.host, score.mode, sa.func.sum(score.weight * score.value),
                sa.func.sum(score.weight)).where(score.at >= not_before).group_by(
                    score.host, score.mode)).all()
        whole = max((weight for *_rest, weight in rows), default=0.0) - WEIGHT_TOLERANCE
        return {host: (mode, value) for host, mode, value, weight in rows if weight >= whole}
