"""Checks of metrics against each other and against Nova. Only metrics of hosts that pass the checks
are used (believed).

A full host looks empty if its exporter stopped half way. A full host also looks empty if its
exporter is down and the query has ``or 0``. Nova knows the servers of a host, and the profile has
the load of each server. Measured values of a host that contradict Nova or the profile are not
believed.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from kronos_nova import plural
from kronos_nova.load import host_sizes
from kronos_nova.load.host_readings import NAMED
from kronos_nova.load.instance_weights import EXCESS
from kronos_nova.load.instance_weights import PlacedInstances
from kronos_nova.objects.plan import UNBELIEVED
from kronos_nova.objects.plan import UnbelievedHost
from kronos_nova.policies import Policy
from kronos_nova.policies.models import ABSOLUTE

SCORE, PROFILE = UNBELIEVED
SHARED = 1.05
"""Largest accepted ratio of the summed loads of a host's servers to the load of the host. Above
this ratio, the loads of the servers are scaled down until their sum is the load of the host.
Raised, gains of moving servers that share memory (KSM) are overestimated; lowered, loads are scaled
down only because servers and hosts are measured at different times. Chosen as the usual ratio of
two averages over different times."""
NOTHING = 0.01
"""Share of a host that its servers may use in total although the measured load of the host is 0. If
the loads of the servers add up to more than this share, the load of 0 counts as wrong. Raised, a
wrong load of 0 is believed for hosts with few small servers; lowered, rounding errors make a
correct load of 0 count as wrong. Chosen below the load of one idle server."""
LEAST_BELIEVED = 0.5
"""Share of the measured hosts whose loads must pass all checks before a policy is used in plans. If
two or more hosts are measured, at least two must pass. Raised, one broken exporter stops planning
in a small aggregate; lowered, plans are made although only few hosts pass. Not measured."""
FAINT = 0.02
"""Least accepted ratio of the summed load of all servers to the summed load of their hosts. Below
this ratio, the queries for servers and for hosts seem to have different units, and the policy is
not used. Raised, policies are not used in clouds whose hosts are busy with other work than servers;
lowered, a query in a wrong unit is accepted. Chosen as twice 0.01, the largest ratio that a wrong
unit causes (servers in fractions, hosts in percent)."""
HALF_KNOWN = 0.5
"""Least share of a host's present servers that must have a series so that servers which were moved
off the host count as well. Raised, moves of servers with a series more often cause the load of
their former host to be ignored; lowered, an exporter that stopped half way is noticed later on
hosts that servers have left. Chosen because an exporter that stops loses most series of its
host."""
AGAIN = 'it was not believed in the evaluation before; two in a row must be good'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BeliefRules:
    """Conditions under which the metrics of a host are believed (used).

    least_known : fraction (0 to 1) of a host's servers that must have a series in the answer to the
        profile query
    tolerance : fraction of a host's capacity. The loads of the host's servers may add up to the
        host's score times :data:`EXCESS`, plus this fraction
    """

    least_known: float = 0.8
    tolerance: float = 0.1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The samples of an aggregate's instances in the answer to one policy's profile query.

    share : float64 (V,), fraction of its host that each instance uses; NaN if there is no sample or
        an impossible sample
    seen : bool (V,), True if the instance has a sample, even an impossible one
    counted : bool (V,), True if the instance must have a sample. This is so if it is active, is not
        being moved, and is old enough that exporters report its rates
    repeated : bool (V,), True if the instance has several samples
    arrived : bool (V,), True if the instance need not have a sample, such as after its arrival, but
        its host reports a possible one
    departed : float64 (H,), number of instances with a sample that were moved off each host
    """

    share: np.ndarray
    seen: np.ndarray
    counted: np.ndarray
    repeated: np.ndarray
    arrived: np.ndarray
    departed: np.ndarray


