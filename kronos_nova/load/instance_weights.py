"""The weights (loads) of instances, from the answer to a policy's profile query. A profile is the
load per instance."""

import collections
import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Protocol
from typing import TypeVar

import numpy as np

from kronos_nova import plural
from kronos_nova.load import host_sizes
from kronos_nova.model import TOLERANCE
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import Instance
from kronos_nova.policies import Policy

FULL = 1.05
"""Summed load of a host's instances, as a share of the host, above which the loads may be in a
wrong unit. The loads are reported as wrong only if a second condition is met: their sum is more
than :data:`EXCESS` times the host's load. Raised, wrong units are noticed later; lowered, correct
loads are more often reported as wrong. Chosen as 1 (the whole host) plus the usual difference of
two averages over different times; not measured."""

EXCESS = 1.5
"""Largest plausible ratio of the summed load of a host's instances to the host's load. With a
larger ratio, the loads of the instances are probably in a wrong unit. Correct loads may add up to
somewhat more than the host's load, because guests and hosts are measured at different times, and an
instance that has just moved counts twice. Raised, loads in a wrong unit are not noticed; lowered,
correct loads count as impossible. Not measured."""


NOT_RUNNING = frozenset(('SHUTOFF', 'SUSPENDED', 'SHELVED', 'SHELVED_OFFLOADED', 'SOFT_DELETED'))
"""Nova's statuses of instances whose guests do not run, so that they cause no load on a host."""


class Labelled(Protocol):
    """The protocol of series and samples, which have labels."""

    @property
    def labels(self) -> Mapping[str, str]:
        ...


_Labelled = TypeVar('_Labelled', bound=Labelled)

ProfileSample = tuple[float, str]
"""(value, host): a sample of a profile, and the host that its series names, or ''."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedInstances:
    """The instances of an aggregate and their hosts, with one policy's scores and sizes.

    instances : sorted by uuid
    vm_host : intp (V,), host of each instance
    scores : float64 (H,), scores of the policy; NaN if not measured
    host_scale : float64 (H,), 1 divided by the size of each host. The size is in the unit of
        instances' weights (loads)
    units : float64 (H,), factor of each host. The weight of an instance is its sample multiplied by
        the factor of the host that the sample names. If the sample names none of ``hosts``, the
        factor of the instance's host is used
    hosts : names of the hosts; empty if samples do not name hosts
    """

    instances: tuple[Instance, ...]
    vm_host: np.ndarray
    scores: np.ndarray
    host_scale: np.ndarray
    units: np.ndarray
    hosts: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Weights:
    """Weights (loads) of instances, in a unit that is the same for all hosts.

    values : float64 (V,), weight of each instance; NaN if not known. An instance with NaN is not
        moved
    doubts : texts for an operator about impossible samples
    duplicates : texts for an operator about instances with several samples. Their cause may be a
        live migration, during which two hosts report the instance
    """

    values: np.ndarray
    doubts: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts for an operator about samples that are impossible or occur several times."""
        return (*self.doubts, *self.duplicates)


def by_label(vector: Vector, label: str, host_label: str = '',
             hosts: Collection[str] = ()) -> dict[str, list[ProfileSample]]:
    """Return {value of a label: its samples} from the answer to a query.

    Several clouds may share a Prometheus, and have libvirt domains with the same names. So if at
    least one series has the name of a host of this cloud in ``host_label``, series with other host
    names are left out.

    :param hosts: names of all known hosts of this cloud
    """
    samples: dict[str, list[ProfileSample]] = {}
    for sample in of_this_cloud(vector.samples, host_label, hosts):
        if label in sample.labels:
            samples.setdefault(sample.labels[label], []).append(
                (sample.value, sample.labels.get(host_label, '')))
    return samples


def of_this_cloud(series: Sequence[_Labelled], host_label: str,
                  hosts: Collection[str]) -> Iterator[_Labelled]:
    """Yield the series of an answer, without those of other clouds' hosts; see
    :func:`foreign_hosts`."""
    foreign = foreign_hosts(series, host_label, hosts)
    yield from (each for each in series if each.labels.get(host_label, '') not in foreign)


def foreign_hosts(series: Iterable[Labelled], host_label: str, hosts: Collection[str]) -> set[str]:
    """Return the names of other clouds' hosts in the series of an answer; see
    :func:`other_clouds`."""
    return other_clouds({each.labels.get(host_label, '') for each in series}, hosts)


def other_clouds(named: set[str], hosts: Collection[str]) -> set[str]:
    """Return the names of other clouds' hosts among the hosts that series name. The result is empty
    if no series has the name of a host of this cloud.

    :param named: the hosts that series name; '' for series without a host
    :param hosts: names of all known hosts of this cloud
    """
    return named - set(hosts) - {''} if named & set(hosts) else set()


