"""Why instances stayed."""

import collections

import numpy as np

from kronos_nova.constraints.base import Constraints
from kronos_nova.objects.plan import SKIP_REASONS
from kronos_nova.objects.plan import Skip
from kronos_nova.planners.outcome import Outlook
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation import State

LOOKED_AT = 2000
"""Instances whose every destination is tried to find what held them. Others had nothing to gain."""


def skips(reasons: dict[int, str], vms: tuple[str, ...]) -> tuple[Skip, ...]:
    """Group instances by reason, in the order of the documented words."""
    grouped = collections.defaultdict(list)
    for vm, reason in reasons.items():
        if reason:
            grouped[reason].append(vms[vm])
    return tuple(Skip(reason=word, instances=tuple(sorted(grouped[word])))
                 for word in SKIP_REASONS if word in grouped)


def stayed(state: State, constraints: Constraints, budget_left: int, packs: bool) -> dict[int, str]:
    """Instance index to why no planner moved it, given where the plan ended."""
    problem = state.problem
    candidates = np.flatnonzero(problem.movable & (state.vm_host == problem.vm_host))
    reasons = {int(vm): 'no_gain' for vm in candidates}
    look = _packing(state, candidates) if packs else _spreading(state, candidates)
    for vm, hosts, refused in look:
        reasons[int(vm)] = _reason(state, constraints, vm, hosts, refused, budget_left)
    return reasons


def _reason(state, constraints, vm, hosts, refused, budget_left):
    """The word for an instance that would gain at ``hosts``; ``refused`` if at none of them without
    spoiling a policy."""
    if refused:
        return 'threshold'
    vetoes = []
    for host in hosts:
        against = constraints.first_against(state, vm, int(host))
        if against is None:
            return 'budget' if budget_left <= 0 else 'no_gain'
        vetoes.append(against.reason)
    return collections.Counter(vetoes).most_common(1)[0][0]


def _spreading(state, candidates):
    """Instances that could lower the combined imbalance on their own, the hosts at which, best
    first."""
    outlook = Outlook(state)
    if outlook.is_balanced or not len(candidates):
        return
    tops = [int(hosts[0]) for hosts in outlook.tops if len(hosts)]
    bottoms = sorted({int(hosts[0]) for hosts in outlook.bottoms if len(hosts)})
    everywhere = np.flatnonzero(state.problem.available)
    on_top = np.isin(state.vm_host[candidates], tops)
    for vms, hosts in ((candidates[on_top][:LOOKED_AT], everywhere),
                       (candidates[~on_top], np.array(bottoms, dtype=np.intp))):
        for part in np.array_split(vms, max(1, vms.size * hosts.size // 1_000_000)):
            yield from _gaining(outlook, part, hosts)


def _gaining(outlook, vms, hosts):
    after = outlook.after(vms[:, None], hosts[None, :])
    gains, accepted = outlook.decrease(after), outlook.accepts(after)
    gains[outlook.state.vm_host[vms][:, None] == hosts] = -np.inf
    for row in np.flatnonzero((gains > TOLERANCE).any(axis=1)):
        fine = accepted[row] & (gains[row] > TOLERANCE)
        chosen = fine if fine.any() else gains[row] > TOLERANCE
        order = np.flatnonzero(chosen)[np.argsort(-gains[row][chosen], kind='stable')]
        yield vms[row], hosts[order[:16]], not fine.any()


def _packing(state, candidates):
    """Instances on the coldest hosts still in use, and the other hosts in use."""
    problem = state.problem
    load = state.scores @ problem.policy_weights
    count = np.bincount(state.vm_host, minlength=len(problem.hosts))
    used = np.flatnonzero(problem.available & (count > 0))
    coldest = candidates[np.argsort(load[state.vm_host[candidates]], kind='stable')][:LOOKED_AT]
    fullest = used[np.argsort(-load[used], kind='stable')][:16]
    for vm in coldest:
        yield vm, fullest[fullest != state.vm_host[vm]], False
