"""Metrics for Prometheus, read from the control database.

Names and units follow https://prometheus.io/docs/practices/naming/. Series have labels for
aggregates, policies, hosts and states, but no labels for instances. A problem has a series only
while the problem lasts, so that aggregates without problems add no series. Problems are a pause, a
policy without data, and evaluations that fail.
"""

import collections
import datetime
import math
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TypeVar

from oslo_config import cfg
from prometheus_client import registry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.core import Metric

from kronos_nova.cycle import aggregates
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import counters
from kronos_nova.db import cycles as db_cycles
from kronos_nova.db import metric_queries
from kronos_nova.db.engine import Database
from kronos_nova.db.models import CycleRow
from kronos_nova.drain import states as drains
from kronos_nova.engine import guard
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects.plan import FORECAST_USED
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.operations import health
from kronos_nova.operations import overview

DATABASE_UP = 'kronos_control_database_up'

LOSS_VERDICTS = ('fits', 'does_not_fit', 'not_found', 'not_judged')
"""Names of the fields of a LossReport that count losses by verdict. The verdict says whether all
servers of a lost host or failure domain could restart elsewhere. Each field has the number of hosts
or failure domains with one verdict. Their sum is the number of all hosts or failure domains."""

FORMER = datetime.timedelta(days=1)
"""Time (1 day) before the last evaluation with data of every aggregate. Hosts that were not
measured since then have no score. Raised, hosts that were removed from the cloud are reported for
longer; lowered, scores are missing after an evaluation that measured only some hosts. Not
measured."""

BUCKETS = (30, 120, 600, float('inf'))
"""Upper bounds, in seconds, of the histogram of durations of moves. Small guests move within the
first bound, most guests within the second, and large guests within the third. Fixed: a subset of
the bounds by which the control database counts moves."""

Reports = Mapping[str, AggregateReport]
"""{aggregate: report of its last evaluation}"""

Key = TypeVar('Key', bound=tuple[str, ...])


