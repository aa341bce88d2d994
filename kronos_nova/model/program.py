"""The integer program that chooses hosts for instances.

The program is solved by HiGHS (Huangfu and Hall 2018) through ``scipy.optimize.milp``.
"""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

import numpy as np

from kronos_nova import solver_output
from kronos_nova.model.problem import TOLERANCE
from kronos_nova.model.rules import LoadLimit
from kronos_nova.model.rules import ReservedRoom

if TYPE_CHECKING:
    from kronos_nova.model.assignment import Assignment
    from kronos_nova.model.numa import CellUse
    from kronos_nova.model.numa import Place
    from kronos_nova.objects.numa import InstanceCell

SOLVER_TOLERANCE = 1e-6
"""Difference by which a solution of the solver HiGHS may break a constraint; for scores, as a
fraction of a host. Raised, programs with a margin of this width miss good solutions; lowered, their
solutions pass the ends of target ranges, or their constraints leave no solution. Fixed: the default
of HiGHS."""
STAYS = 1e4
"""Cost of an instance that stays on a host that it has to leave, in an integer program that chooses
destinations. The unit is the cost of copying an instance of mean memory. Raised, rounding errors of
the solver hide differences of the other costs; lowered, an instance stays if making room for it
takes many moves. Fixed: more than the cost of all moves that could make room for one instance."""
EMPTIED = 0.4
"""Sum of the rewards for emptied hosts, as a share of the cost of an instance that stays
(:data:`STAYS`). Each of several hosts has an equal part of the reward. Raised to 0.5 or more,
nothing is proven of the number of instances that stay; lowered, a host is not emptied if this takes
many moves. Not measured."""
PASSING = 100.0
"""Cost of exceeding a load limit by 1, the load of a full host, in an integer program that chooses
destinations. A smaller excess costs proportionally less. The unit is the cost of copying an
instance of mean memory. Raised, more instances are moved to keep hosts below their limits; lowered,
hosts exceed their limits by more. Not measured."""
SLOWED = 4.0
"""Ratio of the time limit of the solver HiGHS to the processor time that is left for a plan. HiGHS
measures wall time. On a busy machine, the solver uses less processor time than wall time. The ratio
makes up for the difference. Raised, a plan may exceed its deadline by more; lowered, a busy machine
more often stops the solver early, and the plan is worse. Not measured."""
SMALL = 1e-4
"""Cost of copying an instance of mean memory in the integer program that repairs violations of
operators' rules. The unit is the combined imbalance. The small cost decides only between solutions
that are otherwise equal. Raised, preferences of low cost are ignored to copy less memory; lowered,
the cost is below the tolerance of the solver and has no effect. Not measured."""
HARD = 10.0
"""Ratio of the penalty of a member that violates a hard group to the penalty of a member that
violates a soft group. Raised, the solver stops further from the least memory to copy; lowered, a
plan repairs several soft groups in place of a hard one. Chosen above the number of members that
usually violate soft groups of a small cluster; not measured."""
LOADED = 0.01
"""Cost of a fully loaded destination in an integer program, in addition to the cost of copying. The
unit is the cost of copying an instance of mean memory. A less loaded destination costs
proportionally less. Of two solutions that are otherwise equal, the one with less loaded
destinations is chosen. Raised, more memory is copied to reach less loaded hosts; lowered, the cost
is below the tolerance of the solver and has no effect. Not measured."""


@dataclasses.dataclass(frozen=True, slots=True)
class Solution:
    """A solution of the integer program, with r rounds, k kinds and h hosts. A round is a stage of
    moves. A kind is a set of equal instances.

    arrive : intp (r, k, h), number of instances of each kind that arrive at each host in each round
    leave : intp (r, k, h), number of instances of each kind that leave each host in each round
    stay : intp (k,), number of instances of each kind that stay although they have to leave
    cost : cost of the solution
    bound : lower bound of the cost of any solution
    ways : {(round, kind, host): list with the NUMA cells of each arriving instance}
    lies : {(round, kind, host): {set of NUMA cells: number of instances that leave these cells}}. A
        set is given as its position in ``places`` of the Assignment
    is_exact : False if the program leaves out some possible end states. A better end state may then
        exist although ``bound`` says otherwise
    """

    arrive: np.ndarray
    leave: np.ndarray
    stay: np.ndarray
    cost: float
    bound: float
    ways: dict[tuple[int, int, int], list[tuple[int, ...]]] = dataclasses.field(
        default_factory=dict)
    lies: dict[tuple[int, int, int], dict[int, int]] = dataclasses.field(default_factory=dict)
    is_exact: bool = True


def _tiled(arrays: Iterable[np.ndarray], rounds: int) -> list[np.ndarray]:
    """Return the arrays, each repeated ``rounds`` times along its first axis."""
    return [np.tile(each, (rounds, *[1] * (each.ndim - 1))) for each in arrays]


