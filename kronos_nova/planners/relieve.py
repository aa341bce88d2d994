"""The planner that relieves hosts whose load is above a limit that a policy sets.

The instances that leave a host have to remove enough load in each policy. The planner looks for the
set with the least memory among all sets of instances that remove enough load. This is a minimum
knapsack problem with one constraint for each policy. It is solved as an integer program.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from kronos_nova import plural
from kronos_nova.model import TOLERANCE
from kronos_nova.model import Model
from kronos_nova.model import State
from kronos_nova.model import assignment
from kronos_nova.model.program import SOLVER_TOLERANCE
from kronos_nova.model.program import Program
from kronos_nova.objects.plan import RELIEVE
from kronos_nova.planners import order
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import SearchBudget
from kronos_nova.planners.base import Step
from kronos_nova.planners.hot_hosts import LEAST_TOGETHER
from kronos_nova.planners.hot_hosts import Marks

BUDGET = SearchBudget(pairs=(5000,), stages=(1, 2), nodes=20, gap=1e-4, ends=20)
"""Limits of two integer programs: one chooses the instances that leave one hot host, and one
relieves all hot hosts together. The number of end states is the number of sets of instances that
are tried for one host. Two stages are used if the moves of the second program have no possible
order with one stage. The gap is small because the memory to copy is a small part of the cost.
Measured by ``bench constants`` on 6 clouds: with a quarter of the pairs, one plan copies 16 % more
memory; no plan depends on the nodes and the gap. With 500 nodes, no set of 240 random hosts with up
to 300 instances needs less memory."""


class Relieve:
    """A planner that relieves one hot host after the other, the hottest first. A host is hot if its
    load, or the load of one of its instances, is above a limit of a policy. Of all sets of
    instances whose moves bring the host to its target load, the planner moves the set with the
    least memory. The destinations stay at or below their target loads.

    If a host cannot reach its target load, it is relieved only until its load is no longer above
    its limit. If the host cannot reach the limit either, instances are moved as long as other hosts
    can take them.

    In small clusters, the planner makes a second plan, which relieves all hot hosts together, and
    may move other instances to make room. The better of the two plans is returned.
    """

    phase = RELIEVE

    def __init__(self, marks: Marks, least_part: float = 0.0):
        """:param marks: the limits and target loads of the policies
        :param least_part: smallest load of an instance that may be moved, as a fraction of the load
            by which the host exceeds its target
        """
        self._marks, self._least_part = marks, least_part

    def plan(self, state: State, limits: Limits) -> list[Step]:
        model = state.model.with_ceiling(state, limits.overload_ceiling)
        hot = {host: self._search(state, model, host, limits)
               for host in self._hottest_first(state)}
        moves = self._host_by_host(state, model, limits)
        together = self._together(state, model, hot, limits)
        if together and self._rate(state, together) < self._rate(state, moves):
            moves = together
        names = state.problem.hosts
        return order.carry_out(moves, state, lambda source: (
            hot[source].why if source in hot
            else f'makes room on {names[source]} for what leaves hot hosts'))

    def _search(self, state: State, model: Model, host: int, limits: Limits) -> '_Host':
        return _Host(state, model, self._marks, host, limits, self._least_part)

    def _host_by_host(self, state: State, model: Model,
                      limits: Limits) -> list[tuple[int, int]]:
        moves: list[tuple[int, int]] = []
        trial = state.copy()
        for host in self._hottest_first(state):
            if len(moves) >= limits.budget or limits.is_over:
                break
            left = dataclasses.replace(limits, budget=limits.budget - len(moves))
            more = self._search(trial, model, host, left).moves()
            for vm, place in more:
                trial.move(vm, place)
            moves += more
        return moves

    def _rate(self, state: State, moves: list[tuple[int, int]]) -> tuple[int, int, float, int]:
        """Return the rating of a plan: (number of hosts above their target loads, number of hosts
        above their limits, load above the limits, MiB of memory to copy). Only hosts that are hot
        before the plan count, and target loads only in the policies in which they are hot. A
        smaller rating is better."""
        hot = self._hottest_first(state)
        scores, is_hot = state.after(moves).scores[hot], self._marks.hot(state)[hot]
        over = np.maximum(scores - self._marks.high, 0.0)
        return (int((is_hot & (scores > self._marks.target + TOLERANCE)).any(axis=1).sum()),
                int((over > TOLERANCE).any(axis=1).sum()), round(float(over.sum()), 6),
                sum(int(state.problem.memory_mb[vm]) for vm, _place in moves))

    def _together(self, state: State, model: Model, hot: 'dict[int, _Host]',
                  limits: Limits) -> list[tuple[int, int]] | None:
        """Return the moves of a plan that relieves all hot hosts together, in an order in which
        every rule holds after each move. Return None in five cases:

        * No instance would relieve a hot host.
        * There are more pairs of an instance and a host than :data:`BUDGET` permits.
        * A host is hot only because of instances whose own load is above a limit.
        * The integer program finds no such plan within its nodes (:data:`BUDGET`) or the time limit
          of the evaluation.
        * The moves that the integer program finds have no possible order, with one and with two
          stages of moves.

        The plan brings as many hosts as possible to their target loads. Of equal plans, the one
        that best keeps hosts within their limits is chosen. If plans are still equal, the one that
        copies the least memory is chosen.

        :param hot: {host: search for the instances that leave the host} for each hot host
        """
        problem, places = state.problem, np.flatnonzero(state.problem.available)
        others = np.flatnonzero(problem.movable & problem.available[state.vm_host]
                                & ~np.isin(state.vm_host, list(hot)))
        useful = np.array(sorted(vm for each in hot.values() for vm in each.useful),
                          dtype=np.intp)
        if (not len(useful) or (len(useful) + len(others)) * len(places) > BUDGET.most_pairs
                or any(each.is_by_server for each in hot.values())):
            return None
        choice = assignment.Assignment(
            state, model, useful[:0], np.concatenate([useful, others]), places, by_weight=True,
            closed=np.any(state.scores[places] > self._marks.target, axis=1))
        within = model.with_mark(state, self._marks.target)
        for rounds in BUDGET.stages:
            if limits.is_over:
                break
            ordering = order.Ordering(state.under(within), limits)
            # Moves that make room go first, while hosts have most room.
            moves = sorted(self._best_end(choice, limits, rounds), key=lambda move: (
                int(state.vm_host[move[0]]) in hot, -int(problem.memory_mb[move[0]])))
            if not moves:
                break
            if ordering.do_all(moves):
                return ordering.done
        return None

    def _best_end(self, choice: assignment.Assignment, limits: Limits,
                  rounds: int) -> list[tuple[int, int]]:
        """Return the moves to the best end state that the integer program finds; an empty list if
        it finds none.

        :param rounds: number of stages of moves in the program
        """
        state = choice.state
        moves = self._solved(choice, limits, rounds)
        if moves is not None and self._rate(state, moves)[2] > 0.0:
            # Less load above the limits counts more than less memory to copy.
            least = self._solved(choice, limits, rounds, copies=False) or moves
            if self._rate(state, least) < self._rate(state, moves):
                left = self._rate(state, least)[2]
                again = self._solved(choice, limits, rounds, left + SOLVER_TOLERANCE)
                moves = min([least, again or least], key=lambda each: self._rate(state, each))
        return moves or []

    def _solved(self, choice: assignment.Assignment, limits: Limits, rounds: int,
                most: float = np.inf, copies: bool = True) -> list[tuple[int, int]] | None:
        """Return the moves of the best solution of the integer program; None if no solution is
        found.

        :param rounds: number of stages of moves in the program
        :param most: maximum of the load that stays above the limits of all hot hosts together
        :param copies: False if the memory to copy does not count
        """
        state, places = choice.state, choice.hosts
        program = Program(choice, 0.0, rounds)
        program.keep_load_limits()
        program.keep_loads(np.tile(self._marks.target, (len(places), 1)))
        program.limit_moves(limits.budget)
        reward = 1.0
        if copies:
            memory = np.sort(choice.problem.memory_mb[choice.vms])[-limits.budget:].sum()
            reward += float(memory) / program.unit
        else:
            program.ignore_copies()
        is_hot, hot = self._marks.hot(state), self._hottest_first(state)
        above = np.maximum(state.scores[hot] - self._marks.high, 0.0)
        for host, excess in zip(hot, above, strict=True):
            at = int(np.searchsorted(places, host))
            over = np.where(is_hot[host], state.scores[host] - self._marks.target, 0.0)
            costs = np.full(len(excess), reward / len(excess))
            if not copies or np.isfinite(most):
                # All load above the limits counts alike, and less than any relieved host.
                costs = reward * excess / max(float(above.sum()), TOLERANCE)
            program.reward_relief(at, over, reward * (len(hot) + 1))
            program.reward_relief(at, excess, reward, costs)
        if np.isfinite(most):
            program.limit_excess(most)
        solution = BUDGET.solve(program, limits)
        return None if solution is None else choice.ended(solution).moves

    def _hottest_first(self, state: State) -> list[int]:
        """Return the hosts that are hot in ``state``, the hottest first.

        The callers pass the state before the plan. So a host that becomes hot by the moves of a
        plan is not relieved by the same plan. Otherwise, a server that is too large for every host
        would be moved again and again.
        """
        hot = self._marks.hot(state)
        over = np.where(hot, state.scores - self._marks.target, -np.inf)
        over = over.max(axis=1, initial=-np.inf)
        hosts = np.flatnonzero(hot.any(axis=1))
        return hosts[np.argsort(-over[hosts], kind='stable')].tolist()


class _Host:
    """The search for the instances that leave one hot host.

    hot : intp (n,), the n policies in which the host is to be relieved
    why : text with the reason for the moves
    sore : instances whose own load is above a policy's limit for a single instance
    is_by_server : True if the host is hot only because of the instances in ``sore``
    useful : instances whose load is large enough that moving them helps, in one of those policies
        of ``hot`` in which the load of the host is above its target
    vms : instances of ``useful`` that have a possible destination
    """

    def __init__(self, state: State, model: Model, marks: Marks, host: int, limits: Limits,
                 least_part: float):
        self.state, self.model, self.marks, self.host = state, model, marks, host
        self.limits, problem = limits, state.problem
        self.hot = np.flatnonzero(marks.hot(state)[host])
        self.why = f'relieves {problem.hosts[host]}, where {self._words()}'
        self.share = problem.weights * problem.host_scale[host]
        here = np.flatnonzero((state.vm_host == host) & problem.movable).tolist()
        self.sore = [vm for vm in here
                     if (self.share[vm] > marks.vm_high + TOLERANCE).any()]
        excess = state.scores[host, self.hot] - marks.target[self.hot]
        together = self.share[here][:, self.hot].sum(axis=0)
        least = np.where((excess <= TOLERANCE) | (together < LEAST_TOGETHER * excess), np.inf,
                         np.maximum(least_part * np.maximum(excess, 0.0), TOLERANCE))
        self.is_by_server = bool((excess <= TOLERANCE).all())
        self.useful = [vm for vm in here if (self.share[vm, self.hot] > least).any()]
        self.vms = [vm for vm in self.useful if self._place(vm) is not None]

    def _words(self) -> str:
        names = ' and '.join(self.state.problem.policies[policy] for policy in self.hot)
        return f'{names} {plural.agreeing(len(self.hot), "are")} too high'

    def moves(self) -> list[tuple[int, int]]:
        """Return the moves [(instance, destination)] that relieve the host, in an order in which
        every rule holds after each move."""
        scores, marks = self.state.scores[self.host, self.hot], self.marks
        excess = scores - marks.target[self.hot]
        if self.is_by_server:    # a single instance makes the host hot
            return self._placed(self.sore[:self.limits.budget]) or self._as_far_as_possible(excess)
        found = self._fewest(excess)
        if found is None:
            found = self._fewest(np.maximum(scores - marks.high[self.hot], 0.0))
        return found or self._as_far_as_possible(excess)

    def _fewest(self, excess: np.ndarray) -> list[tuple[int, int]] | None:
        """Return the moves that remove the excess and copy the least memory; None if no such moves
        were found. Of equal sets of moves, the smaller set is returned; of sets that are still
        equal, the one with the first instances in the order of :meth:`_by_use`. If the chosen
        instances have no possible destinations, another set of instances is chosen.

        :param excess: float64 (n,), load to remove in each of the n policies ``hot``
        """
        vms, count = np.array(self._by_use(excess), dtype=np.intp), len(self.vms)
        if not count:
            return None
        gains = self.share[np.ix_(vms, self.hot)]
        # Number and order of the instances cost less than 1 MiB together.
        costs = (self.state.problem.memory_mb[vms]
                 + (1.0 + np.arange(count) / count) / (2.0 * count))
        amounts, least = [*gains.T, -np.ones(count)], [*excess, -float(self.limits.budget)]
        for number in range(BUDGET.ends):
            if number and self.limits.is_over:
                return None
            chosen = BUDGET.cover(costs, np.array(amounts), np.array(least), self.limits)
            if chosen is None:
                return None
            # The solver's tolerance is larger than that of the planners.
            if (gains[chosen].sum(axis=0) >= excess - TOLERANCE).all():
                found = self._placed(vms[chosen].tolist())
                if found is not None:
                    return found
            amounts.append(-chosen.astype(float))
            least.append(1.0 - chosen.sum())
        return None

    def _by_use(self, excess: np.ndarray) -> list[int]:
        """Return the instances in ``vms``, sorted by the load that each removes per MiB of its
        memory, the largest first. Policies without load to remove do not count.

        :param excess: float64 (n,), load to remove in each of the n policies ``hot``
        """
        memory, wanted = self.state.problem.memory_mb, np.where(excess > TOLERANCE, excess, np.inf)
        return sorted(self.vms, key=lambda vm: (
            -float((self.share[vm, self.hot] / wanted).max()) / max(int(memory[vm]), 1), vm))

    def _as_far_as_possible(self, excess: np.ndarray) -> list[tuple[int, int]]:
        """Return moves (instance, destination) that remove as much of the excess as possible. The
        instances are tried one after the other, until the excess is removed or the budget is used
        up. Instances without a possible destination stay.

        :param excess: float64 (n,), load to remove in each of the n policies ``hot``
        """
        moves: list[tuple[int, int]] = []
        left = excess
        is_by_server = (excess <= TOLERANCE).all()
        for vm in self.sore if is_by_server else self._by_use(excess):
            if len(moves) == self.limits.budget or not is_by_server and (left <= TOLERANCE).all():
                break
            place = self._place(vm)
            if place is not None:
                moves.append((vm, place))
                self.state.move(vm, place)
                left = left - self.share[vm, self.hot]
        self._undo(moves)
        return moves

    def _placed(self, vms: Sequence[int]) -> list[tuple[int, int]] | None:
        """Return a move (instance, destination) for each of the instances, the heaviest instance
        first; None if an instance has no possible destination. The destination is the host that is
        furthest below its target loads after the move."""
        moves = []
        for vm in sorted(vms, key=lambda vm: (-float(self.share[vm, self.hot].max()), vm)):
            place = self._place(vm)
            if place is None:
                break
            moves.append((vm, place))
            self.state.move(vm, place)
        self._undo(moves)
        return moves if len(moves) == len(vms) else None

    def _undo(self, moves: Sequence[tuple[int, int]]) -> None:
        for vm, _place in reversed(moves):
            self.state.move(vm, self.host)

    def _place(self, vm: int) -> int | None:
        """Return the possible destination that is furthest below its target loads after the move of
        the instance; None if there is no possible destination."""
        state, problem, target = self.state, self.state.problem, self.marks.target
        hosts = np.arange(len(problem.hosts))
        after = state.scores + problem.weights[vm] * problem.host_scale
        part = (after / target).max(axis=1, initial=0.0)
        fits = (part <= 1.0 + TOLERANCE) & problem.available & (hosts != self.host)
        hosts = hosts[fits]
        hosts = hosts[state.delta((np.intp(vm), hosts), model=self.model).feasible]
        return int(hosts[part[hosts].argmin()]) if len(hosts) else None
