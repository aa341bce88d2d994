"""Possible places of instances, as kinds for an integer program.

Instances that need the same room, may go to the same hosts and keep the same groups apart are of
one *kind*, and only how many of a kind arrive at a host or leave it is decided. So a program is a
few variables for each host and kind, whatever the number of instances. The order of the moves is
decided later, by :meth:`State.delta`, as for every search.
"""

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from kronos_nova.model.compiled import Model
from kronos_nova.model.keys import equal_rows
from kronos_nova.model.numa import CellUse
from kronos_nova.model.numa import Place
from kronos_nova.model.problem import TOLERANCE
from kronos_nova.model.program import STAYS
from kronos_nova.model.program import Solution
from kronos_nova.model.rules import ArrivalLimit
from kronos_nova.model.rules import CellRoom
from kronos_nova.model.rules import GroupPolicy
from kronos_nova.model.rules import LoadLimit
from kronos_nova.model.rules import ReservedRoom
from kronos_nova.model.rules import Room
from kronos_nova.model.state import State


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """The end of an integer program about instances that leave.

    moves : (instance, destination), in no order
    stays : intp, instances that were to leave and find no place
    is_proven : whether no fewer can stay
    parts : instance to the parts of its host, NUMA cells, in which it is meant to lie
    """

    moves: list[tuple[int, int]]
    stays: np.ndarray
    is_proven: bool
    parts: dict[int, tuple[int, ...]]


