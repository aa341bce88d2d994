"""Why a move is made and not another, and why instances stayed."""

import collections
import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova.engine.alternatives import alternatives
from kronos_nova.model import TOLERANCE
from kronos_nova.model import State
from kronos_nova.objects.plan import SKIP_REASONS
from kronos_nova.objects.plan import NextBest
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.plan import Skip
from kronos_nova.planners.base import NoPlace
from kronos_nova.planners.base import Step
from kronos_nova.planners.evacuate import waiting

LOOKED_AT = 2000
"""Instances on the coldest hosts that pack explains; others were not in its way."""

NEAREST = 16
"""Hosts that are asked what they have against an instance."""

PAIRS_AT_ONCE = 1_000_000


def with_next_best(start: State, steps: Sequence[tuple[str, Step]],
                   moves: Sequence[PlannedMove], ceiling: float) -> tuple[PlannedMove, ...]:
    """The moves of a plan, each with what could have been moved in its place.

    :param start: before the first of them
    :param steps: (phase, step) of the same plan, in the same order
    :param ceiling: load that no host passes, unless it is to empty another or to pack
    """
    problem = start.problem
    return tuple(
        move if found is None else dataclasses.replace(move, next_best=NextBest(
            instance_uuid=problem.vms[found.vm], destination=problem.hosts[found.destination],
            memory_mb=int(problem.memory_mb[found.vm]), combined_after=found.combined_after))
        for move, found in zip(moves, alternatives(start, steps, ceiling), strict=True))


def skips(reasons: dict[int, str], vms: tuple[str, ...]) -> tuple[Skip, ...]:
    """Group instances by reason, in the order of the documented words."""
    grouped = collections.defaultdict(list)
    for vm, reason in reasons.items():
        if reason:
            grouped[reason].append(vms[vm])
    return tuple(Skip(reason=word, instances=tuple(sorted(grouped[word])))
                 for word in SKIP_REASONS if word in grouped)


def stayed(state: State, budget_left: int, packs: bool) -> dict[int, str]:
    """Instance index to why no planner moved it, given where the plan ended."""
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
    """The same for instances that are left on hosts which were to be emptied.

    :param unplaced: instances for which the planner found no place
    """
    found = {int(vm): obstacle(state, int(vm)) for vm in waiting(state)}
    otherwise = 'budget' if budget_left <= 0 else 'no_gain'
    return {vm: held[0] if held else 'capacity' if vm in unplaced else otherwise
            for vm, held in found.items()}


def obstacle(state: State, vm: int) -> tuple[str, str] | None:
    """What keeps an instance on its draining host: a word of
    :data:`~kronos_nova.objects.plan.SKIP_REASONS` and a line for a person; None if it may go."""
    hosts = np.arange(len(state.problem.hosts))
    hosts = hosts[hosts != state.vm_host[vm]]
    if not len(hosts):
        return 'capacity', 'there is no other host'
    delta = state.delta((vm, hosts), model=state.model.for_emptying)
    if delta.feasible.any():
        return None
    # The host that comes nearest to taking it is the one that fails the latest rule.
    nearest = int(delta.against.argmax())
    rule = delta.model.rules[delta.against[nearest]]
    return rule.reason, rule.why(state, vm, int(hosts[nearest]))


def blocked(state: State, host: int, held: dict[int, str],
            unplaced: Mapping[int, NoPlace]) -> dict[str, str]:
    """Uuid of each instance of a host that has nowhere to go, to what blocks it.

    :param held: instance index to why it may not be moved at all
    :param unplaced: instances for which the planner found no place
    """
    found = {}
    for vm in np.flatnonzero(state.vm_host == host).tolist():
        against = None if vm in held else obstacle(state, vm)
        if vm in held:
            found[state.problem.vms[vm]] = held[vm]
        elif against and (against[0] != 'capacity' or vm not in unplaced):
            found[state.problem.vms[vm]] = against[1]
        elif vm in unplaced:
            found[state.problem.vms[vm]] = unplaced[vm].why
    return found


def _words(state, pairs, gains, accepted):
    """The word of :data:`SKIP_REASONS` for each instance; '' if nothing held it.

    :param pairs: instances (n,) and hosts (m,)
    :param gains: bool (n, m), where they would gain something
    :param accepted: bool (n, m), where that spoils no policy
    """
    vms, hosts = pairs
    permitted = state.delta((vms[:, None], hosts[None, :])).feasible
    words = np.full(len(vms), 'no_gain', dtype=object)
    words[gains.any(axis=1)] = 'threshold'
    words[(gains & accepted & permitted).any(axis=1)] = ''
    for row in np.flatnonzero((gains & accepted).any(axis=1) & (words != '')):
        words[row] = _veto(state, vms[row], hosts[gains[row] & accepted[row]])
    return words


def _veto(state, vm, hosts):
    """What stands most often between an instance and some hosts, none of which it may go to."""
    against = state.delta((vm, hosts[:NEAREST])).against
    return collections.Counter(state.model.rules[n].reason for n in against).most_common(1)[0][0]


def _spreading(state, candidates):
    """Instances that could lower the combined imbalance by leaving a top host or entering a bottom
    host: (instances, hosts, gains, accepted)."""
    extremes = state.extremes()
    if extremes.is_balanced:
        return
    tops, bottoms = (np.unique(np.concatenate(extremes.counting(ends)))
                     for ends in (extremes.tops, extremes.bottoms))
    on_top = np.isin(state.vm_host[candidates], tops)
    everywhere = np.flatnonzero(state.problem.available)
    for vms, hosts in ((candidates[on_top], everywhere), (candidates[~on_top], bottoms)):
        for part in np.array_split(vms, max(1, vms.size * hosts.size // PAIRS_AT_ONCE)):
            if part.size:
                delta = state.delta((part[:, None], hosts[None, :]))
                elsewhere = state.vm_host[part][:, None] != hosts
                yield part, hosts, (delta.decrease > TOLERANCE) & elsewhere, delta.accepted


def _packing(state, candidates):
    """Instances on the coldest hosts still in use, and the fullest of the other hosts in use: there
    to be taken in is what they would need."""
    problem = state.problem
    load = state.scores @ problem.policy_weights
    used = np.flatnonzero(problem.available & (state.guests > 0))
    coldest = candidates[np.argsort(load[state.vm_host[candidates]], kind='stable')][:LOOKED_AT]
    fullest = used[np.argsort(-load[used], kind='stable')][:NEAREST]
    if coldest.size:
        elsewhere = state.vm_host[coldest][:, None] != fullest
        yield coldest, fullest, elsewhere, elsewhere
