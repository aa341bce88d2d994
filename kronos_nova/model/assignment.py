"""Where instances may end: an integer program, solved by HiGHS (Huangfu and Hall 2018) as
``scipy.optimize.milp`` ships it.

Instances that need the same room, may go to the same hosts and keep the same groups apart are of
one *kind*, and only how many of a kind arrive at a host or leave it is decided. So a program is a
few variables for each host and kind, whatever the number of instances. The order of the moves is
decided later, by :meth:`State.delta`, as for every search.
"""

import dataclasses

import numpy as np

from kronos_nova.model.compiled import Model
from kronos_nova.model.keys import equal_rows
from kronos_nova.model.problem import TOLERANCE
from kronos_nova.model.rules import ArrivalLimit
from kronos_nova.model.rules import GroupPolicy
from kronos_nova.model.rules import LoadLimit
from kronos_nova.model.rules import ReservedRoom
from kronos_nova.model.rules import Room
from kronos_nova.model.state import State

NODES = 200
"""Nodes of the branch and bound. Raised, more programs are solved to the end, in more time;
lowered, more end with the best that was found. Programs of ten hosts need 1 to 50."""
GAP = 0.01
"""Part of its cost by which an end may be worse than the best. Raised, large programs end sooner;
lowered, a few GiB less of others are moved."""
STAYS = 1e4
"""What it costs that an instance does not leave, in moves of an instance of mean memory: more than
all moves of others that could be worth one."""
PASSING = 100.0
"""What it costs that a host passes its load limit by all of its size, in the same unit. Lowered,
fewer other instances are moved to keep hosts below it."""
LOADED = 0.01
"""What it costs to send an instance to a host of load 1 rather than 0, in the same unit: of two
ways that cost the same, the one to the less loaded hosts is taken."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """moves : (instance, destination), in no order
    stays : intp, instances that were to leave and find no place
    is_proven : whether no fewer can stay
    """

    moves: list[tuple[int, int]]
    stays: np.ndarray
    is_proven: bool


class Assignment:
    """The instances that have to leave their hosts, and those that may give way.

    Of the rules of the model, room and groups that are kept apart hold at the end; load limits are
    passed only at a price; every other rule is asked of the state as it is.

    kind : intp (v,); allowed : bool (k, h), hosts that a kind may go to
    """

    def __init__(self, state: State, model: Model, leaving: np.ndarray, others: np.ndarray,
                 hosts: np.ndarray):
        """
        :param leaving: intp, instances that have to leave
        :param others: intp, instances that may move; none of those
        :param hosts: intp, hosts that may be moved to; sorted
        """
        self.state, self.model, self.problem, self.hosts = state, model, state.problem, hosts
        self.vms = np.concatenate([leaving, others])
        self.must = np.arange(len(self.vms)) < len(leaving)
        self.groups = [rule for rule in model.rules if isinstance(rule, GroupPolicy)]
        self.apart = self._groups_apart()
        self.shared_rows = self._shared_rows()
        self.kind, self.allowed = self._kinds()
        self.first = np.unique(self.kind, return_index=True)[1]
        self.sample, self.is_leaving = self.vms[self.first], self.must[self.first]
        self.forbidden: set[tuple[int, int]] = set()

    def _groups_apart(self) -> np.ndarray:
        """bool (G,): groups whose members a rule keeps apart."""
        members = self.model.memberships
        apart = np.zeros(len(members.groups), dtype=bool)
        for rule in self.groups:
            apart |= rule.forbids & members.anti
        return apart

    def _kinds(self) -> tuple[np.ndarray, np.ndarray]:
        allowed = np.ones((len(self.vms), len(self.hosts)), dtype=bool)
        for rule in self.model.rules:
            if isinstance(rule, GroupPolicy):
                rule = rule.together_only(self.model.memberships)
            elif isinstance(rule, Room | LoadLimit | ArrivalLimit | ReservedRoom):
                continue
            allowed &= rule.allows(self.state, self.vms[:, None], self.hosts)
        sets: dict[tuple[int, ...], int] = {}
        group = np.array([sets.setdefault(self._apart_of(vm), len(sets))
                          for vm in self.vms.tolist()])
        key = np.column_stack([
            self.must, group, equal_rows(allowed), self.shared_rows,
            self.problem.demands[self.vms], self.problem.memory_mb[self.vms]])
        kind = equal_rows(key)
        return kind, allowed[np.unique(kind, return_index=True)[1]]

    def _shared_rows(self) -> np.ndarray:
        """intp (v, C): the row from which each instance is allocated each class, -1 where that is
        its host's own."""
        home, classes = np.indices((len(self.vms), self.problem.demands.shape[1]))
        rows = np.asarray(self.problem.row(self.state.vm_host[self.vms][home], classes))
        return np.where(rows >= len(self.problem.hosts), rows, -1)

    def _apart_of(self, vm: int) -> tuple[int, ...]:
        groups = self.model.memberships.groups_of(vm)
        return tuple(sorted(groups[self.apart[groups]].tolist()))

    def forbid(self, vm: int, host: int) -> None:
        """Let no instance of the kind of ``vm`` go to a host, in what is solved from now on."""
        if vm in self.vms and host in self.hosts:
            kind = int(self.kind[np.flatnonzero(self.vms == vm)[0]])
            self.forbidden.add((kind, int(np.searchsorted(self.hosts, host))))

    def why_too_large(self, vm: int) -> str:
        """Why no host could hold an instance if all that may give way left it; '' if one could."""
        problem, (row,) = self.problem, np.flatnonzero(self.vms == vm)
        hosts = self.hosts[self.allowed[self.kind[row]]]
        room = _free(self.state)
        others = self.vms[~self.must]
        np.add.at(room, self.state.vm_host[others], problem.demands[others])
        missing = (problem.demands[vm] > room[hosts] + TOLERANCE) & (self.shared_rows[row] < 0)
        if not len(hosts) or not missing.any(axis=1).all():
            return ''
        c = int(missing.sum(axis=0).argmax())
        return (f'it needs {problem.demands[vm, c]:g} {problem.resource_classes[c]}, and none of '
                f'{len(hosts)} hosts would have more than {room[hosts, c].max():g} free if all '
                f'servers that may be moved left it')

    @property
    def why_too_little(self) -> str:
        """Why those that have to leave do not fit elsewhere together; '' if that is not known."""
        needed = self.problem.demands[self.vms[self.must]].sum(axis=0)
        free = _free(self.state)[self.hosts].sum(axis=0)
        short = (needed > free + TOLERANCE) & (self.shared_rows < 0).all(axis=0)
        if not short.any():
            return ''
        c = int(short.argmax())
        return (f'{int(self.must.sum())} servers that have to leave need {needed[c]:g} '
                f'{self.problem.resource_classes[c]} together, and {len(self.hosts)} other hosts '
                f'have {free[c]:g} free')

    def solve(self, seconds: float = np.inf) -> Ended | None:
        """The end in which fewest of those that have to leave stay, then with the least to pass
        load limits and the least memory of others to move. None if none was found in time."""
        program = _Program(self)
        found = program.solve(seconds)
        if found is None:
            return None
        arrive, leave, stay, is_proven = found
        return self._of_instances(arrive, leave, stay, is_proven)

    def _of_instances(self, arrive: np.ndarray, leave: np.ndarray, stay: np.ndarray,
                      is_proven: bool) -> Ended:
        """Which instances of each kind go where: the heaviest to the host with the least load."""
        problem, weights = self.problem, self.problem.policy_weights
        home = self.state.vm_host[self.vms]
        load = self.state.scores[self.hosts] @ weights
        moves, stays = [], []
        for kind in range(len(self.sample)):
            vms = np.flatnonzero(self.kind == kind)
            size = problem.weights[self.vms[vms]] @ weights
            vms = vms[np.lexsort((self.vms[vms], -size))]
            if self.is_leaving[kind]:
                going = vms[:len(vms) - int(stay[kind])]
                stays += self.vms[vms[len(going):]].tolist()
            else:
                both = np.minimum(arrive[kind], leave[kind])
                arrive[kind] -= both
                leave[kind] -= both
                going = np.concatenate([
                    vms[home[vms] == self.hosts[h]][::-1][:leave[kind, h]]
                    for h in np.flatnonzero(leave[kind])] or [vms[:0]])
            places = np.repeat(np.arange(len(self.hosts)), arrive[kind])
            for vm in going.tolist():
                each = load[places]
                at = int(each.argmin())
                host = places[at]
                places = np.delete(places, at)
                load[host] += problem.weights[self.vms[vm]] * problem.host_scale[
                    self.hosts[host]] @ weights
                moves.append((int(self.vms[vm]), int(self.hosts[host])))
        return Ended(moves, np.array(sorted(stays), dtype=np.intp), is_proven)


