"""Asks whoever decides on live migrations about the moves of a plan, and remembers the answers."""

import collections
import dataclasses
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from kronos_nova.constraints.veto import SchedulerVeto
from kronos_nova.cycle import solve
from kronos_nova.cycle.inputs import Inputs
from kronos_nova.cycle.move_limits import RemainingMoveLimits
from kronos_nova.cycle.problem import PlanningCase
from kronos_nova.cycle.solve import Chosen
from kronos_nova.cycle.solve import DuePhases
from kronos_nova.model import Model
from kronos_nova.objects.dry_run import DryRun
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.plan import Refusal
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits

ENOUGH = 3
"""Refusals after which an instance is left alone. What a filter has against an instance (pinned
CPUs, a device, an image) it mostly has on every host, and each question costs a call of the
scheduler; two hosts may happen to be special."""

PLANNING_SHARE = 0.6
"""Part of planning_time_limit. Raised, fewer moves can be asked about, each some 50 ms; lowered,
the search ends earlier. The rest is for asking, and for planning on without what is refused."""

OUT_OF_TIME = Verdict(unasked='planning_time_limit was over')
NO_ANSWER = Verdict(unasked='an earlier question had no answer')
NOT_YET = Verdict(unasked='it waits for moves before it, and what these make room for is not there '
                          'yet')


class Precheck:
    """What is asked about the moves of one aggregate, in all rounds of planning.

    :param hosts: names of all hosts of the aggregate
    :param is_over: whether the time is up; then nothing more is asked
    """

    def __init__(self, dry_run: DryRun, snapshot: Snapshot, hosts: Collection[str],
                 is_over: Callable[[], bool]):
        self._dry_run, self._is_over = dry_run, is_over
        self._names, self._enough = hosts, min(ENOUGH, max(1, len(hosts) - 1))
        self._instances = {instance.uuid: instance for instance in snapshot.instances}
        self._hosts = {host.name: host for host in snapshot.hosts}
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self._is_silent = False

    def refused(self, moves: Iterable[PlannedMove]) -> frozenset[int]:
        """Ask about the moves that were not asked about yet.

        One that depends on others is not asked about: the answer of today says nothing about the
        state in which it runs.

        :returns: the orders of those that are refused
        """
        return frozenset(move.order for move in moves if self._verdict(move).refused)

    def _verdict(self, move: PlannedMove) -> Verdict:
        pair = move.instance_uuid, move.destination
        known = self._verdicts.get(pair)
        if known is not None and not known.unasked:
            return known
        verdict = self._ask(move)
        self._verdicts[pair] = verdict
        return verdict

    def _ask(self, move: PlannedMove) -> Verdict:
        if move.depends_on:
            return NOT_YET
        if self._is_over():
            return OUT_OF_TIME
        if self._is_silent:  # it may be a minute until the next one is given up as well
            return NO_ANSWER
        verdict = self._dry_run(move, self._instances[move.instance_uuid],
                                self._hosts[move.destination])
        self._is_silent = bool(verdict.unasked)
        return verdict

    def vetoes(self) -> Mapping[tuple[str, str], str]:
        """(instance, host) to the reason: what was refused, and every host for an instance that was
        refused often enough."""
        found = {pair: verdict.refused for pair, verdict in self._verdicts.items()
                 if verdict.refused}
        for refusal in self.refusals():
            if refusal.is_final:
                rest = f'{len(refusal.hosts)} other hosts are refused: {refusal.reason}'
                found = {(refusal.instance_uuid, host): rest for host in self._names} | found
        return found

    def refusals(self) -> tuple[Refusal, ...]:
        """What was refused, by instance; the reason is that of the last one."""
        by_instance: dict[str, dict[str, str]] = collections.defaultdict(dict)
        for (uuid, host), verdict in self._verdicts.items():
            if verdict.refused:
                by_instance[uuid][host] = verdict.refused
        return tuple(Refusal(instance_uuid=uuid, hosts=tuple(sorted(found)),
                             reason=list(found.values())[-1], is_final=len(found) >= self._enough)
                     for uuid, found in sorted(by_instance.items()))

    def mark_unasked(self, moves: Iterable[PlannedMove]) -> tuple[PlannedMove, ...]:
        """The moves of the plan, those about which nobody was asked marked as such."""
        return tuple(self._marked(move) for move in moves)

    def _marked(self, move: PlannedMove) -> PlannedMove:
        pair = move.instance_uuid, move.destination
        why = self._verdicts.get(pair, OUT_OF_TIME).unasked
        if not why:
            return move
        return dataclasses.replace(move, reason=f'{move.reason}; not asked for beforehand: {why}')


@dataclasses.dataclass(frozen=True, slots=True)
class Checks:
    """What a finished plan of one aggregate has to pass."""

    precheck: Precheck
    move_limits: RemainingMoveLimits

    @classmethod
    def from_case(cls, given: Inputs, case: PlanningCase, limits: Limits) -> 'Checks':
        """Make those of an aggregate; ``limits`` say until when questions are asked."""
        return cls(Precheck(given.planner_ports.dry_run, case.around, case.problem.hosts,
                            lambda: limits.is_past),
                   RemainingMoveLimits(given.options.move_limits, case.problem,
                                       case.around.instances, given.history))


def checked(given: Inputs, model: Model, due: DuePhases, limits: Limits,
            checks: Checks) -> Chosen:
    """Plan, check the plan, and plan on without what is refused until nothing is. One deadline
    holds for all rounds and all questions."""
    chosen = None
    while True:
        chosen = solve.run(_masked(given, model, checks, chosen), due, given.planner,
                           given.options, _to_plan(given, limits), chosen)
        # Not asked about is what there will be no move of.
        refused = (checks.move_limits.passed(chosen.moves())
                   or checks.precheck.refused(chosen.moves()))
        if not refused:
            return chosen
        # By the masked model nothing may be moved that is in the plan since an earlier round.
        unmasked = dataclasses.replace(chosen, state=chosen.state.under(model))
        chosen = solve.without(unmasked, refused, limits)
        if limits.is_over:
            return chosen


def _masked(given: Inputs, model: Model, checks: Checks, chosen: Chosen | None) -> Model:
    """The model without the pairs that were refused; what is in the plan stays as it is."""
    problem, vetoes = model.problem, dict(checks.precheck.vetoes())
    for _phase, step in chosen.steps if chosen else ():
        vetoes |= {(problem.vms[step.vm], host): 'it is in the plan already'
                   for host in problem.hosts}
    rules = dataclasses.replace(given.rules, vetoes=vetoes)
    return model.with_rules(*SchedulerVeto.compile(problem, given.snapshot, rules),
                            *checks.move_limits.compile())


def _to_plan(given: Inputs, limits: Limits) -> Limits:
    """The limits of one round: of the time that is left, a part is for questions."""
    if given.planner_ports.dry_run is not_asked:
        return limits
    now = limits.clock()
    return dataclasses.replace(limits, deadline=now + PLANNING_SHARE * (limits.deadline - now))
