"""Stored measurements of evaluations: the last loads of hosts, and the imbalance over time."""

import dataclasses
import datetime
import json

import sqlalchemy as sa
from sqlalchemy import orm

from kronos_nova.db import models
from kronos_nova.db.engine import Database
from kronos_nova.db.retry import retried
from kronos_nova.db.retry import retried_as_update
from kronos_nova.db.sums import LOADS
from kronos_nova.objects import host_load
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import Contention

MOST_POINTS = 20_000
"""Maximum number of evaluations that one query of an aggregate's history reads. If there are more,
the newest are read. Raised, a chart of the history takes more memory; lowered, the chart shows a
shorter time if evaluations are frequent. Chosen as about the number of evaluations in a week with
one evaluation every half minute."""


COVERED = datetime.timedelta(hours=1)
"""Maximum time (1 hour) for which the loads of one evaluation count in the day's sums of loads. The
loads count for the time since the previous evaluation, up to this maximum. Raised, the sums depend
more on the first evaluation after a long gap between evaluations; lowered, more of a long gap is
missing in the sums. Chosen as the longest pause after a failed evaluation."""

@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PastEvaluation:
    """The measurements of one past evaluation.

    policies : {policy: (imbalance, threshold)}; policies that had no data are left out
    """

    at: datetime.datetime
    outcome: str
    policies: dict[str, tuple[float, float]]


class Evaluations:
    """The tables with measurements of evaluations. Commands, the API and the exporter read them."""

    def __init__(self, database: Database):
        self.database = database

    @retried_as_update
    def save(self, report: AggregateReport, loads: list[host_load.HostLoad],
             now: datetime.datetime) -> None:
        """Save the measurements of an evaluation.

        The stored loads of the aggregate's hosts are replaced. The imbalances are added to the
        aggregate's history. The loads are added to the day's sums of loads, which are kept longer
        than the history.
        """
        row = models.EvaluationRow
        with self.database.writer() as session:
            before = session.scalar(sa.select(sa.func.max(row.at)).where(
                row.aggregate == report.name, row.at < now))
            _add_loads(session, report, loads, before, now)
            session.merge(models.HostLoadsRow(aggregate=report.name, at=now,
                                              hosts=host_load.to_json(loads)))
            session.add(row(
                aggregate=report.name, at=now, outcome=report.outcome, policies=json.dumps({
                    policy.name: [round(policy.imbalance_before, 5), policy.threshold]
                    for policy in report.policies if policy.imbalance_before is not None}),
                slots=json.dumps({each.flavor: each.now for each in report.slots})
                if report.slots else None))

    @retried
    def hosts(self, aggregate: str) -> tuple[datetime.datetime | None, list[host_load.HostLoad]]:
        """Return (time of the last measurement, loads) of an aggregate's hosts. Return (None, [])
        if the hosts were never measured."""
        with self.database.reader() as session:
            row = session.get(models.HostLoadsRow, aggregate)
            return (row.at, host_load.from_json(row.hosts)) if row else (None, [])

    @retried
    def all_hosts(self) -> dict[str, list[host_load.HostLoad]]:
        """Return {aggregate: loads of the aggregate's hosts at the last evaluation of the
        aggregate}."""
        with self.database.reader() as session:
            return {row.aggregate: host_load.from_json(row.hosts)
                    for row in session.scalars(sa.select(models.HostLoadsRow))}

    @retried
    def host(self, name: str) -> dict[str, host_load.HostLoad]:
        """Return the loads of a host at the last evaluation of each aggregate to which it belongs.

        :returns: {aggregate: HostLoad}
        """
        written = host_load.name_in_json(name)
        with self.database.reader() as session:
            # Most aggregates do not have the host, and are not parsed.
            return {row.aggregate: load
                    for row in session.scalars(sa.select(models.HostLoadsRow))
                    if written in row.hosts
                    for load in host_load.from_json(row.hosts) if load.name == name}

    @retried
    def oldest(self, aggregate: str) -> datetime.datetime | None:
        """Return the time of the oldest stored evaluation of an aggregate; None if there is none.
        """
        row = models.EvaluationRow
        with self.database.reader() as session:
            return session.scalar(sa.select(sa.func.min(row.at)).where(row.aggregate == aggregate))

    @retried
    def between(self, aggregate: str, since: datetime.datetime,
                until: datetime.datetime) -> list[PastEvaluation]:
        """Return the evaluations of an aggregate between two times, the oldest first. If there are
        more than :data:`MOST_POINTS`, only the newest are returned."""
        row = models.EvaluationRow
        with self.database.reader() as session:
            found = session.execute(sa.select(row.at, row.outcome, row.policies).where(
                row.aggregate == aggregate, row.at >= since, row.at <= until,
            ).order_by(row.at.desc()).limit(MOST_POINTS)).all()
        return [PastEvaluation(at=at, outcome=outcome, policies={
            name: tuple(pair) for name, pair in json.loads(policies).items()})
            for at, outcome, policies in reversed(found)]

    @retried
    def slots_since(self, aggregate: str, since: datetime.datetime
                    ) -> dict[str, list[tuple[datetime.datetime, int]]]:
        """Return {flavor: [(time of an evaluation, slots)]} for the evaluations since a time.

        ``slots`` is the number of further servers of the flavor that had room in the aggregate at
        that time. Only the newest :data:`MOST_POINTS` evaluations with slots are read.
        """
        row = models.EvaluationRow
        with self.database.reader() as session:
            rows = session.execute(sa.select(row.at, row.slots).where(
                row.aggregate == aggregate, row.at >= since, row.slots.is_not(None),
            ).order_by(row.at.desc()).limit(MOST_POINTS)).all()
        found: dict[str, list[tuple[datetime.datetime, int]]] = {}
        for at, counted in reversed(rows):
            for flavor, slots in json.loads(counted).items():
                found.setdefault(flavor, []).append((at, slots))
        return found