class _Program:
    """The integer program of an assignment: how many of each kind arrive at each host, leave it,
    and stay, and by how much hosts pass load limits."""

    def __init__(self, assignment: Assignment):
        self.of = of = assignment
        state, problem, hosts = of.state, of.problem, of.hosts
        kinds = len(of.sample)
        allowed = of.allowed.copy()
        for kind, host in of.forbidden:
            allowed[kind, host] = False
        at = np.full(len(problem.hosts), -1)
        at[hosts] = np.arange(len(hosts))
        here = np.zeros((kinds, len(hosts)), dtype=np.intp)
        places = at[state.vm_host[of.vms]]
        optional = ~of.must & (places >= 0)
        np.add.at(here, (of.kind[optional], places[optional]), 1)
        self.here, self.count = here, np.bincount(of.kind, minlength=kinds)
        self.arrive = np.argwhere(allowed)
        self.leave = np.argwhere(here > 0)
        self.stay = np.flatnonzero(of.is_leaving)
        self._rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self.integers = len(self.arrive) + len(self.leave) + len(self.stay)
        self._passing = self.integers
        self._flow()
        self._room()
        self._groups()
        self.costs = self._costs()
        self._loads()

    def _add(self, columns: np.ndarray, values: np.ndarray, low: float, high: float) -> None:
        self._rows.append((np.full(len(columns), len(self._low)), columns, values))
        self._low.append(low)
        self._high.append(high)

    def _flow(self) -> None:
        """What leaves arrives: each kind by itself, because where it comes from does not matter."""
        count = len(self.arrive)
        for kind in range(len(self.count)):
            came = np.flatnonzero(self.arrive[:, 0] == kind)
            left = count + np.flatnonzero(self.leave[:, 0] == kind)
            stay = count + len(self.leave) + np.flatnonzero(self.stay == kind)
            total = float(self.count[kind]) if self.of.is_leaving[kind] else 0.0
            self._add(np.concatenate([came, left, stay]), np.concatenate([
                np.ones(len(came)), -np.ones(len(left)), np.ones(len(stay))]), total, total)

    def _changes(self, amount: np.ndarray, rows: np.ndarray, most: np.ndarray) -> None:
        """For each row what arrives there less what leaves is at most as much.

        :param amount: float64 (k, h), of one instance of a kind at a host
        :param rows: intp (h,), to which row each host belongs
        :param most: float64 (n,), of each row; inf where anything goes
        """
        kind, host = np.concatenate([self.arrive, self.leave]).T
        sign = np.where(np.arange(len(kind)) < len(self.arrive), 1.0, -1.0)
        row, value = rows[host], sign * amount[kind, host]
        counts = value != 0
        order = np.flatnonzero(counts)[np.argsort(row[counts], kind='stable')]
        begin = np.searchsorted(row[order], np.arange(len(most) + 1))
        for n in np.flatnonzero(np.isfinite(most)):
            columns = order[begin[n]:begin[n + 1]]
            if (value[columns] > 0).any():
                self._add(columns, value[columns], -np.inf, float(most[n]))

    def _room(self) -> None:
        problem, state, hosts = self.of.problem, self.of.state, self.of.hosts
        free = problem.limits - state.used
        leaves = self.of.shared_rows[self.of.first]
        for c in range(free.shape[1]):
            rows = np.asarray(problem.row(hosts, c))
            # What leaves a host that shares the room takes no more of it than it had.
            takes = ~(self.of.is_leaving[:, None] & (leaves[:, c, None] == rows))
            self._changes(problem.demands[self.of.sample, c][:, None] * takes, rows,
                          np.maximum(free[:, c], 0.0))

    def _groups(self) -> None:
        of = self.of
        every = np.arange(len(of.hosts))
        for rule in of.groups:
            for group in np.flatnonzero(rule.forbids & of.model.memberships.anti):
                is_member = of.model.memberships.has(np.full(len(of.sample), group), of.sample)
                room = rule.room(of.state, int(group), of.hosts)
                if is_member.any() and room is not None:
                    amount = np.tile(is_member[:, None].astype(float), len(every))
                    self._changes(amount, every, np.maximum(room, 0.0))

    def _costs(self) -> np.ndarray:
        of = self.of
        memory = of.problem.memory_mb[of.sample]
        mean = max(float(of.problem.memory_mb[of.vms].mean()), 1.0)
        kind, host = self.arrive.T
        load = of.state.scores[of.hosts] @ of.problem.policy_weights
        return np.concatenate([
            LOADED * load[host],
            1.0 + memory[self.leave[:, 0]] / mean,
            np.full(len(self.stay), STAYS)])

    def _loads(self) -> None:
        """Load limits, by the mean weight of a kind."""
        of, columns = self.of, self.integers
        kinds = len(self.count)
        weights = np.zeros((kinds, len(of.problem.policies)))
        np.add.at(weights, of.kind, of.problem.weights[of.vms])
        weights /= self.count[:, None]
        kind, host = np.concatenate([self.arrive, self.leave]).T
        sign = np.where(np.arange(len(kind)) < len(self.arrive), 1.0, -1.0)
        costs = [self.costs]
        for rule in of.model.rules:
            if not isinstance(rule, LoadLimit):
                continue
            most = rule.most[of.hosts]
            load = rule.load(of.state, of.hosts)
            for h, p in np.argwhere(np.isfinite(most)):
                here = np.flatnonzero(host == h)
                scale = of.problem.host_scale[of.hosts[h], p]
                value = sign[here] * weights[kind[here], p] * scale
                room = float(most[h, p] - load[h, p])
                self._add(np.append(here, columns), np.append(value, -1.0), -np.inf, room)
                columns += 1
                costs.append(np.array([PASSING]))
        self.costs = np.concatenate(costs)

    def solve(self, seconds: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool] | None:
        """(arrive (k, h), leave (k, h), stay (k,), whether it is proven that no fewer stay)"""
        from scipy import optimize  # half a second, and only where hosts are emptied
        from scipy import sparse

        kinds, hosts = self.here.shape
        rows, columns, values = (np.concatenate(part) for part in zip(*self._rows, strict=True))
        matrix = sparse.csr_array((values, (rows, columns)),
                                  shape=(len(self._low), len(self.costs)))
        highest = np.full(len(self.costs), np.inf)
        count = len(self.arrive)
        highest[:count] = self.count[self.arrive[:, 0]]
        highest[count:count + len(self.leave)] = self.here[tuple(self.leave.T)]
        highest[count + len(self.leave):self.integers] = self.count[self.stay]
        options = {'node_limit': NODES, 'mip_rel_gap': GAP}
        if np.isfinite(seconds):
            options['time_limit'] = max(seconds, 0.1)
        found = optimize.milp(
            self.costs, constraints=optimize.LinearConstraint(matrix, self._low, self._high),
            integrality=np.arange(len(self.costs)) < self.integers,
            bounds=optimize.Bounds(0.0, highest), options=options)
        if found.x is None:
            return None
        whole = np.rint(found.x[:self.integers]).astype(np.intp)
        arrive, leave = np.zeros((kinds, hosts), np.intp), np.zeros((kinds, hosts), np.intp)
        arrive[tuple(self.arrive.T)] = whole[:count]
        leave[tuple(self.leave.T)] = whole[count:count + len(self.leave)]
        stay = np.zeros(kinds, np.intp)
        stay[self.stay] = whole[count + len(self.leave):]
        bound = found.mip_dual_bound
        is_proven = bool(stay.sum() == 0 or (
            bound is not None and bound > STAYS * (stay.sum() - 1) + STAYS / 2))
        return arrive, leave, stay, is_proven


