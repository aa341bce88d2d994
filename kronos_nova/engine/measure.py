"""Reads every load once a cycle, and splits it among the aggregates."""

import collections
import dataclasses
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova import exception
from kronos_nova.load import host_readings
from kronos_nova.load import instance_weights
from kronos_nova.metrics import labels
from kronos_nova.metrics.base import MetricsSource
from kronos_nova.objects import metrics
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import Instance
from kronos_nova.policies import Policy

FRACTION = host_readings.Range(0.0, 1.0)
NOT_NEGATIVE = host_readings.Range(0.0, float('inf'))

UUID = 'uuid'
"""The attribute of an instance that no other has too."""

NamesElsewhere = Callable[[str, Collection[str]], set[str]]


def nowhere_else(attribute: str, names: Collection[str]) -> set[str]:
    """For a snapshot of the whole cloud."""
    return set()


_PROMQL = {metrics.IMBALANCE: 'imbalance_query', metrics.VM_PROFILE: 'vm_profile_query',
           metrics.CAPACITY: 'capacity_query', metrics.HOST_CAPACITY: 'host_capacity_query'}


class MetricsReader:
    """The answers of a metrics source, each asked for once.

    :param instances: that were read; a name that several of them have tells of none of them,
        whichever aggregates they are in
    :param names_elsewhere: :meth:`kronos_nova.inventory.base.InventorySource.names_elsewhere`
    :param accepts_partial: whether an answer is used of which the source says that a part is
        missing
    """

    def __init__(self, source: MetricsSource, instances: Sequence[Instance] = (),
                 accepts_partial: bool = False,
                 names_elsewhere: NamesElsewhere = nowhere_else):
        self._source, self._accepts_partial = source, accepts_partial
        self._instances, self._names_elsewhere = instances, names_elsewhere
        self._answers = {}
        self._profiles = {}
        self._shared = {}

    def profile(self, policy: Policy) -> tuple[dict[str, list[float]], tuple[str, ...]]:
        """The profile by its label, and warnings; empty where there is no usable answer."""
        if policy.name not in self._profiles:
            # The answer itself is not kept: it has all labels of a series an instance.
            vector, warnings = self._ask(policy, metrics.VM_PROFILE), ()
            if isinstance(vector, exception.MetricsError):
                warnings = (f'the profile is missing, every instance takes the fallback: {vector}',)
                vector = Vector(samples=())
            samples = instance_weights.by_label(vector, policy.vm_profile_label)
            unusable = sorted(samples.keys() & self.shared_names(policy.vm_profile_label_type))
            if unusable:
                warnings += (f'{len(unusable)} values of the label "{policy.vm_profile_label}" are '
                             f'names of several instances, such as "{unusable[0]}": not used',)
                for name in unusable:
                    del samples[name]
            self._profiles[policy.name] = samples, warnings + vector.warnings
        return self._profiles[policy.name]

    def shared_names(self, label_type: str) -> set[str]:
        """What more than one instance of the cloud is called, of the names of those here."""
        if label_type not in self._shared:
            counts = collections.Counter(getattr(each, label_type) for each in self._instances)
            shared = {name for name, count in counts.items() if count > 1}
            if label_type != UUID:
                shared |= self._names_elsewhere(label_type, counts.keys() - shared)
            self._shared[label_type] = shared
        return self._shared[label_type]

    def vector(self, policy: Policy, kind: str) -> Vector:
        """The answer to a policy's query; empty if the policy has none of that kind.

        :raises MetricsError: there is no usable answer
        """
        key = policy.name, kind
        if key not in self._answers:
            self._answers[key] = self._ask(policy, kind)
        return self._given(key)

    def _ask(self, policy, kind):
        promql = getattr(policy, _PROMQL[kind])
        if promql is None:
            return Vector(samples=())
        return self._answer(metrics.MetricQuery(policy.name, kind, promql), _PROMQL[kind])

    def answer(self, query: metrics.MetricQuery) -> Vector:
        """The answer to a further query of a policy, or of none; as :meth:`vector`."""
        key = query.policy, query.kind
        if key not in self._answers:
            self._answers[key] = self._answer(query, query.kind)
        return self._given(key)

    def _given(self, key):
        answer = self._answers[key]
        if isinstance(answer, exception.MetricsError):
            raise answer
        return answer

    def _answer(self, query, name):
        try:
            vector = self._source.query(query)
        except exception.MetricsError as error:
            return error
        if vector.warnings and not self._accepts_partial:
            whose = 'migration' if query.policy == metrics.MIGRATION else f'policy {query.policy}'
            return exception.MetricsPartial(
                source=f'{whose}, {name}',
                problem='the answer is not whole, or not sure: ' + '; '.join(vector.warnings))
        return vector


