"""The check of a plan's moves by Nova's scheduler before the moves are made, with a cache of the
answers."""

import collections
import dataclasses
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova import plural
from kronos_nova.constraints.veto import SchedulerVeto
from kronos_nova.cycle import solve
from kronos_nova.cycle.inputs import Inputs
from kronos_nova.cycle.move_limits import RemainingMoveLimits
from kronos_nova.cycle.problem import PlanningCase
from kronos_nova.cycle.solve import Chosen
from kronos_nova.cycle.solve import DuePhases
from kronos_nova.model import Model
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.objects.dry_run import AGREED
from kronos_nova.objects.dry_run import NOTHING_BEFORE
from kronos_nova.objects.dry_run import Before
from kronos_nova.objects.dry_run import DryRun
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.plan import Refusal
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits

ENOUGH = 3
"""Number of refused hosts after which no other host is tried for an instance. A host is refused if
Nova's scheduler does not accept it as the destination of the instance. Raised, each instance
without a destination costs more requests to the scheduler; lowered, an instance stays on its host
because a few unusual hosts were refused. Chosen because a filter that refuses a host for pinned
CPUs, a device or an image mostly refuses every host; not measured."""

FEW_HOSTS = 10
"""Number of hosts. If rules permit an instance on some hosts only, and on at most this number,
Nova's scheduler may be asked about all of these hosts. In all other cases, the scheduler is asked
only until it has refused :data:`ENOUGH` hosts. After these refusals, the instance stays on its host
for some time. Raised, an instance that no host takes costs more requests to the scheduler; lowered,
an instance that fits on few hosts stays on its host before the right destination was tried. Chosen
as the number of hosts in a rack that have a certain device; not measured."""

PLANNING_SHARE = 0.6
"""Share of the remaining planning time that one search for a plan may use. The planning time is
limited by ``planning_time_limit``. The rest of the time is for requests to Nova's scheduler about
the moves, some 50 ms each, and for another search without the refused moves. If a search ends too
late, for example on a busy controller, requests may still take the rest of ``planning_time_limit``,
4 of 10 seconds, after the deadline. Raised, fewer moves are checked with the scheduler; lowered,
plans are worse. Not measured."""

OUT_OF_TIME = Verdict(unasked='planning_time_limit was over')
NO_ANSWER = Verdict(unasked='an earlier question had no answer')


class RequestTime:
    """The time for requests to Nova's scheduler about the moves of an aggregate. The time is over
    when the deadline has passed, but not before the requests have taken a certain time. A search
    that ends after the deadline thus leaves time for requests.

    :param limits: has the deadline and the clock
    :param reserved: seconds that all requests together may take after the deadline. A request that
        has begun is not ended
    """

    def __init__(self, limits: Limits, reserved: float):
        self._limits, self._left = limits, reserved

    @property
    def is_over(self) -> bool:
        return self._limits.is_past and self._left <= 0

    def timed(self, request: Callable[[], Verdict]) -> Verdict:
        """Make a request, and return its result. The duration of the request is counted."""
        begun = self._limits.clock()
        try:
            return request()
        finally:
            self._left -= self._limits.clock() - begun


