"""A constraint answers "may this instance go there, given the moves already planned?"."""

import dataclasses
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.simulation import Problem
from kronos_nova.simulation import State


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintRules:
    """What constraints go by beside the snapshot.

    restrict_to_az : no move between availability zones
    reserve_hosts : how many hosts' worth of room stays free
    soft_groups_veto : soft server groups are as strict as hard ones
    vetoes : (instance uuid, host name) to the reason, from Nova's own scheduler
    returns : (instance uuid, host name) the instance left not long ago
    """

    restrict_to_az: bool = False
    reserve_hosts: int = 0
    soft_groups_veto: bool = True
    vetoes: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    returns: frozenset[tuple[str, str]] = frozenset()


class Constraint(Protocol):
    """One reason for which an instance may not go somewhere.

    ``reason`` is the word under which instances that stayed because of it are reported. ``idle``
    tells that it can forbid nothing in this problem and may be left out. Implementations keep
    nothing that a planned move changes, but look at the ``state`` they are handed.
    """

    reason: str
    idle: bool

    def __init__(self, problem: Problem, snapshot: Snapshot, rules: ConstraintRules):
        ...

    def mask(self, state: State, vm: int) -> np.ndarray:
        """bool (H,): the hosts that this constraint lets the instance go to."""

    def column(self, state: State, host: int) -> np.ndarray:
        """bool (V,): the instances that this constraint lets in to the host."""

    def permits(self, state: State, vm: int, host: int) -> bool:
        """The same for one pair: equals ``mask(state, vm)[host]`` and ``column(state, host)[vm]``,
        but for an instance that is on the host already."""

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

    def column(self, state: State, host: int) -> np.ndarray:
        """bool (V,): the instances that may go to the host. Those on it are never among them."""
        permitted = state.vm_host != host
        for constraint in self.constraints:
            permitted &= constraint.column(state, host)
        return permitted

    def permits(self, state: State, vm: int, host: int) -> bool:
        """The same for one host."""
        return host != state.vm_host[vm] and self.first_against(state, vm, host) is None

    def first_against(self, state: State, vm: int, host: int) -> Constraint | None:
        """The first constraint that does not permit it, or None."""
        return next((c for c in self.constraints if not c.permits(state, vm, host)), None)
