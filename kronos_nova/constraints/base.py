"""A constraint answers "may this instance go there, given the moves already planned?"."""

from typing import Protocol

import numpy as np

from kronos_nova.simulation import State


class Constraint(Protocol):
    """One reason for which an instance may not go somewhere.

    ``reason`` is the word under which instances that stayed because of it are reported.
    Implementations keep nothing that a planned move changes, but look at the ``state`` they are
    handed.
    """

    reason: str

    def mask(self, state: State, vm: int) -> np.ndarray:
        """bool (H,): the hosts that this constraint lets the instance go to."""

    def permits(self, state: State, vm: int, host: int) -> bool:
        """The same for one host: equals ``mask(state, vm)[host]``."""

    def why(self, state: State, vm: int, host: int) -> str:
        """One line for a person: why the host is not permitted. Called only when it is not."""


class Constraints:
    """All constraints together: a host is permitted if every one of them permits it."""

    def __init__(self, constraints: tuple[Constraint, ...]):
        self.constraints = constraints

    def mask(self, state: State, vm: int) -> np.ndarray:
        """bool (H,): the hosts the instance may go to. Its own host is never among them."""
        permitted = np.ones(len(state.problem.hosts), dtype=bool)
        permitted[state.vm_host[vm]] = False
        for constraint in self.constraints:
            permitted &= constraint.mask(state, vm)
        return permitted

    def permits(self, state: State, vm: int, host: int) -> bool:
        """The same for one host."""
        return host != state.vm_host[vm] and self.first_against(state, vm, host) is None

    def first_against(self, state: State, vm: int, host: int) -> Constraint | None:
        """The first constraint that does not permit it, or None."""
        return next((c for c in self.constraints if not c.permits(state, vm, host)), None)