def profile(policy: Policy, samples: Mapping[str, list[ProfileSample]], placed: PlacedInstances,
            resting: np.ndarray | None = None) -> Weights:
    """Return the weight (load) of every instance, from its sample in the profile. For an instance
    without a sample, the policy's fallback is used.

    An instance with an impossible sample has no weight, and is not moved. A sample is impossible in
    these cases:

    * The sample is negative, infinite, or more than the whole host.
    * The sample is 0 for the memory of a running instance.
    * The instance has several samples.
    * The samples of all instances on the host add up to more than the whole host, and to far more
      than the host's score.

    :param samples: result of :func:`by_label` for ``vm_profile_label``
    :param resting: bool (V,), true for instances that are in a move or were moved recently. Several
        samples of such an instance cause no warning, because the source and the destination may
        both report the instance for a short time
    """
    values, twice = measured(policy, samples, placed)
    share = values * placed.host_scale[placed.vm_host]
    impossible = (share < -TOLERANCE) | (share > 1.0 + TOLERANCE) | np.isinf(share)
    empty = np.zeros(len(share), dtype=bool)
    if host_sizes.resource(policy) == 'MEMORY_MB':    # a running server uses some memory
        empty = (share == 0.0) & ~twice & np.array(
            [instance.status == 'ACTIVE' for instance in placed.instances], dtype=bool)
    bad = impossible | empty | twice
    too_much = _overfull(placed, np.where(bad, 0.0, np.nan_to_num(share)))
    excessive = too_much[placed.vm_host] & ~np.isnan(values) & ~bad
    unknown = np.isnan(values) & ~bad
    values[bad | excessive] = np.nan
    values[unknown] = FALLBACKS[policy.vm_profile_fallback](placed)[unknown]
    doubts = (*_left_alone(placed, impossible & ~twice, 'is out of range (0 to 1 of a host)'),
              *_left_alone(placed, empty, 'is 0 while running'))
    if excessive.any():
        host = int(np.flatnonzero(too_much)[0])
        doubts += (f'the profiles of {plural.count(int(excessive.sum()), "instance")} add up to '
                   'more than '
                   f'{plural.count(int(too_much.sum()), "host", "have")}, such as that of '
                   f'{placed.instances[int(np.flatnonzero(placed.vm_host == host)[0])].host}: '
                   'not moved',)
    duplicates = _left_alone(placed, twice if resting is None else twice & ~resting,
                             'is given twice')
    return Weights(values, doubts, tuple(duplicates))


def _left_alone(placed: PlacedInstances, which: np.ndarray, what: str) -> Iterator[str]:
    """Yield a warning with the number of instances that are not moved because of a fault in their
    samples. The samples are those of a policy's profile, the load of each instance. Yield nothing
    if there is no such instance.

    :param which: bool (V,), true for the instances with the fault
    :param what: text about the fault
    """
    if which.any():
        first = placed.instances[int(np.flatnonzero(which)[0])].uuid
        yield (f'the profile of {plural.count(int(which.sum()), "instance")} {what}, such as '
               f'that of {first}: '
               'not moved')


def unit_problem(policy: Policy, samples: Mapping[str, list[ProfileSample]],
                 placed: PlacedInstances) -> str:
    """Return a text about a wrong unit of the profile, the load of each instance; '' if the profile
    seems to be in the same unit as the hosts' scores.

    For example, fractions of an instance's vCPUs look like fractions of the host. With such a
    profile, the instances of a host with score 0.5 may seem to use 1.4 of the host.

    :param samples: result of :func:`by_label` for ``vm_profile_label``
    """
    values, _wrong = measured(policy, samples, placed)
    share = values * placed.host_scale[placed.vm_host]
    share = np.where((share >= 0.0) & (share <= 1.0), share, 0.0)  # impossible samples count as 0
    sums, scores = _sums(placed, share), np.nan_to_num(placed.scores)
    known = ~np.isnan(placed.scores)
    over = _overfull(placed, share)
    if not over.any() or sums[known].sum() <= EXCESS * scores[known].sum():
        return ''
    worst = int(np.argmax(np.where(over, sums, 0.0)))
    name = placed.instances[int(np.flatnonzero(placed.vm_host == worst)[0])].host
    said = (f'on {name}, whose score is {scores[worst]:.3g}, the profile adds up to '
            f'{sums[worst]:.3g}')
    if host_sizes.resource(policy) == 'MEMORY_MB':
        return (f'the profile is more than what the hosts use: {said}. Memory that is '
                'overcommitted, shared (KSM) or that guests never touched is counted in full: '
                'take the resident memory (RSS) of guests')
    return (f'the profile is not in fractions of the host: {said}. Divide vm_profile_query by '
            'what the host has (all of its CPUs, not those of the instance), or give '
            'host_capacity_query')


