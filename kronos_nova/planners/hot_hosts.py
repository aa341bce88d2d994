"""Detection of hot hosts. A host is hot if its load, or the load of one of its instances, is above
a limit of a policy."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import State
from kronos_nova.model import spans
from kronos_nova.policies import Policy

LEAST_TOGETHER = 0.1
"""Smallest ratio at which servers are moved off a hot host: the summed load of its servers, divided
by its excess. The excess is the host's load above a limit, a target load or a target range. Raised,
some hosts stay hot although moves would help a little; lowered, servers are moved off hosts that
are hot for another reason than their servers. Chosen because it is not worth a migration to remove
less than a tenth of the excess."""


@dataclasses.dataclass(frozen=True, slots=True)
class Marks:
    """Limits above which a host or an instance counts as hot. Each policy has its own limits; a
    limit that a policy does not set is inf.

    high : float64 (P,), load above which a host is relieved
    target : float64 (P,), load to which a host is relieved; no destination may end above this load
    vm_high : float64 (P,), load of one instance, as a fraction of its host, above which the host
        counts as hot
    """

    high: np.ndarray
    target: np.ndarray
    vm_high: np.ndarray

    @classmethod
    def from_policies(cls, policies: Sequence[Policy]) -> 'Marks':
        """Return the limits that the policies define."""
        def figures(name: str) -> np.ndarray:
            found = (getattr(policy, name) for policy in policies)
            return np.array([np.inf if figure is None else figure for figure in found])

        return cls(figures('high'), figures('target'), figures('vm_high'))

    def hot(self, state: State) -> np.ndarray:
        """Return bool (H, P): true for available hosts whose load is above the limit ``high``, and
        for available hosts with an instance whose load is above the limit ``vm_high``."""
        problem = state.problem
        share = problem.weights * problem.host_scale[state.vm_host]
        hot = state.scores > self.high + TOLERANCE
        vms, policies = np.nonzero(share > self.vm_high + TOLERANCE)
        hot[state.vm_host[vms], policies] = True
        return hot & problem.available[:, None]


def servers_share(state: State) -> np.ndarray:
    """Return float64 (H, P): the sum of the loads of each host's servers; inf for hosts with a
    server whose load is not known."""
    problem = state.problem
    shares = problem.weights * problem.host_scale[state.vm_host]
    together = np.zeros(state.scores.shape)
    np.add.at(together, state.vm_host, shares)
    if problem.unweighed.any():
        together[state.vm_host[problem.unweighed]] = np.inf
    return together


def own_heat(state: State, excess: np.ndarray) -> np.ndarray:
    """Return bool (H, P): true for hosts above their limit whose excess is not caused by their
    servers. All servers of such a host together have so little load (see :data:`LEAST_TOGETHER`)
    that moving them would not help.

    :param excess: float64 (H, P), load of each host above its limit
    """
    return (excess > TOLERANCE) & (servers_share(state) < LEAST_TOGETHER * excess)


def uneven_excess(state: State) -> np.ndarray:
    """Return float64 (H, P): the load of each host above the permitted load. The permitted load in
    a policy is the threshold plus the lowest load of the available hosts that count in the
    imbalance. The result is 0 for policies within their thresholds, and for hosts that are not
    available."""
    problem = state.problem
    if not problem.available.any():
        return np.zeros(state.scores.shape)
    scores = state.scores[problem.available]
    lowest = (scores.min(axis=0) if problem.left_out is None
              else spans.ends(scores.T, problem.left_out)[1])
    marks = lowest + problem.thresholds
    above = state.imbalances() > problem.thresholds + TOLERANCE
    return np.where(problem.available[:, None] & above, state.scores - marks, 0.0).clip(min=0.0)


def is_even_but_for(state: State, own: np.ndarray) -> bool:
    """Return True if every policy is within its threshold when the hosts in ``own`` are left out of
    its imbalance; False otherwise.

    :param own: bool (H, P), result of :func:`own_heat`: in each policy, true for hosts whose excess
        is not caused by their servers
    """
    problem = state.problem
    for policy, threshold in enumerate(problem.thresholds.tolist()):
        is_own = own[:, policy] & problem.available
        rest = np.sort(state.scores[problem.available & ~is_own, policy])
        left_out = 0 if problem.left_out is None else int(problem.left_out[policy])
        # The hosts in ``own`` are among the hottest, which the policy leaves out.
        highest = len(rest) - max(left_out - int(is_own.sum()), 0)
        rest = rest[left_out:highest]
        if len(rest) and rest[-1] - rest[0] > threshold + TOLERANCE:
            return False
    return True


def instances_to_keep(state: State) -> np.ndarray:
    """Return bool (V,): true for instances that should stay, because moving them does not help.

    These are all instances of each host that meets two conditions:

    * The host is overloaded: in some policy, its load is above the permitted load (see
      :func:`uneven_excess`).
    * In none of these policies do the host's instances cause the overload (see :func:`own_heat`).
    """
    excess = uneven_excess(state)
    own = own_heat(state, excess)
    return (own.any(axis=1) & ~((excess > TOLERANCE) & ~own).any(axis=1))[state.vm_host]
