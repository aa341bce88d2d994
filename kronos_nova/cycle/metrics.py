"""The metrics of one evaluation. Each query is sent once, and each aggregate is measured once."""

import collections
import dataclasses
import functools
import math
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING
from typing import TypeVar

import numpy as np

from kronos_nova import exception
from kronos_nova.cooldown import left
from kronos_nova.load import belief
from kronos_nova.load import host_readings
from kronos_nova.load import host_sizes
from kronos_nova.load import instance_weights
from kronos_nova.metrics import labels
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.metrics.base import with_key
from kronos_nova.model.rules import ArrivalLimit
from kronos_nova.objects import metrics
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.plan import UnbelievedHost
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import MigrationQueries
from kronos_nova.policies import Policy
from kronos_nova.units import MIB

if TYPE_CHECKING:
    from kronos_nova.cycle.aggregates import Scope
    from kronos_nova.cycle.inputs import Inputs

FRACTION = host_readings.Range(0.0, 1.0)
NOT_NEGATIVE = host_readings.Range(0.0, float('inf'))

UUID = 'uuid'
"""Label type (attribute of instances) whose values are unique in the cloud."""

_Labelled = TypeVar('_Labelled', bound=instance_weights.Labelled)

NamesElsewhere = Callable[[str, Collection[str]], set[str]]

Profile = tuple[dict[str, list[instance_weights.ProfileSample]], tuple[str, ...]]
"""({value of a label: samples}, warnings) of a profile. A profile is the answer to a query for the
load of each instance."""


def nowhere_else(attribute: str, names: Collection[str]) -> set[str]:
    """Return an empty set: no instance outside of the snapshot has one of ``names``. The function
    is used in place of a request to Nova if the snapshot has all instances of the cloud."""
    return set()


