"""The problem of one aggregate as arrays, made from a snapshot and measurements."""

import collections
import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from kronos_nova import model
from kronos_nova.constraints.base import compile_model
from kronos_nova.constraints.operator_rules import preferences
from kronos_nova.constraints.operator_rules import rule_groups
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import forecast_columns
from kronos_nova.cycle import restraint
from kronos_nova.cycle.aggregates import Scope
from kronos_nova.cycle.forecast_columns import ForecastColumns
from kronos_nova.cycle.inputs import Inputs
from kronos_nova.cycle.metrics import Load
from kronos_nova.cycle.metrics import MetricsReader
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.prices import prices
from kronos_nova.cycle.restraint import Outlook
from kronos_nova.cycle.rule_holds import RuleHold
from kronos_nova.cycle.rule_holds import rule_holds
from kronos_nova.load import LoadStats
from kronos_nova.load.instance_weights import NOT_RUNNING
from kronos_nova.load.instance_weights import at_host
from kronos_nova.model import TOLERANCE
from kronos_nova.model import Model
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model.numa import Cells
from kronos_nova.model.rules import ForbiddenPairs
from kronos_nova.objects import eligibility
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Step
from kronos_nova.planners.hot_hosts import Marks
from kronos_nova.policies import Policy
from kronos_nova.policies.models import ABSOLUTE
from kronos_nova.policies.selection import Selections

Amounts = dict[tuple[str, str], float]
"""{(name of a host or provider, name of a policy or resource class): amount}"""


class MovesInFlight:
    """The moves that this cycle has planned so far.

    Each aggregate is planned from the end state of the plans made before. There are two exceptions,
    because the plans are carried out at the same time. The room that an earlier plan frees on a
    host or on a sharing provider is not used, because it may not be free yet when a later plan
    needs it. A member of an anti-affinity group does not go to a host that another member is about
    to leave.

    moved : {uuid of a moved instance: its destination}
    left : {uuid of a moved instance: the host that it leaves}
    """

    def __init__(self) -> None:
        self.moved: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self._shifts: Amounts = collections.defaultdict(float)
        # {host of a moved instance: policies in which the loads of its moved instances are known}
        self._weighed: dict[str, frozenset[str]] = {}
        self._leaving: Amounts = collections.defaultdict(float)
        self._taken: Amounts = collections.defaultdict(float)

    def place(self, instance: Instance) -> Instance:
        """Return a copy of the instance on the host to which this cycle has planned to move the
        instance. An instance without a planned move is returned unchanged."""
        if instance.uuid not in self.moved:
            return instance
        return dataclasses.replace(instance, host=self.moved[instance.uuid])

    def add(self, state: State, steps: Iterable[Step]) -> None:
        """Add the steps of a plan.

        :param state: the state after the steps
        """
        problem = state.problem
        for step in steps:
            self.moved[problem.vms[step.vm]] = problem.hosts[step.destination]
            self.left.setdefault(problem.vms[step.vm], problem.hosts[step.source])
            for host, sign in ((step.source, -1), (step.destination, 1)):
                load = np.nan if problem.unweighed[step.vm] else problem.weights[step.vm]
                shift = sign * load * problem.host_scale[host]
                name, policies = problem.hosts[host], frozenset(problem.policies)
                self._weighed[name] = self._weighed.get(name, policies) & policies
                for policy, value in zip(problem.policies, shift, strict=True):
                    self._shifts[name, policy] += float(value)
            for name, amount in zip(problem.resource_classes, problem.demands[step.vm],
                                    strict=True):
                self._leaving[problem.hosts[step.source], name] += float(amount)
            self._use_shared(problem, step)

    def _use_shared(self, problem: Problem, step: Step) -> None:
        classes = np.arange(len(problem.resource_classes))
        rows, before = (np.broadcast_to(problem.row(host, classes), classes.shape)
                        for host in (step.destination, step.source))
        for c in np.flatnonzero((rows >= len(problem.hosts)) & (rows != before)):
            provider = problem.shared[rows[c] - len(problem.hosts)]
            self._taken[provider, problem.resource_classes[c]] += float(problem.demands[step.vm, c])

    def shift(self, hosts: Sequence[str], policies: Iterable[Policy]) -> np.ndarray:
        """Return float64 (H, P): the change of the measured scores by the moves so far. NaN for the
        hosts of a moved instance whose load is not known, also if its load is not known because
        its aggregate has no data of the policy."""
        names = [policy.name for policy in policies]
        found = _table(self._shifts, hosts, names)
        for host in self._weighed.keys() & {*hosts}:
            found[hosts.index(host), [name not in self._weighed[host] for name in names]] = np.nan
        return found

    def held_back(self, hosts: Sequence[str], classes: Sequence[str]) -> np.ndarray:
        """Return float64 (H, C), one value for each host and each of C resource classes: the sum of
        the allocations of the instances that planned moves take off the host. This room is not used
        by later plans."""
        return _table(self._leaving, hosts, classes)

    def taken(self, providers: Sequence[str], classes: Sequence[str]) -> np.ndarray:
        """Return float64 (S, C), one value for each of S providers that hosts share and each of C
        resource classes: the additional allocation that planned moves need."""
        return _table(self._taken, providers, classes)