class Assignment:
    """The instances that have to leave their hosts, and those that may give way.

    Of the rules of the model, those on room, NUMA cells, load and groups that are kept apart are
    left to the program; every other rule is asked of the state as it is.

    kind : intp (v,); allowed : bool (k, h), hosts that a kind may go to
    emptied : what is in use of NUMA cells without the instances; None where these forbid nothing
    lies : intp (v,), in which of ``places``, of NUMA cells, each instance lies
    is_exact : no rule forbids a host that might be permitted once others have moved
    """

    def __init__(self, state: State, model: Model, leaving: np.ndarray, others: np.ndarray,
                 hosts: np.ndarray, by_weight: bool = False,
                 closed: np.ndarray | None = None):
        """
        :param leaving: intp, instances that have to leave
        :param others: intp, instances that may move; none of those
        :param hosts: intp, hosts that may be moved to; sorted
        :param by_weight: instances of one kind have the same weights
        :param closed: bool (h,), of the hosts, those to which nothing goes; None for none
        """
        self.state, self.model, self.problem, self.hosts = state, model, state.problem, hosts
        self.vms = np.concatenate([leaving, others])
        self.must = np.arange(len(self.vms)) < len(leaving)
        self.groups = [rule for rule in model.rules if isinstance(rule, GroupPolicy)]
        self.apart = self._groups_apart()
        self.shared_rows = self._shared_rows()
        self.is_exact = True
        self.emptied = self._emptied()
        self.kind, self.allowed = self._kinds(by_weight)
        self.lies, self.places = self._lies()
        self.first = np.unique(self.kind, return_index=True)[1]
        self.sample, self.is_leaving = self.vms[self.first], self.must[self.first]
        if closed is not None:
            self.allowed &= ~closed
        self.forbidden: set[tuple[int, int]] = set()

    def _groups_apart(self) -> np.ndarray:
        """Return bool (G,): groups whose members a rule keeps apart."""
        members = self.model.memberships
        apart = np.zeros(len(members.groups), dtype=bool)
        for rule in self.groups:
            apart |= rule.forbids & members.anti
        return apart

    def _kinds(self, by_weight: bool) -> tuple[np.ndarray, np.ndarray]:
        allowed = np.ones((len(self.vms), len(self.hosts)), dtype=bool)
        for rule in self.model.rules:
            if isinstance(rule, Room | LoadLimit | ArrivalLimit | ReservedRoom):
                continue
            if isinstance(rule, CellRoom) and self.emptied is not None:
                use = self.emptied
                kinds, row = np.unique(use.cells.kind[self.vms], return_inverse=True)
                allowed &= use.fits(kinds)[row][:, self.hosts]
                continue
            if isinstance(rule, GroupPolicy):
                rule = rule.together_only(self.model.memberships)
            found = rule.allows(self.state, self.vms[:, None], self.hosts)
            allowed &= found
            self.is_exact &= rule.is_additive or bool(found.all())
        sets: dict[tuple[int, ...], int] = {}
        group = np.array([sets.setdefault(self._apart_of(vm), len(sets))
                          for vm in self.vms.tolist()])
        key = np.column_stack([
            self.must, group, equal_rows(allowed), self.shared_rows, self._places_left(),
            self.problem.demands[self.vms], self.problem.memory_mb[self.vms],
            self.problem.weights[self.vms] if by_weight else self.must,
            *(kind[self.vms] for kind in self.model.kinds_by_rules), *self._kinds_by_cells()])
        kind = equal_rows(key)
        return kind, allowed[np.unique(kind, return_index=True)[1]]

    def _emptied(self) -> CellUse | None:
        """Return the use of NUMA cells without the instances; None where NUMA cells forbid
        nothing."""
        if self.state.cells is None or not any(
                isinstance(rule, CellRoom) for rule in self.model.rules):
            return None
        return self.state.cells.without(self.vms.tolist(), self.state.vm_host)

    def _kinds_by_cells(self) -> list[np.ndarray]:
        """Return intp (v,) each. Instances that differ in one of these numbers need other NUMA
        cells."""
        return [] if self.emptied is None else [self.emptied.cells.kind[self.vms]]

    def _lies(self) -> tuple[np.ndarray, list[tuple[Place, ...]]]:
        """Return intp (v,), the number of the place in which each instance is now, and the
        places."""
        known: dict[tuple[Place, ...], int] = {}
        if self.emptied is None or self.state.cells is None:
            return np.zeros(len(self.vms), dtype=np.intp), [()]
        lies = [known.setdefault(self.state.cells.places.get(vm, ()), len(known))
                for vm in self.vms.tolist()]
        return np.array(lies, dtype=np.intp), list(known)

    def _shared_rows(self) -> np.ndarray:
        """Return intp (v, C): the row from which each instance is allocated each class; -1 where
        its host has the class itself."""
        home, classes = np.indices((len(self.vms), self.problem.demands.shape[1]))
        rows = np.asarray(self.problem.row(self.state.vm_host[self.vms][home], classes))
        return np.where(rows >= len(self.problem.hosts), rows, -1)

    def _places_left(self) -> np.ndarray:
        """Return intp (v, n): the place that each instance which has to leave is in, for each group
        that is kept apart by places other than hosts; -1 for all others."""
        members, home = self.model.memberships, self.state.vm_host[self.vms]
        groups = [np.full(len(self.vms), group) for group in np.flatnonzero(self.apart)
                  if members.groups[group].places is not None]
        left = [np.where(self.must & members.has(group, self.vms), members.place(group, home), -1)
                for group in groups]
        return np.column_stack(left) if left else np.zeros((len(self.vms), 0), dtype=np.intp)

    def _apart_of(self, vm: int) -> tuple[int, ...]:
        groups = self.model.memberships.groups_of(vm)
        return tuple(sorted(groups[self.apart[groups]].tolist()))

    def forbid(self, vm: int, host: int) -> None:
        """Let no instance of the kind of ``vm`` go to a host, in what is solved from now on."""
        if vm in self.vms and host in self.hosts:
            kind = int(self.kind[np.flatnonzero(self.vms == vm)[0]])
            self.forbidden.add((kind, int(np.searchsorted(self.hosts, host))))

    def why_too_large(self, vm: int, others: np.ndarray) -> str:
        """Return why no host could hold an instance if all that may give way left it; '' if one
        could.

        :param others: intp, instances that may give way
        """
        problem, (row,) = self.problem, np.flatnonzero(self.vms == vm)
        hosts = self.hosts[self.allowed[self.kind[row]]]
        room = _free(self.state)
        np.add.at(room, self.state.vm_host[others], problem.demands[others])
        missing = (problem.demands[vm] > room[hosts] + TOLERANCE) & self._is_own(hosts)
        if not len(hosts) or not missing.any(axis=1).all():
            return ''
        c = int(missing.sum(axis=0).argmax())
        return (f'it needs {problem.demands[vm, c]:g} {problem.resource_classes[c]}, and none of '
                f'{len(hosts)} hosts would have more than {room[hosts, c].max():g} free if all '
                f'servers that may be moved left it')

    @property
    def why_too_little(self) -> str:
        """Return why those that have to leave do not fit elsewhere together; '' if that is not
        known."""
        needed = self.problem.demands[self.vms[self.must]].sum(axis=0)
        free = _free(self.state)[self.hosts].sum(axis=0)
        short = (needed > free + TOLERANCE) & self._is_own(self.hosts).all(axis=0)
        if not short.any():
            return ''
        c = int(short.argmax())
        return (f'the {int(self.must.sum())} servers that need a place need {needed[c]:g} '
                f'{self.problem.resource_classes[c]} together, and the {len(self.hosts)} hosts '
                f'that may take them have {free[c]:g} free')

    def _is_own(self, hosts: np.ndarray) -> np.ndarray:
        """Return bool (h, C): whether hosts have a class themselves and do not share it."""
        classes = np.arange(self.problem.demands.shape[1])
        return np.asarray(self.problem.row(hosts[:, None], classes) == hosts[:, None])

    def here(self) -> np.ndarray:
        """Return intp (k, h): how many of each kind that may move are on each host."""
        pairs, _lies, counts = self.leaving_pairs()
        here = np.zeros((len(self.sample), len(self.hosts)), dtype=np.intp)
        np.add.at(here, tuple(pairs.T), counts)
        return here

    def leaving_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return intp (n, 2) kind and host, (n,) places, and (n,) the number of movable instances
        there."""
        at = np.full(len(self.problem.hosts), -1)
        at[self.hosts] = np.arange(len(self.hosts))
        places = at[self.state.vm_host[self.vms]]
        optional = ~self.must & (places >= 0)
        rows, counts = np.unique(np.column_stack([
            self.kind[optional], places[optional], self.lies[optional]]), axis=0,
            return_counts=True)
        return rows[:, :2], rows[:, 2], counts

    def permitted(self) -> np.ndarray:
        """Return bool (k, h): hosts that a kind may go to, without the pairs that were forbidden
        since."""
        allowed = self.allowed.copy()
        for pair in self.forbidden:
            allowed[pair] = False
        return allowed

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """float64 (k, P): the mean weight of a kind."""
        weights = np.zeros((len(self.sample), len(self.problem.policies)))
        np.add.at(weights, self.kind, self.problem.weights[self.vms])
        return weights / np.bincount(self.kind, minlength=len(weights))[:, None]

    def ended(self, solution: Solution) -> Ended:
        """Return which instances of each kind go where: the heaviest to the host with the least
        load. The moves of one round after the other."""
        problem, weights = self.problem, self.problem.policy_weights
        load = self.state.scores[self.hosts] @ weights
        moves, is_left = [], np.ones(len(self.vms), dtype=bool)
        parts: dict[int, tuple[int, ...]] = {}
        for number, (arrive, leave) in enumerate(zip(solution.arrive, solution.leave,
                                                     strict=True)):
            for kind in range(len(self.sample)):
                both = np.minimum(arrive[kind], leave[kind])
                going = self._going(kind, is_left, int(arrive[kind].sum()), leave[kind] - both,
                                    {h: found for (n, k, h), found in solution.lies.items()
                                     if (n, k) == (number, kind)})
                places = np.repeat(np.arange(len(self.hosts)), arrive[kind] - both)
                is_left[going] = False
                for vm in going.tolist():
                    each = load[places]
                    at = int(each.argmin())
                    host = places[at]
                    places = np.delete(places, at)
                    load[host] += problem.weights[self.vms[vm]] * problem.host_scale[
                        self.hosts[host]] @ weights
                    moves.append((int(self.vms[vm]), int(self.hosts[host])))
                    ways = solution.ways.get((number, kind, int(host)))
                    if ways:
                        parts[moves[-1][0]] = ways.pop()
        stays = self.vms[is_left & self.must]
        return Ended(moves, np.sort(stays),
                     not len(stays) or (
                         self.is_exact and solution.bound > STAYS * (len(stays) - 0.5)), parts)

    def _going(self, kind: int, is_left: np.ndarray, count: int, leave: np.ndarray,
               lies: Mapping[int, Mapping[int, int]]) -> np.ndarray:
        """Return intp: the positions of the instances of a kind that go next. Of those that have to
        leave, the heaviest come first; of the others, the lightest of each host.

        :param is_left: bool (v,), those that have not gone
        :param count: of those that have to leave
        :param leave: intp (h,), of the others
        :param lies: host to how many of those that lie in each place
        """
        vms = np.flatnonzero((self.kind == kind) & is_left)
        size = self.problem.weights[self.vms[vms]] @ self.problem.policy_weights
        vms = vms[np.lexsort((self.vms[vms], -size))]
        if self.is_leaving[kind]:
            return vms[:count]
        home = self.state.vm_host[self.vms[vms]]
        going = [vms[:0]]
        for h in np.flatnonzero(leave).tolist():
            here = vms[home == self.hosts[h]][::-1]
            if len(self.places) > 1:
                # Instances that make room must leave the cells in which room is needed.
                here = np.concatenate([here[self.lies[here] == lie][:some]
                                       for lie, some in sorted(lies[h].items())])
            going.append(here[:leave[h]])
        return np.concatenate(going)


def parts_of_free_room(state: State, vms: np.ndarray) -> np.ndarray:
    """Return float64 (n,): the part of all free room that each instance needs, in the resource
    class in which it needs the largest part."""
    free = _free(state)[state.problem.available].sum(axis=0)
    return (state.problem.demands[vms] / np.maximum(free, 1.0)).max(axis=1, initial=0.0)


def roomiest(state: State, pairs: int) -> np.ndarray:
    """Return bool (H,): all hosts that are not to be emptied. Where these and the sizes of
    instances make more pairs than permitted, only the hosts with most free room are."""
    problem = state.problem
    free_to_move = np.flatnonzero(problem.movable | problem.evacuable)
    kinds = len(np.unique(problem.demands[free_to_move], axis=0))
    if state.cells is not None and problem.cells is not None:
        # Each way to lie in the cells of a host is a pair of its own.
        lies = {(problem.cells.kind[vm], state.cells.places.get(vm))
                for vm in free_to_move.tolist()}
        kinds = max(kinds, len(lies)) * problem.cells.exists.shape[1]
    free = _free(state)
    part = (free / np.maximum(free[problem.available].sum(axis=0), 1.0)).min(axis=1, initial=1.0)
    part[problem.draining] = -1.0
    hosts = ~problem.draining
    hosts[np.argsort(-part, kind='stable')[max(pairs // max(kinds, 1), 1):]] = False
    return hosts


def first_that_fit(state: State, vms: list[int], hosts: np.ndarray) -> list[int]:
    """Return the first of some instances, at least one: as many as would fit if the free room of
    some hosts were in one place.

    :param hosts: bool (H,)
    """
    problem = state.problem
    needed, free = np.cumsum(problem.demands[vms], axis=0), problem.limits - state.used
    for c in range(free.shape[1]):
        rows = np.unique(problem.row(np.flatnonzero(hosts), c))
        needed[:, c] -= np.maximum(free[rows, c], 0.0).sum()
    fit = (needed <= 0.0).all(axis=1)
    return vms[:max(int(fit.sum()), 1)]


def _free(state: State) -> np.ndarray:
    """Return float64 (H, C): the free amounts of the hosts' own inventories."""
    return np.maximum(state.problem.limits - state.used, 0.0)[:len(state.guests)]
