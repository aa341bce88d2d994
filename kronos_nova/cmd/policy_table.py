"""What the answers to a policy's queries say together, one row a policy."""

import dataclasses
import math
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from kronos_nova import exception
from kronos_nova.load import host_sizes
from kronos_nova.objects import metrics
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Vector
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import Policy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """Loads of hosts and of their instances, as fractions of the host.

    hosts, instances : how many of the needed ones have a series, and how many are needed
    load : mean of the scores of the hosts; None = there is none
    instances_load : mean over the same hosts of the sum of their instances' profiles; None = the
        policy has no profile that can be compared
    farthest_host : the host whose sum is farthest from its score, with both
    age : seconds since the oldest sample
    duplicates : how many hosts and instances have several series
    """

    policy: str
    hosts: tuple[int, int]
    instances: tuple[int, int] | None = None
    load: float | None = None
    instances_load: float | None = None
    farthest_host: str | None = None
    farthest_load: float | None = None
    farthest_instances_load: float | None = None
    age: float | None = None
    duplicates: int = 0


def rows(answers, policies: Iterable[Policy], snapshot: Snapshot, findings: Iterable, now: float
         ) -> Iterator[PolicyRow]:
    """Yield a row of each policy whose hosts were compared.

    :param answers: has ``query(query)``, and asks no query twice
    :param findings: of the queries: ``policy``, ``kind``, ``matched``, ``expected``, ``repeated``
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
        times = [sample.timestamp for vector in (scores, profile) for sample in vector.samples]
        yield PolicyRow(
            policy=policy.name, hosts=(hosts.matched, hosts.expected),
            instances=instances and (instances.matched, instances.expected),
            age=max(0.0, now - min(times)) if times else None,
            duplicates=sum(len(each.repeated) for each in found),
            **_loads(policy, _by(scores, policy.host_label),
                     _sums(answers, policy, profile, snapshot)))


def _loads(policy, scores, sums):
    """Return the figures of the hosts that have a score."""
    known = {host: score for host, score in scores.items() if math.isfinite(score)}
    if not known:
        return {}
    found: dict[str, object] = {'load': sum(known.values()) / len(known)}
    both = {host: sums[host] for host in known if host in sums and math.isfinite(sums[host])}
    if policy.vm_profile_query is None or not both:
        return found
    farthest = max(sorted(both), key=lambda host: abs(both[host] - known[host]))
    return found | {
        'instances_load': sum(both.values()) / len(both), 'farthest_host': farthest,
        'farthest_load': known[farthest], 'farthest_instances_load': both[farthest]}


def _sums(answers, policy, profile: Vector, snapshot: Snapshot) -> dict[str, float]:
    """Return the sum of the profiles of each host's instances, as a fraction of the host. An
    instance with two series counts once, by the larger."""
    samples = profile.by(policy.vm_profile_label)
    sums = dict.fromkeys((host.name for host in snapshot.hosts), 0.0)
    for instance in snapshot.instances:
        given = samples.get(getattr(instance, policy.vm_profile_label_type), ())
        if given and instance.host in sums:
            sums[instance.host] += max(sample.value for sample in given)
    sizes = _sizes(answers, policy, snapshot)
    return {host: value / sizes.get(host, math.nan) for host, value in sums.items()}


def _sizes(answers, policy, snapshot) -> Mapping[str, float]:
    """Return the size of each host in the unit of the profile; 1 where that is a fraction."""
    if policy.host_capacity_query is not None:
        vector = _answer(answers, policy, metrics.HOST_CAPACITY, policy.host_capacity_query)
        return {host: size for host, size in _by(vector, policy.host_label).items() if size > 0.0}
    names = [host.name for host in snapshot.hosts]
    if policy.profile_unit == host_sizes.ABSOLUTE and policy.vm_profile_resource:
        sizes = host_sizes.of_inventory(snapshot.hosts, policy.vm_profile_resource)
        return dict(zip(names, sizes.tolist(), strict=True))
    return dict.fromkeys(names, 1.0)


def _answer(answers, policy, kind, promql) -> Vector:
    if promql is None:
        return Vector(())
    try:
        return answers.query(MetricQuery(policy.name, kind, promql))
    except exception.MetricsError:
        return Vector(())


def _by(vector, label):
    return {name: samples[0].value for name, samples in vector.by(label).items()}
