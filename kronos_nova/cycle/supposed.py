"""The load of a cloud after hypothetical changes, and the plan that Kronos would then make.

A server of a lost host brings its load to the host on which it restarts. A new host resembles an
existing host, its model host. The new host begins with the load of the model host without the load
of the servers there. New servers add no load, because their load is not known.
"""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import metrics
from kronos_nova.cycle import problem
from kronos_nova.cycle import steps
from kronos_nova.cycle.aggregates import Scope
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.metrics import Load
from kronos_nova.cycle.metrics import Measurements
from kronos_nova.cycle.metrics import Occupied
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.model import State
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import CycleReport
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from kronos_nova.policies.windows import Windows
from kronos_nova.room.whatif import Changed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SupposedLoad:
    """The load of a host, or the imbalance of an aggregate, at three stages: in the present cloud
    (``now``), after hypothetical changes of the cloud (``changed``), and after the plan that would
    follow (``planned``). A figure is None if it is not known, or if the host does not exist at this
    stage.

    host : name of the host whose load this is; None for the imbalance of the aggregate
    """

    aggregate: str
    policy: str
    host: str | None
    now: float | None
    changed: float | None
    planned: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Present:
    """An aggregate of the present cloud.

    imbalances : float64 (P,)
    """

    scope: Scope
    load: Load
    imbalances: np.ndarray

    @property
    def references(self) -> list[float]:
        """The amount that a weight of 1 stands for in each policy; NaN if not known."""
        found = self.load.references
        return [np.nan] * len(self.load.policies) if found is None else found.tolist()

    @functools.cached_property
    def _rows(self) -> dict[str, int]:
        return {instance.uuid: row for row, instance in enumerate(self.scope.instances)}

    def weights_of(self, uuid: str) -> dict[str, '_Weight']:
        """Return {policy: weight of an instance}; empty if the instance is not in the aggregate, or
        if weights are not known."""
        if self.load.weights is None or uuid not in self._rows:
            return {}
        return {policy.name: _Weight(weight, reference) for policy, weight, reference in zip(
            self.load.policies, self.load.weights[self._rows[uuid]].tolist(), self.references,
            strict=True)}


class _Weight(NamedTuple):
    """The weight (load) of an instance in a policy; NaN if not known. ``reference`` is the amount
    of the resource (CPUs, or bytes of memory) that a weight of 1 stands for; NaN if not known."""

    weight: float
    reference: float

    def of_unit(self, reference: float) -> float:
        """Return the weight in another unit. If one of the units is not known, the units count as
        equal.

        :param reference: the amount that a weight of 1 stands for in the other unit
        """
        is_known = self.reference > 0 and reference > 0
        return self.weight * self.reference / reference if is_known else self.weight


UNKNOWN = _Weight(np.nan, np.nan)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Supposed:
    """The result of an evaluation of hypothetical changes.

    loads : for each aggregate, two things: the imbalance of each policy, and the loads of the hosts
    report : the report of the evaluation after the changes
    missing : names of aggregates that the options name and that do not exist
    """

    loads: tuple[SupposedLoad, ...]
    report: CycleReport
    missing: tuple[str, ...] = ()

    def problems(self) -> list[str]:
        """Return texts about aggregates and policies whose load is not known."""
        return [f'aggregate {name}: there is no aggregate of that name; correct [kronos] '
                'aggregates, or create it' for name in self.missing] + [
                f'aggregate {report.name}, policy {each.name}: {each.detail}'
                for report in self.report.aggregates for each in report.policies
                if each.imbalance_before is None]


def evaluate(snapshot: Snapshot, changed: Changed, policies: PolicySet, options: EngineOptions,
             planner_ports: PlannerPorts, history: PlanningHistory) -> Supposed:
    """Return the loads of the present cloud, and the plan that would follow in the changed cloud.
    The plan is made with the present loads of servers. Forecasts, cooldowns, maintenance windows
    and ``stabilization_cycles`` are ignored. Nova's scheduler is not asked, because it does not
    know the changed cloud.

    :param snapshot: the present cloud
    :param history: the planning history; its cooldowns and plans in progress are ignored
    :raises ConfigurationError: a planner that the options name does not exist
    """
    known = {each.name for each in snapshot.aggregates}
    missing = tuple(sorted({*(options.aggregates or ())} - known))
    options = options.existing(known)
    policies = policies.model_copy(update={'policies': [
        each.model_copy(update={'forecast': None}) for each in policies.policies]})
    options = dataclasses.replace(options, stabilization_cycles=1, windows=Windows())
    history = dataclasses.replace(history, under_way={}, aggregates={}, instances={}, spread={},
                                  proposals={})
    planner_ports = dataclasses.replace(planner_ports, dry_run=not_asked)
    measurements = planner_ports.measurements(snapshot, options)
    present = _present(steps.Line(snapshot, policies, options, planner_ports, history,
                                  measurements), snapshot, options)
    report = steps.plan_cycle(
        changed.snapshot, policies, options, planner_ports, history,
        SupposedMeasurements(measurements, present, changed, policies.active))
    loads = tuple(row for each in report.aggregates if each.name in present
                  for row in _rows(present[each.name], each))
    return Supposed(loads=loads, report=report, missing=missing)