@dataclasses.dataclass(frozen=True, slots=True)
class Belief:
    """The result of the checks of hosts for one policy.

    scores : bool (H,), True if the load of the host (its score) is used
    profiles : bool (H,), True if the loads of the host's instances (their profiles) are used
    factors : float64 (H,), factor by which the loads of each host's instances are multiplied, so
        that their sum does not exceed the host's load
    unbelieved : the hosts whose load, or whose instances' loads, are not used, with the reason
    silence : the warning that no server has a series; empty if servers have series
    """

    scores: np.ndarray
    profiles: np.ndarray
    factors: np.ndarray
    unbelieved: tuple[UnbelievedHost, ...] = ()
    silence: tuple[str, ...] = ()

    def problem(self, scores: np.ndarray, available: np.ndarray) -> str:
        """Return '' if the scores of enough hosts are believed (used). Otherwise, return a text
        with the number of hosts whose scores are not believed, and the reasons; plans then cannot
        use the policy.

        :param scores: float64 (H,), the measured scores
        :param available: bool (H,), true for available hosts
        """
        measured = available & ~np.isnan(scores)
        believed = int((measured & self.scores).sum())
        count = int(measured.sum())
        if believed >= max(LEAST_BELIEVED * count, min(count, 2)):
            return ''
        doubted = count - believed
        return '; '.join((f'{doubted} of {count} hosts {plural.agreeing(doubted, "are")} not '
                          'believed',
                          *self._said(SCORE)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts for an operator about the hosts whose measurements are not believed."""
        return (*(f'not believed, and left out of the plan: {each}' for each in self._said(SCORE)),
                *(f'its servers are not moved: {each}' for each in self._said(PROFILE)))

    def _said(self, what: str) -> Iterator[str]:
        """Yield a text for each of the first hosts whose measurements are not believed (used), with
        the reason. If there are more such hosts, yield a text with their number.

        :param what: SCORE for hosts whose load is not believed, PROFILE for hosts whose instances'
            loads are not believed
        """
        found = [each for each in self.unbelieved if each.what == what]
        yield from (f'{each.host}: {each.reason}' for each in found[:NAMED])
        if len(found) > NAMED:
            yield f'and {len(found) - NAMED} more hosts'


def judge(policy: Policy, placed: PlacedInstances, servers: Servers, names: tuple[str, ...],
          rules: BeliefRules, doubted: frozenset[str] = frozenset()) -> Belief:
    """Check the metrics of a policy, and return the hosts whose metrics are believed (used). The
    answers to the policy's queries are compared with each other and with Nova.

    A host whose score is not believed is not a destination, and instances leave this host only in
    drains. If only the profile (load per instance) of a host is not believed, the score of the host
    is used, and the host's instances are not moved.

    :param servers: samples of the profile query
    :param names: names of the hosts
    :param doubted: hosts whose score failed a check in the previous evaluation. If the score of
        such a host passes all checks now, this score is not used yet; it is used from the next
        evaluation on
    """
    if policy.vm_profile_query is None or not servers.seen.any():
        everything = np.ones(len(names), dtype=bool)
        return Belief(everything, everything, np.ones(len(names)),
                      silence=tuple(_silence(policy, servers)))
    found: dict[int, UnbelievedHost] = {}
    sums = _sums(placed, np.nan_to_num(servers.share))
    for host, what, reason in _failures(policy, placed, servers, sums, rules):
        found.setdefault(host, UnbelievedHost(
            host=names[host], policy=policy.name, what=what, reason=reason))
    for host, name in enumerate(names):
        if name in doubted and host not in found and not np.isnan(placed.scores[host]):
            found[host] = UnbelievedHost(host=name, policy=policy.name, what=SCORE, reason=AGAIN,
                                         is_failing=False)
    scores, profiles = np.ones(len(names), dtype=bool), np.ones(len(names), dtype=bool)
    for host, each in found.items():
        profiles[host] = False
        scores[host] = each.what != SCORE
    is_shared = (sums > SHARED * placed.scores) & (placed.scores > 0.0)
    factors = np.divide(placed.scores, sums, out=np.ones(len(names)), where=is_shared)
    return Belief(scores, profiles, factors, tuple(found[host] for host in sorted(found)))


def faintness(policy: Policy, placed: PlacedInstances, servers: Servers,
              rules: BeliefRules) -> str:
    """Check whether the loads of servers add up to a plausible fraction of the load of their hosts.
    Return '' if the fraction is large enough; otherwise, return a text that explains why the policy
    is not used.

    If the loads of servers are too small, the profile is probably in another unit than the scores.
    The expected gains of moves are then wrong. Policies of mode ``relieve`` are not checked,
    because such policies move servers only off hosts whose load is mostly caused by servers.
    """
    if policy.mode == 'relieve' or policy.vm_profile_query is None:
        return ''
    scores, expected = placed.scores, _sums(placed, servers.counted)
    seen = _sums(placed, servers.counted & servers.seen)
    known = ~np.isnan(scores) & (expected > 0) & (seen >= rules.least_known * expected)
    measured = float(scores[known].sum())
    together = float(_sums(placed, np.nan_to_num(servers.share))[known].sum())
    if not 0.0 < together < FAINT * measured or measured <= rules.tolerance * known.sum():
        return ''
    return (f'the servers of {plural.count(int(known.sum()), "host")} add up to {together:.2g}, '
            'the scores of '
            f'these hosts to {measured:.3g}: {_queries(policy)} are in different units (percent '
            'and fractions, MiB and bytes, thousandths of CPUs), or it is load of the hosts, not '
            f'of their servers. Give both in the same unit{_reserved(policy)}')


def _queries(policy: Policy) -> str:
    if policy.host_capacity_query is not None:
        return 'vm_profile_query and host_capacity_query'
    if policy.profile_unit == ABSOLUTE:
        return f'vm_profile_query and the {policy.vm_profile_resource} of hosts (CPUs, bytes)'
    return 'vm_profile_query and imbalance_query'


def _reserved(policy: Policy) -> str:
    """Return a sentence about free huge pages, for policies about memory; '' for other policies.
    Free huge pages are a possible cause of the problem that :func:`faintness` finds, because free
    huge pages count as used memory of a host, but not as load of its servers."""
    if host_sizes.resource(policy) != 'MEMORY_MB':
        return ''
    return ('. Memory in huge pages counts as used on the host also while it is free: add free '
            'huge pages to what is available, as the recipes do')


def _silence(policy: Policy, servers: Servers) -> Iterator[str]:
    """Yield the warning that no server has a series, although some servers must have one. Yield
    nothing otherwise."""
    count = int(servers.counted.sum())
    if policy.vm_profile_query is not None and count:
        consequence = ('none is moved' if policy.vm_profile_fallback == 'skip' else
                       f'all take vm_profile_fallback {policy.vm_profile_fallback}')
        yield (f'monitoring knows none of the {plural.count(count, "server")}, and '
               f'{consequence}: is the exporter '
               f'up, and does {policy.vm_profile_label} hold the {policy.vm_profile_label_type} of '
               'servers?')


def _sums(placed: PlacedInstances, values: np.ndarray) -> np.ndarray:
    """Return float64 (H,): the sum of the values on each host.

    :param values: (V,), value of each instance
    """
    return np.bincount(placed.vm_host, weights=values, minlength=len(placed.scores))


def _failures(policy: Policy, placed: PlacedInstances, servers: Servers, sums: np.ndarray,
              rules: BeliefRules) -> Iterator[tuple[int, str, str]]:
    """Yield (index of a host, SCORE or PROFILE, reason) for each measurement that is not believed.

    :param sums: float64 (H,), sum of the loads of each host's servers
    """
    scores = placed.scores
    expected = _sums(placed, servers.counted)
    seen = _sums(placed, servers.counted & servers.seen)
    repeated = _sums(placed, servers.counted & servers.repeated)
    possible = _sums(placed, servers.counted & ~np.isnan(servers.share))
    arrived = np.where(expected > 0.0, _sums(placed, servers.arrived), 0.0)
    known, needed = seen + arrived, expected + arrived
    for host in np.flatnonzero(~np.isnan(scores)).tolist():
        score, together = scores[host], sums[host]
        if _is_silent(policy, known, needed, servers.departed, host, rules):
            yield host, SCORE, (
                f'monitoring knows {known[host]:g} of the {needed[host]:g} servers that run there: '
                f'is its exporter up, and does {policy.vm_profile_label} hold the '
                f'{policy.vm_profile_label_type} of servers?')
        elif score <= 0.0 and together > NOTHING:
            yield host, SCORE, (
                f'its score is 0 although its servers use {together:.3g} of it: the query has 0 '
                'for hosts without a series, or joins series that name hosts differently')
        elif together > EXCESS * score + rules.tolerance:
            yield host, PROFILE, (
                f'its servers add up to {together:.3g}, its score is {score:.3g}'
                f'{_remedy(policy)}')
        elif seen[host] and not possible[host]:
            yield host, PROFILE, (
                f'all of its servers have several series: aggregate vm_profile_query by '
                f'{policy.vm_profile_label}' if repeated[host] else
                'the profiles of all of its servers are out of range (0 to 1 of the host)'
                f'{_remedy(policy)}')
        elif together == 0.0 and seen[host] and score > rules.tolerance:
            yield host, PROFILE, (
                f'all of its servers have a profile of 0, its score is {score:.3g}: the exporter '
                f'does not measure it{_remedy(policy)}')


def _is_silent(policy: Policy, seen: np.ndarray, expected: np.ndarray, departed: np.ndarray,
               host: int, rules: BeliefRules) -> bool:
    """Return True if too few of a host's servers have a series; False otherwise.

    A policy with the fallback ``skip`` assumes no load for servers without a series. The result is
    then True if less than the fraction ``least_known`` of the host's servers have a series. Servers
    that were moved off the host count as servers with a series, because only servers with a series
    are moved, and moves do not stop an exporter. They do not count if less than
    :data:`HALF_KNOWN` of the present servers have a series.

    Any other fallback estimates the loads of servers without a series. The result is then True if
    two conditions are met: no server of the host has a series, and at least the fraction
    ``least_known`` of the servers on other hosts have a series.

    :param expected: float64 (H,), number of servers of each host that count
    :param seen: float64 (H,), number of these servers that have a series
    :param departed: as in :class:`Servers`
    """
    if not expected[host]:
        return False
    if policy.vm_profile_fallback == 'skip':
        least = rules.least_known
        present, gone = seen[host] / expected[host], departed[host]
        return bool(present < least and (
            present < HALF_KNOWN or seen[host] + gone < least * (expected[host] + gone)))
    others_seen, others = seen.sum() - seen[host], expected.sum() - expected[host]
    return bool(not seen[host] and others and others_seen >= rules.least_known * others)


def _remedy(policy: Policy) -> str:
    if host_sizes.resource(policy) == 'MEMORY_MB':
        return ('. Memory that is overcommitted, shared (KSM), in huge pages or that guests never '
                'touched counts otherwise on the host than in the guests: take the resident '
                'memory (RSS) of guests, and a host query that counts the same')
    return ('. Both queries must measure the same, in the same unit, over the same time')
