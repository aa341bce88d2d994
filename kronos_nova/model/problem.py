"""One aggregate as arrays."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from kronos_nova.model.arrays import Index

if TYPE_CHECKING:
    from kronos_nova.model.numa import Cells

TOLERANCE = 1e-9
"""Difference of two figures, as a fraction of a host (no unit), below which they count as equal in
all planners. Raised, gains that an operator could measure are ignored; lowered, rounding of float64
decides between plans. Fixed between these: loads are known to three digits, sums to fifteen."""
BY_OTHERS = np.zeros(0, dtype=bool)
"""Stands for an array that was not given: its default follows from the other fields."""


def _by_others() -> np.ndarray:
    return BY_OTHERS


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A server group of which at least one member is here, or what a rule of an operator makes one.

    members : intp (n_members,), indexes of instances of this problem; members elsewhere are ignored
    anti : members shall be apart (else together)
    hard : of the two soft policies this is False
    max_per_host : how many members of an ``anti`` group may share a place
    arriving : intp (n_arriving,), hosts to which a member moves already, once for each; and hosts
        in whose place members are that no move of this problem changes
    places : intp (H,), 0 or more, the place of each host: hosts of one failure domain are one
        place. None means that every host is a place of its own
    most_places : on how many places the members of a group that is together may be
    rule : the name of the operator's rule, '' for a server group
    yields : a rule that gives way where a host could not be emptied otherwise
    """

    uuid: str
    name: str
    members: np.ndarray
    anti: bool
    hard: bool
    max_per_host: int = 1
    arriving: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    places: np.ndarray | None = None
    most_places: int = 1
    rule: str = ''
    yields: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """One aggregate's hosts, instances and policies; H hosts, V instances, P policies, C resource
    classes, and S providers that hosts share.

    Rows are sorted by name (hosts) and uuid (instances), so the same cloud gives the same arrays
    whatever the order it was read in. Inputs are checked where they are read; nothing is checked
    again here. No NaN but where stated.

    hosts, vms, policies, resource_classes : names
    policy_weights, thresholds : float64 (P,)
    scores : float64 (H, P), fraction of the host in use, before any move
    weights : float64 (V, P), what the instance adds to a host's score (times ``host_scale`` of that
        host)
    host_scale : float64 (H, P), 1 unless hosts differ in capacity; a bigger host has a smaller
        scale
    capacity_scores : float64 (H, P), the same for ``capacity_query``; NaN where a policy has none
    capacity_thresholds : float64 (P,), inf where a policy has none
    vm_host : intp (V,), where instances are before any move
    memory_mb : int64 (V,)
    movable : bool (V,), may be moved by spread and pack
    available : bool (H,), up, enabled, not forced down: counts in imbalances, may be a destination
    used, limits : float64 (H + S, C), allocated and allocatable ((total - reserved) * ratio) on
        each provider, the hosts' own first; limits 0 where a provider has none
    demands : float64 (V, C)
    groups : server groups with a member here
    evacuable : bool (V,), may be moved by the evacuator; by default as ``movable``
    draining : bool (H,), disabled but up: the evacuator empties them; by default no host
    min_unit, max_unit, step_size : float64 (H + S, C), what one consumer may be allocated; None
        means anything
    provider : intp (H, C), the row of ``limits`` from which instances of a host are allocated each
        class; None means that every host has all of its own
    shared : uuids (S,) of the providers that hosts share
    arriving : intp (n,), hosts at which an instance arrives, once for each
    unweighed : bool (V,), of which it is not known in every policy what they weigh (``weights`` has
        0 where it is not); by default none
    leaving : bool (V,), moving to another host, where their load counts; by default none
    doubtful : bool (V,), of which another try is likely to fail; by default none
    variances : float64 (V, P), of the load of each instance around ``weights``, in their unit; None
        means that it is not known
    cells : NUMA cells of hosts, and what instances need of them; None where none is known
    left_out : intp (P,), available hosts with the highest scores, and as many with the lowest, that
        do not count in the imbalance of a policy; None means no host in any policy
    """

    hosts: tuple[str, ...]
    vms: tuple[str, ...]
    policies: tuple[str, ...]
    resource_classes: tuple[str, ...]
    policy_weights: np.ndarray
    thresholds: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    host_scale: np.ndarray
    capacity_scores: np.ndarray
    capacity_thresholds: np.ndarray
    vm_host: np.ndarray
    memory_mb: np.ndarray
    movable: np.ndarray
    available: np.ndarray
    used: np.ndarray
    limits: np.ndarray
    demands: np.ndarray
    groups: tuple[Group, ...] = ()
    evacuable: np.ndarray = dataclasses.field(default_factory=_by_others)
    draining: np.ndarray = dataclasses.field(default_factory=_by_others)
    min_unit: np.ndarray | None = None
    max_unit: np.ndarray | None = None
    step_size: np.ndarray | None = None
    provider: np.ndarray | None = None
    shared: tuple[str, ...] = ()
    arriving: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    unweighed: np.ndarray = dataclasses.field(default_factory=_by_others)
    leaving: np.ndarray = dataclasses.field(default_factory=_by_others)
    doubtful: np.ndarray = dataclasses.field(default_factory=_by_others)
    variances: np.ndarray | None = None
    left_out: np.ndarray | None = None
    cells: 'Cells | None' = None

    def __post_init__(self) -> None:
        none = np.zeros(len(self.vms), dtype=bool)
        for name, default in (('unweighed', none), ('leaving', none), ('doubtful', none),
                              ('draining', np.zeros(len(self.hosts), dtype=bool)),
                              ('evacuable', self.movable)):
            if getattr(self, name) is BY_OTHERS:
                object.__setattr__(self, name, default)

    def loads(self, of_leaving: bool = True) -> np.ndarray:
        """Return float64 (V, P): the weights; NaN for an instance whose weight is not known in
        every policy.

        :param of_leaving: also of instances that leave for another host; otherwise NaN
        """
        unknown = self.unweighed if of_leaving else self.unweighed | self.leaving
        return np.where(unknown[:, None], np.nan, self.weights)

    def row(self, hosts: Index, classes: Index) -> Index:
        """Return intp (...): the row of ``limits`` from which instances of hosts are allocated
        classes; both broadcast."""
        return hosts if self.provider is None else self.provider[hosts, classes]
