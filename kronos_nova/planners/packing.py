"""An assignment of instances to hosts, with the free room of each host. Some instances may have no
host for a time."""

import copy

import numpy as np

from kronos_nova.model import TOLERANCE
from kronos_nova.model.keys import equal_rows
from kronos_nova.model.space import NOWHERE
from kronos_nova.model.space import SearchSpace


class Packing:
    """An assignment of the v instances of a search space to its h hosts, at the end of a plan. The
    order of the moves is found later. There are c kinds of room, such as resource classes.

    place : intp (v,), host of each instance; NOWHERE if the instance has no host
    free : float64 (h, c), free room of each host, as a fraction of the room of the largest host
    size : float64 (v, c), size of each instance, in the same unit as ``free``
    is_open : bool (h,), true for hosts that have instances and may take more
    may_empty : bool (h,), true for hosts that have instances and whose instances may all be moved
    alike : intp (v,), a number that is equal for instances of the same size
    """

    def __init__(self, space: SearchSpace):
        self.space = space
        self.free, self.size = _distinct(
            space.free / space.unit, space.sizes[:len(space.vms)] / space.unit)
        self.place = space.home.copy()
        everything = space.state.guests
        self.is_open = everything[space.hosts] > 0
        movable = np.bincount(space.home, minlength=len(space.hosts))
        self.may_empty = self.is_open & (everything[space.hosts] == movable)
        self.alike = equal_rows(np.round(self.size, 9))

    def copy(self) -> 'Packing':
        """Return a copy whose assignment can be changed without a change of the original. The copy
        has the same search space."""
        other = copy.copy(self)
        other.place, other.free, other.is_open = (
            self.place.copy(), self.free.copy(), self.is_open.copy())
        return other

    @property
    def moved(self) -> np.ndarray:
        """bool (v,): true for instances that are not on their original hosts."""
        return self.place != self.space.home

    def remove(self, vm: int) -> None:
        """Take an instance off its host, and free the room of the instance there."""
        self.free[self.place[vm]] += self.size[vm]
        self.place[vm] = NOWHERE

    def put(self, vm: int, host: int) -> None:
        self.free[host] -= self.size[vm]
        self.place[vm] = host

    def has_room(self, vm: int) -> np.ndarray:
        """Return bool (h,): true for open hosts that have room for the instance and may take the
        instance. The instance must not be on any host at the time of the call."""
        room = (self.free + TOLERANCE >= self.size[vm]).all(axis=1) & self.is_open
        return room & self.allows_host(vm)

    def allows_host(self, vm: int) -> np.ndarray:
        """Return bool (h,): true for hosts on which all rules except the rules about room allow the
        instance. The original host of the instance is always included."""
        return self.space.allows_host(vm, self.place)

    def go_home(self) -> None:
        """Put instances back on their original hosts where there is room, the instances with the
        most memory first."""
        space = self.space
        away = np.flatnonzero(self.moved & self.is_open[space.home])
        for vm in away[np.argsort(-space.memory[away], kind='stable')]:
            home = space.home[vm]
            if (self.free[home] + TOLERANCE >= self.size[vm]).all():
                self.remove(vm)
                self.put(vm, home)


def _distinct(free: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (free room, sizes) without repeated columns: of equal columns, only the first is kept.
    A policy on an allocated resource, for example, has the same column as the resource."""
    rounded = np.round(np.vstack([free, size]), 12)
    first = np.sort(np.unique(rounded, axis=1, return_index=True)[1])
    return free[:, first], size[:, first]