class SupposedMeasurements(Measurements):
    """The loads of a changed cloud, computed from the loads of the present cloud.

    :param present: the present aggregates by name
    """

    def __init__(self, measurements: Measurements, present: Mapping[str, _Present],
                 changed: Changed, policies: Sequence[Policy]):
        super().__init__(measurements.reader)
        self._present, self._changed = present, changed
        self._policies = {policy.name: policy for policy in policies}
        self._weights = {(instance.uuid, policy): found
                         for each in present.values()
                         for instance in each.scope.instances
                         for policy, found in each.weights_of(instance.uuid).items()}

    def load(self, name: str, occupied: Occupied, measure: Callable[[], Load]) -> Load:
        """Return the load of an aggregate after the changes."""
        return super().load(name, occupied, lambda: self._made(self._present[name], occupied))

    def _made(self, present: _Present, occupied: Occupied) -> Load:
        before, hosts = present.load, [host.name for host in occupied.hosts]
        index = {name: row for row, name in enumerate(present.scope.host_names)}
        rows = np.array([index[self._changed.added.get(name, name)] for name in hosts],
                        dtype=np.intp)
        weights = np.array(
            [self._weights_in(present, each.uuid) for each in occupied.instances],
            dtype=float).reshape(len(occupied.instances), len(before.policies))
        shift = self._shift(present, weights, occupied, rows)
        return dataclasses.replace(
            before, scores=np.maximum(before.scores[rows] + shift, 0.0),
            capacity=np.maximum(before.capacity[rows] + shift, 0.0), weights=weights,
            host_scale=before.host_scale[rows], measured=before.measured[rows],
            units=None if before.units is None else before.units[rows],
            factors=None if before.factors is None else before.factors[rows],
            unbelieved=tuple(each for each in before.unbelieved if each.host in hosts),
            guards=tuple(found for each in before.guards if (found := metrics.guard_of(
                self._policies[each.policy], each.scores[rows], occupied)) is not None))

    def _weights_in(self, present: _Present, uuid: str) -> list[float]:
        """Return the weights of an instance, in the unit of an aggregate. A host may be in several
        aggregates, and an instance may restart in another aggregate. Each aggregate has its own
        unit, because loads may be stored as fractions of the largest host."""
        here = present.weights_of(uuid)
        return [(here.get(policy.name) or self._weights.get((uuid, policy.name), UNKNOWN)).of_unit(
            reference) for policy, reference in zip(
                present.load.policies, present.references, strict=True)]

    def _shift(self, present: _Present, weights: np.ndarray, occupied: Occupied,
               rows: np.ndarray) -> np.ndarray:
        """Return float64 (H, P): the changes of the hosts' loads. Servers of lost hosts add their
        loads to the hosts on which they restart. The load of a new host is first taken from an
        existing host, its model host. The new host has no servers, so the load of the model host's
        servers is subtracted.

        :param weights: float64 (V, P), weights of the instances after the changes
        :param rows: intp (H,), for each host after the changes its position in the present cloud;
            for a new host the position of its model host
        """
        came = np.array([each.uuid in self._changed.restarted for each in occupied.instances],
                        dtype=bool)
        shift = np.zeros((len(rows), weights.shape[1]))
        np.add.at(shift, occupied.vm_host[came], np.nan_to_num(weights[came]))
        if present.load.weights is not None:
            there = np.zeros(present.load.host_scale.shape)
            np.add.at(there, present.scope.vm_host, np.nan_to_num(present.load.weights))
            is_new = np.array([host.name in self._changed.added for host in occupied.hosts],
                              dtype=bool)
            shift[is_new] -= there[rows[is_new]]
        return shift * np.nan_to_num(present.load.host_scale[rows])


def _present(line: steps.Line, snapshot: Snapshot, options: EngineOptions) -> dict[str, _Present]:
    """Return the present state of each aggregate that the evaluation covers, as {name:
    _Present}."""
    found = {}
    for name in options.scopes(tuple(each.name for each in snapshot.aggregates)):
        scope = line.scope(name)
        load = metrics.measure_aggregate(line.given, scope)
        case = problem.state_problem(line.given, scope, load, line.in_flight)
        found[name] = _Present(scope=scope, load=load, imbalances=State(
            case.compile(case.problem)).imbalances())
    return found


def _rows(present: _Present, report: AggregateReport) -> Iterator[SupposedLoad]:
    """Yield the imbalances and host loads of an aggregate."""
    columns = {policy.name: column for column, policy in enumerate(present.load.policies)}
    for each in report.policies:
        if each.name in columns:
            yield SupposedLoad(
                aggregate=report.name, policy=each.name, host=None,
                now=float(present.imbalances[columns[each.name]]),
                changed=each.imbalance_before, planned=each.imbalance_after)
    after = {(each.policy, each.host): each for each in report.host_scores}
    rows = {name: row for row, name in enumerate(present.scope.host_names)}
    for policy, column in columns.items():
        hosts = {host for known, host in after if known == policy}
        for host in sorted(hosts | rows.keys()):
            score = after.get((policy, host))
            now = present.load.scores[rows[host], column] if host in rows else np.nan
            yield SupposedLoad(
                aggregate=report.name, policy=policy, host=host,
                now=None if np.isnan(now) else float(now),
                changed=None if score is None else score.value,
                planned=None if score is None else score.after)