class Precheck:
    """The check of an aggregate's moves by Nova's scheduler. The answers are kept until the plan
    of the aggregate is finished.

    A refusal of a host applies to all instances of a kind. Instances are of one kind if they have
    the same project and equal flavors, images, requirements, allocations and server groups.

    :param model: the model of the aggregate, whose rules limit the possible destinations
    :param time: the time for requests
    :param refused_lately: {instance uuid: {destination: error}}, for moves that Nova has refused
        to begin in earlier evaluations
    """

    def __init__(self, dry_run: DryRun, snapshot: Snapshot, model: Model,
                 time: RequestTime,
                 refused_lately: Mapping[str, Mapping[str, str]] | None = None):
        self._dry_run, self._time = dry_run, time
        # A move that no dry run could check is not a move for which the time was too short.
        self._too_late = AGREED if dry_run is not_asked else OUT_OF_TIME
        self._model, self._names = model, model.problem.hosts
        self._instances = {instance.uuid: instance for instance in snapshot.instances}
        self._hosts = {host.name: host for host in snapshot.hosts}
        self._vms = {uuid: vm for vm, uuid in enumerate(model.problem.vms)}
        self._groups: dict[str, list[str]] = collections.defaultdict(list)
        for group in snapshot.server_groups:
            for member in group.members:
                self._groups[member].append(group.uuid)
        self._verdicts: dict[tuple[str, str], tuple[Before, Verdict]] = {}
        self._refused: dict[Hashable, dict[str, str]] = collections.defaultdict(dict)
        self._full: dict[Hashable, dict[str, str]] = collections.defaultdict(dict)
        self._limits: dict[tuple[int, ...], int] = {}
        self._is_silent = False
        self._refused_lately = {uuid: hosts for uuid, hosts in (refused_lately or {}).items()
                                if uuid in self._instances}
        for uuid, hosts in self._refused_lately.items():
            self._refused[self._kind(uuid)] |= {
                host: f'a move there was refused lately: {why}' for host, why in hosts.items()
                if host in self._hosts}

    def refused(self, moves: Iterable[PlannedMove]) -> frozenset[int]:
        """Return the numbers (``order``) of the moves of a plan that the scheduler refuses. The
        scheduler is asked about each move for which no answer is kept. A move is checked as if all
        earlier moves of the plan that were not refused had been made.

        :param moves: moves of the plan, in their order
        """
        agreed: list[PlannedMove] = []
        refused = set()
        for move in moves:
            if self._verdict(move, self._before(move, agreed)).refused:
                refused.add(move.order)
            else:
                agreed.append(move)
        return frozenset(refused)

    def _before(self, move: PlannedMove, earlier: Sequence[PlannedMove]) -> Before:
        """Return the instances that earlier moves of the plan bring to the destination of ``move``,
        or take off this destination. An instance that leaves the destination is included only if
        ``move`` waits until this instance has left."""
        needed, by_order = set(move.depends_on), {each.order: each for each in earlier}
        for each in reversed(earlier):
            if each.order in needed:
                needed.update(each.depends_on)
        arriving = [each.instance_uuid for each in earlier if each.destination == move.destination
                    and each.instance_uuid != move.instance_uuid]
        if not (arriving or needed):
            return NOTHING_BEFORE
        kind = self._kind(move.instance_uuid)
        return Before(
            arriving=tuple(self._instances[uuid] for uuid in arriving),
            leaving=tuple(self._instances[by_order[order].instance_uuid]
                          for order in sorted(needed & by_order.keys())
                          if by_order[order].source == move.destination),
            alike=sum(self._kind(uuid) == kind for uuid in arriving))

    def _verdict(self, move: PlannedMove, before: Before) -> Verdict:
        pair = move.instance_uuid, move.destination
        asked, known = self._verdicts.get(pair, (NOTHING_BEFORE, None))
        if known is not None and _covers(asked, before):
            return known
        kind = self._kind(move.instance_uuid)
        of_kind = self._refused[kind]
        if move.destination in of_kind:
            return Verdict(refused=of_kind[move.destination])
        if move.destination in self._full[kind] and before.alike:
            return Verdict(refused=self._full[kind][move.destination])
        if self._is_final(of_kind, self._vms[move.instance_uuid]):
            return Verdict(refused=_last(of_kind))
        verdict = self._ask(move, before)
        self._verdicts[pair] = before, verdict
        if verdict.refused:
            # The host may be full of instances of this kind that arrived before, so its refusal
            # does not count for the kind.
            where = self._full[kind] if before.alike else of_kind
            where[move.destination] = verdict.refused
        return verdict

    def _ask(self, move: PlannedMove, before: Before) -> Verdict:
        if self._time.is_over:
            return self._too_late
        if self._is_silent:  # the next request might take another minute to fail
            return NO_ANSWER
        verdict = self._time.timed(lambda: self._dry_run(
            move, self._instances[move.instance_uuid], self._hosts[move.destination], before))
        self._is_silent = verdict.is_silent
        return verdict

    def _kind(self, uuid: str) -> Hashable:
        """Return a key that is equal for all instances that the scheduler treats alike."""
        each = self._instances[uuid]
        return (each.project_id, each.vcpus, each.memory_mb, each.disk_gb, each.flavor,
                _items(each.flavor_extra_specs), each.image and each.image.id,
                _items(each.resources), _items(each.shared_resources), each.requires.traits,
                each.requires.forbidden, each.requires.member_of, _items(each.requires.image),
                tuple(self._groups.get(uuid, ())))

    def _is_final(self, hosts: Mapping[str, str], vm: int) -> bool:
        """Return True if the scheduler has refused at least as many hosts for an instance as
        :meth:`_enough` returns; False otherwise. If True, the instance is not moved for some time.

        :param hosts: {refused host: reason} for the kind of the instance
        """
        return bool(hosts) and len(hosts) >= self._enough(vm)

    def _enough(self, vm: int) -> int:
        """Return the number of refusals after which an instance is not moved for some time."""
        problem = self._model.problem
        rules = [rule for rule in self._model.rules
                 if isinstance(rule, AllowedHosts) and not rule.yields]
        key = (int(problem.vm_host[vm]), *(int(rule.kind[vm]) for rule in rules))
        if key not in self._limits:
            permitted = problem.available.copy()
            for rule in rules:
                permitted &= rule.allowed[rule.kind[vm]]
            permitted[problem.vm_host[vm]] = False
            good, others = int(np.count_nonzero(permitted)), max(1, len(self._names) - 1)
            self._limits[key] = max(1, good) if good < others and good <= FEW_HOSTS else (
                min(ENOUGH, others))
        return self._limits[key]

    def vetoes(self) -> Mapping[tuple[str, str], str]:
        """Return {(uuid of an instance, host): reason} of the moves that a plan must avoid. These
        are moves to hosts that were refused for an instance of the same kind, and all moves of
        instances that are not moved for some time because too many hosts were refused."""
        found: dict[tuple[str, str], str] = {}
        for kind, members in self._members().items():
            hosts = self._refused[kind]
            found |= {(uuid, host): why for uuid in members
                      for host, why in self._full[kind].items()}
            for uuid, vm in members.items():
                if self._is_final(hosts, vm):
                    rest = f'{len(hosts)} other hosts are refused: {_last(hosts)}'
                    found |= {(uuid, host): rest for host in self._names}
            found |= {(uuid, host): why for uuid in members for host, why in hosts.items()}
        return found

    def refusals(self) -> tuple[Refusal, ...]:
        """Return the Refusals of instances. A Refusal has all hosts that were refused for instances
        of the same kind. Two groups of instances have a Refusal:

        * instances for which a host was refused now or in an earlier evaluation
        * instances that are not moved for some time, because too many hosts were refused for their
          kind"""
        asked = {uuid for (uuid, _host), (_before, verdict) in self._verdicts.items()
                 if verdict.refused}
        movable = self._model.problem.movable
        asked |= {uuid for uuid in self._refused_lately
                  if uuid in self._vms and movable[self._vms[uuid]]}
        found = []
        for kind, members in self._members().items():
            refused = self._refused[kind]
            hosts = self._full[kind] | refused
            final = {uuid for uuid, vm in members.items() if self._is_final(refused, vm)}
            found += [Refusal(instance_uuid=uuid, hosts=tuple(sorted(hosts)), reason=_last(hosts),
                              is_final=uuid in final)
                      for uuid, vm in members.items()
                      if uuid in asked or uuid in final and movable[vm]]
        return tuple(sorted(found, key=lambda each: each.instance_uuid))

    def _members(self) -> dict[Hashable, dict[str, int]]:
        """Return {kind with a refusal: {uuid of an instance: its index}}."""
        refused = {kind for of_kinds in (self._refused, self._full)
                   for kind, hosts in of_kinds.items() if hosts}
        found: dict[Hashable, dict[str, int]] = {kind: {} for kind in refused}
        for vm, uuid in enumerate(self._model.problem.vms) if refused else ():
            kind = self._kind(uuid)
            if kind in refused:
                found[kind][uuid] = vm
        return found

    def mark_unasked(self, moves: Iterable[PlannedMove]) -> tuple[PlannedMove, ...]:
        """Return the moves of the plan, with a note in the ``reason`` of some moves. A note says
        that the scheduler was not asked about the move, or that the request could not describe the
        move completely."""
        return tuple(self._marked(move) for move in moves)

    def notes(self, moves: Sequence[PlannedMove]) -> Iterator[str]:
        """Yield a note if moves of the plan were not checked because the time was over, or because
        a service did not answer."""
        causes = [verdict.unasked for verdict in map(self._known, moves)
                  if verdict.is_silent or verdict in (OUT_OF_TIME, NO_ANSWER)]
        if causes:
            yield (f'{len(causes)} of {plural.count(len(moves), "move")} '
                   f'{plural.agreeing(len(causes), "were")} not checked beforehand: {causes[0]}. '
                   'Nova checks each move when it begins.')

    def _known(self, move: PlannedMove) -> Verdict:
        """Return the kept answer about a move; if there is none, the reason why the scheduler was
        not asked."""
        pair = move.instance_uuid, move.destination
        return self._verdicts.get(pair, (NOTHING_BEFORE, self._too_late))[1]

    def _marked(self, move: PlannedMove) -> PlannedMove:
        verdict = self._known(move)
        if verdict.unasked:
            return dataclasses.replace(
                move, reason=f'{move.reason}; not asked for beforehand: {verdict.unasked}')
        if verdict.without:
            return dataclasses.replace(
                move, reason=f'{move.reason}; asked for beforehand without {verdict.without}')
        return move