def _add_loads(session: orm.Session, report: AggregateReport, loads: list[host_load.HostLoad],
               since: datetime.datetime | None, now: datetime.datetime) -> None:
    """Add an evaluation to the day's sums of loads (:class:`kronos_nova.db.sums.LoadSum`).

    The loads are assumed to have lasted since the previous evaluation. A time longer than
    :data:`COVERED` is not counted in full: only :data:`COVERED` is counted.

    :param since: time of the previous evaluation. If there was none, ``since`` is None, and nothing
        is added
    """
    if since is None or since >= now or not any(load.scores for load in loads):
        return
    seconds = min(now - since, COVERED).total_seconds()
    row = models.LoadSumRow
    key = {'day': now.date(), 'aggregate': report.name}
    found = session.scalars(sa.select(row).filter_by(**key).with_for_update()).one_or_none()
    if found is None:
        found = row(**key, **dict.fromkeys(LOADS, 0.0))
        session.add(found)
    measured = Contention.of_hosts((load.servers, max(
        (before for before, _after in load.scores.values()), default=0.0)) for load in loads)
    found.observed_seconds += seconds
    found.hot_seconds += seconds * measured.hot_hosts
    found.contended_seconds += seconds * measured.contended_servers
    unmoved = report.without_moves
    if unmoved is not None:
        found.replayed_seconds += seconds
        found.unmoved_hot_seconds += seconds * unmoved.hot_hosts
        found.unmoved_contended_seconds += seconds * unmoved.contended_servers


def thinned(found: list[PastEvaluation], most: int) -> list[PastEvaluation]:
    """Return at most ``most`` of the evaluations, without losing a peak of the imbalance.

    The evaluations are divided into groups of consecutive evaluations. From each group, one
    evaluation is returned: the one with the imbalance that is farthest above its threshold.

    :param most: at least 1
    """
    size = -(-len(found) // most)
    return [max(found[start:start + size], key=_excess)
            for start in range(0, len(found), size)] if found else []


def _excess(measured: PastEvaluation) -> float:
    return max((imbalance - threshold for imbalance, threshold in measured.policies.values()),
               default=-1.0)