class MetricsReader:
    """A reader of a metrics source that keeps each answer, so that no query is sent twice.

    :param instances: instances of the snapshot. If several of them have the same name, a series
        with this name in its label is not used
    :param names_elsewhere: called with (attribute of instances, names); returns those of the names
        that also occur in instances which the snapshot does not contain
    :param accepts_partial: True to use answers for which the source has a warning, such as that a
        part is missing; False to refuse such answers
    :param hosts: names of all hosts of the snapshot
    """

    def __init__(self, source: MetricsSource, instances: Sequence[Instance] = (),
                 accepts_partial: bool = False,
                 names_elsewhere: NamesElsewhere = nowhere_else,
                 hosts: Collection[str] = ()):
        self._source, self._accepts_partial = source, accepts_partial
        self._instances, self._names_elsewhere = instances, names_elsewhere
        self._hosts = frozenset(hosts)
        self._answers: dict[tuple[str, str], Vector | exception.MetricsError] = {}
        self._profiles: dict[str, Profile] = {}
        self._shared: dict[str, set[str]] = {}

    def profile(self, policy: Policy) -> Profile:
        """Return ({value of the label: samples}, warnings) of a policy's profile (load per
        instance). The samples are empty if there is no usable answer."""
        if policy.name not in self._profiles:
            # The answer itself is not kept, because it has all labels of a series for each
            # instance.
            vector = self._ask(policy, metrics.VM_PROFILE)
            warnings: tuple[str, ...] = ()
            if isinstance(vector, exception.MetricsError):
                warnings = (f'the profile is missing, every instance takes the fallback: {vector}',)
                vector = Vector(samples=())
            samples = instance_weights.by_label(
                vector, policy.vm_profile_label, policy.host_label, self._hosts)
            unusable = sorted(samples.keys() & self.shared_names(policy.vm_profile_label_type))
            if unusable:
                warnings += (f'{len(unusable)} values of the label "{policy.vm_profile_label}" are '
                             f'names of several instances, such as "{unusable[0]}": not used',)
                for name in unusable:
                    del samples[name]
            self._profiles[policy.name] = samples, warnings + vector.warnings
        return self._profiles[policy.name]

    def of_this_cloud(self, policy: Policy, series: Sequence[_Labelled]) -> list[_Labelled]:
        """Return the series of an answer, without those of other clouds' hosts."""
        return list(instance_weights.of_this_cloud(series, policy.host_label, self._hosts))

    def foreign(self, hosts: set[str]) -> set[str]:
        """Return the hosts of other clouds among the hosts that the series of an answer name."""
        return instance_weights.other_clouds(hosts, self._hosts)

    def shared_names(self, label_type: str) -> set[str]:
        """Return the values of an instance attribute that more than one instance of the cloud has.

        :param label_type: the attribute, such as ``uuid``
        """
        if label_type not in self._shared:
            counts = collections.Counter(getattr(each, label_type) for each in self._instances)
            shared = {name for name, count in counts.items() if count > 1}
            if label_type != UUID:
                shared |= self._names_elsewhere(label_type, counts.keys() - shared)
            self._shared[label_type] = shared
        return self._shared[label_type]

    def vector(self, policy: Policy, kind: str) -> Vector:
        """Return the answer to a policy's query of a kind. If the policy has no such query, the
        answer has no samples.

        :raises MetricsError: there is no usable answer
        """
        key = policy.name, kind
        if key not in self._answers:
            self._answers[key] = self._ask(policy, kind)
        return self._given(key)

    def _ask(self, policy: Policy, kind: str) -> Vector | exception.MetricsError:
        promql = getattr(policy, metrics.KEYS[kind])
        if promql is None:
            return Vector(samples=())
        key = metrics.KEYS[kind]
        return self._answer(metrics.MetricQuery(policy.name, kind, promql, key), key)

    def answer(self, query: metrics.MetricQuery) -> Vector:
        """Return the answer to a query. The answer is kept, so that the query is sent once.

        :raises MetricsError: there is no usable answer
        """
        key = query.policy, query.kind
        if key not in self._answers:
            self._answers[key] = self._answer(query, query.kind)
        return self._given(key)

    def _given(self, key: tuple[str, str]) -> Vector:
        answer = self._answers[key]
        if isinstance(answer, exception.MetricsError):
            raise answer
        return answer

    def _answer(self, query: metrics.MetricQuery, name: str) -> Vector | exception.MetricsError:
        try:
            vector = self._source.query(query)
        except exception.MetricsError as error:
            return with_key(error, query.key)
        if vector.warnings and not self._accepts_partial:
            whose = 'migration' if query.policy == metrics.MIGRATION else f'policy {query.policy}'
            return exception.MetricsPartial(
                source=f'{whose}, {name}',
                problem='the source warns of its answer: ' + '; '.join(vector.warnings))
        return vector