def _overfull(placed: PlacedInstances, share: np.ndarray) -> np.ndarray:
    """Return bool (H,): true for hosts whose instances seem to use more than the whole host, and
    far more than the host's score.

    :param share: float64 (V,), fraction of its host that each instance uses
    """
    sums = _sums(placed, share)
    return (sums > FULL) & (sums > EXCESS * placed.scores)


def _sums(placed: PlacedInstances, share: np.ndarray) -> np.ndarray:
    return np.bincount(placed.vm_host, weights=share, minlength=len(placed.scores))


def measured(policy: Policy, samples: Mapping[str, list[ProfileSample]],
             placed: PlacedInstances) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays. The first, float64 (V,), has the weights (loads) of instances by their
    samples; NaN if an instance has no sample. The second, bool (V,), is True for instances with
    several samples."""
    names = [getattr(instance, policy.vm_profile_label_type) for instance in placed.instances]
    found = [at_host(samples.get(name, ()), instance.host)
             for name, instance in zip(names, placed.instances, strict=True)]
    values = np.array([each[0][0] if each else np.nan for each in found], dtype=float)
    index = {name: number for number, name in enumerate(placed.hosts)}
    there = np.array([index.get(each[0][1], host) if each else host for each, host in zip(
        found, placed.vm_host.tolist(), strict=True)], dtype=np.intp)
    values *= placed.units[there]
    # An instance that has just moved uses at most all of its new host, which may be smaller.
    share = values * placed.host_scale[placed.vm_host]
    is_less = (there != placed.vm_host) & (share > 1.0) & np.isfinite(share)
    values[is_less] /= share[is_less]
    wrong = np.array([len(each) > 1 for each in found], dtype=bool)
    if len(set(names)) < len(names):  # samples of a name of several servers are not used
        count = collections.Counter(names)
        shared = np.array([count[name] > 1 for name in names])
        values[shared], wrong[shared] = np.nan, False
    return values, wrong


def at_host(samples: Sequence[ProfileSample], host: str) -> list[ProfileSample]:
    """Return the samples that an instance has on its host. An instance that has just been moved may
    have no sample there. For such an instance, return its samples on other hosts."""
    return [each for each in samples if each[1] == host] or list(samples)


def reported_elsewhere(policy: Policy, samples: Mapping[str, list[ProfileSample]],
                       placed: PlacedInstances) -> np.ndarray:
    """Return bool (V,): true for instances whose samples all name other hosts. Such an instance was
    moved a short time ago, and its samples are those of its former host."""
    hosts = set(placed.hosts)
    found = [{host for _value, host in samples.get(
        getattr(instance, policy.vm_profile_label_type), ())} for instance in placed.instances]
    return np.array([bool(named) and named <= hosts and instance.host not in named
                     for named, instance in zip(found, placed.instances, strict=True)], dtype=bool)


def shares(policy: Policy, samples: Mapping[str, list[ProfileSample]],
           placed: PlacedInstances) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays, (V,) each. The first, float64, has the fraction of its host that each
    instance uses; NaN if the fraction is not known or not possible. The second, bool, is True if
    the instance has a sample. The third, bool, is True if the instance has several samples."""
    values, twice = measured(policy, samples, placed)
    share = values * placed.host_scale[placed.vm_host]
    is_possible = (share >= 0.0) & (share <= 1.0) & ~twice
    return np.where(is_possible, share, np.nan), ~np.isnan(values), twice


def _unknown(placed: PlacedInstances) -> np.ndarray:
    return np.full(len(placed.instances), np.nan)


def _by_vcpus(placed: PlacedInstances) -> np.ndarray:
    """Return float64 (V,): the weight (load) of each instance, if the score of each host is divided
    among its running instances in proportion to their vCPUs."""
    return _divided(placed, np.array([each.vcpus for each in placed.instances], dtype=float))


def _evenly(placed: PlacedInstances) -> np.ndarray:
    """Return float64 (V,): the weight (load) of each instance, if the score of each host is divided
    equally among its running instances."""
    return _divided(placed, np.ones(len(placed.instances)))


def _divided(placed: PlacedInstances, parts: np.ndarray) -> np.ndarray:
    """Return float64 (V,): the weight (load) of each instance, if the score of each host is divided
    among its instances in proportion to ``parts``. An instance that does not run has no load.

    :param parts: float64 (V,)
    """
    rests = np.array([each.status in NOT_RUNNING for each in placed.instances], dtype=bool)
    parts = np.where(rests, 0.0, parts)
    total = np.bincount(placed.vm_host, weights=parts, minlength=len(placed.scores))[placed.vm_host]
    share = np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)
    found = share * (placed.scores / placed.host_scale)[placed.vm_host]
    return np.where(rests, 0.0, found)


FALLBACKS = {'skip': _unknown, 'flavor_vcpu_ratio': _by_vcpus, 'host_average': _evenly}
