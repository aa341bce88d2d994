"""Restarts of a lost host's servers in the order in which Masakari evacuates servers. Nova's
scheduler chooses the new hosts one after the other.

Masakari evacuates the servers of a failed host without naming destinations. Masakari begins with
the servers that have the metadata ``HA_Enabled``. The other servers follow in the order in which
Nova lists servers, the newest first (``masakari.engine.drivers.taskflow.host_failure``). The
scheduler chooses the host with the highest sum of weights (``nova.scheduler.weights``). Here only
the weights of free memory, VCPUs and disk count, with Nova's default multipliers.

A server of an affinity group restarts only if the group has members on hosts that have not failed.
Otherwise Nova counts all members as being on the failed host, and accepts no other host for the
group (``nova.scheduler.utils.setup_instance_group``).
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova.model.problem import TOLERANCE
from kronos_nova.objects.snapshot import Instance

WEIGHED = ('VCPU', 'MEMORY_MB', 'DISK_GB')
"""Resource classes whose free amounts Nova's scheduler weighs."""
HA_ENABLED = 'HA_Enabled'
"""Key of the server metadata by which Masakari evacuates servers first."""


def in_order(instances: Sequence[Instance]) -> list[int]:
    """Return the positions of instances in the order in which Masakari evacuates them."""
    def is_later(position: int) -> tuple[bool, float, str]:
        each = instances[position]
        return (each.metadata.get(HA_ENABLED, '').lower() != 'true', -(each.launched_at or 0.0),
                each.uuid)
    return sorted(range(len(instances)), key=is_later)


def restarts(order: Sequence[int], demands: np.ndarray, free: np.ndarray, classes: Sequence[str],
             may: Callable[[int, Mapping[int, int]], np.ndarray]) -> dict[int, int] | None:
    """Place instances one after the other, as Nova's scheduler would. Return {position: host}; None
    if it is not certain that every instance finds a host.

    Nova's scheduler may have a weigher for operations in progress, by which the scheduler avoids
    the hosts that it has chosen before. Whether the scheduler has this weigher is not known. So the
    instances are placed once with this weigher and once without it, and both placements have to
    succeed.

    The placement with the weigher may fail if each instance has more possible hosts than there are
    instances before it. Even if each earlier instance takes another host, one possible host is then
    left.

    :param order: positions of the instances, in the order in which they are placed
    :param demands: float64 (instances, resource classes), needs of the instances
    :param free: float64 (hosts, resource classes), free amounts of the hosts
    :param may: called with a position and {position: host} of the placed instances; returns bool,
        one value for each host: True if all rules except those about room permit the host
    """
    way = _chosen(order, demands, free, classes, may, avoid=False)
    if way is None:
        return None
    is_certain = all(np.count_nonzero(_fits(demands[vm], free) & may(vm, {})) > before
                     for before, vm in enumerate(order))
    if is_certain or _chosen(order, demands, free, classes, may, avoid=True) is not None:
        return way
    return None


def _chosen(order: Sequence[int], demands: np.ndarray, free: np.ndarray, classes: Sequence[str],
            may: Callable[[int, Mapping[int, int]], np.ndarray],
            avoid: bool) -> dict[int, int] | None:
    free, busy = free.copy(), np.zeros(len(free))
    placed: dict[int, int] = {}
    weighed = [c for c, name in enumerate(classes) if name in WEIGHED]
    for vm in order:
        hosts = np.flatnonzero(_fits(demands[vm], free) & may(vm, placed))
        if not len(hosts):
            return None
        weights = _normal(free[hosts][:, weighed]).sum(axis=1)
        if avoid:
            weights -= _normal(busy[hosts, np.newaxis])[:, 0]
        host = int(hosts[weights.argmax()])
        placed[vm] = host
        free[host] -= demands[vm]
        busy[host] += 1
    return placed


def _fits(demand: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return bool, one value for each host: True if the host has room for an instance."""
    return ((demand <= free + TOLERANCE) | (demand == 0)).all(axis=1)


def _normal(values: np.ndarray) -> np.ndarray:
    """Return the values with each column scaled to the range 0 to 1, as ``nova.weights.normalize``
    does. A column of equal values becomes 0."""
    low = values.min(axis=0)
    width = values.max(axis=0) - low
    return (values - low) / np.where(width > 0, width, np.inf)
