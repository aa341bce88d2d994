"""Cycles of an installation, one after the other, in virtual time.

A cycle is :func:`kronos_nova.cycle.steps.plan_cycle`. Every planned move completes. The history
of the cycles is what :class:`kronos_nova.cycle.evaluation.Cycle` would read from the control
database.
"""

import dataclasses
import math
import time
from collections.abc import Iterable
from typing import Any

from bench import installation
from bench.dispatch import dispatched
from kronos_nova.cooldown import PastMove
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cooldown.planning_history import growing
from kronos_nova.cycle import evaluation
from kronos_nova.cycle import options as engine_options
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.objects import plan
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.pacing import migration_history
from kronos_nova.policies import PolicySet

DAY = 86400.0
WEEK = 7 * DAY


@dataclasses.dataclass(frozen=True, slots=True)
class MadeMove:
    """A move that completed; times in Unix seconds."""

    planned_at: float
    begun_at: float
    ended_at: float
    move: PlannedMove


class Installation:
    """Plans a cloud as an installation does.

    :param conf: a ConfigOpts with all options of Kronos

    made : the moves so far, in the order in which they ended
    cpu_seconds : processor time of all cycles
    """

    def __init__(self, cloud: installation.Cloud, policies: PolicySet, conf):
        self.cloud, self.policies = cloud, policies
        self.rules = evaluation.CycleRules.from_conf(conf)
        self.interval = conf.kronos.evaluation_interval
        self.options = dataclasses.replace(
            engine_options.from_conf(conf), aggregates=tuple(cloud.aggregates),
            include_unassigned_hosts=False)
        self.made: list[MadeMove] = []
        self.cpu_seconds = 0.0
        self._rests_until = cloud.now    # the end of the aggregates' cooldown
        self._cooled = {}        # {instance uuid: (until when it cools, how often it was cooled)}
        self._imbalanced = {}    # {aggregate: cycles in a row that found it imbalanced}
        self._load_stats = {}

    def evaluate(self) -> tuple[AggregateReport, ...]:
        """Run a cycle now. Planned moves are not carried out."""
        source: Any = self.cloud    # answers no query of a forecast
        ports = PlannerPorts(source=source, clock=time.process_time, now=self.cloud.now,
                             learn=self._load_stats.__setitem__)
        snapshot, history = self.cloud.snapshot(), self.history()
        begun = time.process_time()
        found = plan_cycle(snapshot, self.policies, self.options, ports, history).aggregates
        self.cpu_seconds += time.process_time() - begun
        for report in found:
            above = any(policy.is_above_threshold for policy in report.policies)
            self._imbalanced[report.name] = self._imbalanced.get(report.name, 0) + 1 if above else 0
        return found

    def history(self) -> PlanningHistory:
        """Collect what cycles before this one left."""
        now = self.cloud.now
        moved = {}
        for each in self.made:
            if each.planned_at >= now - WEEK and each.move.phase != plan.EVACUATE:
                moved[each.move.instance_uuid] = moved.get(each.move.instance_uuid, 0) + 1
        return PlanningHistory(
            aggregates=dict.fromkeys(self.cloud.aggregates, self._rests_until - now),
            instances={uuid: until - now for uuid, (until, _times) in self._cooled.items()},
            imbalanced=dict(self._imbalanced), instances_moved=moved,
            load_stats=dict(self._load_stats) if self.options.restraint else {},
            moves=tuple(self._past_moves()), tries=tuple(self._past_tries()))

    def carry_out(self, reports: Iterable[AggregateReport]) -> float:
        """Make the moves of plans that begin now. Time does not pass by that.

        :returns: Unix seconds at which the last move ends
        """
        now, pace = self.cloud.now, self.options.pace
        runs = dispatched(reports, pace.caps, pace.stale_plan_age)
        for run in runs:
            self.made.append(MadeMove(now, now + run.begun, now + run.ended, run.move))
            self.cloud.move(run.move.instance_uuid, run.move.destination)
        for move in (move for report in reports for move in report.moves):
            self._cool(move.instance_uuid)
        ended = now + max((run.ended for run in runs), default=0.0)
        self._rests_until = ended + self.rules.cooldown
        return ended

    def wait(self, until: float) -> None:
        """Let time pass until the first evaluation that is not before ``until``."""
        begin = installation.BEGIN
        intervals = math.ceil((until - begin) / self.interval - 1e-9)
        self.cloud.now = max(begin + intervals * self.interval, self.cloud.now + self.interval)

    def rest(self) -> None:
        """Let time pass until all aggregates have cooled. None is planned before all are."""
        self.wait(self._rests_until)

    def next_rested(self) -> float | None:
        """Return the Unix seconds at which the next cooldown of an instance ends; None if there is
        none."""
        return min((until for until, _times in self._cooled.values() if until > self.cloud.now),
                   default=None)

    def _cool(self, uuid):
        now, rules = self.cloud.now, self.rules
        until, times = self._cooled.get(uuid, (now, 0))
        if until < now - rules.instance_cooldown_max:
            until, times = now, 0
        length = growing(rules.instance_cooldown, rules.instance_cooldown_factor,
                         rules.instance_cooldown_max, times)
        self._cooled[uuid] = max(until, now + length), times + 1

    def _past_moves(self):
        since = self.cloud.now - self.rules.no_return_window
        for each in self.made:
            if each.ended_at >= since:
                yield PastMove(instance_uuid=each.move.instance_uuid, source=each.move.source,
                               destination=each.move.destination, ended_at=each.ended_at)

    def _past_tries(self):
        since = self.cloud.now - self.rules.experience_window
        recent = [each for each in self.made if each.ended_at >= since]
        shared = migration_history.sharing({
            'source': each.move.source, 'destination': each.move.destination,
            'begun': each.begun_at, 'ended': each.ended_at} for each in recent)
        for each, sharing in zip(recent, shared, strict=True):
            move, lasted = each.move, each.ended_at - each.begun_at
            yield PastTry(
                instance_uuid=move.instance_uuid, source=move.source, destination=move.destination,
                memory_mb=move.memory_mb, seconds=lasted, failed=False, lasted=lasted,
                sharing=sharing, expected=move.expected_seconds)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The end of the cycles of a cloud.

    cycles : plans until every policy was at or below its threshold; None where that never was
    hours : virtual time until then, or until the end
    imbalances : of each policy, the largest of all aggregates
    made : all moves, also those after the threshold was reached
    last : outcomes of the last evaluation
    """

    cycles: int | None
    hours: float
    imbalances: tuple[float, ...]
    made: tuple[MadeMove, ...]
    cpu_seconds: float
    last: str

    @property
    def gib(self) -> float:
        return sum(each.move.memory_mb for each in self.made) / 1024


def operate(found: Installation, threshold: float, most: int) -> Outcome:
    """Evaluate a cloud until nothing more is to be done.

    That is when all aggregates are balanced; or when two evaluations in a row find no move,
    although no instance cools; or after ``most`` evaluations. Evaluations during a cooldown are
    passed over.
    """
    cloud = found.cloud
    last: tuple[str, ...] = ()
    plans, reached, idle, ended = 0, None, 0, cloud.now
    if cloud.is_balanced(threshold):
        reached = 0, cloud.now
    for _evaluation in range(most):
        reports = found.evaluate()
        last = tuple(sorted({report.outcome for report in reports}))
        if any(report.moves for report in reports):
            plans, idle = plans + 1, 0
            ended = found.carry_out(reports)
            if reached is None and cloud.is_balanced(threshold):
                reached = plans, ended
            found.rest()
            continue
        rested = found.next_rested()
        idle += rested is None
        if last == (plan.BALANCED,) or idle == 2:
            break
        found.wait(rested or cloud.now)
    cycles, at = reached or (None, ended)
    return Outcome(
        cycles=cycles, hours=(at - installation.BEGIN) / 3600,
        imbalances=tuple(cloud.imbalances().tolist()), made=tuple(found.made),
        cpu_seconds=found.cpu_seconds, last=', '.join(last))
