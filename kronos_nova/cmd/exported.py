"""The facts of the control database as metrics of Prometheus.

Names and units follow https://prometheus.io/docs/practices/naming/. There is a series for each
aggregate, policy, host and state, never one for an instance.
"""

import collections
import json

from oslo_db import exception as db_exc
from oslo_log import log as logging
from prometheus_client.core import CounterMetricFamily
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.core import HistogramMetricFamily

from kronos_nova import exception
from kronos_nova.cmd import columns
from kronos_nova.db import census
from kronos_nova.db import counters
from kronos_nova.db import memory
from kronos_nova.executor.options import Options
from kronos_nova.objects import move as moves
from kronos_nova.operations import health
from kronos_nova.operations import overview

LOG = logging.getLogger(__name__)

DATABASE_UP = 'kronos_control_database_up'


class Collector:
    """Reads everything anew for every scrape; a collector of a ``prometheus_client`` registry."""

    def __init__(self, conf, database, utcnow):
        self.conf = conf
        self.database = database
        self.utcnow = utcnow
        self.observer = overview.Observer(conf, database, utcnow)

    def describe(self):
        """Nothing: to tell would be to read."""
        return ()

    def collect(self):
        try:
            found = list(self._families())
        except (db_exc.DBError, exception.KronosException) as error:
            LOG.error('The metrics cannot be told: %s', error)
            found = []
        yield _gauge(DATABASE_UP, 'Whether the control database could be read for this scrape.', (),
                     {(): bool(found)})
        yield from found

    def _families(self):
        last = self.observer.cycles.last()
        seen = self.observer.look_with(last)
        rows = {row.aggregate: row for row in last}
        # Parsed once: the report of a large aggregate names every server that stayed.
        reports = {name: json.loads(row.report) for name, row in rows.items() if row.report}
        yield from _problems(seen)
        yield from _aggregates(seen)
        yield from _balance(seen, reports)
        yield from _cycles(rows)
        yield from _plans(seen, reports)
        yield from _workers_and_drains(seen)
        yield from _totals(counters.Counters(self.database).read())
        yield from self._now(seen)
        yield _gauge('kronos_evaluation_interval_seconds', 'Between two evaluations of an '
                     'aggregate.', (), {(): self.conf.kronos.evaluation_interval})

    def _now(self, seen):
        now, cooldowns = self.utcnow(), memory.Cooldowns(self.database)
        found = census.take(self.database, now)
        under_way = sum(found.moves.get(state, 0) for state in moves.IN_FLIGHT)
        yield _gauge('kronos_moves_waiting', 'Moves of plans that run which have not begun.', (),
                     {(): found.moves.get(moves.PLANNED, 0)})
        yield _gauge('kronos_moves_under_way', 'Moves that are being carried out.', (),
                     {(): under_way})
        yield _gauge('kronos_moves_under_way_limit', 'How many may be at once.', (),
                     {(): Options.from_conf(self.conf).caps.total})
        yield _gauge('kronos_quarantined_servers', 'Servers that are left alone since a move of '
                     'them failed.', (), {(): seen.quarantined})
        yield _gauge('kronos_cooling_servers', 'Servers that are left alone since they were moved.',
                     (), {(): len(cooldowns.cooling(memory.INSTANCE, now))})
        yield _gauge('kronos_resting_servers', 'Servers that are left alone since Nova would let '
                     'them go nowhere.', (), {(): found.resting})
        yield _gauge('kronos_allocation_repairs', 'Repairs of allocations that are kept, by what '
                     'was found and what became of it.', ('kind', 'state'), found.repairs)
        yield _gauge('kronos_notifications_waiting', 'Notifications that wait for the broker.', (),
                     {(): found.notifications})
        yield _gauge('kronos_claims', 'Claims of compute hosts that keep them in the control '
                     'database.', ('state',), {(state,): n for state, n in found.claims.items()})
        yield _gauge('kronos_control_database_size_bytes', 'Of the control database, its indices '
                     'included.', (), {(): found.size})
        yield _gauge('kronos_host_score_ratio', 'Load of a host at the last evaluation.',
                     ('host', 'policy'), found.scores)


def _problems(seen):
    found = collections.Counter(problem.severity for problem in seen.problems)
    yield _gauge('kronos_problems', 'What "kronos-manage status" lists as wrong.', ('severity',),
                 {(severity,): found[severity]
                  for severity in (overview.WARNING, overview.CRITICAL)})


