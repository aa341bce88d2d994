"""One evaluation: read, plan, write down."""

import collections
import dataclasses
import datetime
import functools
import time
from collections.abc import Callable

import numpy as np
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.cooldown.repetition import growing
from kronos_nova.cycle import aggregates
from kronos_nova.cycle import approval
from kronos_nova.cycle import observe
from kronos_nova.cycle import steps
from kronos_nova.cycle.ports import CyclePorts
from kronos_nova.cycle.ports import CycleRules
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.load import normalised
from kronos_nova.objects import automation
from kronos_nova.objects import host_load
from kronos_nova.objects import plan as plans
from kronos_nova.objects.snapshot import UNASSIGNED

LOG = logging.getLogger(__name__)

LONGEST_LINE = 2000
"""Characters of a line of the log; tenants choose the names in it."""

STATE_OF = {automation.OFF: plans.OBSERVED, automation.OBSERVE: plans.OBSERVED,
            automation.APPROVE: plans.PROPOSED, automation.AUTO: plans.EXECUTING}

WORDS = {plans.NO_DATA: 'without data', plans.NO_MOVE: 'imbalanced or hot, and no move is of use',
         plans.COOLING: 'left alone'}
"""Outcomes that do not read well by themselves."""


class Cycle:
    """Evaluates aggregates.

    :param policies: PolicySet
    :param options: EngineOptions; which aggregates they name is what is evaluated
    :param may_write: asked before anything is written; a process whose turn is over must not
    """

    def __init__(self, cycle_ports: CyclePorts, policies, options, rules: CycleRules,
                 utcnow: Callable[[], datetime.datetime],
                 may_write: Callable[[], bool] = lambda: True):
        self.cycle_ports = cycle_ports
        self.policies = policies
        self.options = options
        self.rules = rules
        self.utcnow = utcnow
        self.may_write = may_write
        self._names = {}
        self._last = {}     # {aggregate: outcome of its last evaluation}
        self._learnt = {}   # {aggregate: {policy: LoadStats}}
        self._proposed = {}     # {aggregate: PlanRecord of the plan that waits for approval}
        self._outlooks = {}     # {aggregate: ProposalOutlook of that plan}

    def run(self):
        """Evaluate every aggregate of the options, and start what was approved for them.

        An aggregate that does not exist is said to be so, and the others are evaluated.

        :returns: CycleReport
        :raises InventoryError: Nova or placement could not be read; nothing was planned
        """
        now = self.utcnow()
        snapshot = self._read()
        self._names = {server.uuid: server.display_name for server in snapshot.instances}
        self._last = {row.aggregate: row.outcome for row in self.cycle_ports.cycles.last()}
        self._learnt, self._outlooks = {}, {}
        self._proposed = {record.aggregate: record
                          for record in self.cycle_ports.journal.proposed_plans()}
        units = self._units(snapshot)
        options = self._whole_units(self._existing(snapshot), units)
        planner_ports = steps.PlannerPorts(
            source=self.cycle_ports.metrics, clock=time.monotonic, dry_run=self.cycle_ports.dry_run,
            now=now.timestamp(), names_elsewhere=self.cycle_ports.inventory.names_elsewhere,
            learn=self._learnt.__setitem__, look_ahead=self._outlooks.__setitem__,
            forecast_cache=self.cycle_ports.forecast_cache)
        measurements = steps.measurements_of(snapshot, options, planner_ports)
        options = self._carry_out_requests(snapshot, options, planner_ports, measurements)
        snapshot = snapshot.with_moves_under_way(self.cycle_ports.journal.moves_under_way())
        snapshot = self._start_approved(snapshot, options, planner_ports, units, measurements)
        report = steps.plan_cycle(snapshot, self.policies, options, planner_ports,
                                  self._planning_history(now, units), measurements)
        self._make_sure_of_our_turn()
        report = dataclasses.replace(report, aggregates=tuple(
            self._with_proposal(each, self.utcnow()) for each in report.aggregates))
        # Before the plans, whose notifications have them.
        self._alone('The names of servers',
                    functools.partial(self.cycle_ports.names.save, self._names, self.utcnow()))
        loads = host_load.HostLoads(snapshot)
        for aggregate in report.aggregates:
            self._alone(f'What was found of aggregate {aggregate.name}',
                        functools.partial(self._write_down, aggregate, loads))
        return report

    def _read(self):
        """The cloud, and on it the moves of all open plans, whoever made them.

        Plans first: a move that ends meanwhile is told by where its instance then is.
        """
        moves = self.cycle_ports.journal.moves_under_way()
        snapshot = self.cycle_ports.inventory.read(self._scope_names(), moves)
        return snapshot.with_moves_under_way(moves)

    def _units(self, snapshot):
        """{aggregate: those that it shares hosts with} of all that are planned."""
        switches, levels = self.cycle_ports.switches.read(), self.rules.automation
        names = {name for name in self.rules.in_scope
                 if switches.planning_level(name, levels) != automation.OFF}
        return aggregates.planning_units(
            sorted(names.union(self.options.aggregates or (a.name for a in snapshot.aggregates))),
            {aggregate.name: aggregate.hosts for aggregate in snapshot.aggregates})

    @staticmethod
    def _whole_units(options, units):
        """The options without the aggregates that share hosts with one that is not among them:
        another worker may be at that one."""
        names = options.aggregates
        for name in names or ():
            others = sorted(units[name] - set(names))
            if others:
                LOG.warning('Aggregate %s has hosts in common with %s since a moment ago. They are '
                            'planned together when they are next due.', name, ', '.join(others))
        return dataclasses.replace(options, aggregates=names and tuple(
            name for name in names if units[name] <= set(names)))

    def _carry_out_requests(self, snapshot, options, planner_ports, measurements):
        """Plan what was asked for in some aggregates; the options without these."""
        for make in self.cycle_ports.requesters:
            requester = make(self.cycle_ports, self.policies, options, self.rules, self.utcnow)
            found = requester.wanted(options.scopes(tuple(a.name for a in snapshot.aggregates)))
            for aggregate, wanted in sorted(found.items()):
                outcome = requester.plan(snapshot, planner_ports, measurements, aggregate, wanted)
                self._make_sure_of_our_turn()
                requester.persist(snapshot, aggregate, wanted, outcome)
            options = options.without(found)
        return options

    def _scope_names(self):
        """Names of what is evaluated, or None for everything."""
        if self.options.aggregates is None:
            return None
        pool = (UNASSIGNED,) if self.options.include_unassigned_hosts else ()
        return (*self.options.aggregates, *pool)

    def _existing(self, snapshot):
        """The options without the aggregates that do not exist."""
        names = self.options.aggregates
        known = {aggregate.name for aggregate in snapshot.aggregates}
        for name in sorted(set(names or ()) - known):
            self._tell_missing(name)
        return dataclasses.replace(
            self.options, aggregates=names and tuple(name for name in names if name in known))

    def _tell_missing(self, name):
        """Once in the log, and in the status for as long as it is so."""
        wrong = 'there is no aggregate of that name: correct [kronos] aggregates, or create it'
        if self._last.get(name) != plans.FAILED:
            LOG.error('Aggregate %s is not evaluated: %s.', name, wrong)
        mode = self.policies.mode
        report = plans.AggregateReport(name=name, outcome=plans.FAILED, mode=mode,
                                       planner=self.options.planner(mode), warnings=(wrong,))
        self.cycle_ports.cycles.end(name, self.utcnow(), plans.FAILED, False, report.to_json())

    def _make_sure_of_our_turn(self):
        if not self.may_write():
            raise exception.JournalError('The conductor that began this cycle is gone; what it '
                                         'planned is thrown away.')

    def _start_approved(self, snapshot, options, planner_ports, units, measurements):
        """Start what was approved, without what does not hold any more.

        :returns: the snapshot, with the moves that were started
        """
        scopes = options.scopes(tuple(aggregate.name for aggregate in snapshot.aggregates))
        for record in self.cycle_ports.journal.approved_plans():
            if record.aggregate not in scopes or not self._may_run(record):
                continue
            # Anew for each: what the one before started cools.
            start = functools.partial(self._start, record, snapshot, options, planner_ports,
                                      self._planning_history(self.utcnow(), units), measurements)
            self._alone(f'Plan {record.uuid} for aggregate {record.aggregate}', start)
            snapshot = snapshot.with_moves_under_way(self.cycle_ports.journal.moves_under_way())
        return snapshot

    @staticmethod
    def _alone(what, work):
        """Do ``work``; what nobody foresaw in it is in the way of nothing else."""
        try:
            work()
        except (exception.KronosException, db_exc.DBError):
            raise
        except Exception:
            LOG.exception('%s is left out of this cycle', what)

    def _start(self, record, snapshot, options, planner_ports, history, measurements):
        report = plans.AggregateReport.from_json(record.report)
        found = steps.still_valid(snapshot, self.policies, options, planner_ports, history,
                                  report, measurements)
        self._make_sure_of_our_turn()
        if found.waits_for:
            self._postpone(record, found.waits_for)
            return
        if found.void:
            LOG.warning('Plan %s is not started: %s', record.uuid, found.void)
            self.cycle_ports.journal.end_plan(
                record.uuid, plans.APPROVED, plans.VOID, found.void, self.utcnow())
            return
        for order, why in sorted(found.wrong.items()):
            LOG.warning('Plan %s: move %d is left out: %s', record.uuid, order, why)
        chosen = [move for move in report.moves if move.order not in found.wrong]
        self.cycle_ports.journal.start_plan(record.uuid, chosen, self.utcnow(),
                                            self.rules.start_interval, found.wrong)
        if chosen:
            LOG.info('Plan %s for aggregate %s, approved by %s, is executing: %s', record.uuid,
                     record.aggregate, record.approved_by, _moves(len(chosen)))
        self._cool(record.aggregate, chosen, self.utcnow())

    def _postpone(self, record, why):
        if why != record.detail:
            LOG.warning('Plan %s is approved and waits: %s', record.uuid, why)
            self.cycle_ports.journal.postpone_plan(record.uuid, why)

    def _may_run(self, record):
        switches = self.cycle_ports.switches.read()
        return not (switches.hold(record.aggregate) or switches.refusal(
            record.aggregate, self.rules.automation, record.purpose, is_approved=True))

    def _planning_history(self, now, units):
        return observe.planning_history(
            self.cycle_ports, self.options, self.rules, now, self._scope_names(), units,
            {name: plans.AggregateReport.from_json(record.report)
             for name, record in self._proposed.items() if record.report})

    def _write_down(self, report, loads):
        now = self.utcnow()
        log(report, is_news=report.outcome != self._last.get(report.name))
        if report.outcome == plans.PLANNED:
            self._record_plan(report, now)
        above = any(policy.is_above_threshold for policy in report.policies)
        self._save_scores(report, now)
        self._save_refusals(report, now)
        if report.name in self._learnt:
            self.cycle_ports.load_stats.save(report.name, self._learnt[report.name], now)
        self.cycle_ports.cycles.end(
            report.name, now, report.outcome, above, report.to_json(),
            [(each.policy, each.host) for each in report.unbelieved
             if each.is_failing and each.what == 'score'])
        self.cycle_ports.evaluations.save(report, loads.of_aggregate(report), now)

    def _save_refusals(self, report, now):
        enough = [refusal for refusal in report.refusals if refusal.is_final]
        if enough and self.rules.rejection_backoff:
            self.cycle_ports.refusals.rest(enough, self.rules.rejection_backoff, now)

    def _with_proposal(self, report, now):
        """The report as it is recorded. A plan that waits for approval ends where the report is
        better; otherwise no other plan is made while it waits."""
        record = self._proposed.get(report.name)
        if record is None:
            return report
        switches, journal = self.cycle_ports.switches.read(), self.cycle_ports.journal
        level = switches.planning_level(report.name, self.rules.automation)
        # While it is paused an aggregate is planned as at observe, and keeps its level.
        if switches.level(report.name, self.rules.automation) in automation.WITHOUT_APPROVAL:
            LOG.info('Plan %s for aggregate %s is void: the level is %s', record.uuid, report.name,
                     level)
            journal.end_plan(record.uuid, plans.PROPOSED, plans.VOID, f'the level is {level}', now)
            return report
        found = self._outlooks.get(report.name)
        why = approval.superseded_because(found, level, report)
        if why:
            LOG.info('Plan %s for aggregate %s is superseded: %s', record.uuid, report.name, why)
            journal.end_plan(record.uuid, plans.PROPOSED, plans.SUPERSEDED, why, now)
            return report
        journal.note_outlook(record.uuid, found and found.combined, now)
        if report.outcome != plans.PLANNED:
            return report
        return dataclasses.replace(
            report, outcome=plans.COOLING, moves=(), combined_after=report.combined_before,
            warnings=(f'plan {record.uuid} waits for approval', *report.warnings),
            policies=tuple(dataclasses.replace(each, imbalance_after=each.imbalance_before)
                           for each in report.policies))

    def _save_scores(self, report, now):
        scores = collections.defaultdict(dict)
        for score in report.host_scores:
            scores[score.host][score.policy] = score.value
        self.cycle_ports.scores.replace(
            report.mode, {policy.name: policy.weight for policy in report.policies}, scores, now)

    def _record_plan(self, report, now):
        # Read now, not when the cycle began: planning may have taken long.
        level = self.cycle_ports.switches.read().planning_level(report.name, self.rules.automation)
        state = STATE_OF[level]
        try:
            uuid = self.cycle_ports.journal.record_plan(
                report, state, now, now + _seconds(self.rules.stale_plan_age),
                self.rules.start_interval)
        except exception.PlanPending as e:
            LOG.info('%s Nothing new is planned before that one has ended.', e)
            return
        LOG.info('Plan %s for aggregate %s is %s (level %s): %s, %.1f GiB; %s',
                 uuid, report.name, state, level, _moves(len(report.moves)),
                 sum(move.memory_mb for move in report.moves) / 1024, _figures(report))
        if state == plans.EXECUTING:
            self._cool(report.name, report.moves, now)

    def _cool(self, aggregate, moves, now):
        """Leave the aggregate and the instances of a plan that runs alone for a while."""
        cooldowns, rules = self.cycle_ports.cooldowns, self.rules
        cooldowns.forget(now - _seconds(rules.instance_cooldown_max))
        cooldowns.cool(db_cooldowns.AGGREGATE, [aggregate], now + _seconds(rules.cooldown),
                       now)
        if any(move.phase == plans.SPREAD for move in moves) and self.options.spread_interval:
            cooldowns.cool(db_cooldowns.SPREAD, [aggregate],
                           now + _seconds(self.options.spread_interval), now)
        times = cooldowns.times()
        for uuid in {move.instance_uuid for move in moves}:
            length = growing(rules.instance_cooldown, rules.instance_cooldown_factor,
                             rules.instance_cooldown_max, times.get(uuid, 0))
            cooldowns.cool(db_cooldowns.INSTANCE, [uuid], now + _seconds(length), now)


