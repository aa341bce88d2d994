"""Which hosts are hot: above the marks of a policy, or with an instance that is."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model import State
from kronos_nova.policies import Policy


@dataclasses.dataclass(frozen=True, slots=True)
class Marks:
    """What hurts, a figure a policy; inf where a policy has no such mark.

    high : float64 (P,), load of a host above which it is to be relieved
    target : float64 (P,), at or below which it then ends, and no destination passes
    vm_high : float64 (P,), what an instance may weigh on its host
    """

    high: np.ndarray
    target: np.ndarray
    vm_high: np.ndarray

    @classmethod
    def from_policies(cls, policies: Sequence[Policy]) -> 'Marks':
        """Make those of some policies."""
        def figures(name: str) -> np.ndarray:
            found = (getattr(policy, name) for policy in policies)
            return np.array([np.inf if figure is None else figure for figure in found])

        return cls(figures('high'), figures('target'), figures('vm_high'))

    def hot(self, state: State) -> np.ndarray:
        """bool (H, P): where an available host is above the mark, or an instance on it."""
        problem = state.problem
        share = problem.weights * problem.host_scale[state.vm_host]
        hot = state.scores > self.high + TOLERANCE
        vms, policies = np.nonzero(share > self.vm_high + TOLERANCE)
        hot[state.vm_host[vms], policies] = True
        return hot & problem.available[:, None]
