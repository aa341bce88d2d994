"""The recording of an evaluation's reports and plans, and the start of plans."""

import collections
import dataclasses
import datetime
import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set

import numpy as np
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.cooldown.planning_history import growing
from kronos_nova.cycle import approval
from kronos_nova.cycle.observe import Observation
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.ports import CyclePorts
from kronos_nova.cycle.ports import CycleRules
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.load import normalised
from kronos_nova.objects import automation
from kronos_nova.objects import host_load
from kronos_nova.objects import plan as plans
from kronos_nova.objects.snapshot import Snapshot

LOG = logging.getLogger(__name__)

LONGEST_LINE = 2000
"""Maximum number of characters of one line of a report in the log. A longer line is cut. The limit
is needed because tenants choose some of the names in a line. Raised, one line may fill a screen;
lowered, lines are cut more often. Not measured."""

STATE_OF = {automation.OFF: plans.OBSERVED, automation.OBSERVE: plans.OBSERVED,
            automation.APPROVE: plans.PROPOSED, automation.AUTO: plans.EXECUTING}

WORDS = {plans.NO_DATA: 'without data', plans.NO_MOVE: 'imbalanced or hot, and no move is of use',
         plans.COOLING: 'left alone'}
"""{outcome of an evaluation: words for the log}, for outcomes whose names alone are not clear."""


