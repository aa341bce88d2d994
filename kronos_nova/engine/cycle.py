"""One evaluation: read, plan, write down."""

import collections
import dataclasses
import datetime
import time
from collections.abc import Callable

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.cooldown import Memory
from kronos_nova.db import memory as db_memory
from kronos_nova.db.journal import Journal
from kronos_nova.engine import pipeline
from kronos_nova.inventory.base import InventorySource
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects import plan as plans

LOG = logging.getLogger(__name__)

STATE_OF = {'observe': plans.OBSERVED, 'approve': plans.PROPOSED, 'auto': plans.EXECUTING}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What a cycle reads from and writes to; ``refuses`` is Nova's scheduler in a dry run."""

    inventory: InventorySource
    metrics: MetricsSource
    journal: Journal
    cooldowns: db_memory.Cooldowns
    cycles: db_memory.Cycles
    scores: db_memory.Scores
    refuses: Callable[[plans.Move], str | None] = lambda move: None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What becomes of a plan; durations in seconds."""

    automation: str
    cooldown: float
    instance_cooldown: float
    stale_plan_age: float
    stagger: float = 0.0

    @classmethod
    def from_conf(cls, conf):
        return cls(automation=conf.kronos.automation, cooldown=conf.kronos.cooldown,
                   instance_cooldown=conf.kronos.instance_cooldown,
                   stale_plan_age=conf.kronos_executor.stale_plan_age,
                   stagger=conf.kronos_executor.stagger)


class Cycle:
    """Evaluates aggregates.

    :param policies: PolicySet
    :param options: EngineOptions; which aggregates they name is what is evaluated
    :param may_write: asked before anything is written; a process whose turn is over must not
    """

    def __init__(self, ports: Ports, policies, options, rules: Rules,
                 utcnow: Callable[[], datetime.datetime],
                 may_write: Callable[[], bool] = lambda: True):
        self.ports = ports
        self.policies = policies
        self.options = options
        self.rules = rules
        self.utcnow = utcnow
        self.may_write = may_write

    def run(self):
        """Evaluate every aggregate of the options.

        :returns: CycleReport
        :raises InventoryError: Nova or placement could not be read; nothing was planned
        """
        now = self.utcnow()
        snapshot = self.ports.inventory.read()
        surroundings = pipeline.Surroundings(
            source=self.ports.metrics, clock=time.monotonic, refuses=self.ports.refuses,
            now=now.replace(tzinfo=datetime.UTC).timestamp())
        report = pipeline.plan_cycle(snapshot, self.policies, self.options, surroundings,
                                     self._memory(now))
        if not self.may_write():
            raise exception.JournalError('The conductor that began this cycle is gone; its plan is '
                                         'thrown away.')
        for aggregate in report.aggregates:
            self._write_down(aggregate)
        return report

    def _memory(self, now):
        cooldowns = self.ports.cooldowns
        # While its plan is under way an aggregate cools: it is about to look different.
        busy = dict.fromkeys(self.ports.journal.aggregates_with_open_plans(), self.rules.cooldown)
        return Memory(aggregates=busy | cooldowns.cooling(db_memory.AGGREGATE, now),
                      instances=cooldowns.cooling(db_memory.INSTANCE, now),
                      quarantines=cooldowns.quarantined(now))

    def _write_down(self, report):
        now = self.utcnow()
        for line in describe(report):
            LOG.info('%s', line)
        if report.outcome == plans.PLANNED:
            self._record_plan(report, now)
        above = any(policy.imbalance_before is not None and
                    policy.imbalance_before > policy.threshold for policy in report.policies)
        self._keep_scores(report, now)
        self.ports.cycles.end(report.name, now, report.outcome, above, report.to_json())

    def _keep_scores(self, report, now):
        scores = collections.defaultdict(dict)
        for score in report.host_scores:
            scores[score.host][score.policy] = score.value
        self.ports.scores.replace(
            report.mode, {policy.name: policy.weight for policy in report.policies}, scores, now)

    def _record_plan(self, report, now):
        state = STATE_OF[self.rules.automation]
        try:
            self.ports.journal.record_plan(
                report, state, now, now + datetime.timedelta(seconds=self.rules.stale_plan_age),
                self.rules.stagger)
        except exception.PlanPending as e:
            LOG.info('%s Nothing new is planned before that one has ended.', e)
            return
        if state == plans.EXECUTING:
            self.cool(report, now)

    def cool(self, report, now):
        """Leave the aggregate and the instances of a plan that runs alone for a while."""
        later = datetime.timedelta
        self.ports.cooldowns.cool(db_memory.AGGREGATE, [report.name],
                                  now + later(seconds=self.rules.cooldown))
        self.ports.cooldowns.cool(db_memory.INSTANCE, [m.instance_uuid for m in report.moves],
                                  now + later(seconds=self.rules.instance_cooldown))


def describe(report):
    """Lines for the log: what was found, and every move with its reason."""
    figures = ', '.join(
        f'{p.name} {p.imbalance_before:.3f} (threshold {p.threshold:.3f})' if p.state == 'ok'
        else f'{p.name} without data: {p.detail}' for p in report.policies)
    yield f'Aggregate {report.name}: {report.outcome}; {figures}'
    for warning in report.warnings:
        yield f'Aggregate {report.name}: {warning}'
    for move in report.moves:
        yield (f'Aggregate {report.name}, move {move.order}: instance {move.instance_uuid} from '
               f'{move.source} to {move.destination}: {move.reason}')