def _aggregates(seen):
    yield _gauge('kronos_automation_level', 'The level in force, as a label.',
                 ('aggregate', 'level'), {(each.name, each.level): 1 for each in seen.aggregates})
    yield _gauge('kronos_paused', 'Whether somebody paused it.', ('aggregate',),
                 {(each.name,): bool(each.paused) for each in seen.aggregates})
    yield _gauge('kronos_maintenance_window_open', 'Whether its moves may start now.',
                 ('aggregate',),
                 {(each.name,): each.window_opens_at is None for each in seen.aggregates})


def _balance(seen, reports):
    policies = [(each.name, policy) for each in seen.aggregates for policy in each.policies]
    measured = [(name, policy) for name, policy in policies if policy.imbalance is not None]
    labels = ('aggregate', 'policy')
    yield _gauge('kronos_imbalance_ratio', 'Highest minus lowest score of the hosts.', labels,
                 {(name, policy.name): policy.imbalance for name, policy in measured})
    yield _gauge('kronos_imbalance_threshold_ratio', 'The imbalance above which hosts are '
                 'balanced.', labels, {(name, policy.name): policy.threshold
                                       for name, policy in policies})
    yield _gauge('kronos_policy_has_data', 'Whether its queries could be planned by.', labels,
                 {(name, policy.name): policy.imbalance is not None for name, policy in policies})
    yield _gauge('kronos_policy_coverage_ratio', 'Available hosts with a sample, of all available '
                 'hosts of the aggregate.', labels, {
                     (name, policy['name']): policy['coverage']
                     for name, report in reports.items() for policy in report['policies']
                     if 'coverage' in policy})
    yield _gauge('kronos_policy_sample_age_seconds', 'Age of the oldest of these samples when they '
                 'were read.', labels, {
                     (name, policy['name']): policy['sample_age']
                     for name, report in reports.items() for policy in report['policies']
                     if policy.get('sample_age') is not None})
    yield _gauge('kronos_broken_server_groups', 'Server groups with a hard policy whose members '
                 'are not where they should be.', ('aggregate',),
                 {(name,): report.get('broken_groups', 0) for name, report in reports.items()})
    yield _gauge('kronos_hosts', 'Hosts that were measured.', ('aggregate',),
                 {(name,): report.get('hosts', 0) for name, report in reports.items()})
    yield _gauge('kronos_hot_hosts', 'Hosts with a score above 0.9 in a policy.', ('aggregate',),
                 {(name,): report.get('hot_hosts', 0) for name, report in reports.items()})
    scores = {(each.name,): health.score(each, reports.get(each.name, {}), seen.drains)
              for each in seen.aggregates}
    yield _gauge('kronos_health_score', 'From 0 to 100; the documentation has the formula.',
                 ('aggregate',), {key: value for key, value in scores.items() if value is not None})


def _cycles(rows):
    ended = [row for row in rows.values() if row.finished_at]
    yield _gauge('kronos_last_cycle_outcome', 'Of the last evaluation, as a label.',
                 ('aggregate', 'outcome'),
                 {(row.aggregate, row.outcome): 1 for row in rows.values() if row.outcome})
    yield _gauge('kronos_last_cycle_timestamp_seconds', 'When the last evaluation ended.',
                 ('aggregate',), {(row.aggregate,): _unix(row.finished_at) for row in ended})
    yield _gauge('kronos_last_good_cycle_timestamp_seconds', 'When the last evaluation ended that '
                 'had data to plan by; 0: never.', ('aggregate',),
                 {(row.aggregate,): _unix(row.good_at) if row.good_at else 0.0
                  for row in rows.values()})
    yield _gauge('kronos_last_cycle_duration_seconds', 'How long the last evaluation took, that '
                 'of aggregates planned together included.', ('aggregate',),
                 {(row.aggregate,): (row.finished_at - row.started_at).total_seconds()
                  for row in ended if row.finished_at >= row.started_at})
    yield _gauge('kronos_failed_cycles_in_a_row', 'Evaluations that did not end, since the last '
                 'one that did.', ('aggregate',),
                 {(row.aggregate,): row.failures for row in rows.values()})