def _covers(asked: Before, before: Before) -> bool:
    """Return True if the scheduler's answer about a move in an earlier version of the plan is valid
    for the present version; False otherwise. The answer is valid if two conditions are met: the
    same instances leave the destination before the move; and for each kind of instance, at most as
    many arrive there as in the earlier version.

    :param asked: the instances that leave and arrive before the move in the earlier version
    :param before: the instances that leave and arrive before the move in the present version
    """
    return asked.leaving == before.leaving and asked.alike >= before.alike


def _last(hosts: Mapping[str, str]) -> str:
    """Return the reason why the last host in ``hosts`` was refused."""
    return list(hosts.values())[-1]


def _items(mapping: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(mapping.items()))


@dataclasses.dataclass(frozen=True, slots=True)
class Checks:
    """The checks that a finished plan of one aggregate has to pass."""

    precheck: Precheck
    move_limits: RemainingMoveLimits

    @classmethod
    def from_case(cls, given: Inputs, case: PlanningCase, model: Model,
                  limits: Limits) -> 'Checks':
        """Make the checks of an aggregate.

        :param limits: has the deadline of requests to the scheduler
        """
        reserved = (1 - PLANNING_SHARE) * given.options.planning_time_limit
        return cls(Precheck(given.planner_ports.dry_run, case.around, model,
                            RequestTime(limits, reserved), given.history.refused_hosts),
                   RemainingMoveLimits(given.options.move_limits, case.problem,
                                       case.around.instances, given.history,
                                       given.rules.selections))

    def refused(self, chosen: Chosen) -> frozenset[int]:
        """Return the numbers (``order``) of the moves of a plan that may not be made. A move that
        exceeds a limit is not made, so the scheduler is not asked about it."""
        moves = chosen.moves()
        return self.move_limits.passed(moves) or self.precheck.refused(moves)