def _table(amounts: Mapping[tuple[str, str], float], rows: Sequence[str],
           columns: Sequence[str]) -> np.ndarray:
    return np.array([[amounts.get((row, column), 0.0) for column in columns] for row in rows],
                    dtype=float).reshape(len(rows), len(columns))


NEEDS_RESTRAINT = ('[kronos] restraint is 0, and without it every cycle would move servers for '
                   'hours that cannot be made even')

UNEVEN = 'pack', 'relieve'

ANY_IMBALANCE = 1.0
"""Imbalance, as a fraction of a host, that reports show as the threshold of policies that do not
equalize load. Fixed: the default of ``threshold``, and above the imbalance of most hosts."""

DOUBTFUL = ('quarantine', 'refused', 'endless')
"""Reasons for which an instance is not moved because a move of it is likely to fail again."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlanningCase:
    """The planning problem of one aggregate, and the facts that it was made from.

    name : name of the aggregate
    problem : the planning problem, with the measured loads
    held : {index of an instance that may not be moved, for any cause: reason}. The reason is one of
        :data:`~kronos_nova.objects.plan.SKIP_REASONS`; '' if the instance is on a host that live
        migrations cannot leave
    instances : the instances of the problem, in its order
    around : the part of the snapshot that concerns the aggregate
    forecasts : {policy: its forecast}
    ahead : ``problem`` with further columns, which have the forecast loads
    load_stats : {policy: statistics of its instances' loads}; empty without restraint
    outlook : the load that is likely in the next half hour; None without restraint
    marks : the loads above which a host or an instance is hot, for each column of ``ahead``
    compile : function that returns the model of a problem, with all rules and prices
    holds : {uuid of an instance: its RuleHold}, only for the instances that a rule of an operator
        keeps from being moved now
    """

    name: str
    problem: Problem
    held: dict[int, str]
    instances: tuple[Instance, ...]
    around: Snapshot
    forecasts: Mapping[str, ForecastColumns]
    ahead: Problem
    load_stats: Mapping[str, LoadStats]
    outlook: Outlook | None
    marks: Marks
    compile: Callable[[Problem], Model]
    holds: Mapping[str, RuleHold]

    @property
    def expected(self) -> Problem:
        """The problem with the loads by which moves are chosen: likely loads with restraint,
        otherwise measured and forecast loads."""
        return self.ahead if self.outlook is None else self.outlook.problem

    def held_because(self, vm: int) -> str:
        """Return a text with the reason why an instance may not be moved; '' if it is on a host
        that live migrations cannot leave."""
        return eligibility.in_words(self.instances[vm], self.held[vm])


def state_problem(given: Inputs, scope: Scope, load: Load,
                  in_flight: MovesInFlight) -> PlanningCase:
    """Make the planning problem of an aggregate.

    :param in_flight: the moves that this evaluation has planned so far
    """
    around, history, planner_ports = given.scopes.around(scope), given.history, given.planner_ports
    selections = given.rules.selections
    holds = rule_holds(selections, scope.name, {each.uuid for each in scope.instances},
                       planner_ports.now, history.instances_moved_today)
    problem, held = build(scope, load, given.measurements.reader, around, in_flight, history,
                          given.options, selections, holds)
    forecasts = _forecasts(given, scope, load, problem)
    ahead = forecast_columns.expanded(problem, forecasts, given.is_restrained)
    stats: dict[str, LoadStats] = {}
    expected: Outlook | None = None
    if given.is_restrained:
        known = history.load_stats.get(scope.name, {})
        stats = restraint.learnt(known, problem, planner_ports.now, load.references,
                                 scope.name in given.snapshot.unread)
        # The statistics of a policy without data are kept for when it has data again.
        planner_ports.learn(scope.name, {name: each for name, each in known.items()
                                         if each.is_recent(planner_ports.now)} | stats)
        expected = restraint.outlook(ahead, stats, given.options.restraint.amount)
    return PlanningCase(
        name=scope.name, problem=problem, held=held, holds=holds, instances=scope.instances,
        around=around, forecasts=forecasts,
        ahead=ahead, load_stats=stats, outlook=expected,
        marks=Marks.from_policies(forecast_columns.policy_of_columns(load.policies, forecasts)),
        compile=functools.partial(_compiled, given, scope, load, around, in_flight))


def _forecasts(given: Inputs, scope: Scope, load: Load, problem: Problem) -> Mapping[str,
               ForecastColumns]:
    """Return {policy: ForecastColumns} of the policies with a forecast."""
    planner_ports = given.planner_ports
    assert load.units is not None and load.factors is not None, 'the load has weights'
    if given.policies.mode == 'spread' and not given.is_restrained:
        return forecast_columns.unused(load.policies, NEEDS_RESTRAINT)
    return planner_ports.forecast_cache.forecasts(
        planner_ports.source, given.measurements.reader, load.policies, scope, problem,
        load.units * load.factors, planner_ports.now)


def _compiled(given: Inputs, scope: Scope, load: Load, around: Snapshot, in_flight: MovesInFlight,
              problem: Problem) -> Model:
    options = given.options
    model = compile_model(
        problem, around, given.rules,
        prices(problem, options.min_gain, given.history.tries, given.pace,
               options.soft_group_cost, preferences(problem, given.rules.selections)))
    arriving = _brought_by_others(scope, around, in_flight) if load.guards else []
    guards = (guard.rule(options.overload_ceiling, scope.instances, arriving)
              for guard in load.guards)
    return model.with_rules(*guards, *_until_left(given, around, in_flight, problem))


def _brought_by_others(scope: Scope, around: Snapshot,
                       in_flight: MovesInFlight) -> list[tuple[Instance, int]]:
    """Return (instance, index of the destination) for each instance that is migrating to a host of
    the scope, or that this cycle has planned to move to a host of the scope."""
    hosts = {name: index for index, name in enumerate(scope.host_names)}
    going = {move.instance_uuid: move.destination for move in around.moves_under_way}
    return [(instance, hosts[destination]) for instance in around.instances
            if (destination := in_flight.moved.get(instance.uuid, going.get(instance.uuid)))
            in hosts]


def _until_left(given: Inputs, around: Snapshot, in_flight: MovesInFlight,
                problem: Problem) -> tuple[ForbiddenPairs, ...]:
    """Return the rules that keep members of anti-affinity groups, and servers that operators' rules
    keep apart, off the hosts and failure domains that other members are about to leave by earlier
    plans of this cycle. Return no rule if there are no such members."""
    counts_soft = given.options.soft_group_cost is None
    pairs = {(member, in_flight.left[leaving]) for group in around.server_groups
             if group.policy == 'anti-affinity'
             or group.policy == 'soft-anti-affinity' and counts_soft
             for leaving in in_flight.left.keys() & set(group.members)
             for member in group.members if member != leaving}
    rule = ForbiddenPairs(
        problem, pairs, reason='group', why=lambda state, vm, host: (
            f'another member of its server group has not left {problem.hosts[host]} yet'),
        is_provisional=True)
    rules = rule, *(_until_left_by_rules(given, in_flight, problem, yields)
                    for yields in (False, True))
    return tuple(rule for rule in rules if len(rule))


def _until_left_by_rules(given: Inputs, in_flight: MovesInFlight, problem: Problem,
                         yields: bool) -> ForbiddenPairs:
    """Return the part of :func:`_until_left` that is due to operators' rules.

    :param yields: whether the part has the rules that may be relaxed to empty a host, or the others
    """
    selections, pairs = given.rules.selections, set()
    for each in selections:
        if each.rule.keep_apart is None or each.rule.yields != yields:
            continue
        place_of = selections.places(each.rule.level)
        for part in each.parts:
            for leaving in in_flight.left.keys() & part:
                place = place_of.get(in_flight.left[leaving])
                hosts = [host for host in problem.hosts if place_of.get(host) == place]
                pairs |= {(member, host) for member in part - {leaving} for host in hosts
                          if place_of.get(in_flight.moved.get(
                              member, selections.host_of[member])) != place}
    return ForbiddenPairs(
        problem, pairs, reason='rule', yields=yields, is_provisional=True,
        why=lambda state, vm, host: (
            f'another server of its rule has not left the place of {problem.hosts[host]} yet'))


def build(scope: Scope, load: Load, feed: MetricsReader, snapshot: Snapshot,
          in_flight: MovesInFlight, history: PlanningHistory, options: EngineOptions,
          selections: Selections, by_rules: Mapping[str, RuleHold]
          ) -> tuple[Problem, dict[int, str]]:
    """Make the arrays of an aggregate's planning problem. The loads in the arrays are the measured
    loads.

    :param selections: the rules of operators, with the servers that they select
    :param by_rules: {uuid: rule that keeps the instance from being moved now}
    :returns: (the Problem, {index of an instance that may not be moved: reason}). The reason is one
        of :data:`~kronos_nova.objects.plan.SKIP_REASONS`; '' if the instance is on a host that live
        migrations cannot leave
    """
    policies, vm_host = load.policies, scope.vm_host
    scale = np.where(np.isnan(load.host_scale), 1.0, load.host_scale)
    leaving = _leaving(scope, snapshot)
    vms = tuple(instance.uuid for instance in scope.instances)
    holds = [history.hold_on(uuid) for uuid in vms]
    weights = load.weights
    assert weights is not None and load.units is not None, 'the load has weights'
    unknown = _unknown(weights)
    shift = in_flight.shift(scope.host_names, policies)
    for vm, host in leaving.items():
        moved = 0.0 if scope.instances[vm].status in NOT_RUNNING else weights[vm]
        shift[vm_host[vm]] -= moved * scale[vm_host[vm]]
        if host is not None:
            shift[host] += moved * scale[host]
    for host, samples in _coming(scope, snapshot, feed, policies):
        shift[host] += np.minimum(samples * load.units[host] * scale[host], 1.0)
    # The load of a host that a server of unknown load leaves or reaches is not known either.
    measured = load.measured & ~np.isnan(shift).any(axis=1)
    weights, shift = np.nan_to_num(weights), np.nan_to_num(shift)
    held = _held(scope, unknown | ~measured[vm_host], leaving, in_flight, history, options,
                 by_rules)
    free = np.ones(len(scope.instances), dtype=bool)
    free[list(held)] = False
    available = scope.available & measured
    problem = Problem(
        hosts=scope.host_names, vms=vms, policies=tuple(p.name for p in policies),
        policy_weights=np.array([policy.weight for policy in policies]),
        thresholds=np.array([_threshold(policy) for policy in policies]),
        scores=np.nan_to_num(load.scores) + shift, weights=weights, host_scale=scale,
        capacity_scores=load.capacity + shift,
        capacity_thresholds=np.array([
            _or_inf(policy.capacity_threshold) for policy in policies]),
        vm_host=vm_host, memory_mb=np.array([i.memory_mb for i in scope.instances], dtype=np.int64),
        movable=free & available[vm_host], available=available, unweighed=unknown,
        leaving=np.isin(np.arange(len(vms)), list(leaving)),
        doubtful=np.array([hold in DOUBTFUL for hold in holds], dtype=bool),
        groups=(*model.groups(snapshot, vms, scope.host_names),
                *rule_groups(selections, vms, scope.host_names, in_flight.moved)),
        arriving=_arriving(scope, snapshot), evacuable=free,
        draining=scope.emptied,
        left_out=_left_out(policies, int(np.count_nonzero(available))),
        cells=_cells(scope, vm_host, options, in_flight),
        **_room(scope, snapshot, vm_host, in_flight))
    return problem, held


def _room(scope: Scope, snapshot: Snapshot, vm_host: np.ndarray,
          in_flight: MovesInFlight) -> dict[str, Any]:
    """Return the fields of the problem about allocations, as {name of the field: value}. If this
    cycle has planned to move an instance, the instance counts on its destination and on its
    source."""
    fields, known = model.resources(scope.hosts, scope.instances, vm_host, snapshot)
    hosts, classes = len(scope.hosts), fields['resource_classes']
    arrived = np.zeros((hosts, len(classes)))
    for vm, instance in enumerate(scope.instances):
        if instance.uuid in in_flight.moved:
            arrived[vm_host[vm]] += fields['demands'][vm]
    held_back = in_flight.held_back(scope.host_names, classes)
    more = np.where(known[:, None], arrived, held_back)
    if fields['provider'] is not None:
        more *= fields['provider'] == np.arange(hosts)[:, None]
    fields['used'][:hosts] += more
    fields['used'][hosts:] += in_flight.taken(fields['shared'], classes)
    return fields


def _cells(scope: Scope, vm_host: np.ndarray, options: EngineOptions,
           in_flight: MovesInFlight) -> Cells | None:
    """Return the NUMA cells of an aggregate; None if no instance has NUMA cells, or no host reports
    its cells. If this cycle has planned to move an instance, the instance counts on its destination
    and on its source."""
    if not any(instance.cells for instance in scope.instances):
        return None
    return model.cells(scope.hosts, scope.instances, vm_host, options.packs_numa_cells, (
        vm for vm, instance in enumerate(scope.instances) if instance.uuid in in_flight.moved))


def _leaving(scope: Scope, snapshot: Snapshot) -> dict[int, int | None]:
    """Return {index of an instance: index of its destination} for instances that are migrating. The
    index is None if the destination is outside of the scope."""
    if not snapshot.moves_under_way:
        return {}
    hosts = {name: index for index, name in enumerate(scope.host_names)}
    destinations = {move.instance_uuid: move.destination for move in snapshot.moves_under_way}
    return {vm: hosts.get(destinations[instance.uuid])
            for vm, instance in enumerate(scope.instances) if instance.uuid in destinations}


def _coming(scope: Scope, snapshot: Snapshot, feed: MetricsReader,
            policies: Sequence[Policy]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (index of the destination, load of the instance) for each instance that is migrating
    into the scope. The load is float64 (P,), in the unit of samples.

    A sample may be a fraction of the source's size. This size is not known, because the source is
    outside of the scope. So the sample is used as a fraction of the destination's size.
    """
    here = {instance.uuid for instance in scope.instances}
    hosts = {name: index for index, name in enumerate(scope.host_names)}
    coming = {move.instance_uuid: hosts[move.destination] for move in snapshot.moves_under_way
              if move.destination in hosts and move.instance_uuid not in here}
    for instance in snapshot.instances if coming else ():
        if instance.uuid in coming:
            yield coming[instance.uuid], np.array([
                _sample(feed, policy, instance) for policy in policies])


def _sample(feed: MetricsReader, policy: Policy, instance: Instance) -> float:
    """Return the sample of an instance on its host; 0 if the instance does not run. Return NaN
    without a sample, with several samples, or if the sample cannot be true."""
    if instance.status in NOT_RUNNING:
        return 0.0
    samples = at_host(feed.profile(policy)[0].get(
        getattr(instance, policy.vm_profile_label_type), ()), instance.host)
    most = np.inf if policy.profile_unit == ABSOLUTE else 1.0 + TOLERANCE
    return next((value for value, _host in samples if len(samples) == 1
                 and 0.0 <= value <= most and value < np.inf), np.nan)


def _arriving(scope: Scope, snapshot: Snapshot) -> np.ndarray:
    """Return intp (n,): the destination of each instance that is migrating to a host of the
    scope."""
    hosts = {name: index for index, name in enumerate(scope.host_names)}
    return np.array([hosts[move.destination] for move in snapshot.moves_under_way
                     if move.destination in hosts], dtype=np.intp)


def _left_out(policies: Sequence[Policy], hosts: int) -> np.ndarray | None:
    """Return intp (P,): the number n of hosts at each end that a policy leaves out of its
    imbalance: the n most loaded hosts and the n least loaded hosts. Return None if no policy leaves
    hosts out."""
    left_out = np.array([policy.left_out(hosts) for policy in policies], dtype=np.intp)
    return left_out if left_out.any() else None


def shown_threshold(policy: Policy) -> float:
    """Return the threshold that reports show for a policy."""
    return ANY_IMBALANCE if policy.mode in UNEVEN else policy.threshold


def _threshold(policy: Policy) -> float:
    """Return the threshold of a policy. The result is infinite for policies that do not equalize
    hosts: modes ``pack`` and ``relieve``."""
    return np.inf if policy.mode in UNEVEN else policy.threshold


def _or_inf(value: float | None) -> float:
    return np.inf if value is None else value


def _unknown(weights: np.ndarray) -> np.ndarray:
    """Return bool (V,): True if the weight of the instance is not known in at least one policy. If
    there is no policy, all are True."""
    return np.isnan(weights).any(axis=1) | (weights.shape[1] == 0)


def _held(scope: Scope, unknown: np.ndarray, leaving: Mapping[int, int | None],
          in_flight: MovesInFlight, history: PlanningHistory, options: EngineOptions,
          holds: Mapping[str, RuleHold]) -> dict[int, str]:
    """Return {index of an instance: reason why the instance may not be moved}. The reason is '' if
    the instance is on a host that live migrations cannot leave.

    Some reasons are ignored on a host that is to be emptied: metadata that the owner has set,
    cooldowns, failed moves, unknown loads, and rules that may be broken to empty hosts.
    """
    takes = dict(zip(scope.host_names, scope.available.tolist(), strict=True))
    emptied = dict(zip(scope.host_names, scope.emptied.tolist(), strict=True))
    held = {}
    for position, instance in enumerate(scope.instances):
        if not (takes[instance.host] or emptied[instance.host]):
            held[position] = ''
            continue
        verb = eligibility.TO_EVACUATE if emptied[instance.host] else eligibility.TO_BALANCE
        reason = eligibility.obstacle(instance, options.opt_out, verb,
                                      scope.request.statuses(instance),
                                      scope.request.may_stop(instance))
        hold = holds and holds.get(instance.uuid)
        if reason is None and hold and (verb == eligibility.TO_BALANCE or not hold.yields):
            reason = 'rule'
        if reason is None and verb == eligibility.TO_BALANCE:
            reason = history.hold_on(instance.uuid)
        if reason is None and position in leaving:
            reason = 'busy'
        if reason is None and instance.uuid in in_flight.moved:
            reason = 'cooldown'
        if reason is None and unknown[position] and verb == eligibility.TO_BALANCE:
            reason = 'no_profile'
        if reason:
            held[position] = reason
    return held


def combined(state: State | None, policies: Sequence[Policy]) -> float | None:
    """Return the combined imbalance of a state, without the columns of forecasts; None if no load
    is known."""
    if state is None or not policies:
        return None
    return float(state.imbalances()[:len(policies)] @ [policy.weight for policy in policies])