def _moves(count):
    return f'{count} move{"" if count == 1 else "s"}'


def _seconds(value):
    return datetime.timedelta(seconds=value)


def log(report, is_news=True):
    """Say what was found, a line at a time: tenants choose names in it.

    :param is_news: whether the evaluation before ended otherwise
    """
    summary, *details = describe(report)
    LOG.log(logging.INFO if is_news else logging.DEBUG, '%s',
            boundary.shown(summary, LONGEST_LINE))
    for line in details:
        LOG.debug('%s', boundary.shown(line, LONGEST_LINE))
    if LOG.isEnabledFor(logging.DEBUG):
        for line in describe_scores(report):
            LOG.debug('%s', boundary.shown(line, LONGEST_LINE))


def _figures(report):
    """What a plan does to each policy; one that only repairs may know of none."""
    found = ', '.join(f'{p.name} {p.imbalance_before:.3f} to {p.imbalance_after:.3f} '
                      f'(threshold {p.threshold:.3f})' for p in report.policies
                      if p.imbalance_after is not None)
    return f'imbalance {found}' if found else 'nothing is measured'


def describe(report):
    """Lines for the log: what was found, then what is doubtful and every move with its reason."""
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


def describe_scores(report):
    """Lines for a log that is read closely: every host's scores, and beside them where the host
    stands between the least and the most loaded one (0 to 1)."""
    for policy in report.policies:
        scores = [score for score in report.host_scores if score.policy == policy.name]
        places = normalised(np.array([score.value for score in scores]))
        for score, place in zip(scores, places, strict=True):
            yield (f'Aggregate {report.name}, policy {policy.name}: {score.host} has '
                   f'{score.value:.3f}, normalised {place:.3f}')