@dataclasses.dataclass(frozen=True, slots=True)
class Answered:
    """The quality of the answer to a policy's imbalance query, whether or not the answer is used.

    coverage : fraction of the available hosts that have a sample
    oldest : Unix seconds of the oldest of these samples; NaN = there is none
    """

    coverage: float = 0.0
    oldest: float = float('nan')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGuard:
    """A policy whose scores of hosts are known, but whose profile (load per instance) does not fit
    the scores. The policy does not count in imbalances, but forbids moves that would raise the
    score of a host above a ceiling.

    resource : the resource that the policy measures, VCPU or MEMORY_MB. The weight of an instance
        is the highest load that it can have: the amount of the resource in its flavor
    scores : float64 (H,), NaN = not measured
    host_scale : float64 (H,), the score that an instance with a weight of 1 adds to each host
    """

    policy: str
    resource: str
    scores: np.ndarray
    host_scale: np.ndarray

    def rule(self, ceiling: float, instances: Sequence[Instance],
             arriving: Sequence[tuple[Instance, int]]) -> ArrivalLimit:
        """Return the rule that no move raises the score of a host above the ceiling, or above its
        present score.

        :param instances: the instances of the planning problem
        :param arriving: (instance, index of its destination) for each instance that other plans
            bring to a host. The scores do not have the loads of these instances yet
        """
        coming = np.bincount(
            np.array([host for _instance, host in arriving], dtype=np.intp),
            host_sizes.of_flavors([instance for instance, _host in arriving], self.resource),
            len(self.scores))
        return ArrivalLimit(
            reason='capacity', yields=True, policy=self.policy,
            weights=host_sizes.of_flavors(instances, self.resource), host_scale=self.host_scale,
            scores=self.scores + coming * self.host_scale, most=np.fmax(ceiling, self.scores))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load of the hosts and instances of one aggregate.

    The sample of an instance is its measured value. Its weight is its load in a unit that is the
    same on all hosts: sample * ``units`` * ``factors`` of its host. The instance adds weight *
    ``host_scale`` to the score of its host.

    policies : policies with data
    no_data : {name of a policy without data: reason}
    guards : ScoreGuards, for policies in ``no_data`` of which only the scores of hosts are used
    scores : float64 (H, P), the answers to ``imbalance_query``; NaN = not measured
    capacity : float64 (H, P), the answers to ``capacity_query``; NaN = not measured, or no query
    host_scale : float64 (H, P), factor from the weight of an instance to the score that it adds to
        the host
    measured : bool (H,), True if ``scores``, ``capacity`` (for policies that query it) and
        ``host_scale`` of the host are known for all policies
    weights : float64 (V, P), weight of each instance; NaN = not known; None before :func:`weigh`
    units : float64 (H, P), factor from the sample of an instance on the host to its weight; None
        before :func:`weigh`
    factors : float64 (H, P), factor by which the weights of a host's instances are multiplied, so
        that their sum does not exceed the score of the host (:class:`belief.Belief`); None before
        :func:`weigh`
    references : float64 (P,), amount of the resource (CPUs, or bytes of memory) that a weight of 1
        stands for; NaN = not known; None before :func:`weigh`
    warnings : texts for an operator about the metrics
    doubts : the part of ``warnings`` about missing or impossible figures: loads of instances, and
        sizes of hosts
    answered : {policy: quality of its answer}, for policies with an answer
    """

    policies: tuple[Policy, ...]
    no_data: dict[str, str]
    scores: np.ndarray
    capacity: np.ndarray
    host_scale: np.ndarray
    measured: np.ndarray
    weights: np.ndarray | None = None
    units: np.ndarray | None = None
    factors: np.ndarray | None = None
    references: np.ndarray | None = None
    guards: tuple[ScoreGuard, ...] = ()
    unbelieved: tuple[UnbelievedHost, ...] = ()
    warnings: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    answered: Mapping[str, Answered] = dataclasses.field(default_factory=dict)

    def for_instances(self, measured: Sequence[Instance], wanted: Sequence[Instance]) -> 'Load':
        """Return the Load with the weights of other instances. The weight of an instance that was
        not measured is not known.

        :param measured: the instances of the present rows of ``weights``
        :param wanted: the instances of the rows of ``weights`` in the result
        """
        if self.weights is None or measured == wanted:
            return self
        rows = {instance.uuid: row for row, instance in enumerate(measured)}
        known = np.array([instance.uuid in rows for instance in wanted], dtype=bool)
        weights = np.full((len(wanted), self.weights.shape[1]), np.nan)
        weights[known] = self.weights[[rows[instance.uuid] for instance in wanted
                                       if instance.uuid in rows]]
        return dataclasses.replace(self, weights=weights)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Occupied:
    """The hosts of an aggregate and their instances, for the checks of
    :mod:`kronos_nova.load.belief`.

    available : bool (H,), true for hosts that may be destinations
    vm_host : intp (V,), index of each instance's host
    resting : bool (V,), true for instances that are moving, were moved a short time ago, or may not
        be moved because of earlier moves
    is_new : bool (V,), true for instances so new that monitoring does not have their rates yet
    doubted : (policy, host) of each score that failed a check in the previous evaluation
    left : (uuid of an instance, host) of each recent live migration off the host, except those that
        emptied the host
    """

    hosts: tuple[Host, ...]
    instances: tuple[Instance, ...]
    available: np.ndarray
    vm_host: np.ndarray
    resting: np.ndarray
    is_new: np.ndarray
    doubted: frozenset[tuple[str, str]] = frozenset()
    left: frozenset[tuple[str, str]] = frozenset()


def measure(feed: MetricsReader, policies: tuple[Policy, ...], hosts: tuple[str, ...],
            available: np.ndarray, rules: host_readings.ScoringRules) -> Load:
    """Return the Load with the scores of hosts by every policy. The weights of instances are
    missing; :func:`weigh` adds them."""
    good, no_data, warnings, answered = [], {}, [], {}
    for policy in policies:
        try:
            readings = list(_readings(feed, policy, hosts, available, rules))
            answered[policy.name] = Answered(readings[0].coverage, readings[0].oldest)
            problems = [problem for reading in readings for problem in reading.problems]
            if problems:
                problems += _remedies(feed, policy, hosts)
        except exception.MetricsError as error:
            problems = [str(error)]
        if problems:  # several queries often have the same warning, which is then reported once
            no_data[policy.name] = '; '.join(dict.fromkeys(problems))
        else:
            good.append((policy, readings))
            warnings += [f'{policy.name}: {warning}'
                         for reading in readings for warning in reading.warnings]
    columns = [np.column_stack([np.zeros((len(hosts), 0))]
                               + [readings[n].values for _, readings in good]) for n in range(3)]
    scores, capacity, sizes = columns
    wanted = np.array([policy.capacity_query is not None for policy, _ in good], dtype=bool)
    return Load(
        policies=tuple(policy for policy, _ in good), no_data=no_data, scores=scores,
        capacity=capacity, host_scale=1.0 / sizes, warnings=tuple(warnings), answered=answered,
        measured=~(np.isnan(scores) | np.isnan(capacity) & wanted | np.isnan(sizes)).any(axis=1))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Weighed:
    """The result of :func:`weigh` for one policy.

    factors, reference : as in ``factors`` and ``references`` of :class:`Load`
    problem : reason why plans do not use the policy; '' if plans use the policy
    scores : None if plans do not use the policy
    doubts : the part of ``warnings`` about missing or impossible figures
    """

    host_scale: np.ndarray
    units: np.ndarray
    weights: np.ndarray
    factors: np.ndarray | None = None
    reference: float = float('nan')
    problem: str = ''
    guard: ScoreGuard | None = None
    scores: np.ndarray | None = None
    unbelieved: tuple[UnbelievedHost, ...] = ()
    warnings: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def weigh(load: Load, feed: MetricsReader, occupied: Occupied,
          rules: belief.BeliefRules) -> Load:
    """Return the Load with the weights (loads) of instances. The score of a host becomes NaN if it
    fails a check of :mod:`kronos_nova.load.belief`: monitoring does not know the servers that Nova
    has on the host, or the score is 0 although these servers have load. A policy is left out if its
    profile (load per instance) does not fit its scores (load per host)."""
    found = [_weigh(load, number, feed, occupied, rules) for number in range(len(load.policies))]
    kept = [number for number, each in enumerate(found) if not each.problem]
    policies = tuple(load.policies[number] for number in kept)
    scores, capacity, scale, sample_units, factors = (
        np.column_stack([np.zeros((len(occupied.hosts), 0)), *columns]) for columns in (
            [found[number].scores for number in kept],
            [load.capacity[:, number] for number in kept],
            [found[number].host_scale for number in kept],
            [found[number].units for number in kept],
            [found[number].factors for number in kept]))
    wanted = np.array([policy.capacity_query is not None for policy in policies], dtype=bool)
    names = [policy.name for policy in load.policies]
    return dataclasses.replace(
        load, policies=policies, scores=scores, capacity=capacity, host_scale=scale,
        units=sample_units, factors=factors,
        references=np.array([found[number].reference for number in kept]),
        no_data=load.no_data | {name: each.problem for name, each in zip(names, found, strict=True)
                                if each.problem},
        guards=tuple(each.guard for each in found if each.guard),
        weights=np.column_stack([np.zeros((len(occupied.instances), 0)),
                                 *(found[number].weights for number in kept)]),
        measured=~(np.isnan(scores) | np.isnan(capacity) & wanted | np.isnan(scale)).any(axis=1),
        unbelieved=tuple(each for weighed in found for each in weighed.unbelieved),
        warnings=load.warnings + tuple(
            f'{name}: {warning}' for name, each in zip(names, found, strict=True)
            for warning in each.warnings),
        doubts=tuple(f'{name}: {doubt}' for name, each in zip(names, found, strict=True)
                     for doubt in each.doubts))


def _weigh(load: Load, number: int, feed: MetricsReader, occupied: Occupied,
           rules: belief.BeliefRules) -> _Weighed:
    policy, scores = load.policies[number], load.scores[:, number]
    size = host_sizes.sizes(policy, occupied.hosts, 1.0 / load.host_scale[:, number])
    if size.problem:
        return _void(occupied, size.problem)
    scale = 1.0 / size.values
    unsized = np.isnan(scale) & ~np.isnan(scores)
    placed = instance_weights.PlacedInstances(
        occupied.instances, occupied.vm_host, np.where(np.isnan(scale), np.nan, scores), scale,
        np.nan_to_num(size.units, nan=1.0), tuple(host.name for host in occupied.hosts))
    samples, warnings = feed.profile(policy)
    share, seen, repeated = instance_weights.shares(policy, samples, placed)
    share = np.where([each.status == 'ACTIVE' for each in occupied.instances], share, np.nan)
    counted = _counted(policy, feed, occupied)
    servers = belief.Servers(
        share=share, seen=seen, repeated=repeated, counted=counted,
        arrived=~counted & ~np.isnan(share) & ~instance_weights.reported_elsewhere(
            policy, samples, placed),
        departed=_departed(occupied, seen))
    misfit = (instance_weights.unit_problem(policy, samples, placed)
              or belief.faintness(policy, placed, servers, rules))
    if misfit:
        return dataclasses.replace(_void(occupied, misfit),
                                   guard=guard_of(policy, scores, occupied))
    judged = belief.judge(
        policy, placed, servers, tuple(host.name for host in occupied.hosts), rules,
        frozenset(host for name, host in occupied.doubted if name == policy.name))
    profile = instance_weights.profile(policy, samples, placed, occupied.resting)
    weights = np.where(judged.profiles & ~np.isnan(scale), judged.factors, np.nan)[
        occupied.vm_host] * profile.values
    doubts = (*warnings, *host_sizes.unknown(policy, occupied.hosts, unsized),
              *host_readings.too_full(load.capacity[:, number],
                                      [host.name for host in occupied.hosts]),
              *profile.doubts, *judged.silence)
    return _Weighed(
        host_scale=scale, units=placed.units, weights=weights, factors=judged.factors,
        reference=size.unit,
        scores=np.where(judged.scores, placed.scores, np.nan), unbelieved=judged.unbelieved,
        problem=judged.problem(placed.scores, occupied.available), doubts=doubts,
        warnings=(*doubts, *profile.duplicates, *judged.warnings))


def guard_of(policy: Policy, scores: np.ndarray, occupied: Occupied) -> ScoreGuard | None:
    """Return the ScoreGuard of a policy. Return None if it is not known which resource the policy
    measures."""
    resource = host_sizes.resource(policy)
    return ScoreGuard(
        policy=policy.name, resource=resource, scores=scores,
        host_scale=1.0 / host_sizes.of_inventory(occupied.hosts, resource)) if resource else None


def _void(occupied: Occupied, problem: str) -> _Weighed:
    return _Weighed(host_scale=np.ones(len(occupied.hosts)), units=np.ones(len(occupied.hosts)),
                    weights=np.full(len(occupied.instances), np.nan), problem=problem)


def _counted(policy: Policy, feed: MetricsReader, occupied: Occupied) -> np.ndarray:
    """Return bool (V,): True for instances that should have a series in a policy's profile (load
    per instance). If such an instance has no series, the profile counts as incomplete."""
    shared = feed.shared_names(policy.vm_profile_label_type)
    return ~(occupied.resting | occupied.is_new) & np.array(
        [each.status == 'ACTIVE' and each.task_state is None
         and getattr(each, policy.vm_profile_label_type) not in shared
         for each in occupied.instances], dtype=bool)


def _departed(occupied: Occupied, seen: np.ndarray) -> np.ndarray:
    """Return float64 (H,): the number of instances with a series that recently left each host by a
    live migration.

    :param seen: bool (V,), True for instances with a series
    """
    index = {host.name: position for position, host in enumerate(occupied.hosts)}
    known = {instance.uuid: instance.host
             for instance, is_seen in zip(occupied.instances, seen, strict=True) if is_seen}
    sources = [index[host] for uuid, host in occupied.left
               if host in index and known.get(uuid, host) != host]
    return np.bincount(np.array(sources, dtype=np.intp),
                       minlength=len(occupied.hosts)).astype(float)


def _remedies(feed: MetricsReader, policy: Policy, hosts: tuple[str, ...]) -> Iterator[str]:
    """Yield at most one text about a policy whose series do not match Nova's hosts. The text either
    proposes a change of the query by which more hosts match, or names a label that all series
    lack."""
    vector = feed.vector(policy, metrics.IMBALANCE)
    found = labels.diagnose(vector, policy.host_label, hosts)
    if found.proposal:
        yield (f'{found.proposal.matches} would match with '
               f'{found.proposal.remedy(policy.host_label)}')
    elif found.unknown == ('',):
        yield f'the series have no label "{policy.host_label}": see host_label'


def _readings(feed: MetricsReader, policy: Policy, hosts: tuple[str, ...], available: np.ndarray,
              rules: host_readings.ScoringRules) -> Iterator[host_readings.Readings]:
    """Yield three Readings of all hosts: their scores, their capacity values and their sizes."""
    def read(kind: str, allowed: host_readings.Range) -> host_readings.Readings:
        vector = feed.vector(policy, kind)
        found = host_readings.read(vector, policy.host_label, hosts, available, allowed, rules)
        if not found.problems:
            return found
        return dataclasses.replace(found, problems=(
            *found.problems, *_remedy(vector, policy.host_label, np.array(hosts)[available])))

    yield read(metrics.IMBALANCE, FRACTION)
    if policy.capacity_query is None:
        yield host_readings.Readings(np.full(len(hosts), np.nan))
    else:
        yield read(metrics.CAPACITY, NOT_NEGATIVE)
    if policy.host_capacity_query is None:
        yield host_readings.Readings(np.ones(len(hosts)))
    else:
        yield read(metrics.HOST_CAPACITY, host_readings.Range(1e-6, float('inf')))


def _remedy(vector: Vector, host_label: str, hosts: np.ndarray) -> Iterator[str]:
    """Yield a text about the change by which more series would match the hosts; nothing if no such
    change is found."""
    proposal = labels.diagnose(vector, host_label, hosts.tolist()).proposal
    if proposal:
        yield f'{proposal.matches} would match with {proposal.remedy(host_label)}'


class Measurements:
    """Answers of the metrics source and loads of aggregates in one evaluation. Drains, the check of
    approved plans, and planning share these figures. A query is sent when a figure is first needed.

    reader : MetricsReader
    """

    def __init__(self, reader: MetricsReader):
        self.reader = reader
        self.of_moves: Callable[[MigrationQueries], MeasuredGuests] = functools.cache(
            lambda queries: measure_guests(queries, self.reader))
        self._loads: dict[tuple, Load] = {}

    @classmethod
    def of_cloud(cls, source: MetricsSource, snapshot: Snapshot, accepts_partial: bool,
                 names_elsewhere: NamesElsewhere) -> 'Measurements':
        """Return the Measurements of a snapshot's hosts and instances."""
        return cls(MetricsReader(source, snapshot.instances, accepts_partial, names_elsewhere,
                                 [host.name for host in snapshot.hosts]))

    def load(self, name: str, occupied: Occupied, measure: Callable[[], Load]) -> Load:
        """Return the load of an aggregate. The load is measured at the first call. A later call
        measures again only if hosts, instances or the hosts of instances have changed since.

        :param name: name of the aggregate
        :param measure: function that measures the load
        """
        key = (name, tuple(host.name for host in occupied.hosts),
               tuple(instance.uuid for instance in occupied.instances),
               occupied.vm_host.tobytes())
        if key not in self._loads:
            self._loads[key] = measure()
        return self._loads[key]


