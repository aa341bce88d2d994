"""Explanations in reports: why a move was chosen, why instances stay, and warnings for
operators."""

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
from types import MappingProxyType
from typing import Any

import numpy as np

from kronos_nova import plural
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import forecast_columns
from kronos_nova.cycle import without_moves
from kronos_nova.cycle.aggregates import Scope
from kronos_nova.cycle.inputs import Inputs
from kronos_nova.cycle.metrics import Answered
from kronos_nova.cycle.metrics import Load
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.options import PaceOptions
from kronos_nova.cycle.precheck import Checks
from kronos_nova.cycle.problem import PlanningCase
from kronos_nova.cycle.problem import combined
from kronos_nova.cycle.problem import shown_threshold
from kronos_nova.cycle.restraint import Outlook
from kronos_nova.cycle.schedule import TimelyPlan
from kronos_nova.cycle.solve import Chosen
from kronos_nova.cycle.solve import DuePhases
from kronos_nova.cycle.solve import rules_of
from kronos_nova.load.host_readings import NAMED
from kronos_nova.model import TOLERANCE
from kronos_nova.model import Delta
from kronos_nova.model import Model
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.rules import AllowedHosts
from kronos_nova.model.rules import ForbiddenPairs
from kronos_nova.objects import automation
from kronos_nova.objects import domains
from kronos_nova.objects import plan
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.objects.plan import SKIP_REASONS
from kronos_nova.objects.plan import SPREAD
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import HostScore
from kronos_nova.objects.plan import NextBest
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.plan import PolicyReport
from kronos_nova.objects.plan import Skip
from kronos_nova.objects.snapshot import LIVE
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.planners import hot_hosts
from kronos_nova.planners import level
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import NoPlace
from kronos_nova.planners.base import Step
from kronos_nova.planners.best_move import least_harmful
from kronos_nova.planners.evacuate import by_room
from kronos_nova.planners.evacuate import waiting
from kronos_nova.policies import Policy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A move that could have been made in place of a planned move. ``vm`` and ``destination`` are
    indexes of the problem. ``combined_after`` is the combined imbalance after the move."""

    vm: int
    destination: int
    combined_after: float


def alternatives(state: State, steps: Iterable[tuple[str, Step]],
                 ceiling: float) -> Iterator[Alternative | None]:
    """Yield the best alternative of each step of a plan: the other move that would have lowered the
    combined imbalance most. The alternative is None if rules and policies permit no other move.

    If a step spreads load, any server of the step's source host may be moved instead. In all other
    steps, only the same server may be moved, to another host. If the load of the server is not
    known, the best alternative is the move to the host with most free room.

    :param state: the state before the first step; the steps are applied to this state
    :param steps: pairs (phase, step), in the order of the plan
    :param ceiling: load that no host may exceed, except in moves that empty hosts or pack
    """
    within = state.model.with_ceiling(state, ceiling)
    for phase, step in steps:
        yield _alternative(state, rules_of(phase, state.model, within), phase, step)
        state.move(step.vm, step.destination)


def _alternative(state: State, model: Model, phase: str, step: Step) -> Alternative | None:
    def wanted(delta: Delta) -> np.ndarray:
        (vms, hosts), = delta.moves
        return (vms != step.vm) | (hosts != step.destination)

    if not state.problem.policies or state.problem.unweighed[step.vm]:
        return _roomiest_but(state, step)
    vms = np.array([step.vm])
    if phase == SPREAD:
        vms = np.flatnonzero((state.vm_host == step.source) & state.problem.movable)
    pair = least_harmful(state, vms, wanted, is_forced=phase == EVACUATE, model=model)
    if pair is None:
        return _roomiest_but(state, step) if phase == EVACUATE else None
    return Alternative(vm=pair[0], destination=pair[1],
                       combined_after=state.combined() - float(state.delta(pair).decrease))


def _roomiest_but(state: State, step: Step) -> Alternative | None:
    hosts = [host for host in by_room(state, step.vm) if host != step.destination]
    if not hosts:
        return None
    return Alternative(vm=step.vm, destination=hosts[0], combined_after=step.combined_after)


LOOKED_AT = 2000
"""Maximum number of instances for which a report finds out which constraint keeps them on their
hosts. This limit applies to the mode ``pack``, to instances that violate a rule or a server group,
and to instances of hosts that stay hot. The mode ``pack`` empties the least loaded hosts first, so
the instances on these hosts come first. Raised, a report takes longer; lowered, fewer instances
have an explanation. Not measured."""

NEAREST = 16
"""Maximum number of destinations that a report considers to explain why an instance stays on its
host. For each destination, the report finds the rule that forbids the move. Raised, a report takes
longer; lowered, the explanation considers fewer destinations. Not measured."""

PAIRS_AT_ONCE = 1_000_000
"""Approximate number of pairs of an instance and a host for which one call evaluates the
constraints. Raised, a call takes more memory; lowered, more calls are made. Chosen because a
million pairs take some MiB of memory."""


def with_next_best(start: State, steps: Sequence[tuple[str, Step]],
                   moves: Sequence[PlannedMove], ceiling: float) -> tuple[PlannedMove, ...]:
    """Return the moves of a plan, each with its best alternative; see :func:`alternatives`.

    :param start: the state before the plan
    :param steps: a pair (phase, step) for each move, in the order of ``moves``
    :param ceiling: load that no host may exceed, except in moves that empty hosts or pack
    """
    problem = start.problem
    return tuple(
        move if found is None else dataclasses.replace(move, next_best=NextBest(
            instance_uuid=problem.vms[found.vm], destination=problem.hosts[found.destination],
            memory_mb=int(problem.memory_mb[found.vm]), combined_after=found.combined_after))
        for move, found in zip(moves, alternatives(start, steps, ceiling), strict=True))


def skips(reasons: Mapping[int, str], vms: tuple[str, ...],
          details: Mapping[str, str] = MappingProxyType({})) -> tuple[Skip, ...]:
    """Return the instances that stay, grouped by the reason why they stay. The groups are in the
    order of :data:`~kronos_nova.objects.plan.SKIP_REASONS`.

    :param reasons: {instance index: reason}
    :param details: {uuid: additional text about the instance}
    """
    grouped = collections.defaultdict(list)
    for vm, reason in reasons.items():
        if reason:
            grouped[reason].append(vms[vm])
    return tuple(
        Skip(reason=word, instances=tuple(sorted(grouped[word])), details=tuple(
            (uuid, details[uuid]) for uuid in sorted(grouped[word]) if uuid in details))
        for word in SKIP_REASONS if word in grouped)


def stayed(state: State, budget_left: int, packs: bool) -> dict[int, str]:
    """Return {instance index: reason why no planner moved the instance}.

    :param state: the state at the end of the plan
    :param budget_left: number of further moves that the plan could have had
    :param packs: True in mode ``pack``, False in mode ``spread``
    """
    problem = state.problem
    candidates = np.flatnonzero(problem.movable & (state.vm_host == problem.vm_host))
    reasons = dict.fromkeys(candidates.tolist(), 'no_gain')
    look = _packing if packs else _spreading
    for vms, hosts, gains, accepted in look(state, candidates):
        words = _words(state, (vms, hosts), gains, accepted)
        words[words == ''] = 'budget' if budget_left <= 0 else 'no_gain'
        reasons |= zip(vms.tolist(), words.tolist(), strict=True)
    return reasons


def not_evacuated(state: State, budget_left: int,
                  unplaced: Mapping[int, NoPlace]) -> dict[int, str]:
    """Return {instance index: reason why the instance stays} for instances on hosts that were to be
    emptied.

    :param state: the state after the moves that empty hosts
    :param unplaced: instances for which the planner found no destination
    """
    is_cut = budget_left <= 0
    found = {int(vm): None if is_cut and vm not in unplaced else obstacle(state, int(vm))
             for vm in waiting(state).tolist()}
    otherwise = 'budget' if is_cut else 'no_gain'
    words = {vm: held[0] if held else otherwise for vm, held in found.items()}
    return words | {vm: no_place.word for vm, no_place in unplaced.items()
                    if words.get(vm) in ('capacity', otherwise)}


def not_repaired(state: State, budget_left: int, broken: np.ndarray,
                 astray: np.ndarray) -> dict[int, str]:
    """Return {instance index: reason why the instance stays} for movable instances that violate a
    server group or an operator's rule.

    :param state: the state at the end of the plan
    :param budget_left: number of further moves that the plan could have had
    :param broken: bool (G,), true for the violated server groups and rules to repair
    :param astray: bool (V,), true for instances on hosts that rules to repair forbid
    """
    hosts = np.arange(len(state.problem.hosts))
    otherwise = 'budget' if budget_left <= 0 else 'unrepaired'
    vms = np.union1d(state.model.movable_members(broken),
                     np.flatnonzero(astray & state.problem.movable))
    reasons = dict.fromkeys(vms.tolist(), otherwise)
    for part in _parts(vms[:LOOKED_AT], hosts):
        pairs = part[:, None], hosts
        useful = (astray[pairs[0]] | state.delta(pairs).repairs(broken)) & (
            hosts != state.vm_host[pairs[0]])
        words = _words(state, (part, hosts), useful, useful)
        words[np.isin(words, ('', 'no_gain'))] = otherwise
        reasons |= zip(part.tolist(), words.tolist(), strict=True)
    return reasons


def not_relieved(state: State, budget_left: int, marks: hot_hosts.Marks,
                 least_part: float) -> dict[int, str]:
    """Return {instance index: reason why the instance stays} for movable instances whose move would
    relieve a host that is still hot. A destination that would end above its target load is
    forbidden by the threshold.

    :param state: the state at the end of the plan
    :param budget_left: number of further moves that the plan could have had
    :param least_part: smallest useful load of an instance, as a fraction of the load by which the
        host exceeds its target
    """
    problem, hot = state.problem, marks.hot(state)
    excess = np.where(hot, state.scores - marks.target, 0.0)
    hot &= ~hot_hosts.own_heat(state, excess)
    load, home = problem.weights * problem.host_scale[state.vm_host], state.vm_host
    helps = hot[home] & (load > np.maximum(least_part * excess[home], TOLERANCE))
    vms = np.flatnonzero(problem.movable & (home == problem.vm_host) & helps.any(axis=1))
    hosts, reasons = np.flatnonzero(problem.available), dict[int, str]()
    for part in _parts(vms[:LOOKED_AT], hosts):
        elsewhere = home[part][:, None] != hosts
        after = state.scores[hosts] + problem.weights[part][:, None] * problem.host_scale[hosts]
        words = _words(state, (part, hosts), elsewhere,
                       elsewhere & (after <= marks.target + TOLERANCE).all(axis=2))
        words[words == ''] = 'budget' if budget_left <= 0 else 'no_gain'
        reasons |= zip(part.tolist(), words.tolist(), strict=True)
    return reasons


def obstacle(state: State, vm: int) -> tuple[str, str] | None:
    """Return the reason why an instance cannot leave its draining host; None if the instance can
    leave. If every destination is forbidden, the reason is that of the most suitable destination.
    This is the destination that passes the most rules before a rule forbids it.

    :returns: (a word of :data:`~kronos_nova.objects.plan.SKIP_REASONS`, a text for an operator)
    """
    hosts = np.arange(len(state.problem.hosts))
    hosts = hosts[hosts != state.vm_host[vm]]
    if not len(hosts):
        return 'capacity', 'there is no other host'
    delta = state.delta((vm, hosts), model=state.model.for_emptying)
    if delta.feasible.any():
        return None
    # The nearest host is the one that passes most rules.
    nearest = int(delta.against.argmax())
    rule = delta.model.rules[delta.against[nearest]]
    return rule.reason, rule.why(state, vm, int(hosts[nearest]))


def is_shut_in(state: State, vm: int) -> bool:
    """Return True if rules that do not depend on other instances or on this plan forbid every other
    host to an instance on a draining host; False otherwise."""
    hosts = np.arange(len(state.problem.hosts))
    hosts = hosts[hosts != state.vm_host[vm]]
    allowed = np.ones(len(hosts), dtype=bool)
    for rule in state.model.for_emptying.rules:
        if isinstance(rule, AllowedHosts | ForbiddenPairs) and not rule.is_provisional:
            allowed &= rule.allows(state, np.full(len(hosts), vm), hosts)
    return not allowed.any()


def blocked(state: State, host: int, held: dict[int, str], unplaced: Mapping[int, NoPlace],
            is_cut: bool = False) -> dict[str, str]:
    """Return {uuid of an instance: reason} for instances that cannot be moved off ``host``.

    :param held: {instance index: reason why the instance may not be moved at all}
    :param unplaced: instances for which the planner found no destination
    :param is_cut: True if the budget of the plan is used up. Instances that are not in ``unplaced``
        then only wait for a later plan, and are not in the result
    """
    found = {}
    for vm in np.flatnonzero(state.vm_host == host).tolist():
        is_known = vm in held or is_cut and vm not in unplaced
        against = None if is_known else obstacle(state, vm)
        if vm in held:
            found[state.problem.vms[vm]] = held[vm]
        elif against and (against[0] != 'capacity' or vm not in unplaced):
            found[state.problem.vms[vm]] = against[1]
        elif vm in unplaced:
            found[state.problem.vms[vm]] = unplaced[vm].why
    return found


def _words(state: State, pairs: tuple[np.ndarray, np.ndarray], gains: np.ndarray,
           accepted: np.ndarray) -> np.ndarray:
    """Return, for each instance, the word of :data:`SKIP_REASONS` for the reason why the instance
    stayed. The word is '' if the instance could have been moved.

    :param pairs: (indexes of instances, indexes of hosts)
    :param gains: bool (instances, hosts), True if the move of the instance to the host would lower
        the combined imbalance or free a host
    :param accepted: bool (instances, hosts), True if the policies accept this move
    """
    vms, hosts = pairs
    permitted = state.delta((vms[:, None], hosts[None, :])).feasible
    words = np.full(len(vms), 'no_gain', dtype=object)
    words[gains.any(axis=1)] = 'threshold'
    words[(gains & accepted & permitted).any(axis=1)] = ''
    useful = gains & accepted
    rows = np.flatnonzero(useful.any(axis=1) & (words != ''))
    if len(rows):
        words[rows] = _vetoes(state, vms[rows], hosts, useful[rows])
    return words


def _vetoes(state: State, vms: np.ndarray, hosts: np.ndarray, useful: np.ndarray) -> list[str]:
    """Return, for each instance, the reason that forbids most of its useful destinations. A
    destination is useful if the move would lower the imbalance or free a host. Only the first
    :data:`NEAREST` useful destinations of an instance are considered.

    :param vms: indexes of instances for which every useful destination is forbidden
    :param useful: bool (instances, hosts), the useful destinations of each instance
    """
    nearest = useful & (np.cumsum(useful, axis=1) <= NEAREST)
    row, column = np.nonzero(nearest)
    against = state.delta((vms[row], hosts[column])).against.tolist()
    ends = [0, *np.cumsum(np.count_nonzero(nearest, axis=1)).tolist()]
    reasons = [rule.reason for rule in state.model.rules]

    @functools.cache  # The cache is effective because most instances have one of a few answers.
    def most_often(numbers: tuple[int, ...]) -> str:
        return collections.Counter(reasons[number] for number in numbers).most_common(1)[0][0]

    return [most_often(tuple(against[first:end])) for first, end in itertools.pairwise(ends)]


def _spreading(state: State, candidates: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the moves that could lower the combined imbalance, in parts. The first parts have the
    moves off the most loaded hosts, to any host. The other parts have the moves off all other
    hosts, to the least loaded hosts.

    Each part is a tuple of four arrays. The first two, intp, have the instances and the hosts. The
    other two are bool (instances, hosts): True if the move of the instance to the host lowers the
    combined imbalance, and True if the policies accept the move.
    """
    extremes = state.extremes()
    if extremes.is_balanced:
        return
    tops, bottoms = (np.unique(np.concatenate(extremes.counting(ends)))
                     for ends in (extremes.tops, extremes.bottoms))
    on_top = np.isin(state.vm_host[candidates], tops)
    everywhere = np.flatnonzero(state.problem.available)
    for vms, hosts in ((candidates[on_top], everywhere), (candidates[~on_top], bottoms)):
        for part in _parts(vms, hosts):
            delta = state.delta((part[:, None], hosts[None, :]))
            elsewhere = state.vm_host[part][:, None] != hosts
            yield part, hosts, (delta.decrease > TOLERANCE) & elsewhere, delta.accepted


