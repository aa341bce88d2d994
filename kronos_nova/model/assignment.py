"""The choice of hosts for instances: the input and the result of an integer program.

Instances are of one *kind* if they are equal for the program: they need the same room, may go to
the same hosts and are kept apart by the same groups. The program decides only how many instances of
each kind arrive at a host or leave the host. So the size of the program does not depend on the
number of instances. The order of the moves is found later (:mod:`kronos_nova.planners.order`).
"""

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from kronos_nova import plural
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
    """The end state that an integer program finds for instances that leave their hosts.

    moves : pairs (instance, destination), in the order of the program's stages (groups of moves)
    stays : intp, instances that have to leave but stay, because no host is found for them
    is_proven : True if it is proven that no other end state has fewer instances in ``stays``
    parts : {instance: NUMA cells that the program chose on the instance's new host}
    """

    moves: list[tuple[int, int]]
    stays: np.ndarray
    is_proven: bool
    parts: dict[int, tuple[int, ...]]


class Assignment:
    """The input of an integer program that chooses hosts for instances.

    The input has v instances and h hosts. Some of the instances have to leave their hosts. The
    other instances may move to make room. The h hosts are the possible destinations. A kind is a
    set of instances that are equal for the program, such as instances with the same needs. There
    are k kinds.

    The program itself applies the rules about room, NUMA cells, load and groups that are kept
    apart. All other rules are evaluated once, in the present state.

    kind : intp (v,), kind of each instance
    allowed : bool (k, h), true for hosts that instances of a kind may go to
    emptied : use of the hosts' NUMA cells by all instances except the v instances; None if no rule
        about NUMA cells applies
    places : the distinct sets of NUMA cells that instances use now, each a tuple of Place
    lies : intp (v,), position in ``places`` of the NUMA cells that each instance uses
    is_exact : False if a rule forbids a host and may permit the host after other instances have
        moved, or in another plan
    """

    def __init__(self, state: State, model: Model, leaving: np.ndarray, others: np.ndarray,
                 hosts: np.ndarray, by_weight: bool = False,
                 closed: np.ndarray | None = None, sets: np.ndarray | None = None,
                 repaired: np.ndarray | None = None):
        """
        :param leaving: intp, instances that have to leave
        :param others: intp, instances that may move but do not have to
        :param hosts: intp, possible destinations, sorted
        :param by_weight: True to put two instances into one kind only if their loads are equal
        :param closed: bool (h,), true for hosts of ``hosts`` to which no instance may go; None if
            instances may go to all hosts
        :param sets: intp (V,), numbers that differ for instances that must not be of one kind; None
            for no such instances
        :param repaired: bool (G,), true for the groups whose violations are to be repaired; None
            for no such groups. Members that are kept together may go to every place where they can
            gather, and to hosts of their own place
        """
        self.state, self.model, self.problem, self.hosts = state, model, state.problem, hosts
        self.vms = np.concatenate([leaving, others])
        self.must = np.arange(len(self.vms)) < len(leaving)
        self.groups = [rule for rule in model.rules if isinstance(rule, GroupPolicy)]
        self.apart = self._groups_apart()
        self.repaired = np.zeros(len(self.apart), dtype=bool) if repaired is None else repaired
        self.shared_rows = self._shared_rows()
        self.is_exact = True
        self._sets = np.zeros(len(self.problem.vms), dtype=np.intp) if sets is None else sets
        self.emptied = self._emptied()
        self.kind, self.allowed = self._kinds(by_weight)
        self.lies, self.places = self._lies()
        self.first = np.unique(self.kind, return_index=True)[1]
        self.sample, self.is_leaving = self.vms[self.first], self.must[self.first]
        if closed is not None:
            self.allowed &= ~closed
        self.forbidden: set[tuple[int, int]] = set()

    def _groups_apart(self) -> np.ndarray:
        """Return bool (G,), one value for each of G groups: true if a rule keeps the members of the
        group apart."""
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
                rule = dataclasses.replace(rule, forbids=rule.forbids & ~self.repaired)
            found = rule.allows(self.state, self.vms[:, None], self.hosts)
            allowed &= found
            self.is_exact &= rule.is_additive and not rule.is_provisional or bool(found.all())
        allowed &= self._allowed_by_repaired()
        sets: dict[tuple[int, ...], int] = {}
        group = np.array([sets.setdefault(self._apart_of(vm), len(sets))
                          for vm in self.vms.tolist()])
        key = np.column_stack([
            self.must, self._sets[self.vms], group, equal_rows(allowed), self.shared_rows,
            self._places_left(),
            self.problem.demands[self.vms], self.problem.memory_mb[self.vms],
            self.problem.weights[self.vms] if by_weight else self.must,
            *(self._kinds_by_prices() if by_weight else []),
            *(kind[self.vms] for kind in self.model.kinds_by_rules), *self._kinds_by_cells()])
        kind = equal_rows(key)
        return kind, allowed[np.unique(kind, return_index=True)[1]]

    def _emptied(self) -> CellUse | None:
        """Return the use of NUMA cells by all instances that are not in the assignment; None if no
        rule about NUMA cells applies."""
        if self.state.cells is None or not any(
                isinstance(rule, CellRoom) for rule in self.model.rules):
            return None
        return self.state.cells.without(self.vms.tolist(), self.state.vm_host)

    def _kinds_by_prices(self) -> list[np.ndarray]:
        """Return a list of arrays (v,): numbers that differ for instances whose moves have
        different prices. Prices of pairs of hosts, which depend on the present host, are left
        out."""
        prices = self.model.prices
        kinds = [] if prices.vms is None else [prices.vms]
        if prices.preferences is not None:
            kinds.append(prices.preferences.kind)
        return [kind[self.vms] for kind in kinds]

    def _kinds_by_cells(self) -> list[np.ndarray]:
        """Return a list with one array intp (v,): numbers that differ for instances that need
        different NUMA cells. The list is empty if no rule about NUMA cells applies."""
        return [] if self.emptied is None else [self.emptied.cells.kind[self.vms]]

    def _lies(self) -> tuple[np.ndarray, list[tuple[Place, ...]]]:
        """Return :attr:`lies` and :attr:`places`, the NUMA cells that the instances use.

        :returns: intp (v,), for each instance a position in the list; and the list of the distinct
            sets of NUMA cells
        """
        known: dict[tuple[Place, ...], int] = {}
        if self.emptied is None or self.state.cells is None:
            return np.zeros(len(self.vms), dtype=np.intp), [()]
        lies = [known.setdefault(self.state.cells.places.get(vm, ()), len(known))
                for vm in self.vms.tolist()]
        return np.array(lies, dtype=np.intp), list(known)

    def _shared_rows(self) -> np.ndarray:
        """Return intp (v, C): the shared provider from which each of v instances has its allocation
        of each of C resource classes. The value is the provider's row of ``Problem.limits``, or -1
        if the instance's host itself provides the class."""
        home, classes = np.indices((len(self.vms), self.problem.demands.shape[1]))
        rows = np.asarray(self.problem.row(self.state.vm_host[self.vms][home], classes))
        return np.where(rows >= len(self.problem.hosts), rows, -1)

    def _places_left(self) -> np.ndarray:
        """Return intp (v, groups): the index of the failure domain in which each instance is now,
        for each group whose members have to be in different failure domains. The value is -1 if the
        instance is not in the group, or does not have to leave its host."""
        members, home = self.model.memberships, self.state.vm_host[self.vms]
        groups = [np.full(len(self.vms), group) for group in np.flatnonzero(self.apart)
                  if members.groups[group].places is not None]
        left = [np.where(self.must & members.has(group, self.vms), members.place(group, home), -1)
                for group in groups]
        return np.column_stack(left) if left else np.zeros((len(self.vms), 0), dtype=np.intp)

    def _allowed_by_repaired(self) -> np.ndarray:
        """Return bool (v, h): false for members of repaired groups on hosts where the members of
        the group cannot gather; true for all other instances."""
        state, members = self.state, self.model.memberships
        allowed = np.ones((len(self.vms), len(self.hosts)), dtype=bool)
        for group in np.flatnonzero(self.repaired & ~members.anti).tolist():
            rows = np.flatnonzero(members.has(np.full(len(self.vms), group), self.vms))
            home = members.place(np.full(len(rows), group), state.vm_host[self.vms[rows]])
            places = members.place(np.full(len(self.hosts), group), self.hosts)
            allowed[rows] &= state.groups.may_gather(group, self.hosts) | (
                home[:, None] == places)
        return allowed

    def _apart_of(self, vm: int) -> tuple[int, ...]:
        groups = self.model.memberships.groups_of(vm)
        return tuple(sorted(groups[(self.apart | self.repaired)[groups]].tolist()))

    def forbid(self, vm: int, host: int) -> None:
        """Forbid ``host`` to all instances of the same kind (equal instances) as ``vm``. Only
        programs that are made later are affected."""
        if vm in self.vms and host in self.hosts:
            kind = int(self.kind[np.flatnonzero(self.vms == vm)[0]])
            self.forbidden.add((kind, int(np.searchsorted(self.hosts, host))))

    def why_too_large(self, vm: int, others: np.ndarray) -> str:
        """Return a text that explains why no host would have enough room for an instance, even if
        all instances in ``others`` left their hosts. Return '' if a host would have enough room.

        :param others: intp, instances that may make room
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
                f'{plural.count(len(hosts), "host")} would have more than '
                f'{room[hosts, c].max():g} free if all '
                f'servers that may be moved left it')

    @property
    def why_too_little(self) -> str:
        """A text that names a resource class of which all hosts together have too little free room
        for the instances that have to leave. The text is '' if there is no such class."""
        needed = self.problem.demands[self.vms[self.must]].sum(axis=0)
        free = _free(self.state)[self.hosts].sum(axis=0)
        short = (needed > free + TOLERANCE) & self._is_own(self.hosts).all(axis=0)
        if not short.any():
            return ''
        c = int(short.argmax())
        servers, hosts = int(self.must.sum()), len(self.hosts)
        return (f'the {plural.count(servers, "server")} that {plural.agreeing(servers, "need")} '
                'a place '
                f'{plural.agreeing(servers, "need")} {needed[c]:g} '
                f'{self.problem.resource_classes[c]} '
                f'together, and the {plural.count(hosts, "host")} that may take them '
                f'{plural.agreeing(hosts, "have")} {free[c]:g} free')

    def _is_own(self, hosts: np.ndarray) -> np.ndarray:
        """Return bool (h, C), one value for each of h hosts and C resource classes: true if the
        host itself provides the class; false if a shared provider provides the class."""
        classes = np.arange(self.problem.demands.shape[1])
        return np.asarray(self.problem.row(hosts[:, None], classes) == hosts[:, None])

    def here(self) -> np.ndarray:
        """Return intp (k, h): the number of instances of each kind (set of equal instances) on each
        host. Only instances that may move but do not have to are counted."""
        pairs, _lies, counts = self.leaving_pairs()
        here = np.zeros((len(self.sample), len(self.hosts)), dtype=np.intp)
        np.add.at(here, tuple(pairs.T), counts)
        return here

    def leaving_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Count the instances that may move but do not have to. Return three arrays with a row for
        each of the n combinations of a kind (equal instances), a host and a set of NUMA cells that
        occur among these instances.

        :returns: intp (n, 2), the kind and the position of the host in ``hosts``; intp (n,), the
            position of the set of NUMA cells in ``places``; and intp (n,), the number of instances
        """
        at = np.full(len(self.problem.hosts), -1)
        at[self.hosts] = np.arange(len(self.hosts))
        places = at[self.state.vm_host[self.vms]]
        optional = ~self.must & (places >= 0)
        rows, counts = np.unique(np.column_stack([
            self.kind[optional], places[optional], self.lies[optional]]), axis=0,
            return_counts=True)
        return rows[:, :2], rows[:, 2], counts

    def permitted(self) -> np.ndarray:
        """Return bool (k, h): true for hosts that instances of a kind (a set of equal instances)
        may go to. The result is false for hosts that :meth:`forbid` has forbidden to the kind."""
        allowed = self.allowed.copy()
        for pair in self.forbidden:
            allowed[pair] = False
        return allowed

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """float64 (k, P): the mean load of the instances of each kind. A kind is a set of instances
        with equal needs."""
        weights = np.zeros((len(self.sample), len(self.problem.policies)))
        np.add.at(weights, self.kind, self.problem.weights[self.vms])
        return weights / np.bincount(self.kind, minlength=len(weights))[:, None]

    def ended(self, solution: Solution) -> Ended:
        """Return the end state of a solution, with the moves in the order of the program's stages.

        A solution says only how many instances of each kind (equal instances) leave each host, and
        how many arrive there. This method chooses the instances and their destinations. One
        instance after the other goes to the destination with the least load. Of instances that have
        to leave their hosts, the instance with the highest load is the first.
        """
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
                         self.is_exact and solution.is_exact
                         and solution.bound > STAYS * (len(stays) - 0.5)), parts)

    def _going(self, kind: int, is_left: np.ndarray, count: int, leave: np.ndarray,
               lies: Mapping[int, Mapping[int, int]]) -> np.ndarray:
        """Choose the instances of one kind (equal instances) that move in one stage. Return their
        positions in ``vms``, as an intp array.

        There are two cases. If the instances of the kind have to leave their hosts, the ``count``
        instances with the highest loads move, and ``leave`` and ``lies`` are ignored. Otherwise,
        ``leave`` and ``lies`` say how many instances of each host move. These are the instances
        with the lowest loads, and ``count`` is ignored.

        :param is_left: bool (v,), true for instances that have not moved yet
        :param leave: intp (h,), number of instances that leave each host
        :param lies: {position of the host in ``hosts``: {position in ``places``: number of
            instances that leave this set of NUMA cells}}
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
    """Return float64, one value for each of ``vms``: the fraction of the free room of all available
    hosts that the instance needs. The fraction is computed for each resource class, and the largest
    one is returned."""
    free = _free_together(state, np.flatnonzero(state.problem.available))
    return (state.problem.demands[vms] / np.maximum(free, 1.0)).max(axis=1, initial=0.0)


def roomiest(state: State, pairs: int) -> np.ndarray:
    """Return bool (H,): true for the hosts that an integer program considers. If there are too many
    hosts for ``pairs``, only the hosts with most free room are considered. Hosts that are to be
    emptied are never considered.

    The free room of a host is its share of the free room of all hosts, in the resource class in
    which the share is smallest. A class counts if at least half of the instances that have to leave
    need the class, and the host has no shared provider of the class.

    :param pairs: maximum of the number of considered hosts times the number of different sizes of
        instances that may move. The product limits the size of the program. At least one host is
        considered even if the maximum is exceeded
    """
    problem = state.problem
    free_to_move = np.flatnonzero(problem.movable | problem.evacuable)
    kinds = len(np.unique(problem.demands[free_to_move], axis=0))
    if state.cells is not None and problem.cells is not None:
        # Each way to use the cells of a host is a pair of its own.
        lies = {(problem.cells.kind[vm], state.cells.places.get(vm))
                for vm in free_to_move.tolist()}
        kinds = max(kinds, len(lies)) * problem.cells.exists.shape[1]
    free = _free(state)
    part = free / np.maximum(free[problem.available].sum(axis=0), 1.0)
    leaving = free_to_move[problem.draining[state.vm_host[free_to_move]]]
    needed = (problem.demands[leaving] > 0).mean(axis=0) >= 0.5 if len(leaving) else True
    every, classes = np.arange(len(free))[:, None], np.arange(free.shape[1])
    part = np.where(needed & (problem.row(every, classes) == every), part, 1.0).min(
        axis=1, initial=1.0)
    part[problem.draining] = -1.0
    hosts = ~problem.draining
    hosts[np.argsort(-part, kind='stable')[max(pairs // max(kinds, 1), 1):]] = False
    return hosts


def first_that_fit(state: State, vms: list[int], hosts: np.ndarray) -> list[int]:
    """Return the first instances of ``vms``, as many as fit if the free room of all ``hosts`` is
    added up in each resource class. At least one instance is returned.

    :param hosts: bool (H,), true for hosts whose free room counts
    """
    needed = np.cumsum(state.problem.demands[vms], axis=0)
    fit = (needed <= _free_together(state, np.flatnonzero(hosts))).all(axis=1)
    return vms[:max(int(fit.sum()), 1)]


def _free(state: State) -> np.ndarray:
    """Return float64 (H, C): the free amount of each of C resource classes on each host. Free
    amounts of shared providers are not included."""
    return np.maximum(state.problem.limits - state.used, 0.0)[:len(state.guests)]


def _free_together(state: State, hosts: np.ndarray) -> np.ndarray:
    """Return float64 (C,): the free amount of each of C resource classes that ``hosts`` have
    together. A shared provider counts once."""
    problem, free = state.problem, np.maximum(state.problem.limits - state.used, 0.0)
    return np.array([free[np.unique(problem.row(hosts, c)), c].sum()
                     for c in range(free.shape[1])])