def checked(given: Inputs, model: Model, due: DuePhases, limits: Limits,
            checks: Checks) -> Chosen:
    """Make a plan, and ask the scheduler about its moves. Refused moves are removed and forbidden,
    and planning continues, until no move is refused. After the deadline, refused moves are removed,
    and nothing else is planned."""
    chosen, limits = None, dataclasses.replace(limits, quotas=checks.move_limits.quotas())
    while True:
        chosen = solve.run(_masked(given, model, checks, chosen), due, given.planner,
                           given.options, _to_plan(given, limits), chosen)
        refused = checks.refused(chosen)
        while refused:
            # The masked model forbids moves of instances that an earlier round has planned.
            unmasked = dataclasses.replace(chosen, state=chosen.state.under(model))
            chosen = solve.without(unmasked, refused, limits)
            if not limits.is_over:
                break
            refused = checks.refused(chosen)
        else:
            return chosen


def _masked(given: Inputs, model: Model, checks: Checks, chosen: Chosen | None) -> Model:
    """Return the model for the next search. The model forbids the moves that were refused, and all
    moves of instances that the plan already moves."""
    problem, vetoes = model.problem, dict(checks.precheck.vetoes())
    for _phase, step in chosen.steps if chosen else ():
        vetoes |= {(problem.vms[step.vm], host): 'it is in the plan already'
                   for host in problem.hosts}
    rules = dataclasses.replace(given.rules, vetoes=vetoes)
    return model.with_rules(*SchedulerVeto.compile(problem, given.snapshot, rules),
                            *checks.move_limits.compile())


def _to_plan(given: Inputs, limits: Limits) -> Limits:
    """Return the Limits of one search for a plan. The deadline of the search is earlier than that
    of ``limits``, so that time is left for requests to the scheduler."""
    if given.planner_ports.dry_run is not_asked:
        return limits
    now = limits.clock()
    return dataclasses.replace(limits, deadline=now + PLANNING_SHARE * (limits.deadline - now))
