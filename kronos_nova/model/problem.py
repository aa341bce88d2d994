"""The data of one aggregate as arrays, which are the input of planning."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from kronos_nova.model.arrays import Index

if TYPE_CHECKING:
    from kronos_nova.model.numa import Cells

TOLERANCE = 1e-9
"""Largest difference, as a fraction of a host, at which two loads or two decreases of the imbalance
count as equal. All planners use this tolerance. Raised, decreases that an operator could measure
are ignored; lowered, rounding errors of float64 decide between plans. Fixed between the accuracy of
loads, three digits, and the accuracy of float64, fifteen digits."""
BY_OTHERS = np.zeros(0, dtype=bool)
"""Placeholder for an array that was not given. The default of the array depends on other fields and
is set later."""


def _by_others() -> np.ndarray:
    return BY_OTHERS


def rounded(value: float | np.ndarray) -> np.ndarray:
    """Return a number, or an array of numbers, rounded to a multiple of :data:`TOLERANCE`, so that
    rounding errors do not count."""
    return np.round(value / TOLERANCE) * TOLERANCE


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A server group with a member in the problem, or a rule of an operator about several servers.
    A *place* is a host or a failure domain.

    members : intp (n_members,), instances of this problem; other members are ignored
    anti : True if members are kept apart; False if members are kept together
    hard : False for soft affinity and soft anti-affinity
    max_per_host : maximum number of members of an ``anti`` group in one place
    arriving : intp (n_arriving,), hosts on which one more member counts, in addition to
        ``members``. A member that is migrating counts on its destination. A member on a host
        outside of the problem counts on a host of the problem in the same place
    places : intp (H,), number of the place of each host; hosts of one failure domain are one place.
        None if every host is a separate place
    most_places : maximum number of places of a group whose members are kept together
    rule : name of the operator's rule; '' for a server group
    yields : whether the rule may be relaxed if a host cannot be emptied otherwise
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
    """The hosts, instances and policies of one aggregate. There are H hosts, V instances, P
    policies, C resource classes, and S providers that hosts share.

    Hosts are sorted by name and instances by uuid, so that arrays do not depend on the order in
    which the cloud is read. NaN occurs only in the fields that mention NaN. The evacuator is the
    planner that empties hosts.

    hosts, vms, policies, resource_classes : names
    policy_weights, thresholds : float64 (P,), weight and threshold of each policy
    scores : float64 (H, P), fraction of each host in use, by each policy, before any move
    weights : float64 (V, P), load of each instance. The load multiplied by ``host_scale`` of its
        host is the part of the host's score that the instance causes
    host_scale : float64 (H, P), 1 unless hosts differ in capacity; a bigger host has a smaller
        scale
    capacity_scores : float64 (H, P), scores by ``capacity_query``; NaN for a policy without this
        query
    capacity_thresholds : float64 (P,), inf for a policy without this threshold
    vm_host : intp (V,), host of each instance before any move
    memory_mb : int64 (V,), MiB of memory of each instance
    movable : bool (V,), true for instances that planners other than the evacuator may move
    available : bool (H,), true for hosts that count in imbalances and may be destinations. These
        hosts are up, enabled and not forced down, and their load is known
    used : float64 (H + S, C), allocated amount of each provider, the hosts before the shared
        providers
    limits : float64 (H + S, C), allocatable amount of each provider, (total - reserved) * ratio; 0
        if the provider does not have the class
    demands : float64 (V, C), allocation of each instance
    groups : server groups with a member in the problem, and operators' rules about several servers
    evacuable : bool (V,), true for instances that the evacuator may move; by default as ``movable``
    draining : bool (H,), true for hosts that the evacuator empties; by default none
    min_unit, max_unit, step_size : float64 (H + S, C), placement's limits of the amount of one
        consumer; None for no limits
    provider : intp (H, C), the row of ``limits`` from which each class is allocated for the
        instances of each host. None if every host has all classes itself
    shared : uuids (S,) of the providers that hosts share
    arriving : intp (n,), destinations of the instances that are migrating to hosts of the problem,
        from inside or outside of the problem
    unweighed : bool (V,), true for instances whose load is not known in every policy; ``weights``
        is 0 where the load is not known. By default none
    leaving : bool (V,), true for instances that are migrating away from their host in ``vm_host``.
        The scores already count the loads of these instances on the destinations, and no longer on
        ``vm_host``. By default none
    doubtful : bool (V,), true for instances whose next move is likely to fail; by default none
    variances : float64 (V, P), variance of each instance's load around ``weights``; None if not
        known
    noise : float64 (P,), the imbalance that random changes of load cause; None if not known
    cells : NUMA cells of hosts and NUMA topologies of instances; None if none is known
    left_out : intp (P,), number n of hosts that each policy leaves out of its imbalance at each
        end: the n available hosts with the highest scores, and the n with the lowest scores. None
        if all hosts count
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
    noise: np.ndarray | None = None
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
        """Return float64 (V, P): the loads of instances. If the load of an instance is unknown in
        at least one policy, all its loads are NaN.

        :param of_leaving: whether the loads of instances that are migrating are returned; if False,
            the loads of these instances are NaN
        """
        unknown = self.unweighed if of_leaving else self.unweighed | self.leaving
        return np.where(unknown[:, None], np.nan, self.weights)

    def row(self, hosts: Index, classes: Index) -> Index:
        """Return intp (...): the row of ``limits`` from which a resource class is allocated for the
        instances of a host. ``hosts`` and ``classes`` are broadcast to one shape."""
        return hosts if self.provider is None else self.provider[hosts, classes]