def parts_of_free_room(state: State, vms: np.ndarray) -> np.ndarray:
    """float64 (n,): the part of all free room that each instance needs, in the class in which that
    is most."""
    free = _free(state)[state.problem.available].sum(axis=0)
    return (state.problem.demands[vms] / np.maximum(free, 1.0)).max(axis=1, initial=0.0)


def roomiest(state: State, pairs: int) -> np.ndarray:
    """bool (H,): all hosts that are not to be emptied; if these and the sizes of instances make
    more pairs than given, those with most free room."""
    problem = state.problem
    kinds = len(np.unique(problem.demands[problem.movable | problem.evacuable], axis=0))
    free = _free(state)
    part = (free / np.maximum(free[problem.available].sum(axis=0), 1.0)).min(axis=1, initial=1.0)
    part[problem.draining] = -1.0
    hosts = ~problem.draining
    hosts[np.argsort(-part, kind='stable')[max(pairs // max(kinds, 1), 1):]] = False
    return hosts


def first_that_fit(state: State, vms: list[int], hosts: np.ndarray) -> list[int]:
    """The first of some instances, at least one, as many as the free room of some hosts would hold
    if it were in one place.

    :param hosts: bool (H,)
    """
    needed = np.cumsum(state.problem.demands[vms], axis=0)
    fit = (needed <= _free(state)[hosts].sum(axis=0)).all(axis=1)
    return vms[:max(int(fit.sum()), 1)]


def _free(state: State) -> np.ndarray:
    """float64 (H, C): what is free on the hosts themselves."""
    return np.maximum(state.problem.limits - state.used, 0.0)[:len(state.guests)]