@dataclasses.dataclass(frozen=True, slots=True)
class Answered:
    """How good the answer to the query for the scores was, whether or not it was used; see
    :class:`kronos_nova.load.Readings`."""

    coverage: float = 0.0
    oldest: float = float('nan')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is known of the hosts of one aggregate.

    policies : those with data
    no_data : name of each other one to why it has none
    scores, capacity : float64 (H, P); NaN = not measured, or the policy has no such query
    host_scale : float64 (H, P), 1 / capacity in the profile's unit, 1 if the profile is a fraction
    measured : bool (H,), whether all that a policy asks for is known
    answered : of the policies that got an answer
    """

    policies: tuple[Policy, ...]
    no_data: dict[str, str]
    scores: np.ndarray
    capacity: np.ndarray
    host_scale: np.ndarray
    measured: np.ndarray
    warnings: tuple[str, ...] = ()
    answered: Mapping[str, Answered] = dataclasses.field(default_factory=dict)


def measure(feed: MetricsReader, policies: tuple[Policy, ...], hosts: tuple[str, ...],
            available: np.ndarray, rules: host_readings.ScoringRules) -> Load:
    """Score the hosts by every policy."""
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
        if problems:
            no_data[policy.name] = '; '.join(problems)
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


def without_misfits(load: Load, feed: MetricsReader, instances: tuple[Instance, ...],
                    vm_host: np.ndarray) -> Load:
    """The load without the policies whose profile is in another unit than their scores.

    :param instances: of the aggregate
    :param vm_host: intp (V,)
    """
    scale = np.nan_to_num(load.host_scale, nan=1.0)
    problems = [instance_weights.unit_problem(
        policy, feed.profile(policy)[0], instance_weights.PlacedInstances(
            instances, vm_host, load.scores[:, number], scale[:, number]))
        for number, policy in enumerate(load.policies)]
    if not any(problems):
        return load
    kept = [number for number, problem in enumerate(problems) if not problem]
    return dataclasses.replace(
        load, policies=tuple(load.policies[number] for number in kept),
        no_data=load.no_data | {policy.name: problem for policy, problem
                                in zip(load.policies, problems, strict=True) if problem},
        scores=load.scores[:, kept], capacity=load.capacity[:, kept],
        host_scale=load.host_scale[:, kept])


def _remedies(feed, policy, hosts):
    """How the series could be given the names of the hosts, if that is what is wrong."""
    vector = feed.vector(policy, metrics.IMBALANCE)
    found = labels.diagnose(vector, policy.host_label, hosts)
    if found.proposal:
        yield (f'{found.proposal.matches} would match with '
               f'{found.proposal.remedy(policy.host_label)}')
    elif found.unknown == ('',):
        yield f'the series have no label "{policy.host_label}": see host_label'


def _readings(feed, policy, hosts, available, rules):
    """Scores, capacity values and sizes."""
    def read(kind, allowed):
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


def _remedy(vector, host_label, hosts):
    """What would make more series match the hosts, if anything would."""
    proposal = labels.diagnose(vector, host_label, hosts.tolist()).proposal
    if proposal:
        yield f'{proposal.matches} would match with {proposal.remedy(host_label)}'