def _parts(vms: np.ndarray, hosts: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the instances in parts that have about :data:`PAIRS_AT_ONCE` pairs with the hosts."""
    for part in np.array_split(vms, max(1, vms.size * hosts.size // PAIRS_AT_ONCE)):
        if part.size:
            yield part


def _packing(state: State, candidates: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the moves that could free hosts. These are the moves off the least loaded hosts to the
    most loaded hosts. At most one tuple is yielded, of the same form as the tuples of
    :func:`_spreading`. Both bool arrays are True for every move to another host."""
    problem = state.problem
    load = state.scores @ problem.policy_weights
    used = np.flatnonzero(problem.available & (state.guests > 0))
    coldest = candidates[np.argsort(load[state.vm_host[candidates]], kind='stable')][:LOOKED_AT]
    fullest = used[np.argsort(-load[used], kind='stable')][:NEAREST]
    if coldest.size:
        elsewhere = state.vm_host[coldest][:, None] != fullest
        yield coldest, fullest, elsewhere, elsewhere


MOST_PLANS = 100
"""Largest number of plans that a note about an aggregate states. For more plans, the note only says
that there are more. Raised, notes state numbers that are too uncertain to be of use; lowered, notes
state fewer numbers. Not measured."""
OTHERS = 3
"""Least number of live migrations by others for which a report warns of another balancer.
Migrations by others are those that Kronos did not start. A migration by others counts if Kronos has
moved the same server as well, and if the migration has ended only recently: ``no_return_window`` or
``server_grace`` seconds ago at most, whichever is longer. Raised, another balancer is reported
later; lowered, an operator who moves two servers back by hand causes a warning. Not measured."""


def below_noise(policies: Iterable[Policy], noise: Mapping[str, float]) -> Iterator[str]:
    """Yield a warning for each policy whose threshold is lower than the noise. The noise is the
    imbalance that random changes of load cause. No moves can keep the imbalance below such a
    threshold, and no moves are made for an imbalance that may be noise.

    :param noise: {policy: its noise}"""
    for policy in policies:
        if noise.get(policy.name, 0.0) > policy.threshold:
            yield (f'{policy.name}: the threshold {policy.threshold:g} is below what noise makes '
                   f'of the imbalance of these hosts, {noise[policy.name]:.3f}; nothing is moved '
                   'for differences up to that. Raise the threshold.')


def left_above(before: State, outlook: Outlook) -> Iterator[str]:
    """Yield a note for each policy whose imbalance stays above its threshold. The note has the
    reason why no instance is moved to lower the imbalance.

    :param before: the state before any move, with the measured load
    """
    expected = State(Model(outlook.problem))
    columns = zip(before.problem.policies, before.problem.thresholds, before.imbalances(),
                  expected.imbalances(), outlook.problem.thresholds, outlook.least, outlook.noise,
                  strict=True)
    for name, threshold, measured, likely, target, least, noise in columns:
        if measured <= threshold + TOLERANCE:
            continue
        if likely <= target + TOLERANCE and least > threshold:
            yield (f'{name}: no placement goes below {least:.3f}, because of one instance or of '
                   f'what cannot be moved. Up to {target:.3f} nothing is moved: the other hosts '
                   'are then as close together as the threshold asks.')
        elif likely <= target + TOLERANCE:
            yield (f'{name}: of {measured:.3f} only {likely:.3f} is likely to last, and up to '
                   f'{target:.3f} nothing is moved.')
        else:
            more = f' by more than noise, {noise:.3f}' if noise > 0 else ''
            yield (f'{name}: no permitted plan was found that brings {likely:.3f} closer to '
                   f'{target:.3f}{more}. That none exists is not proved.')


def more_plans(before: State, timely: TimelyPlan, cooldown: float) -> Iterator[str]:
    """Yield a note if the plan has as many moves as it may have, and more plans are needed to bring
    the imbalances below their thresholds. The note has the expected number and duration of these
    plans.

    :param before: the state of the expected load before any move
    :param cooldown: seconds between two plans
    """
    steps, after = timely.chosen.steps, timely.chosen.state
    is_cut = timely.is_short or timely.chosen.budget_left <= 0
    if (after.is_balanced or not is_cut
            or not any(phase in plan.BY_LOAD for phase, _step in steps)):
        return
    band = level.band_of(before)
    left = level.excess(after, band)
    gained = level.excess(before, band) - left
    if gained <= TOLERANCE:
        return
    plans = 1 + math.ceil(left / gained)
    if plans > MOST_PLANS:
        yield f'This plan is the first of more than {MOST_PLANS}.'
        return
    lasts = max((move.begins_after or 0.0) + (move.expected_seconds or 0.0)
                for move in timely.moves)
    together = _hours(plans * lasts + (plans - 1) * cooldown)
    yield (f'This plan is the first of about {plans}, which take about {together} together, '
           'cooldown included.')


def _hours(seconds: float) -> str:
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    return f'{hours} h {minutes:02} min' if hours else f'{minutes} min'


def about(timely: TimelyPlan, budget: int, options: PaceOptions) -> Iterator[str]:
    """Yield a note if a plan has fewer moves than its budget permits. The reason is that further
    moves would begin so late that the measured load would be out of date."""
    if timely.is_short:
        yield (f'{plural.count(len(timely.moves), "move")} of {budget} '
               '(max_migrations_per_cycle) can begin within '
               f'{options.stale_plan_age:.0f} s (stale_plan_age); more are left to later plans, '
               'because the load that they would be chosen for would not be the load there is.')


def other_balancer(history: PlanningHistory, scope: Scope) -> Iterator[str]:
    """Yield a warning if servers that Kronos has moved were live-migrated by others as well.
    Another balancer of the same cloud may be at work. Then Kronos and the other balancer may undo
    each other's moves.

    :param history: a :class:`kronos_nova.cooldown.PlanningHistory`
    """
    names = {instance.uuid: instance.display_name for instance in scope.instances}
    own = {(each.instance_uuid, each.source, each.destination) for each in history.tries}
    own |= {(move.instance_uuid, move.source, move.destination)
            for move in history.moves if move.is_own}
    moved = {uuid for uuid, _source, _destination in own}
    made = collections.Counter(
        (move.instance_uuid, move.source, move.destination) for move in history.moves
        if move.instance_uuid in moved and move.instance_uuid in names)
    others = collections.Counter({move: made[move] for move in made.keys() - own})
    if others.total() >= OTHERS:
        uuid, source, destination = min(others, key=lambda each: (-others[each], each))
        yield (f'{others.total()} live migrations of servers that Kronos has moved were made by '
               f'others, such as that of {names[uuid]} ({uuid}) from {source} to {destination}. '
               'Is another balancer at work? Stop one of the two, or take its servers or hosts '
               'out of scope.')


def uncertain(scope: Scope, load: Load, problem: Problem) -> Iterator[str]:
    """Yield a warning about hosts whose load is measured but will change by an unknown amount,
    because a server whose load is not known is migrating from or to each of them."""
    hosts = np.flatnonzero(scope.available & load.measured & ~problem.available).tolist()
    if hosts:
        yield (f'a server whose load is not known is migrating from or to '
               f'{plural.count(len(hosts), "host")}, such as {problem.hosts[hosts[0]]}: '
               'balancing leaves them out until it has moved')


def own_heat(state: State, excess: np.ndarray, policies: int) -> Iterator[str]:
    """Yield warnings about hot (too loaded) hosts that moves cannot relieve, because servers cause
    little of the load of these hosts.

    :param excess: float64 (H, P), the load that has to leave each host; 0 or less for hosts that
        are not hot
    :param policies: number of policies. The first columns of the problem's arrays are those of the
        policies. The other columns, for forecasts, are ignored
    """
    problem, together = state.problem, hot_hosts.servers_share(state)
    found = np.argwhere(hot_hosts.own_heat(state, excess)[:, :policies]).tolist()
    for host, policy in found[:NAMED]:
        yield (f'{problem.hosts[host]}: {problem.policies[policy]} is '
               f'{state.scores[host, policy]:.3g}, of which its servers use '
               f'{together[host, policy]:.3g}: it is load of the host, not of its servers. Nothing '
               'is moved off it.')
    if len(found) > NAMED:
        yield f'{len(found) - NAMED} more hosts are hot by load of their own.'


def stopped(seconds: float) -> str:
    """Return the warning that the deadline ended the search."""
    return (f'The search was stopped by planning_time_limit ({seconds:g} s); the plan is the best '
            'found by then.')


def stranded(hosts: Iterable[Host], instances: Iterable[Instance]) -> Iterator[str]:
    """Yield texts for an operator about hosts that are down and have servers. These servers cannot
    be migrated."""
    on_host = collections.Counter(instance.host for instance in instances)
    for host in hosts:
        service = host.service
        if on_host[host.name] and (service.state != 'up' or service.forced_down):
            how = 'forced down' if service.forced_down else 'down'
            yield (f'{host.name} is {how} ({service.status}) with '
                   f'{plural.count(on_host[host.name], "server")} on it; nothing can be migrated '
                   'off it')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The state of an aggregate before any move, and the phases of planning that are due.

    before : the state before any move, with the measured and the forecast loads
    due : the phases of planning that have something to do
    """

    given: Inputs
    scope: Scope
    load: Load
    case: PlanningCase
    before: State
    due: DuePhases

    @property
    def noise(self) -> Mapping[str, float]:
        """{policy: the noise in its imbalance}, for policies whose noise is known."""
        outlook = self.case.outlook
        return {} if outlook is None else {
            policy.name: float(noise)
            for policy, noise in zip(self.load.policies, outlook.noise, strict=False)
            if noise > 0}

    def warnings(self) -> Iterator[str]:
        """Yield the warnings that do not depend on the plan."""
        given, policies = self.given, self.load.policies
        yield from forecast_columns.warnings(self.case.forecasts)
        yield from stranded(self.scope.hosts, self.scope.instances)
        yield from uncertain(self.scope, self.load, self.case.problem)
        yield from given.measurements.of_moves(given.policies.migration).warnings
        yield from other_balancer(given.history, self.scope)
        yield from below_noise(policies, self.noise)
        if self.due.relieve:
            hot = self.due.relieve.hot(self.before)
            yield from own_heat(self.before, np.where(
                hot, self.before.scores - self.due.relieve.target, 0.0), len(policies))
        if self.due.balance and given.policies.mode == 'spread':
            yield from own_heat(self.before, hot_hosts.uneven_excess(self.before), len(policies))


def unmeasured(given: Inputs, scope: Scope, load: Load) -> AggregateReport:
    """Return the report of an aggregate whose load is not known. No instance is moved in the
    aggregate, and disabled hosts are not emptied."""
    return _report(given, scope, load, plan.NO_DATA,
                   warnings=tuple(stranded(scope.hosts, scope.instances)))


def unmoved(found: Findings, outcome: str, *why: str) -> AggregateReport:
    """Return the report of an aggregate in which nothing is moved.

    :param why: reasons why nothing is moved. The report has them as warnings that require no action
    """
    return dataclasses.replace(
        _report(found.given, found.scope, found.load, outcome, found, found.before,
                (*why, *_blocked_hosts(found, found.before), *found.warnings(),
                 *_violations(found, found.before))),
        intended=len(why))


def explain(found: Findings, timely: TimelyPlan, after: State, planned: State, limits: Limits,
            checks: Checks) -> AggregateReport:
    """Return the report of a plan. The report has the reasons for the moves, the reasons why other
    instances stay, and notes about targets that the plan does not reach.

    :param after: the state at the end of the plan, by the measured load
    :param planned: the state before the plan, with the load for which the plan was made, such as
        the likely load. This function applies the moves of the plan to this state
    """
    given, case, chosen = found.given, found.case, timely.chosen
    emptied = _after_emptying(found, chosen)
    warnings = (*_blocked_hosts(found, emptied, limits.unplaced, chosen.budget_left <= 0),
                *found.warnings())
    if limits.cut.happened:
        warnings = (*warnings, stopped(given.options.planning_time_limit))
    outcome = plan.NO_DATA if found.due.why_no_more else plan.NO_MOVE
    report = _report(
        given, found.scope, found.load, plan.PLANNED if chosen.steps else outcome, found, after,
        (*warnings, *_violations(found, chosen.state)))
    notes = (*_notes(found, timely, limits, planned), *checks.precheck.notes(timely.moves))
    moves = with_next_best(planned, chosen.steps, timely.moves, given.options.overload_ceiling)
    return dataclasses.replace(
        report, notes=notes,
        moves=given.pace.mark_endless(
            checks.move_limits.add_owners(checks.precheck.mark_unasked(moves))),
        refusals=checks.precheck.refusals(), unplaced=tuple(
            plan.Unplaced(instance_uuid=case.problem.vms[vm], why=each.why,
                          is_proven=each.is_proven)
            for vm, each in sorted(_unplaced(found, emptied, limits.unplaced).items())),
        not_moved=_skips(found, chosen.state,
                         _reasons(found, timely, limits.unplaced, checks), timely.kept_back),
        hosts_emptied=chosen.emptied)


def _unplaced(found: Findings, state: State, unplaced: Mapping[int, NoPlace]) -> dict[int, NoPlace]:
    """Return {instance index: reason why the instance stays on a host that it has to leave}. If
    every destination is forbidden, the most suitable one is considered (:func:`obstacle`). If
    Nova's scheduler refused this destination, its reason replaces that of the planner.

    :param unplaced: {instance index: reason of the planner}"""
    against = {int(vm): obstacle(state, int(vm)) for vm in waiting(state)
               } if found.due.evacuate else {}
    return {**unplaced, **{
        vm: NoPlace(why=held[1], is_proven=vm in unplaced and unplaced[vm].is_proven)
        for vm, held in against.items() if held and held[0] == 'refused'}}


def _skips(found: Findings, state: State, reasons: Mapping[int, str],
           kept_back: Mapping[int, str]) -> tuple[plan.Skip, ...]:
    """Return the instances that stayed, grouped by reason. The groups also have texts about the
    rules that keep instances on their hosts.

    :param kept_back: {instance index: reason}, for instances whose move was left out of the plan.
        After such a move, the servers of some host or failure domain could not all restart
        elsewhere if it failed
    """
    vms, holds = found.case.problem.vms, found.case.holds
    details = {vms[vm]: holds[vms[vm]].why if vms[vm] in holds else state.model.rules_of(vm)
               for vm, reason in reasons.items() if reason == 'rule'}
    places = _domains_of_rules(found, details.keys() - holds.keys())
    return skips(reasons, vms, {uuid: '; '.join([why, *places[uuid]])
                                for uuid, why in details.items()} | {
        vms[vm]: f'if it were moved, {why}' for vm, why in kept_back.items()})


def _domains_of_rules(found: Findings, uuids: Set[str]) -> Mapping[str, list[str]]:
    """Return {uuid: sentences about the failure domains of the instance}. There is one sentence for
    each rule about failure domains that keeps the instance on its host."""
    said: dict[str, list[str]] = collections.defaultdict(list)
    selections = found.given.rules.selections
    hosts = {host.name: host for host in found.given.snapshot.hosts} if uuids else {}
    for each in selections if uuids else ():
        for key in each.rule.domain_levels:
            for uuid in uuids & each.servers:
                host = hosts[selections.host_of[uuid]]
                place = domains.place(host, key)
                said[uuid].append(
                    f'for rule {each.rule.name} it is in '
                    + (domains.names(dict(zip(host.domains, place, strict=False))) if place
                       else f'no {key}'))
    return said


def _notes(found: Findings, timely: TimelyPlan, limits: Limits, planned: State) -> Iterator[str]:
    """Yield notes for the report of a plan. The notes name moves that would begin after
    ``stale_plan_age``, moves that were left out, and targets that the plan does not reach."""
    options, outlook = found.given.options, found.case.outlook
    yield from about(timely, limits.budget, options.pace)
    if timely.kept_back:
        yield ('Left where they are by [kronos] failover_hosts or failover_domains: '
               f'{len(timely.kept_back)}. If the first were moved, '
               f'{next(iter(timely.kept_back.values()))}.')
    if outlook is not None:
        yield from (more_plans(planned, timely, options.cooldown) if timely.moves
                    else left_above(found.before, outlook))


def _reasons(found: Findings, timely: TimelyPlan, unplaced: Mapping[int, NoPlace],
             checks: Checks) -> dict[int, str]:
    """Return {instance index: reason why the instance stays}."""
    case, chosen = found.case, timely.chosen
    reasons = case.held | _stayed(found, chosen, unplaced)
    refused = {refusal.instance_uuid for refusal in checks.precheck.refusals()}
    reasons |= {vm: 'refused' for vm, uuid in enumerate(case.problem.vms)
                if uuid in refused and chosen.state.vm_host[vm] == case.problem.vm_host[vm]}
    reasons |= dict.fromkeys(timely.kept_back, 'failover')
    if timely.is_short:
        reasons = {vm: 'late' if reason == 'budget' else reason for vm, reason in reasons.items()}
    # A server that leaves its host to make room, and returns, is among the moves.
    moved = {step.vm for _phase, step in chosen.steps}
    return {vm: reason for vm, reason in reasons.items() if vm not in moved}


def _stayed(found: Findings, chosen: Chosen, unplaced: Mapping[int, NoPlace]) -> dict[int, str]:
    """Return {instance index: reason why no planner moved the instance}."""
    if found.due.why_no_more:
        problem = chosen.state.problem
        reasons = dict.fromkeys(np.flatnonzero(problem.movable).tolist(), found.due.why_no_more)
    else:
        reasons = stayed(chosen.state, chosen.budget_left, found.given.policies.mode == 'pack')
        if found.due.relieve is not None:
            reasons |= not_relieved(chosen.state, chosen.budget_left, found.due.relieve,
                                    found.given.options.min_gain.per_move)
        reasons |= not_repaired(chosen.state, chosen.budget_left, *_to_repair(found, chosen.state))
    if found.due.evacuate:
        reasons |= not_evacuated(_after_emptying(found, chosen), chosen.budget_left, unplaced)
    return reasons


def _after_emptying(found: Findings, chosen: Chosen) -> State:
    """Return the state after the moves that empty hosts, without the moves of later phases. Reasons
    why instances stay on hosts that were to be emptied refer to this state, because later moves may
    use room that the instances could not use. If no host is to be emptied, return the state at the
    end of the plan."""
    if not found.due.evacuate:
        return chosen.state
    state = State(chosen.state.model)
    for phase, step in chosen.steps:
        if phase == EVACUATE:
            state.move(step.vm, step.destination)
    return state


def _to_repair(found: Findings, state: State) -> tuple[np.ndarray, np.ndarray]:
    """Return the violations that the due phases should have repaired, as two arrays: bool (G,),
    true for violated server groups and rules; and bool (V,), true for instances on hosts that rules
    forbid."""
    options, model, due = found.given.options, state.model, found.due
    broken = due.repair & model.broken(
        state, options.enforce_hard_affinity, options.enforce_soft_affinity)
    return (broken | due.repair_rules & model.broken_rules(state),
            due.repair_rules & model.astray(state))


def _blocked_hosts(found: Findings, state: State,
                   unplaced: Mapping[int, NoPlace] = MappingProxyType({}),
                   is_cut: bool = False) -> Iterator[str]:
    """Yield texts for an operator about hosts that were to be emptied and are not.

    :param state: the state after the moves that empty hosts
    :param unplaced, is_cut: as in :func:`blocked`
    """
    if not found.given.options.evacuate_disabled_hosts:
        return
    vms, holds = found.case.problem.vms, found.case.holds
    held = {vm: holds[vms[vm]].why if reason == 'rule' else
            f'it is left alone ({found.case.held_because(vm)})'
            for vm, reason in found.case.held.items()}
    problem = state.problem
    for host in np.flatnonzero(problem.draining).tolist():
        stuck = blocked(state, host, held, unplaced, is_cut)
        if stuck:
            first = min(stuck)
            mine = [vm for vm in np.flatnonzero(state.vm_host == host).tolist()
                    if vms[vm] in stuck]
            yield (f'{problem.hosts[host]} {_what_is_proven(state, mine, held, unplaced)}: '
                   f'{len(stuck)} of {np.count_nonzero(problem.vm_host == host)} instances '
                   f'{plural.agreeing(len(stuck), "are")} blocked, such as {first}: {stuck[first]}')


def _what_is_proven(state: State, stuck: list[int], held: Mapping[int, str],
                    unplaced: Mapping[int, NoPlace]) -> str:
    """Return a text about a host that is not emptied: whether it is proven that the host, or
    several hosts together, cannot be emptied.

    :param stuck: the instances that stay on the host
    :param held, unplaced: as in :func:`blocked`
    """
    is_stuck_alone = [vm in held or is_shut_in(state, vm) for vm in stuck]
    proofs = [unplaced[vm] for vm, is_alone in zip(stuck, is_stuck_alone, strict=True)
              if not is_alone and vm in unplaced and unplaced[vm].is_proven]
    if sum(is_stuck_alone) + len(proofs) < len(stuck):
        return 'is not emptied'
    if any(is_stuck_alone) or any(not proof.sources for proof in proofs):
        return 'cannot be emptied'
    hosts = [state.problem.hosts[host] for host in proofs[0].sources]
    names = (f'{", ".join(hosts[:-1])} and {hosts[-1]}' if len(hosts) <= NAMED
             else f'the {len(hosts)} hosts that are to be emptied')
    return f'is not emptied, because not all servers of {names} can leave'


def _violations(found: Findings, state: State) -> Iterator[str]:
    """Yield the texts for an operator about server groups and rules that stay violated."""
    options = found.given.options
    yield from _broken_groups(options, state)
    yield from _broken_rules(options, found.scope.name, state)


def _broken_groups(options: EngineOptions, state: State) -> Iterator[str]:
    """Yield the texts for an operator about server groups that could not be repaired."""
    broken = state.model.broken(state, options.enforce_hard_affinity,
                                options.enforce_soft_affinity)
    for number in np.flatnonzero(broken):
        yield (f'server group {state.problem.groups[number].name} stays broken: '
               f'{state.groups.misplaced[number]} of its members would have to move')


def _broken_rules(options: EngineOptions, aggregate: str, state: State) -> Iterator[str]:
    """Yield the texts for an operator about rules that could not be repaired."""
    if options.repair_rules == 'off' or (
            options.repair_order.get(aggregate) == automation.NEVER):
        return
    model, problem = state.model, state.problem
    for number in np.flatnonzero(model.broken_rules(state)):
        yield (f'rule {problem.groups[number].rule} stays violated: '
               f'{state.groups.misplaced[number]} of its servers would have to move')
    astray = collections.defaultdict(list)
    for vm in np.flatnonzero(model.astray(state)).tolist():
        astray[model.rules_against(vm, int(state.vm_host[vm]))].append(vm)
    for names, vms in sorted(astray.items()):
        first = vms[0]
        count = f'{len(vms)} servers are' if len(vms) > 1 else 'one server is'
        yield (f'{names} stays violated: {count} on a host that it forbids, such as '
               f'{problem.vms[first]} on {problem.hosts[state.vm_host[first]]}')


def _report(given: Inputs, scope: Scope, load: Load, outcome: str, found: Findings | None = None,
            after: State | None = None, warnings: tuple[str, ...] = ()) -> AggregateReport:
    """Return an AggregateReport without moves.

    :param found: Findings before any move; None if nothing is measured
    """
    before, rows = None if found is None else found.before, {
        name: PolicyReport(name=name, state='no_data', detail=detail, weight=policy.weight,
                           threshold=shown_threshold(policy), **_answered(given, load, name))
        for policy in given.policies.active for name, detail in load.no_data.items()
        if policy.name == name}
    if found is not None:
        imbalances = found.before.imbalances()
        ends = (after or found.before).imbalances()
        for number, policy in enumerate(load.policies):
            rows[policy.name] = PolicyReport(
                name=policy.name, state='ok', weight=policy.weight,
                threshold=shown_threshold(policy),
                imbalance_before=float(imbalances[number]),
                imbalance_after=float(ends[number]),
                forecast=forecast_columns.report(policy.name, found.case.forecasts,
                                                 found.before.problem, imbalances),
                noise=found.noise.get(policy.name), **_answered(given, load, policy.name))
    unread, homes = given.snapshot.unread.get(scope.name), given.history.homes
    return AggregateReport(
        name=scope.name, outcome=outcome, mode=given.policies.mode, planner=given.planner,
        policies=tuple(rows[name] for name in sorted(rows)),
        combined_before=combined(before, load.policies),
        combined_after=combined(after, load.policies), unbelieved=load.unbelieved,
        warnings=(*([unread] if unread is not None else ()), *load.warnings, *warnings),
        immovable=tuple(plan.Immovable(instance_uuid=each.uuid, can=each.live.can,
                                       why=each.live.why)
                        for each in scope.instances if each.live.can != LIVE),
        host_scores=tuple(_host_scores(scope, load, after)),
        without_moves=None if homes is None else without_moves.contention(scope, load, homes),
        domains=domains.counts(scope.hosts),
        broken_groups=0 if before is None else int(
            before.model.broken(before, hard=True, soft=False).sum()))


def _answered(given: Inputs, load: Load, name: str) -> dict[str, Any]:
    """Return the fields ``coverage`` and ``sample_age`` of a policy's PolicyReport, as {field:
    value}.

    A sample may be some seconds later than the evaluation, because Prometheus computes the answer
    after the evaluation has begun, and because clocks differ. The age of this sample is 0. The age
    of a sample that is later by more than ``max_sample_age`` is not known.
    """
    found = load.answered.get(name, Answered())
    age, most = given.planner_ports.now - found.oldest, given.options.max_sample_age
    is_known = not math.isnan(age) and (most is None or age >= -most)
    return {'coverage': found.coverage, 'sample_age': max(age, 0.0) if is_known else None}


def _host_scores(scope: Scope, load: Load, after: State | None) -> Iterator[HostScore]:
    scores = load.scores if after is None else after.scores
    for row, host in enumerate(scope.host_names):
        for column, policy in enumerate(load.policies):
            if not np.isnan(load.scores[row, column]):
                yield HostScore(host, policy.name, float(load.scores[row, column]),
                                float(scores[row, column]))
