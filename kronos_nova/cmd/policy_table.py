"""A summary of the answers to each policy's queries, one row for each policy."""

import dataclasses
import math
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from kronos_nova import exception
from kronos_nova.load import host_sizes
from kronos_nova.load import instance_weights
from kronos_nova.load.host_sizes import Sizes
from kronos_nova.load.instance_weights import PlacedInstances
from kronos_nova.metrics.base import InstantSource
from kronos_nova.objects import metrics
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import Policy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """A comparison of the loads of hosts and of their instances in one policy. Loads are fractions
    of a host's capacity.

    hosts, instances : pair (number that have a series, number that should have a series)
    load : mean of the scores of the hosts; None = no host has a score
    instances_load : load of the hosts according to their instances. The load of a host is the sum
        of its instances' loads; this field is the mean of the sums. None = no host has both a score
        and a sum
    farthest_host : the host whose sum differs most from its score
    farthest_load, farthest_instances_load : score and sum of ``farthest_host``
    sizes : pair (size of the smallest host, size of the biggest host). The load of an instance is
        divided by the size of its host. Sizes have the unit of the query about instances, such as
        CPUs or bytes. If this query answers in fractions of hosts, sizes are fractions of the
        biggest host. None = not known or not used
    sizes_from : source of ``sizes``: ``host_capacity_query`` or a resource class. ``not known`` =
        hosts differ in size, and no source has their sizes. '' = sizes are not used
    age : seconds since the oldest sample
    duplicates : number of hosts and instances that have more than one series
    """

    policy: str
    hosts: tuple[int, int]
    instances: tuple[int, int] | None = None
    load: float | None = None
    instances_load: float | None = None
    farthest_host: str | None = None
    farthest_load: float | None = None
    farthest_instances_load: float | None = None
    sizes: tuple[float, float] | None = None
    sizes_from: str = ''
    age: float | None = None
    duplicates: int = 0


def rows(answers: InstantSource, policies: Iterable[Policy], snapshot: Snapshot,
         findings: Iterable[Any], now: float) -> Iterator[PolicyRow]:
    """Yield a PolicyRow for each policy whose answer could be compared with the hosts that Nova
    knows.

    :param answers: metrics source whose ``query(query)`` does not send the same query twice
    :param findings: findings of the queries, with ``policy``, ``kind``, ``matched``, ``expected``,
        ``repeated``
    :param now: Unix seconds
    """
    by_query = {(each.policy, each.kind): each for each in findings if each.matched is not None}
    for policy in policies:
        hosts = by_query.get((policy.name, metrics.IMBALANCE))
        if hosts is None:
            continue
        instances = by_query.get((policy.name, metrics.VM_PROFILE))
        scores = _answer(answers, policy, metrics.IMBALANCE, policy.imbalance_query)
        profile = _answer(answers, policy, metrics.VM_PROFILE, policy.vm_profile_query)
        found = [each for each in (hosts, instances) if each is not None]
        by_host = _by(scores, policy.host_label)
        placed, sizes = _placed(answers, policy, by_host, snapshot)
        sums = _sums(policy, profile, placed, [host.name for host in snapshot.hosts])
        times = [sample.timestamp for vector in (scores, profile) for sample in vector.samples]
        yield PolicyRow(
            policy=policy.name, hosts=(hosts.matched, hosts.expected),
            instances=instances and (instances.matched, instances.expected),
            age=max(0.0, now - min(times)) if times else None,
            duplicates=sum(len(each.repeated) for each in found),
            **_size_figures(policy, sizes), **_loads(policy, by_host, sums))


def _loads(policy: Policy, scores: Mapping[str, float], sums: Mapping[str, float]
           ) -> dict[str, Any]:
    """Return the fields of a PolicyRow that describe loads, by name; {} if no host has a score.
    :param sums: has all hosts that Nova knows; scores of others are ignored
    """
    known = {host: scores[host] for host in sums
             if host in scores and math.isfinite(scores[host])}
    if not known:
        return {}
    found: dict[str, Any] = {'load': sum(known.values()) / len(known)}
    both = {host: sums[host] for host in known if math.isfinite(sums[host])}
    if policy.vm_profile_query is None or not both:
        return found
    farthest = max(sorted(both), key=lambda host: abs(both[host] - known[host]))
    return found | {
        'instances_load': sum(both.values()) / len(both), 'farthest_host': farthest,
        'farthest_load': known[farthest], 'farthest_instances_load': both[farthest]}


def _placed(answers: InstantSource, policy: Policy, scores: Mapping[str, float],
            snapshot: Snapshot) -> tuple[PlacedInstances, Sizes]:
    """Return the PlacedInstances of all hosts and the Sizes of these hosts, computed in the same
    way as in a cycle."""
    position = {host.name: number for number, host in enumerate(snapshot.hosts)}
    queried = np.ones(len(position))
    if policy.host_capacity_query is not None:
        found = _by(_answer(answers, policy, metrics.HOST_CAPACITY, policy.host_capacity_query),
                    policy.host_label)
        queried = np.array([found.get(name, math.nan) for name in position], dtype=float)
        queried[~(queried > 0.0)] = math.nan
    sizes = host_sizes.sizes(policy, snapshot.hosts, queried)
    instances = tuple(each for each in snapshot.instances if each.host in position)
    return PlacedInstances(
        instances=instances,
        vm_host=np.array([position[each.host] for each in instances], dtype=np.intp),
        scores=np.array([scores.get(name, math.nan) for name in position], dtype=float),
        host_scale=1.0 / sizes.values, units=sizes.units, hosts=tuple(position)), sizes


def _sums(policy: Policy, profile: Vector, placed: PlacedInstances, names: Sequence[str]
          ) -> dict[str, float]:
    """Return {host: sum of the profiles (loads) of its instances}. The sum is a fraction of the
    host's capacity; NaN if the size of the host is not known."""
    samples = instance_weights.by_label(profile, policy.vm_profile_label, policy.host_label, names)
    share, _seen, _repeated = instance_weights.shares(policy, samples, placed)
    sums = np.bincount(placed.vm_host, weights=np.nan_to_num(share), minlength=len(names))
    # Without instances, bincount returns integers.
    sums = np.where(np.isnan(placed.host_scale), math.nan, sums)
    return dict(zip(names, sums.tolist(), strict=True))


def _size_figures(policy: Policy, sizes: Sizes) -> dict[str, Any]:
    """Return the fields ``sizes`` and ``sizes_from`` of a PolicyRow, by name."""
    known = sizes.values[np.isfinite(sizes.values)]
    source = 'host_capacity_query' if policy.host_capacity_query else (
        policy.vm_profile_resource or (host_sizes.resource(policy) if sizes.is_of_own_host else ''))
    if sizes.problem or not len(known) or not source:
        return {'sizes_from': 'not known' if sizes.problem else source}
    return {'sizes': (float(known.min()), float(known.max())), 'sizes_from': source}


def _answer(answers: InstantSource, policy: Policy, kind: str, promql: str | None) -> Vector:
    if promql is None:
        return Vector(())
    try:
        return answers.query(MetricQuery(policy.name, kind, promql))
    except exception.MetricsError:
        return Vector(())


def _by(vector: Vector, label: str) -> dict[str, float]:
    return {name: samples[0].value for name, samples in vector.by(label).items()}