def measure_aggregate(given: 'Inputs', scope: 'Scope') -> Load:
    """Return the load of an aggregate. The load is measured only once in an evaluation."""
    options, now = given.options, given.planner_ports.now
    age = options.max_sample_age
    rules = host_readings.ScoringRules(
        min_coverage=options.min_coverage,
        oldest=float('-inf') if age is None else now - age,
        newest=float('inf') if age is None else now + age)
    occupied, reader = _occupied(given, scope), given.measurements.reader
    return given.measurements.load(scope.name, occupied, lambda: weigh(
        measure(reader, given.policies.active, scope.host_names, scope.available, rules),
        reader, occupied, options.belief))


def _occupied(given: 'Inputs', scope: 'Scope') -> Occupied:
    """Return the hosts and instances of a scope, for the checks of
    :mod:`kronos_nova.load.belief`."""
    history = given.history
    new = given.planner_ports.now - given.options.server_grace
    moved = {move.instance_uuid for move in history.moves if move.ended_at > new}
    moved |= {move.instance_uuid for move in given.snapshot.moves_under_way}
    return Occupied(
        hosts=scope.hosts, instances=scope.instances, vm_host=scope.vm_host,
        available=scope.available,
        resting=np.array([each.uuid in moved or history.hold_on(each.uuid) is not None
                          for each in scope.instances], dtype=bool),
        is_new=np.array([each.launched_at is not None and each.launched_at > new
                         for each in scope.instances], dtype=bool),
        doubted=history.doubted.get(scope.name, frozenset()),
        left=left(history.moves, float('-inf')))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGuests:
    """Measured figures from which the durations of moves are predicted.

    dirty : {uuid of an instance: MiB of memory that its guest writes per second}
    used : {uuid of an instance: MiB of memory to copy}
    links : {host: bandwidth of its link in MiB per second}
    warnings : texts about queries without an answer
    """

    dirty: Mapping[str, float] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