class _Taken(NamedTuple):
    """A change of the used amount in a host's NUMA cell. A column is a variable of the program: the
    number of instances of one kind that arrive at one host, or leave one host, in one round. The
    change is ``amount`` times the value of the column.

    column : number of the column
    round : the round, a stage of moves
    arrives : True if the instances arrive; False if the instances leave
    amount : amount of one instance; negative for instances that leave
    """

    column: int
    round: int
    arrives: bool
    amount: float


class Program:
    """The integer program. Its variables are the numbers of instances of each kind that arrive at
    each host, leave each host, and stay. A kind is a set of equal instances.

    In every solution, each instance that leaves a host arrives at another host. At the end, the
    rules about room and NUMA cells hold, and so do the rules that keep members of groups apart.
    Methods add other constraints and costs.

    A round is a stage of moves that can use the room that earlier rounds freed. All instances that
    arrive in a round fit before any instance leaves in this round. So the moves of a round are
    possible in any order. If there are several rounds, the moves of every solution have a possible
    order.
    """

    def __init__(self, assignment: 'Assignment', move: float | None = None, rounds: int = 1,
                 slot: int | None = None):
        """
        :param assignment: the instances and hosts
        :param move: cost of a move in MiB, in addition to the memory that the move copies; None for
            the mean memory of the instances
        :param rounds: number of rounds (stages of moves); with 1, the moves of a solution may have
            no possible order
        :param slot: an instance that is equal to the new servers for which the moves make room;
            None if the moves have another purpose. If given, no other instance is placed in a NUMA
            cell where it would take room from a new server. This restriction halves the size of the
            program and rarely makes the result worse
        """
        self._slot = slot
        self.of, self.rounds = assignment, rounds
        of = self.of
        self.here, self.count = of.here(), np.bincount(of.kind, minlength=len(of.sample))
        self.arrive = np.tile(np.argwhere(of.permitted()), (rounds, 1))
        self.leave, self.lies, most = _tiled(of.leaving_pairs(), rounds)
        self.stay = np.flatnonzero(of.is_leaving)
        self._rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._low: list[float] = []
        self._high: list[float] = []
        memory = of.problem.memory_mb[of.sample]
        mean = max(float(of.problem.memory_mb[of.vms].mean()), 1.0)
        self.unit = mean
        load = of.state.scores[of.hosts] @ of.problem.policy_weights
        self._costs = [LOADED * load[self.arrive[:, 1]],
                       ((mean if move is None else move) + memory[self.leave[:, 0]]) / mean,
                       np.full(len(self.stay), STAYS)]
        self._most = [self.count[self.arrive[:, 0]].astype(float),
                      most.astype(float),
                      self.count[self.stay].astype(float)]
        self.columns = self.integers = sum(map(len, self._costs))
        self._is_whole: list[int] = []
        self._excess: list[tuple[int, float]] = []
        self._costly: dict[int, list[np.ndarray]] = {}
        self._lies: list[tuple[int, int, tuple[int, ...]]] = []
        self._is_exact = rounds == 1 and slot is None
        self._flow()
        self._room()
        self._keep_apart()
        self._keep_cells()

    def _add(self, columns: np.ndarray, values: np.ndarray, low: float, high: float) -> None:
        self._rows.append((np.full(len(columns), len(self._low)), columns, values))
        self._low.append(low)
        self._high.append(high)

    def _variable(self, cost: float, most: float) -> int:
        """Add a column (a variable) with the given cost and upper bound, and return the number of
        the column."""
        self._costs.append(np.array([cost]))
        self._most.append(np.array([most]))
        self.columns += 1
        return self.columns - 1

    def _flow(self) -> None:
        count = len(self.arrive)
        for kind in range(len(self.count)):
            came = np.flatnonzero(self.arrive[:, 0] == kind)
            left = count + np.flatnonzero(self.leave[:, 0] == kind)
            stay = count + len(self.leave) + np.flatnonzero(self.stay == kind)
            if self.of.is_leaving[kind]:
                columns, total = np.append(came, stay), float(self.count[kind])
                self._add(columns, np.ones(len(columns)), total, total)
                continue
            # All rounds have the same number of columns, and those of the first round come first.
            for some, others in zip(came.reshape(self.rounds, -1), left.reshape(self.rounds, -1),
                                    strict=True):
                self._add(np.append(some, others), np.append(np.ones(len(some)),
                                                             -np.ones(len(others))), 0.0, 0.0)
        if self.rounds > 1:
            for same in (count + np.arange(len(self.leave))).reshape(self.rounds, -1).T:
                self._add(same, np.ones(self.rounds), -np.inf,
                          float(self._most[1][same[0] - count]))

    @functools.cached_property
    def _flows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Three arrays with an entry for each column (variable) of arrivals and departures: intp,
        the kind of the instances; intp, the position of the host; float64, 1.0 for arrivals and
        -1.0 for departures."""
        kind, host = np.concatenate([self.arrive, self.leave]).T
        return kind, host, np.where(np.arange(len(kind)) < len(self.arrive), 1.0, -1.0)

    def _changes(self, amount: np.ndarray, rows: np.ndarray, most: np.ndarray,
                 within: np.ndarray | None = None) -> None:
        """Add constraints that limit the change of an amount, such as used memory, on each host.
        The change is the amount that arrives minus the amount that leaves. If several hosts share
        one bound, the sum of their changes is limited. A host with a negative bound has too much
        already: nothing may arrive there until the amount has fallen enough.

        :param amount: float64 (k, h), amount of one instance of each of k kinds at each of h hosts
        :param rows: intp (h,), position of each host's bound in ``most``
        :param most: float64, the bounds; inf for no bound
        :param within: bool (k, h), true where an instance of the kind has the amount already, on a
            host with the same bound; such an instance may arrive at a host with a negative bound
        """
        kind, host, sign = self._flows
        row, value = rows[host], sign * amount[kind, host]
        comes = value > 0 if within is None else (value > 0) & ~within[kind, host]
        for counts in self._at_once():
            counts = counts & (value != 0)
            order = np.flatnonzero(counts)[np.argsort(row[counts], kind='stable')]
            begin = np.searchsorted(row[order], np.arange(len(most) + 1))
            for n in np.flatnonzero(np.isfinite(most)):
                columns = order[begin[n]:begin[n + 1]]
                if comes[columns].any() and most[n] < -TOLERANCE:
                    self._close_until_lower(columns, value[columns], comes[columns],
                                            float(most[n]))
                elif (value[columns] > 0).any():
                    self._add(columns, value[columns], -np.inf, max(float(most[n]), 0.0))

    def _close_until_lower(self, columns: np.ndarray, values: np.ndarray, comes: np.ndarray,
                           most: float) -> None:
        """Add constraints by which nothing arrives at a host unless the change of its amount is at
        most ``most``.

        :param columns: the columns of arrivals, with positive values, and of departures, with
            negative values
        :param values: change of the amount by one instance of each column
        :param comes: bool, true for the columns of arrivals at which nothing may arrive before.
            Other arrivals only move the amount between hosts that share the bound
        :param most: negative bound of the change
        """
        arrivals, highest = columns[comes], np.concatenate(self._most)
        if values[values < 0] @ highest[columns[values < 0]] > most + TOLERANCE:
            self._most[0][arrivals] = 0.0
            return
        is_open = self._whole(0.0)
        self._add(np.append(columns, is_open), np.append(values, -most), -np.inf, 0.0)
        for column in arrivals.tolist():
            self._add(np.array([column, is_open]), np.array([1.0, -highest[column]]), -np.inf, 0.0)

    def _at_once(self) -> Iterator[np.ndarray]:
        """Yield an array bool for each moment at which the bounds of hosts must hold. The array has
        a value for each column (variable) of arrivals and departures: true if these moves are made
        before this moment.

        If there is one round, the only moment is its end. If there are more rounds, each round has
        one moment: after its arrivals and before its departures.
        """
        if self.rounds == 1:
            yield np.ones(len(self.arrive) + len(self.leave), dtype=bool)
            return
        arrives, leaves = self._round_of(self.arrive), self._round_of(self.leave)
        for number in range(self.rounds):
            yield np.concatenate([arrives <= number, leaves < number])

    def _round_of(self, pairs: np.ndarray) -> np.ndarray:
        """Return intp, the round (stage of moves) to which each column (variable) of arrivals or
        departures belongs.

        :param pairs: intp (columns, 2), the (kind of instances, host) of each column
        """
        return np.repeat(np.arange(self.rounds), len(pairs) // self.rounds)

    def _room(self) -> None:
        problem, state, hosts = self.of.problem, self.of.state, self.of.hosts
        free = problem.limits - state.used
        leaves = self.of.shared_rows[self.of.first]
        for c in range(free.shape[1]):
            rows = np.asarray(problem.row(hosts, c))
            # A move between two hosts that share the provider does not change its use.
            within = leaves[:, c, None] == rows
            takes = ~(self.of.is_leaving[:, None] & within)
            self._changes(problem.demands[self.of.sample, c][:, None] * takes, rows, free[:, c],
                          within)

    def _keep_apart(self) -> None:
        of, members = self.of, self.of.model.memberships
        groups = np.unique(members.expand(of.sample)[1]).tolist()
        for rule, group in itertools.product(of.groups, groups):
            room = rule.room(of.state, group, of.hosts)
            if room is None:
                continue
            is_member = members.has(np.full(len(of.sample), group), of.sample)
            every = np.full(len(of.hosts), group)
            places, first, rows = np.unique(members.place(every, of.hosts), return_index=True,
                                            return_inverse=True)
            home = np.where(of.is_leaving & is_member, members.place(
                np.full(len(of.sample), group), of.state.vm_host[of.sample]), -1)
            leaving = np.bincount(of.kind[of.must], minlength=len(home))
            free = room[first] + [leaving[home == place].sum() for place in places]
            # Where a place has too many members, members that leave a host may stay in the place.
            takes = is_member[:, None] & ~(
                (home[:, None] == places[rows]) & (room[first][rows] < 0))
            self._changes(takes.astype(float), rows, np.maximum(free, 0.0))

    def _keep_cells(self) -> None:
        """Add constraints about NUMA cells: in each cell, the amount that arriving instances need,
        minus the amount that departing instances used, is at most the free amount.

        The program chooses the cells of an arriving instance. Nova may choose other cells. The
        later search for the order of the moves uses the cells that Nova would choose.
        """
        use, now = self.of.emptied, self.of.state.cells
        if use is None or now is None:
            return
        takes: dict[tuple[int, int, str], list[_Taken]] = {}
        rounds = self._round_of(self.arrive)
        for column, (kind, at) in enumerate(self.arrive.tolist()):
            need = int(use.cells.kind[self.of.sample[kind]])
            host = int(self.of.hosts[at])
            if not need or not use.cells.known[host]:
                continue
            for way, where in zip(*self._ways(column, need, host), strict=True):
                self._lies.append((column, way, tuple(place.cell for place in where)))
                self._count_taken(takes, use.cells.parts[need], host, where,
                                  _Taken(way, int(rounds[column]), True, 1.0))
        first, rounds = len(self.arrive), self._round_of(self.leave)
        for column, (kind, at) in enumerate(self.leave.tolist()):
            parts = use.cells.parts[int(use.cells.kind[self.of.sample[kind]])]
            self._count_taken(takes, parts, int(self.of.hosts[at]),
                              self.of.places[self.lies[column]],
                              _Taken(first + column, int(rounds[column]), False, -1.0))
        self._keep_in_cells(use)
        for (host, cell, name), taken in takes.items():
            free = max(now.free(host, cell, name), 0.0)
            for number in range(self.rounds):
                rows = [each for each in taken if self.rounds == 1 or (
                    each.round <= number if each.arrives else each.round < number)]
                if any(each.amount > 0 for each in rows):
                    self._add(np.array([each.column for each in rows]),
                              np.array([each.amount for each in rows]), -np.inf, free)

    def _keep_in_cells(self, use: 'CellUse') -> None:
        """Add constraints for each kind of instances and each host: if an instance of the kind
        leaves the host, none may arrive there. Otherwise a solution could move an instance between
        two NUMA cells of its host, which is not possible.

        :param use: use of NUMA cells without the instances of the assignment
        """
        arrives, leaves = (collections.defaultdict[tuple[int, int], list[int]](list)
                           for _each in range(2))
        for n, (kind, at) in enumerate(self.arrive.tolist()):
            arrives[kind, at].append(n)
        for n, (kind, at) in enumerate(self.leave.tolist(), start=len(self.arrive)):
            leaves[kind, at].append(n)
        for (kind, at), columns in leaves.items():
            both = arrives.get((kind, at))
            if not both or not use.cells.kind[self.of.sample[kind]]:
                continue
            # An instance could change its cell by way of another host that may take it.
            self._is_exact &= int((self.arrive[:, 0] == kind).sum()) <= self.rounds
            stays, count = self._whole(0.0), float(self.count[kind])
            here = float(self.here[kind, at])
            self._add(np.array([*both, stays]), np.array([*np.ones(len(both)), -count]),
                      -np.inf, 0.0)
            self._add(np.array([*columns, stays]), np.array([*np.ones(len(columns)), here]),
                      -np.inf, here)

    def _ways(self, column: int, need: int,
              host: int) -> tuple[list[int], list[tuple['Place', ...]]]:
        """Return the possible choices of a host's NUMA cells for an arriving instance, with a
        column (a variable) for each choice. The column counts the arriving instances with this
        choice. If there are several choices, their columns are added to the program.

        :param column: number of the column of all arrivals of the kind at the host
        :param need: kind of the instances by their needs of NUMA cells
        :returns: (list of the numbers of the columns, list of the choices). A choice is a tuple of
            Places, one for each cell of the instance's NUMA topology
        """
        use = self.of.emptied
        options = use.options(need, host) if use is not None else []
        if self._slot is not None:
            options = [option for option in options if self._keeps_slots(need, host, option)]
            if not options:
                self._most[0][column] = 0.0
                return [], []
        if len(options) == 1:
            return [column], options
        most = float(self._most[0][column])
        ways = [self._integer(most) for _option in options]
        self._add(np.array([column, *ways]), np.array([-1.0, *np.ones(len(ways))]), 0.0, 0.0)
        return ways, options

    def _keeps_slots(self, need: int, host: int, option: tuple['Place', ...]) -> bool:
        use = self.of.state.cells
        if use is None or self._slot is None:
            return True
        slot = int(use.cells.kind[self._slot])
        if need == slot or not slot:
            return True
        if need not in self._costly:
            self._costly[need] = use.costs_slots(need, slot)
        return not any(costly[host, place.cell] for costly, place in zip(
            self._costly[need], option, strict=True))

    def _count_taken(self, takes: dict[tuple[int, int, str], list[_Taken]],
                     parts: Sequence['InstanceCell'], host: int, places: Sequence['Place'],
                     taken: _Taken) -> None:
        use = self.of.emptied
        for need, place in zip(parts, places, strict=False):
            for name, amount in use.amounts(need, place).items() if use is not None else ():
                takes.setdefault((host, place.cell, name), []).append(
                    taken._replace(amount=taken.amount * amount))

    def keep_loads(self, most: np.ndarray, price: float | None = None) -> None:
        """Add constraints by which no host ends with a load above ``most``. Each instance counts
        with the mean load of the instances of its kind. If ``price`` is given, load above ``most``
        is permitted at this cost.

        :param most: float64 (h, P), highest load of each host; inf for no limit
        :param price: cost of a load that is above ``most`` by 1; None if no load may be above
            ``most``
        """
        of, load = self.of, self.of.state.scores[self.of.hosts]
        for p in np.flatnonzero(np.isfinite(most).any(axis=0)):
            amount = of.weights[:, p, None] * of.problem.host_scale[of.hosts, p]
            room = most[:, p] - load[:, p]
            before = len(self._low)
            if price is not None:
                room = np.maximum(room, 0.0)
            self._changes(amount, np.arange(len(room)), room)
            if price is None:
                continue
            for row in range(before, len(self._low)):
                _number, columns, values = self._rows[row]
                self._rows[row] = (np.full(len(columns) + 1, row),
                                   np.append(columns, self._variable(price, np.inf)),
                                   np.append(values, -1.0))

    def keep_load_limits(self, price: float | None = None) -> None:
        """Add the constraints of the model's load limits.

        :param price: cost of load above a limit, as in :meth:`keep_loads`
        """
        for rule in self.of.model.rules:
            if isinstance(rule, LoadLimit):
                hosts, scores = self.of.hosts, self.of.state.scores[self.of.hosts]
                # The limit may be one of the capacity value. It is converted to a limit of the
                # score that leaves the same distance.
                self.keep_loads(rule.most[hosts] - rule.load(self.of.state, hosts) + scores, price)

    def even_out(self, worst: np.ndarray) -> None:
        """Set the objective to the combined imbalance plus the prices of moves.

        :param worst: float64 (P,), highest permitted imbalance of each policy after the moves
        """
        of = self.of
        prices = of.state.delta((of.sample[:, None], of.hosts), model=of.model).price
        self._costs[:2] = prices[tuple(self.arrive.T)], np.zeros(len(self.leave))
        self.keep_imbalances(worst, of.problem.policy_weights)

    def keep_imbalances(self, most: np.ndarray, costs: np.ndarray) -> None:
        """Add constraints by which no imbalance is above ``most`` after the moves. Only the hosts
        of the assignment count.

        :param most: float64 (P,), highest imbalance of each policy
        :param costs: float64 (P,), cost of an imbalance of 1 in each policy
        """
        for p, cost in enumerate(costs):
            # All variables of the program are at least 0, and so are scores.
            top, bottom = self._variable(cost, np.inf), self._variable(-cost, np.inf)
            self._add(np.array([top, bottom]), np.array([1.0, -1.0]), -np.inf, float(most[p]))
            for columns, change, score in self._score_changes(p):
                self._add(np.append(columns, top), np.append(change, -1.0), -np.inf, -score)
                self._add(np.append(columns, bottom), np.append(change, -1.0), -score, np.inf)

    def keep_scores(self, low: np.ndarray, high: np.ndarray) -> None:
        """Add constraints by which the scores of all hosts of the assignment are in a range after
        the moves.

        :param low, high: float64 (P,), the ends of the range of each policy
        """
        for p in range(len(low)):
            for columns, change, score in self._score_changes(p):
                self._add(columns, change, float(low[p]) - score, float(high[p]) - score)

    def _score_changes(self, policy: int) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
        """Yield (columns, changes, present score) for each host of the assignment. The columns are
        those of arrivals at the host and of departures from the host. The changes are those of the
        host's score in one policy by one instance of each column."""
        of = self.of
        kind, host, sign = self._flows
        change = sign * of.weights[kind, policy]
        for at, (place, score) in enumerate(zip(
                of.hosts, of.state.scores[of.hosts, policy].tolist(), strict=True)):
            columns = np.flatnonzero(host == at)
            yield columns, change[columns] * of.problem.host_scale[place, policy], score

    def keep_reserved_room(self) -> None:
        """Add constraints by which the reserved room is still free after the moves, on all hosts
        together that the rule counts. Hosts without instances count as well. If less room is free
        now on the hosts with instances, only this amount has to be free after the moves."""
        of, problem, state = self.of, self.of.problem, self.of.state
        free = (problem.limits - state.used)[:len(problem.hosts)]
        kind, host, sign = self._flows
        for rule in of.model.rules:
            if not isinstance(rule, ReservedRoom):
                continue
            now = free[rule.counted & (state.guests > 0)].sum(axis=0)
            most = np.maximum(free[rule.counted], 0.0).sum(axis=0)
            for c in range(free.shape[1]):
                counts = rule.counted[of.hosts] & (problem.row(of.hosts, c) == of.hosts)
                amount = sign * problem.demands[of.sample[kind], c] * counts[host]
                columns = np.flatnonzero(amount)
                left = most[c] - min(float(rule.needed[c]), float(now[c]))
                self._add(columns, amount[columns], -np.inf, max(left, 0.0))

    def keep_wishes(self, should: bool) -> None:
        """Set the objective to the costs of operators' preferences and of copying memory.

        :param should: True if preferences count; False if preferences are ignored
        """
        of, prices = self.of, self.of.model.prices
        cost = np.zeros((len(of.sample), len(of.hosts)))
        if should and prices.preferences is not None:
            cost += prices.preferences.at(of.sample[:, None], of.hosts)
        copies = np.zeros(len(of.sample)) if prices.vms is None else prices.vms[of.sample]
        self._costs[0] = self._costs[0] * SMALL + cost[tuple(self.arrive.T)]
        self._costs[1] = (self._costs[1] * SMALL + copies[self.leave[:, 0]]
                          - cost[tuple(self.leave.T)])

    def repair_placements(self, penalty: float) -> None:
        """Lower the objective by :data:`HARD` times ``penalty`` for each instance that leaves a
        host which an operator's rule forbids."""
        of = self.of
        astray = np.stack([of.model.is_astray(of.sample, np.full(len(of.sample), host))
                           for host in of.hosts], axis=1)
        self._costs[1] = self._costs[1] - HARD * penalty * astray[tuple(self.leave.T)]

    def repair_members(self, wanted: np.ndarray, penalty: float) -> None:
        """Raise the objective by a penalty for each member that violates the policy of its group
        after the moves.

        :param wanted: bool (G,), true for the groups that count
        :param penalty: penalty of a member of a soft group; :data:`HARD` times as much for members
            of hard groups
        """
        of, members = self.of, self.of.model.memberships
        kind, host, sign = self._flows
        everywhere = np.arange(len(of.problem.hosts))
        for group in np.flatnonzero(wanted).tolist():
            cost = penalty * (HARD if members.hard[group] else 1.0)
            is_member = members.has(np.full(len(of.sample), group), of.sample)[kind]
            places = members.place(np.full(len(everywhere), group), everywhere)
            now = of.state.groups.on(np.full(len(everywhere), group), everywhere)
            is_used: list[int] = []
            for place, first in zip(*np.unique(places, return_index=True), strict=True):
                columns = np.flatnonzero(is_member & (places[of.hosts[host]] == place))
                if not len(columns) and not now[first]:
                    continue
                # One variable counts the misplaced members in the place.
                added, values = [self._variable(cost, np.inf)], [-1.0]
                most = float(members.most[group]) if members.anti[group] else 0.0
                if not members.anti[group]:
                    is_used.append(self._whole(0.0))
                    added, values = [*added, is_used[-1]], [-1.0, -float(members.size[group])]
                self._add(np.append(columns, added), np.append(sign[columns], values), -np.inf,
                          most - float(now[first]))
            if is_used:
                self._add(np.array(is_used), np.ones(len(is_used)), -np.inf,
                          float(members.most_places[group]))

    @property
    def most_wishes(self) -> float:
        """An upper bound of the objective that :meth:`keep_wishes` sets. A penalty above this bound
        outweighs the costs of all preferences and copies together."""
        comes, leaves = np.zeros((2, len(self.count)))
        np.maximum.at(comes, self.arrive[:, 0], np.abs(self._costs[0]))
        np.maximum.at(leaves, self.leave[:, 0], np.abs(self._costs[1]))
        return float((comes + leaves) @ self.count) * self.rounds

    def limit_moves(self, most: int) -> None:
        """Add a constraint by which at most ``most`` instances move. Instances that have to leave
        are not counted."""
        columns = len(self.arrive) + np.arange(len(self.leave))
        self._add(columns, np.ones(len(columns)), -np.inf, float(most))

    def limit_moves_of(self, sets: np.ndarray, most: np.ndarray) -> None:
        """Add constraints by which at most a given number of instances of each set move. Instances
        that have to leave are not counted.

        :param sets: intp (V,), the set of each instance; instances of one kind are of one set
        :param most: intp (n,), the number of instances of each of n sets that may move
        """
        of_leave = sets[self.of.sample[self.leave[:, 0]]]
        for number in np.unique(of_leave).tolist():
            columns = len(self.arrive) + np.flatnonzero(of_leave == number)
            self._add(columns, np.ones(len(columns)), -np.inf, max(float(most[number]), 0.0))

    def reward_empty(self, hosts: np.ndarray, reward: float, least: int) -> None:
        """Lower the objective by ``reward`` for each host that becomes empty, and add a constraint
        by which at least ``least`` hosts become empty.

        :param hosts: bool (h,), true for the hosts that may become empty, because all of their
            instances are in the assignment
        """
        first, begin = len(self.arrive), self.columns
        for host in np.flatnonzero(hosts):
            is_empty = self._whole(-reward)
            for n in np.flatnonzero(self.arrive[:, 1] == host):
                count = self._most[0][n]
                self._add(np.array([n, is_empty]), np.array([1.0, count]), -np.inf, count)
            leave = np.flatnonzero(self.leave[:, 1] == host)
            for same in leave.reshape(self.rounds, -1).T:
                self._add(np.append(first + same, is_empty), np.append(
                    np.ones(len(same)), -self._most[1][same[0]]), 0.0, np.inf)
        every = np.arange(begin, self.columns)
        self._add(every, np.ones(len(every)), float(least), np.inf)

    def reward_emptied(self, hosts: np.ndarray) -> None:
        """Lower the objective for each host that all of its instances leave. The sum of these
        rewards is less than the cost of an instance that stays (see :data:`EMPTIED`).

        :param hosts: intp, indexes of hosts all of whose instances have to leave; no instance of
            another host is of the same kind as one of their instances
        """
        first = len(self.arrive) + len(self.leave)
        source = self.of.state.vm_host[self.of.sample[self.stay]]
        for host in hosts.tolist():
            is_empty = self._whole(-EMPTIED * STAYS / len(hosts))
            for n in np.flatnonzero(source == host).tolist():
                count = float(self.count[self.stay[n]])
                self._add(np.array([first + n, is_empty]), np.array([1.0, count]), -np.inf, count)

    def reward_relief(self, host: int, excess: np.ndarray, reward: float,
                      costs: np.ndarray | None = None) -> None:
        """Lower the objective by ``reward`` if a host is relieved: in every policy, at least as
        much load leaves the host as ``excess`` has.

        :param host: position of the host in the hosts of the assignment
        :param excess: float64 (P,), excess load; policies with 0 or less do not count
        :param costs: float64 (P,), cost in each policy if all excess load stays; if a part stays,
            the cost is proportionally less. None for no costs
        """
        of, first = self.of, len(self.arrive)
        leave = np.flatnonzero(self.leave[:, 1] == host)
        is_relieved = self._whole(-reward)
        for p in np.flatnonzero(excess > 0):
            amount = of.weights[self.leave[leave, 0], p] * of.problem.host_scale[of.hosts[host], p]
            self._add(np.append(first + leave, is_relieved), np.append(amount, -excess[p]), 0.0,
                      np.inf)
            if costs is not None:
                left = self._variable(float(costs[p]), 1.0)
                self._excess.append((left, float(excess[p])))
                self._add(np.append(first + leave, left), np.append(amount, excess[p]),
                          float(excess[p]), np.inf)

    def limit_excess(self, most: float) -> None:
        """Add a constraint by which excess load of at most ``most`` stays on all hosts together.
        Only the excess load that has a cost in :meth:`reward_relief` counts."""
        columns, loads = zip(*self._excess, strict=True)
        self._add(np.array(columns), np.array(loads), -np.inf, most)

    def ignore_copies(self) -> None:
        """Set the costs of moves to 0, so that the memory to copy does not count."""
        self._costs[:2] = [np.zeros(len(costs)) for costs in self._costs[:2]]

    def _whole(self, cost: float) -> int:
        """Add a column (a variable) that is 0 or 1, and return the number of the column."""
        self._is_whole.append(self.columns)
        return self._variable(cost, 1.0)

    def _integer(self, most: float) -> int:
        """Add a column (a variable) that is a whole number and costs nothing, and return the number
        of the column.

        :param most: upper bound of the variable
        """
        self._is_whole.append(self.columns)
        return self._variable(0.0, most)

    def solve(self, seconds: float, gap: float, nodes: int) -> Solution | None:
        """Return the cheapest solution found; None if none is found.

        :param seconds: seconds of processor time that are left
        :param gap: relative gap: the fraction of the cost by which a solution may be more expensive
            than the cheapest
        :param nodes: maximum number of nodes of the branch and bound, after which the best solution
            so far is returned
        """
        from scipy import sparse  # imported late: it takes half a second

        kinds, hosts = self.here.shape
        rows, columns, values = (np.concatenate(part) for part in zip(*self._rows, strict=True))
        matrix = sparse.csr_array((values, (rows, columns)), shape=(len(self._low), self.columns))
        is_whole = np.arange(self.columns) < self.integers
        is_whole[self._is_whole] = True
        found = _solved(np.concatenate(self._costs), (matrix, self._low, self._high), is_whole,
                        np.concatenate(self._most), seconds, gap, nodes)
        if found.x is None:
            return None
        whole = np.rint(found.x[:self.integers]).astype(np.intp)
        first, second = len(self.arrive), len(self.arrive) + len(self.leave)
        lies: dict[tuple[int, int, int], dict[int, int]] = {}
        arrive, leave = np.zeros((2, self.rounds, kinds, hosts), dtype=np.intp)
        for found_in, pairs, counts in ((arrive, self.arrive, whole[:first]),
                                        (leave, self.leave, whole[first:second])):
            np.add.at(found_in, (self._round_of(pairs), pairs[:, 0], pairs[:, 1]), counts)
        for number, (kind, at), lie, some in zip(
                self._round_of(self.leave).tolist(), self.leave.tolist(), self.lies.tolist(),
                whole[first:second].tolist(), strict=True):
            if some:
                lies.setdefault((number, kind, at), {})[lie] = some
        stay = np.zeros(kinds, dtype=np.intp)
        stay[self.stay] = whole[second:]
        bound = found.mip_dual_bound
        return Solution(arrive, leave, stay, float(found.fun),
                        -np.inf if bound is None else float(bound), self._found_ways(found.x),
                        lies, self._is_exact)

    def _found_ways(self, solved: np.ndarray) -> dict[tuple[int, int, int], list[tuple[int, ...]]]:
        ways: dict[tuple[int, int, int], list[tuple[int, ...]]] = {}
        rounds = self._round_of(self.arrive)
        for column, way, cells in self._lies:
            kind, host = self.arrive[column].tolist()
            key = int(rounds[column]), kind, host
            ways.setdefault(key, []).extend([cells] * round(float(solved[way])))
        return ways