def still_doubted(report: plans.AggregateReport, before: Set[tuple[str, str]],
                  snapshot: Snapshot) -> set[tuple[str, str]]:
    """Return (policy, host) for each score that the next evaluation does not use, even if the score
    then passes all checks of :mod:`kronos_nova.load.belief`. These are the scores that fail a check
    now, and the scores in ``before`` that could not be checked now.

    :param before: the result of this function in the previous evaluation
    """
    judged = {(each.policy, each.host) for each in report.unbelieved}
    failing = {(each.policy, each.host) for each in report.unbelieved
               if each.is_failing and each.what == 'score'}
    if not before:
        return failing
    policies = {policy.name for policy in report.policies}
    hosts = {host.name for host in snapshot.hosts}
    return failing | {(policy, host) for policy, host in before - judged
                      if host in hosts and (policy in policies or not policies)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResultWriter:
    """The writer of one evaluation's results.

    learnt : {aggregate: {policy: LoadStats}}. Planning adds the statistics of each aggregate that
        it plans
    outlooks : {aggregate: ProposalOutlook} of the plans that wait for approval. Planning adds them
    """

    cycle_ports: CyclePorts
    options: EngineOptions
    rules: CycleRules
    utcnow: Callable[[], datetime.datetime]
    seen: Observation
    learnt: dict[str, Mapping] = dataclasses.field(default_factory=dict)
    outlooks: dict[str, approval.ProposalOutlook] = dataclasses.field(default_factory=dict)

    def persist(self, report: plans.CycleReport, snapshot: Snapshot) -> plans.CycleReport:
        """Record a report, and end or keep the plans that wait for approval.

        :param snapshot: the cloud, with the moves that this evaluation has started
        :returns: the recorded report
        """
        report = dataclasses.replace(report, aggregates=tuple(
            self._with_proposal(each, self.utcnow()) for each in report.aggregates))
        # Scores are written before the plans, whose notifications contain them.
        alone('saving the names of servers', functools.partial(
            self.cycle_ports.names.save, self.seen.names, self.utcnow(),
            _aggregates(report.aggregates, snapshot)))
        loads, doubted = host_load.HostLoads(snapshot), self.cycle_ports.cycles.doubted()
        for aggregate in report.aggregates:
            still = still_doubted(aggregate, doubted.get(aggregate.name, frozenset()), snapshot)
            alone(f'saving the result of aggregate {aggregate.name}',
                  functools.partial(self._write_down, aggregate, loads, still))
        return report

    def missing(self, name: str, mode: str) -> None:
        """Report an aggregate that does not exist: once in the log, and in its status until it
        exists."""
        wrong = 'there is no aggregate of that name: correct [kronos] aggregates, or create it'
        if self.seen.last.get(name) != plans.FAILED:
            LOG.error('Aggregate %s is not evaluated: %s.', name, wrong)
        report = plans.AggregateReport(name=name, outcome=plans.FAILED, mode=mode,
                                       planner=self.options.planner(mode), warnings=(wrong,))
        self.cycle_ports.cycles.end(name, self.utcnow(), plans.FAILED, False, report.to_json())

    def start(self, record: plans.PlanRecord, report: plans.AggregateReport,
              found: approval.Checked) -> None:
        """Start an approved plan, without the moves that are no longer valid."""
        if found.waits_for:
            self._postpone(record, found.waits_for)
            return
        if found.void:
            LOG.warning('Plan %s is not started: %s', record.uuid, found.void)
            self.cycle_ports.journal.end_plan(
                record.uuid, plans.APPROVED, plans.VOID, found.void, self.utcnow())
            return
        chosen = [move for move in report.moves if move.order not in found.wrong]
        now = self.utcnow()
        try:
            # A plan without moves is void, and begins no cooldown.
            self.cycle_ports.journal.start_plan(
                record.uuid, chosen, now, self.rules.start_interval, found.wrong,
                self._cooldowns(record.aggregate, chosen, now) if chosen else ())
        except exception.PlanNotFound:
            LOG.info('Plan %s for aggregate %s is not started: it has expired, or was ended while '
                     'it was checked', record.uuid, record.aggregate)
            return
        for order, why in sorted(found.wrong.items()):
            LOG.warning('Plan %s: move %d is left out: %s', record.uuid, order, why)
        if chosen:
            LOG.info('Plan %s for aggregate %s, approved by %s, is executing: %s', record.uuid,
                     record.aggregate, record.approved_by, plural.count(len(chosen), 'move'))

    def _postpone(self, record: plans.PlanRecord, why: str) -> None:
        if why != record.detail:
            LOG.warning('Plan %s is approved, but is not started yet: %s', record.uuid, why)
            self.cycle_ports.journal.postpone_plan(record.uuid, why)

    def _write_down(self, report: plans.AggregateReport, loads: host_load.HostLoads,
                    doubted: Set[tuple[str, str]]) -> None:
        now = self.utcnow()
        log(report, is_news=report.outcome != self.seen.last.get(report.name))
        if report.outcome == plans.PLANNED:
            self._record_plan(report, now)
        above = any(policy.is_above_threshold for policy in report.policies)
        self._save_scores(report, now)
        self._save_refusals(report, now)
        if report.name in self.learnt:
            self.cycle_ports.load_stats.save(report.name, self.learnt[report.name], now)
        self.cycle_ports.cycles.end(
            report.name, now, report.outcome, above, report.to_json(), doubted)
        self.cycle_ports.evaluations.save(report, loads.of_aggregate(report), now)

    def _save_refusals(self, report: plans.AggregateReport, now: datetime.datetime) -> None:
        enough = [refusal for refusal in report.refusals if refusal.is_final]
        if enough and self.rules.rejection_backoff:
            self.cycle_ports.refusals.rest(enough, self.rules.rejection_backoff, now)

    def _with_proposal(self, report: plans.AggregateReport,
                       now: datetime.datetime) -> plans.AggregateReport:
        """Decide between the new plan of a report and an older plan of the aggregate that waits for
        approval. Return the report that is to be recorded. If the level no longer asks for
        approval, or if the new plan is better, the older plan is ended. Otherwise the new plan is
        removed from the report."""
        record = self.seen.proposed.get(report.name)
        if record is None:
            return report
        switches, journal = self.cycle_ports.switches.read(), self.cycle_ports.journal
        level = switches.planning_level(report.name, self.rules.automation, record.purpose)
        # A paused aggregate is planned as at the level observe, and keeps its own level.
        if switches.level(report.name, self.rules.automation,
                          record.purpose) in automation.WITHOUT_APPROVAL:
            LOG.info('Plan %s for aggregate %s no longer waits for approval, because the level is '
                     '%s; the plan is void', record.uuid, report.name, level)
            journal.end_plan(record.uuid, plans.PROPOSED, plans.VOID, f'the level is {level}', now)
            return report
        found = self.outlooks.get(report.name)
        if record.purpose == report.purpose:
            why = approval.superseded_because(found, level, report, record.planner)
        else:
            why = approval.replaced_because(report, switches.planning_level(
                report.name, self.rules.automation, report.purpose))
        if why:
            LOG.info('Plan %s for aggregate %s is superseded: %s', record.uuid, report.name, why)
            journal.end_plan(record.uuid, plans.PROPOSED, plans.SUPERSEDED, why, now)
            return report
        journal.note_outlook(record.uuid, None if found is None else found.combined, now)
        if report.outcome != plans.PLANNED:
            return report
        return dataclasses.replace(
            report, outcome=plans.COOLING, moves=(), combined_after=report.combined_before,
            warnings=(f'plan {record.uuid} waits for approval', *report.warnings), intended=1,
            policies=tuple(dataclasses.replace(each, imbalance_after=each.imbalance_before)
                           for each in report.policies))

    def _save_scores(self, report: plans.AggregateReport, now: datetime.datetime) -> None:
        scores: dict[str, dict[str, float]] = collections.defaultdict(dict)
        for score in report.host_scores:
            scores[score.host][score.policy] = score.value
        self.cycle_ports.scores.replace(
            report.mode, {policy.name: policy.weight for policy in report.policies}, scores, now)

    def _record_plan(self, report: plans.AggregateReport, now: datetime.datetime) -> None:
        # The level is read now, not when the cycle began, because planning may have taken long.
        level = self.cycle_ports.switches.read().planning_level(
            report.name, self.rules.automation, report.purpose)
        state = STATE_OF[level]
        try:
            uuid = self.cycle_ports.journal.record_plan(
                report, state, now, now + _seconds(self.rules.stale_plan_age),
                self.rules.start_interval, report.purpose,
                cooldowns=self._cooldowns(report.name, report.moves, now)
                if state == plans.EXECUTING else ())
        except exception.PlanPending as e:
            LOG.info('Aggregate %s gets no new plan before the present one has ended: %s',
                     report.name, e)
            return
        LOG.info('Plan %s for aggregate %s is %s (level %s): %s, %.1f GiB of memory; %s',
                 uuid, report.name, state, level, plural.count(len(report.moves), 'move'),
                 sum(move.memory_mb for move in report.moves) / 1024, _figures(report))

    def _cooldowns(self, aggregate: str, moves: Iterable[plans.PlannedMove],
                   now: datetime.datetime) -> list[db_cooldowns.Cooldown]:
        """Return the Cooldowns of an aggregate and of the instances that a plan moves. They begin
        when the plan starts."""
        rules, spread_interval = self.rules, self.options.spread_interval
        self.cycle_ports.cooldowns.forget(now - _seconds(rules.instance_cooldown_max))
        found = [db_cooldowns.Cooldown(db_cooldowns.AGGREGATE, [aggregate],
                                       now + _seconds(rules.cooldown))]
        if any(move.phase == plans.SPREAD for move in moves) and spread_interval:
            found.append(db_cooldowns.Cooldown(db_cooldowns.SPREAD, [aggregate],
                                               now + _seconds(spread_interval)))
        times = self.cycle_ports.cooldowns.times()
        for uuid in {move.instance_uuid for move in moves}:
            length = growing(rules.instance_cooldown, rules.instance_cooldown_factor,
                             rules.instance_cooldown_max, times.get(uuid, 0))
            found.append(db_cooldowns.Cooldown(db_cooldowns.INSTANCE, [uuid],
                                               now + _seconds(length)))
        return found


def alone(what: str, work: Callable[[], object]) -> None:
    """Call ``work`` so that an unexpected error does not stop the cycle. The error is logged and
    not raised. Errors of Kronos and of the database are raised.

    :param what: name of the work, for the log
    """
    try:
        work()
    except (exception.KronosException, db_exc.DBError):
        raise
    except Exception:
        LOG.exception('An unexpected error ended a part of this cycle; the cycle continues without '
                      'that part: %s', what)


def _seconds(value: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=value)


def _aggregates(reports: Iterable[plans.AggregateReport], snapshot: Snapshot) -> dict[str, str]:
    """Return {server uuid: its aggregate} of the servers on hosts of evaluated aggregates."""
    of_host = {host: report.name for report in reports for host in snapshot.hosts_of(report.name)}
    return {server.uuid: of_host[server.host] for server in snapshot.instances
            if server.host in of_host}


def log(report: plans.AggregateReport, is_news: bool = True) -> None:
    """Log a report. Each line is cut and sanitized, because it may have names that tenants choose.

    :param is_news: True if the outcome differs from that of the evaluation before. The first line
        is then logged at level INFO
    """
    summary, *details = describe(report)
    LOG.log(logging.INFO if is_news else logging.DEBUG, '%s',
            boundary.shown(summary, LONGEST_LINE))
    for line in details:
        LOG.debug('%s', boundary.shown(line, LONGEST_LINE))
    if LOG.isEnabledFor(logging.DEBUG):
        for line in describe_scores(report):
            LOG.debug('%s', boundary.shown(line, LONGEST_LINE))


def _figures(report: plans.AggregateReport) -> str:
    """Return a text about the effect of a plan on each policy's imbalance. If no imbalance is
    measured, the text says so."""
    found = ', '.join(f'{p.name} {p.imbalance_before:.3f} to {p.imbalance_after:.3f} '
                      f'(threshold {p.threshold:.3f})' for p in report.policies
                      if p.imbalance_after is not None)
    return f'imbalance {found}' if found else 'nothing is measured'


def describe(report: plans.AggregateReport) -> Iterator[str]:
    """Yield lines for the log: the outcome with its figures, the warnings, then every move with its
    reason."""
    figures = ', '.join(
        f'{p.name} {p.imbalance_before:.3f} (threshold {p.threshold:.3f})' if p.state == 'ok'
        else f'{p.name} without data: {p.detail}' for p in report.policies)
    first = f': {report.warnings[0]}' if report.warnings else ''
    found = WORDS.get(report.outcome, report.outcome)
    yield f'Aggregate {report.name} is {found}{first}; {figures}'
    for warning in report.warnings[1:]:
        yield f'Aggregate {report.name}: {warning}'
    for move in report.moves:
        yield (f'Aggregate {report.name}, move {move.order}: instance {move.instance_uuid} from '
               f'{move.source} to {move.destination}: {move.reason}')


def describe_scores(report: plans.AggregateReport) -> Iterator[str]:
    """Yield a log line for each host and policy. The line has the score of the host, and the score
    scaled so that the least loaded host has 0 and the most loaded host has 1."""
    for policy in report.policies:
        scores = [score for score in report.host_scores if score.policy == policy.name]
        places = normalised(np.array([score.value for score in scores]))
        for score, place in zip(scores, places, strict=True):
            yield (f'Aggregate {report.name}, policy {policy.name}: {score.host} has '
                   f'{score.value:.3f}, normalised {place:.3f}')