NOTHING = MeasuredGuests()


def migration_queries(queries: MigrationQueries) -> Iterator[metrics.MetricQuery]:
    """Yield the configured queries for figures about moves."""
    for kind in metrics.OF_MIGRATION:
        promql = getattr(queries, f'{kind}_query')
        if promql is not None:
            yield metrics.MetricQuery(metrics.MIGRATION, kind, promql, f'migration.{kind}_query')


def measure_guests(queries: MigrationQueries, reader: MetricsReader) -> MeasuredGuests:
    """Run the configured queries for figures about moves, and return the answers. A query without
    an answer causes a warning. Impossible figures are ignored: negative or infinite figures,
    several figures for one name, and links of less than 1 MiB per second."""
    found: dict[str, dict[str, float]] = {kind: {} for kind in metrics.OF_MIGRATION}
    warnings = []
    for query in migration_queries(queries):
        is_link = query.kind == metrics.LINK
        try:
            vector = reader.answer(query)
        except exception.MetricsError as error:
            warnings.append(f'migration.{query.kind}_query has no answer, and durations are '
                            f'predicted from earlier moves alone: {error}')
            continue
        found[query.kind] = _mib(vector.by(queries.host_label if is_link else queries.label),
                                 MIB if is_link else 0.0)
    return MeasuredGuests(dirty=found[metrics.DIRTY_RATE], used=found[metrics.USED_MEMORY],
                          links=found[metrics.LINK], warnings=tuple(warnings))


def _mib(samples: Mapping[str, Sequence[metrics.Sample]], least: float) -> dict[str, float]:
    """Convert samples from bytes to MiB, and return {name: MiB}. Names that have several samples or
    an impossible sample are left out.

    :param least: minimum of a possible sample, in bytes
    """
    return {name: some[0].value / MIB for name, some in samples.items()
            if len(some) == 1 and math.isfinite(some[0].value) and some[0].value >= least}