class Collector(registry.Collector):
    """A collector for a ``prometheus_client`` registry. It reads the control database again for
    every scrape."""

    def __init__(self, conf: cfg.ConfigOpts, database: Database,
                 utcnow: Callable[[], datetime.datetime]):
        self.conf = conf
        self.database = database
        self.utcnow = utcnow
        self.observer = overview.Observer(conf, database, utcnow)
        self._guard = guard.Guard()

    def describe(self) -> Iterable[Metric]:
        """Return no descriptions. Descriptions of the metrics could be made only by reading the
        database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        found = self._guard.run('exporter', lambda: list(self._families())) or []
        yield _gauge(DATABASE_UP, 'Whether the control database could be read for this scrape.', (),
                     {(): bool(found)})
        yield from found

    def _families(self) -> Iterator[Metric]:
        in_scope = {*aggregates.aggregates_in_scope(self.conf)}
        # The database keeps the last evaluations of aggregates that are not planned any more.
        last = [row for row in self.observer.cycles.last() if row.aggregate in in_scope]
        seen = self.observer.read(last)
        rows = {row.aggregate: row for row in last}
        reports, hosts = overview.reports(last), overview.hosts_measured(last)
        yield from _problems(seen)
        yield from _aggregates(seen)
        yield from _policies(seen, reports)
        yield from _hosts(seen, hosts, reports)
        yield from _cycles(seen, rows)
        yield from _plans(seen, reports)
        yield from _workers_and_drains(seen)
        yield from _totals(counters.Counters(self.database).read())
        yield from self._now(seen, _measured_since(last, in_scope))
        yield _gauge('kronos_evaluation_interval_seconds', 'Seconds between two evaluations of an '
                     'aggregate.', (), {(): self.conf.kronos.evaluation_interval})

    def _now(self, seen: overview.Overview,
             measured_since: datetime.datetime | None) -> Iterator[Metric]:
        now, cooldowns = self.utcnow(), db_cooldowns.Cooldowns(self.database)
        found = metric_queries.count_rows(self.database, now, measured_since)
        under_way = sum(found.moves.get(state, 0) for state in moves.IN_FLIGHT)
        yield _gauge('kronos_moves_waiting', 'Moves of running plans that have not begun.', (),
                     {(): found.moves.get(moves.PLANNED, 0)})
        yield _gauge('kronos_moves_under_way', 'Moves in progress.', (),
                     {(): under_way})
        yield _gauge('kronos_moves_under_way_limit', 'Maximum number of moves in progress '
                     '([kronos_executor] max_concurrent_migrations).', (),
                     {(): ExecutorOptions.from_conf(self.conf).caps.total})
        yield _gauge('kronos_quarantined_servers', 'Servers in quarantine, which are not moved '
                     'because a move of theirs failed; no series for 0.',
                     (), _any(seen.quarantined))
        yield _gauge('kronos_cooling_servers', 'Servers in cooldown, which are not moved because '
                     'they were moved lately; no series for 0.', (),
                     _any(len(cooldowns.cooling(now)[db_cooldowns.INSTANCE])))
        yield _gauge('kronos_resting_servers', 'Servers that are not moved because Nova refused '
                     'every host tried for them; no series for 0.', (), _any(found.resting))
        yield _gauge('kronos_allocation_repairs', 'Recorded repairs of allocations, by kind of the '
                     'fault and state of the repair.', ('kind', 'state'), found.repairs)
        yield _gauge('kronos_notifications_waiting', 'Notifications that wait for the broker; no '
                     'series for 0.', (), _any(found.notifications))
        yield _gauge('kronos_claims', 'Claims of compute hosts that keep them in the control '
                     'database.', ('state',), {(state,): n for state, n in found.claims.items()})
        yield _gauge('kronos_control_database_size_bytes', 'Size of the control database, '
                     'including its indices.', (), {(): found.size})
        yield _gauge('kronos_host_score_ratio', 'Score of a host in a policy at the last '
                     'evaluation.',
                     ('host', 'policy'), found.scores)


def _measured_since(last: Iterable[CycleRow], in_scope: Collection[str]
                    ) -> datetime.datetime | None:
    """Return the time of the oldest scores that are reported; None if no time is known. The
    database keeps the scores of hosts that are not evaluated any more.

    :param last: rows of the last evaluation of each aggregate in scope
    """
    good = [row.good_at for row in last if row.good_at]
    return min(good) - FORMER if good and len(good) == len(in_scope) else None


def _problems(seen: overview.Overview) -> Iterator[Metric]:
    found = collections.Counter(problem.severity for problem in seen.problems)
    yield _gauge('kronos_problems', 'Conditions that "kronos-manage status" lists, by severity.',
                 ('severity',),
                 {(severity,): count for severity, count in found.items()})


def _aggregates(seen: overview.Overview) -> Iterator[Metric]:
    yield _gauge('kronos_automation_level', '1 for the level of automation in force, which is a '
                 'label.',
                 ('aggregate', 'level'), {(each.name, each.level): 1 for each in seen.aggregates})
    yield _gauge('kronos_repair_automation_level',
                 '1 for the level in force for repairs of violated rules, which is a label.',
                 ('aggregate', 'level'), {(each.name, each.repairs): 1 for each in seen.aggregates})
    yield _gauge('kronos_paused', '1 for each aggregate that is paused or stopped.', ('aggregate',),
                 {(each.name,): 1 for each in seen.aggregates if each.paused})
    yield _gauge('kronos_maintenance_window_closed', '1 for each aggregate that is outside its '
                 'maintenance windows, so that no move is started.',
                 ('aggregate',), {(each.name,): 1 for each in seen.aggregates
                                  if each.window_opens_at is not None})


def _policies(seen: overview.Overview, reports: Reports) -> Iterator[Metric]:
    policies = [(each.name, policy) for each in seen.aggregates for policy in each.policies]
    yield _gauge('kronos_imbalance_ratio', 'Imbalance: highest minus lowest score of the hosts of '
                 'an aggregate.',
                 ('aggregate', 'policy'), {
                     (name, policy.name): policy.imbalance for name, policy in policies
                     if policy.imbalance is not None})
    yield _gauge('kronos_imbalance_threshold_ratio', 'Threshold: imbalance above which load is '
                 'balanced.', ('policy',), {(policy.name,): policy.threshold
                                            for _name, policy in policies})
    yield from _forecasts(reports)
    yield _gauge('kronos_policy_without_data', '1 for each policy without usable data at the last '
                 'evaluation.',
                 ('aggregate', 'policy'), {(name, policy.name): 1 for name, policy in policies
                                           if policy.imbalance is None})
    measured = {(name,): report.policies for name, report in reports.items() if report.policies}
    yield _gauge('kronos_policy_coverage_ratio', 'Part of the available hosts of an aggregate that '
                 'have a sample, in the policy with the fewest.', ('aggregate',),
                 {key: min(policy.coverage for policy in found)
                  for key, found in measured.items()})
    ages = {key: [policy.sample_age for policy in found if policy.sample_age is not None]
            for key, found in measured.items()}
    yield _gauge('kronos_policy_sample_age_seconds', 'Age of the oldest sample of any policy at '
                 'the beginning of the evaluation; at least 0.', ('aggregate',),
                 {key: max(found) for key, found in ages.items() if found})


def _forecasts(reports: Reports) -> Iterator[Metric]:
    """Yield the metrics of forecasts, for each policy that has a forecast."""
    found = {(name, policy.name): policy.forecast for name, report in reports.items()
             for policy in report.policies if policy.forecast}
    yield _gauge('kronos_forecast_used', '1 where plans consider the forecast of the next hours, 0 '
                 'where the forecast has switched itself off.',
                 ('aggregate', 'policy'),
                 {key: each.state == FORECAST_USED for key, each in found.items()})
    for name, text, field in (
            ('kronos_forecast_error_ratio', 'Error of the forecast during the last day: mean '
             'difference between predicted and measured scores of hosts.', 'error'),
            ('kronos_forecast_present_error_ratio', 'The same error if the present load is taken '
             'as the forecast.', 'present_error'),
            ('kronos_imbalance_ahead_ratio', 'Highest predicted imbalance of the next hours.',
             'imbalance')):
        values = {key: getattr(each, field) for key, each in found.items()}
        yield _gauge(name, text, ('aggregate', 'policy'),
                     {key: value for key, value in values.items() if value is not None})


def _hosts(seen: overview.Overview, hosts: Mapping[str, Mapping[str, int]],
           reports: Reports) -> Iterator[Metric]:
    known = {name: hosts[name] for name in reports}
    yield _gauge('kronos_broken_server_groups', 'Server groups whose members violate a hard '
                 'policy; no series for 0.', ('aggregate',),
                 {(name,): each['broken_groups'] for name, each in known.items()
                  if each['broken_groups']})
    yield _gauge('kronos_hosts', 'Hosts with measured load at the last evaluation.', ('aggregate',),
                 {(name,): each['hosts'] for name, each in known.items()})
    yield _gauge('kronos_hot_hosts', 'Hosts with a score above 0.9 in a policy; no series for 0.',
                 ('aggregate',), {(name,): each['hot_hosts']
                                          for name, each in known.items() if each['hot_hosts']})
    yield _gauge('kronos_unbelieved_hosts', 'Hosts whose measured load a policy does not use, '
                 'because it may be wrong; no series for 0.', ('aggregate',), {
                     (name,): each['unbelieved'] for name, each in known.items()
                     if each['unbelieved']})
    yield _gauge('kronos_buffer_servers', 'New servers of a buffer that should fit (wanted), and '
                 'that fit (found).', ('aggregate', 'buffer', 'state'), {
                     (name, each.name, state): getattr(each, state)
                     for name, report in reports.items() for each in report.buffers
                     for state in ('wanted', 'found')})
    yield from _losses(reports)
    yield from _slots(reports)
    scores = {(each.name,): health.score(each, hosts.get(each.name, {}), seen.drains)
              for each in seen.aggregates}
    yield _gauge('kronos_health_score', 'Health of an aggregate from 0 to 100; the documentation '
                 'has the formula.',
                 ('aggregate',), {key: value for key, value in scores.items() if value is not None})


def _losses(reports: Reports) -> Iterator[Metric]:
    """Yield metrics of the loss of hosts and failure domains: for each verdict, the number of hosts
    and the number of failure domains. A verdict says whether all servers of a lost host or failure
    domain could restart elsewhere."""
    found = [(name, each) for name, report in reports.items() for each in report.losses]
    hosts = [(name, each) for name, each in found if not each.level]
    yield _gauge('kronos_failover_hosts', 'Hosts by the result of judging their loss: whether '
                 'their servers would all restart elsewhere.', ('aggregate', 'verdict'), {
                     (name, verdict): getattr(each, verdict)
                     for name, each in hosts for verdict in LOSS_VERDICTS})
    yield _gauge('kronos_failover_hosts_in_order', 'Hosts whose servers would all restart '
                 "elsewhere, by whether they also do in Nova's own order.",
                 ('aggregate', 'verdict'), {
                     (name, verdict): count for name, each in hosts for verdict, count in (
                         ('fits', each.in_order), ('does_not_fit', each.not_in_order),
                         ('not_judged', each.fits - each.in_order - each.not_in_order))})
    yield _gauge('kronos_failover_domains', 'Failure domains by the result of judging their loss: '
                 'whether their servers would all restart elsewhere.',
                 ('aggregate', 'level', 'verdict'), {
                     (name, each.level, verdict): getattr(each, verdict)
                     for name, each in found if each.level for verdict in LOSS_VERDICTS})
    yield _gauge('kronos_failover_judged_timestamp_seconds', 'Unix time at which the losses of '
                 'hosts and failure domains were judged last.',
                 ('aggregate',), {(name,): each.judged_at for name, each in hosts})


def _slots(reports: Reports) -> Iterator[Metric]:
    """Yield a metric of how many further servers fit, for each flavor in ``[kronos] slot_flavors``.
    There are two numbers: the present number, and the number after the loss of the host whose loss
    leaves the fewest. An unknown number has no series."""
    counts = {(each.flavor, name, state): getattr(each, state)
              for name, report in reports.items() for each in report.slots
              for state in ('now', 'after_loss')}
    yield _gauge('kronos_slots', 'Number of further servers of a flavor that fit, now and after '
                 'the loss of any one host.', ('flavor', 'aggregate', 'state'),
                 {key: count for key, count in counts.items() if count is not None})


def _cycles(seen: overview.Overview, rows: Mapping[str, CycleRow]) -> Iterator[Metric]:
    evaluated = overview.draining(seen.drains) | {
        each.name for each in seen.aggregates if each.level != automation.OFF}
    yield _gauge('kronos_last_cycle_outcome', '1 for the outcome of the last evaluation, which is '
                 'a label.',
                 ('aggregate', 'outcome'),
                 {(row.aggregate, row.outcome): 1 for row in rows.values() if row.outcome})
    yield _gauge('kronos_last_cycle_timestamp_seconds', 'Unix time at which the last evaluation '
                 'ended.',
                 ('aggregate',), {(row.aggregate,): row.finished_at.timestamp()
                                  for row in rows.values() if row.finished_at})
    yield _gauge('kronos_last_good_cycle_timestamp_seconds', 'Unix time at which the last '
                 'evaluation with data ended; 0 for none.', ('aggregate',),
                 {(row.aggregate,): row.good_at.timestamp() if row.good_at else 0.0
                  for row in rows.values()})
    yield _gauge('kronos_last_cycle_duration_seconds', 'Duration of the last evaluation, including '
                 'aggregates that were planned together with this one.', ('aggregate',),
                 {(row.aggregate,): took.total_seconds() for row in rows.values()
                  if (took := db_cycles.duration(row)) is not None})
    yield _gauge('kronos_failed_cycles_in_a_row', 'Evaluations in a row that did not end; no '
                 'series for 0, and none for an aggregate that is not evaluated.', ('aggregate',),
                 {(name,): row.failures for name, row in rows.items()
                  if row.failures and name in evaluated})


def _plans(seen: overview.Overview, reports: Reports) -> Iterator[Metric]:
    plans = [(each.name, each.plan) for each in seen.aggregates if each.plan]
    yield _gauge('kronos_open_plan_moves', 'Moves of the plan that waits or runs, whose state is a '
                 'label.', ('aggregate', 'state', 'purpose'),
                 {(name, plan.state, plan.purpose): plan.moves for name, plan in plans})
    yield _gauge('kronos_open_plan_ended_moves', 'Moves of the plan that waits or runs which have '
                 'ended, with or without success.',
                 ('aggregate',), {
                     (name,): sum(plan.states.get(state, 0) for state in moves.TERMINAL)
                     for name, plan in plans})
    yield _gauge('kronos_open_plan_remaining_seconds', 'Predicted seconds until the plan that '
                 'waits or runs has ended.',
                 ('aggregate',), {(name,): plan.remaining_seconds for name, plan in plans
                                  if plan.remaining_seconds is not None})
    yield _gauge('kronos_move_duration_error_ratio', 'Median relative error of the predicted '
                 'durations of the last hundred completed live migrations.', (),
                 {} if seen.duration_error is None else {(): seen.duration_error})
    yield _gauge('kronos_last_cycle_moves', 'Moves that the last evaluation planned.',
                 ('aggregate',), {(name,): len(each.moves) for name, each in reports.items()})
    yield _gauge('kronos_last_cycle_moves_memory_bytes', 'Memory of the servers that the last '
                 'evaluation planned to move.',
                 ('aggregate',), {(name,): sum(move.memory_mb for move in each.moves) * 2 ** 20
                                  for name, each in reports.items()})
    yield _gauge('kronos_stayed_servers', 'Servers that the last evaluation did not move, by '
                 'reason.', ('aggregate', 'reason'),
                 {(name, skip.reason): skip.count or 0 for name, each in reports.items()
                  for skip in each.not_moved})


def _workers_and_drains(seen: overview.Overview) -> Iterator[Metric]:
    workers = collections.Counter(
        (worker.role, 'alive' if worker.is_alive else 'silent') for worker in seen.workers)
    yield _gauge('kronos_workers', 'Processes by role, and by whether they gave a sign of life '
                 'lately.',
                 ('role', 'state'), workers)
    # A host that no evaluation has looked at yet must not seem to be empty.
    counted = [each for each in seen.drains if each.left is not None]
    stuck = {(each.host, each.state): math.nan for each in seen.drains
             if each.left is None and each.state in (drains.BLOCKED, drains.OVERDUE)}
    yield _gauge('kronos_drain_servers_left', 'Servers that are still on a host that is being '
                 'emptied; NaN if the drain is blocked or overdue and the number is not known.',
                 ('host', 'state'),
                 stuck | {(each.host, each.state): each.left for each in seen.drains
                          if each.left is not None})
    yield _gauge('kronos_drain_blocked_servers', 'Servers on a host that is being emptied which '
                 'cannot leave it.',
                 ('host',), {(each.host,): each.blocked for each in counted})
    yield _gauge('kronos_drain_remaining_seconds', 'Predicted seconds until the planned moves off '
                 'a host have ended.', ('host',), {(each.host,): each.remaining_seconds
                                            for each in seen.drains
                                            if each.remaining_seconds is not None})


def _totals(found: Iterable[counters.Total]) -> Iterator[Metric]:
    by_name: dict[str, list[counters.Total]] = collections.defaultdict(list)
    for each in found:
        by_name[each.name].append(each)
    labels: tuple[str, ...]
    for name, text, total, labels in (
            ('kronos_moves', 'Moves that have ended since the control database was made.',
             counters.MOVES, ('aggregate', 'phase', 'kind', 'state', 'error')),
            ('kronos_moved_memory_bytes', 'Memory of the servers that were moved.',
             counters.MOVED_BYTES, ()),
            ('kronos_cycles', 'Evaluations by outcome.', counters.CYCLES,
             ('outcome',)),
            ('kronos_notifications_dropped', 'Notifications that were dropped because no broker '
             'accepted them in time.',
             counters.DROPPED_NOTIFICATIONS, ())):
        # A series that begins at 1 has no increase: no alert would fire for the first.
        values: dict[tuple[str, ...], float] = collections.defaultdict(
            float, {} if labels else {(): 0.0})
        for each in by_name[total]:
            values[tuple(each.labels[label] for label in labels)] += each.value
        family = CounterMetricFamily(name, text, labels=labels)
        for key, value in sorted(values.items()):
            family.add_metric(key, value)
        yield family
    yield from _audit(by_name)
    yield _durations(by_name)


def _audit(by_name: Mapping[str, Sequence[counters.Total]]) -> Iterator[Metric]:
    yield _gauge('kronos_audit_findings', 'Findings of the last "kronos-manage allocations audit", '
                 'by kind.',
                 ('kind',), {(each.labels['kind'],): each.value
                             for each in by_name[counters.AUDIT_FINDINGS]})
    ended = [each.value for each in by_name[counters.AUDITED_AT]]
    yield _gauge('kronos_last_audit_timestamp_seconds', 'Unix time at which the last audit of '
                 'allocations ended.', (),
                 {(): max(ended)} if ended else {})


def _durations(by_name: Mapping[str, Sequence[counters.Total]]) -> HistogramMetricFamily:
    counts = {float(each.labels['le']): each.value for each in by_name[counters.MOVES_BY_SECONDS]}
    buckets = [('+Inf' if bound == float('inf') else str(float(bound)),
                sum(count for le, count in counts.items() if le <= bound)) for bound in BUCKETS]
    family = HistogramMetricFamily('kronos_move_duration_seconds', 'Durations of completed moves.')
    family.add_metric([], buckets, sum(each.value for each in by_name[counters.MOVE_SECONDS]))
    return family


def _any(count: float) -> dict[tuple[str, ...], float]:
    """Return the values of a gauge without labels: one series with ``count``, or no series if
    ``count`` is 0."""
    return {(): count} if count else {}


def _gauge(name: str, text: str, labels: Sequence[str],
           values: Mapping[Key, float]) -> GaugeMetricFamily:
    """Return a gauge with one series for each key of ``values``.

    :param labels: names of the labels
    :param values: {values of the labels: value of the series}
    """
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, float(value))
    return family