def cheapest_cover(costs: np.ndarray, amounts: np.ndarray, least: np.ndarray,
                   seconds: float, nodes: int) -> np.ndarray | None:
    """Choose items whose amounts together reach lower bounds, at the lowest cost. This is the
    minimum knapsack problem with several constraints.

    :param costs: float64 (n,), cost of each item
    :param amounts: float64 (k, n), amounts of each item, which may be negative
    :param least: float64 (k,), lower bounds of the sums of the amounts
    :param seconds, nodes: as in :meth:`Program.solve`
    :returns: bool (n,), true for the chosen items; None if no choice is found
    """
    found = _solved(costs, (amounts, least, np.inf), np.ones(len(costs)), np.ones(len(costs)),
                    seconds, 0.0, nodes)
    return None if found.x is None else found.x > 0.5


def _solved(costs: np.ndarray, constraints: tuple[Any, Any, Any], is_whole: np.ndarray,
            most: np.ndarray, seconds: float, gap: float, nodes: int) -> Any:
    """Solve a program, and return the result of ``scipy.optimize.milp``.

    :param costs: cost of each column
    :param constraints: (matrix, lower bounds, upper bounds) of the rows
    :param is_whole: true for the columns that are whole numbers
    :param most: upper bound of each column; the lower bounds are 0
    :param seconds, gap, nodes: as in :meth:`Program.solve`
    """
    from scipy import optimize  # imported late: it takes half a second

    options = {'node_limit': nodes, 'mip_rel_gap': gap}
    if np.isfinite(seconds):
        options['time_limit'] = SLOWED * max(seconds, 0.1)
    with solver_output.redirected():
        return optimize.milp(costs, constraints=optimize.LinearConstraint(*constraints),
                             integrality=is_whole, bounds=optimize.Bounds(0.0, most),
                             options=options)
