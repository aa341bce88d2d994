"""A half-done packing: where instances are to be, and what room that leaves."""

import dataclasses

import numpy as np

from kronos_nova.planners.arena import Arena
from kronos_nova.simulation import TOLERANCE

NOWHERE = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A packing to come back to."""

    place: np.ndarray
    free: np.ndarray
    is_open: np.ndarray


class Packing:
    """Where every instance of an arena ends; the way there is found later.

    place : intp (v,), host of each instance, or NOWHERE
    free : float64 (h, c), room left, in parts of the biggest host
    size : float64 (v, c), the same unit
    is_open : bool (h,), hosts that hold instances and may be given more
    may_empty : bool (h,), hosts whose instances may all be moved
    alike : intp (v,), equal for instances of the same size
    """

    def __init__(self, arena: Arena):
        self.arena = arena
        self.free, self.size = _distinct(arena.free / arena.unit, arena.demands / arena.unit)
        self.place = arena.home.copy()
        everything = np.bincount(arena.state.vm_host, minlength=len(arena.problem.hosts))
        self.is_open = everything[arena.hosts] > 0
        movable = np.bincount(arena.home, minlength=len(arena.hosts))
        self.may_empty = self.is_open & (everything[arena.hosts] == movable)
        self.alike = equal_rows(np.round(self.size, 9))
        self._group_place = _group_places(arena)

    def mark(self) -> Mark:
        return Mark(self.place.copy(), self.free.copy(), self.is_open.copy())

    def back_to(self, mark: Mark) -> None:
        self.place[:], self.free[:], self.is_open[:] = mark.place, mark.free, mark.is_open

    @property
    def moved(self) -> np.ndarray:
        """bool (v,): instances that are not where they were."""
        return self.place != self.arena.home

    def on(self, host: int) -> np.ndarray:
        return np.flatnonzero(self.place == host)

    def take(self, vm: int) -> None:
        self.free[self.place[vm]] += self.size[vm]
        self.place[vm] = NOWHERE

    def put(self, vm: int, host: int) -> None:
        self.free[host] -= self.size[vm]
        self.place[vm] = host

    def has_room(self, vm: int) -> np.ndarray:
        """bool (h,): open hosts with room for an instance that is nowhere."""
        room = (self.free + TOLERANCE >= self.size[vm]).all(axis=1) & self.is_open
        return room & self.lets_in(vm)

    def lets_in(self, vm: int) -> np.ndarray:
        """bool (h,): hosts that the constraints let an instance go to, and its home; room aside."""
        arena = self.arena
        allowed = arena.permitted(vm).copy()
        allowed[arena.home[vm]] = True
        group = arena.group[vm]
        if group >= 0 and arena.problem.groups[group].anti:
            fellows = self.place[self._group_place[group]]
            count = np.bincount(fellows[fellows >= 0], minlength=len(allowed))
            allowed &= count < arena.problem.groups[group].max_per_host
        return allowed

    def go_home(self) -> None:
        """Put instances back where they were if there is room; the biggest memory first."""
        arena = self.arena
        away = np.flatnonzero(self.moved & self.is_open[arena.home])
        for vm in away[np.argsort(-arena.memory[away], kind='stable')]:
            home = arena.home[vm]
            if (self.free[home] + TOLERANCE >= self.size[vm]).all():
                self.take(vm)
                self.put(vm, home)


def _distinct(free: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without kinds of room that say the same as another, such as a policy on what is allocated."""
    columns, first = np.round(np.vstack([free, size]), 12).T, []
    for c, column in enumerate(columns):
        if not any(np.array_equal(column, columns[other]) for other in first):
            first.append(c)
    return free[:, first], size[:, first]


def equal_rows(rows: np.ndarray) -> np.ndarray:
    """intp (n,), equal for equal rows, in the order of the rows; without the copies that
    ``np.unique`` makes of them."""
    sequence = np.lexsort((np.arange(len(rows)), *rows.T[::-1]))
    is_new = np.zeros(len(rows), dtype=bool)
    for column in rows.T:
        is_new[1:] |= np.diff(column[sequence]) != 0
    number = np.empty(len(rows), dtype=np.intp)
    number[sequence] = np.cumsum(is_new)
    return number


def _group_places(arena: Arena) -> dict[int, np.ndarray]:
    return {int(group): np.flatnonzero(arena.group == group)
            for group in np.unique(arena.group) if group >= 0}