def _plans(seen, reports):
    plans = [(each.name, each.plan) for each in seen.aggregates if each.plan]
    yield _gauge('kronos_open_plan', 'The plan that waits or runs, its state as a label.',
                 ('aggregate', 'state', 'purpose'),
                 {(name, plan.state, plan.purpose): 1 for name, plan in plans})
    yield _gauge('kronos_open_plan_moves', 'Moves of the plan that waits or runs, by state.',
                 ('aggregate', 'state'),
                 {(name, state): count for name, plan in plans
                  for state, count in (plan.states or {plan.state: plan.moves}).items()})
    yield _gauge('kronos_open_plan_remaining_seconds', 'How long the plan will still take.',
                 ('aggregate',), {(name,): plan.remaining_seconds for name, plan in plans
                                  if plan.remaining_seconds is not None})
    yield _gauge('kronos_last_cycle_moves', 'Moves that the last evaluation planned.',
                 ('aggregate',), {(name,): len(each['moves']) for name, each in reports.items()})
    yield _gauge('kronos_last_cycle_moves_memory_bytes', 'Memory of the servers that these move.',
                 ('aggregate',),
                 {(name,): sum(move['memory_mb'] for move in each['moves']) * 2 ** 20
                  for name, each in reports.items()})
    yield _gauge('kronos_stayed_servers', 'Servers that the last evaluation left where they are, '
                 'by the reason.', ('aggregate', 'reason'),
                 {(name, skip['reason']): skip.get('count') or len(skip.get('instances', ()))
                  for name, each in reports.items() for skip in each['not_moved']})


def _workers_and_drains(seen):
    workers = collections.Counter(
        (worker.role, 'alive' if worker.is_alive else 'silent') for worker in seen.workers)
    yield _gauge('kronos_workers', 'Processes, by whether they said lately that they live.',
                 ('role', 'state'), workers)
    yield _gauge('kronos_drain_servers_left', 'Servers that are still on a host to be emptied.',
                 ('host', 'state'), {(each.host, each.state): each.left or 0
                                     for each in seen.drains})
    yield _gauge('kronos_drain_blocked_servers', 'Those of them that nothing can be done about.',
                 ('host',), {(each.host,): each.blocked for each in seen.drains})
    yield _gauge('kronos_drain_remaining_seconds', 'How long the planned moves off the host will '
                 'still take.', ('host',), {(each.host,): each.remaining_seconds
                                            for each in seen.drains
                                            if each.remaining_seconds is not None})


def _totals(found):
    by_name = collections.defaultdict(list)
    for total in found:
        by_name[total.name].append(total)
    for name, text, total, labels in (
            ('kronos_moves', 'Moves that have ended, since the control database was made.',
             counters.MOVES, ('aggregate', 'phase', 'kind', 'state', 'error')),
            ('kronos_moved_memory_bytes', 'Memory of the servers that were moved.',
             counters.MOVED_BYTES, ('aggregate',)),
            ('kronos_cycles', 'Evaluations, by how they ended.', counters.CYCLES,
             ('aggregate', 'outcome')),
            ('kronos_notifications_dropped', 'Notifications that no broker took for too long.',
             counters.DROPPED_NOTIFICATIONS, ())):
        family = CounterMetricFamily(name, text, labels=labels)
        for each in by_name[total]:
            family.add_metric([each.labels[label] for label in labels], each.value)
        if not labels and not by_name[total]:
            # What begins at 1 has no increase: nobody would be told of the first.
            family.add_metric([], 0.0)
        yield family
    yield from _audit(by_name)
    yield _durations(by_name)


def _audit(by_name):
    yield _gauge('kronos_audit_findings', 'What the last "kronos-manage allocations audit" found.',
                 ('kind',), {(each.labels['kind'],): each.value
                             for each in by_name[counters.AUDIT_FINDINGS]})
    ended = [each.value for each in by_name[counters.AUDITED_AT]]
    yield _gauge('kronos_last_audit_timestamp_seconds', 'When that ended.', (),
                 {(): max(ended)} if ended else {})


def _durations(by_name):
    counts = {float(each.labels['le']): each.value for each in by_name[counters.MOVES_BY_SECONDS]}
    buckets, so_far = [], 0.0
    for bound in counters.SECONDS:
        so_far += counts.get(bound, 0.0)
        buckets.append(('+Inf' if bound == float('inf') else str(float(bound)), so_far))
    family = HistogramMetricFamily('kronos_move_duration_seconds', 'How long completed moves took.')
    family.add_metric([], buckets, sum(each.value for each in by_name[counters.MOVE_SECONDS]))
    return family


def _gauge(name, text, labels, values):
    """
    :param values: {label values: figure}
    """
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, float(value))
    return family


def _unix(time):
    return columns.as_utc(time).timestamp()
