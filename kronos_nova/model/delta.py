"""The effect of moves on a state, and the decision whether the rules allow the moves."""

import functools
from typing import TYPE_CHECKING

import numpy as np

from kronos_nova.model.arrays import Chains
from kronos_nova.model.arrays import Move
from kronos_nova.model.extremes import Extremes
from kronos_nova.model.rules import CallbackRule
from kronos_nova.model.rules import Rule

if TYPE_CHECKING:
    from kronos_nova.model.compiled import Model
    from kronos_nova.model.state import State

ITSELF = -2
"""Value (no unit) of :attr:`Delta.against` for a move of an instance to its own host. Other values
are positions of rules. Fixed: no position is negative."""
NONE = -1
"""Value (no unit) of :attr:`Delta.against` for a move that no rule forbids. Other values are
positions of rules. Fixed: no position is negative."""


class Delta:
    """The effect of many chains of moves on one state, computed for all chains at once. A chain is
    k moves that are made together, such as the two moves of a swap. Each attribute is computed when
    it is first read, and is valid until the state changes.

    Every move of a chain is evaluated as if the other moves of the chain were already made. In the
    shapes of arrays, (...) stands for the shape of the arrays of moves.
    """

    def __init__(self, state: 'State', moves: tuple[Move, ...], model: 'Model | None' = None):
        self.state, self.model = state, model or state.model
        # Arrays are broadcast only where necessary: one instance and a row of hosts stay as they
        # are.
        self._moves = tuple((np.asarray(vms, dtype=np.intp), np.asarray(hosts, dtype=np.intp))
                            for vms, hosts in moves)
        self.shape = np.broadcast(*(part for move in self._moves for part in move)).shape

    @functools.cached_property
    def moves(self) -> Chains:
        """The moves of all chains: a tuple with a pair (instances, destinations) of arrays intp
        (...) for each of the k positions in a chain."""
        return tuple((np.broadcast_to(vms, self.shape), np.broadcast_to(hosts, self.shape))
                     for vms, hosts in self._moves)

    @functools.cached_property
    def feasible(self) -> np.ndarray:
        """bool (...): true for chains in which every rule allows every move."""
        feasible = np.asarray(~self._itself())
        for rule in self.model.rules:
            if isinstance(rule, CallbackRule):
                feasible[feasible] = self._some(feasible)._allows(rule)
            else:
                feasible &= self._allows(rule)
        return feasible

    @functools.cached_property
    def against(self) -> np.ndarray:
        """intp (...): the position of the first rule that forbids a move of the chain. The value is
        -1 if no rule forbids a move, and -2 if the destination of an instance is its own host."""
        against = np.where(self._itself(), ITSELF, NONE)
        for number, rule in enumerate(self.model.rules):
            open_ = np.asarray(against == NONE)
            refused = np.zeros(self.shape, dtype=bool)
            refused[open_] = ~self._some(open_)._allows(rule)
            against[refused] = number
        return against

    @functools.cached_property
    def imbalances(self) -> np.ndarray:
        """float64 (..., P): the imbalance of each policy after the moves."""
        return self._extremes.after(*self._moves)

    @functools.cached_property
    def decrease(self) -> np.ndarray:
        """float64 (...): the decrease of the combined imbalance by the moves."""
        return self._extremes.decrease(self.imbalances)

    @functools.cached_property
    def accepted(self) -> np.ndarray:
        """bool (...): true for chains that every policy accepts. A policy does not accept a chain
        if its imbalance is both larger after the moves than before and above its threshold."""
        return self._extremes.accepts(self.imbalances)

    @functools.cached_property
    def price(self) -> np.ndarray:
        """float64 (...): the change of :meth:`State.price` by the moves, in units of combined
        imbalance. The change is mostly negative for moves that undo earlier moves."""
        state, prices = self.state, self.model.prices
        price = np.zeros(self.shape)
        for vms, hosts in self._moves:
            origin = state.origin[vms]
            now = prices.of_moves(vms, origin, state.vm_host[vms])
            price += prices.of_moves(vms, origin, hosts) - now
        return price + self._misplacing() if prices.soft_group_cost else price

    @property
    def objective(self) -> np.ndarray:
        """float64 (...): the increase of :meth:`State.objective` by the moves."""
        return self.price - self.decrease

    def repairs(self, wanted: np.ndarray) -> np.ndarray:
        """Return bool (...): true for moves after which at least one wanted server group has fewer
        members that violate the policy of the group. Each chain must have only one move.

        :param wanted: bool (G,), one value for each of G groups; true for the wanted groups
        """
        position, groups, change = self._misplaced_more(*self.moves[0])
        result = np.zeros(self.moves[0][0].size, dtype=bool)
        result[position[(change < 0) & wanted[groups]]] = True
        return result.reshape(self.shape)

    def misplaced_more(self, counted: np.ndarray) -> np.ndarray:
        """Return intp (...): the change of the number of members that violate the policy of their
        group, over all counted groups. Each chain must have only one move.

        :param counted: bool (G,), one value for each of G groups; true for the counted groups
        """
        position, groups, change = self._misplaced_more(*self.moves[0])
        return np.bincount(position, weights=change * counted[groups],
                           minlength=self.moves[0][0].size).reshape(self.shape)

    @property
    def _extremes(self) -> Extremes:
        return self.state.extremes(2 * len(self.moves) + 1)

    def _itself(self) -> np.ndarray:
        itself = np.zeros(self.shape, dtype=bool)
        for vms, hosts in self._moves:
            itself |= self.state.vm_host[vms] == hosts
        return itself

    def _some(self, rows: np.ndarray) -> 'Delta':
        """Return the Delta of some of the chains.

        :param rows: bool (...), true for the chains in the result
        """
        return Delta(self.state, tuple((vms[rows], hosts[rows]) for vms, hosts in self.moves),
                     self.model)

    def _allows(self, rule: Rule) -> np.ndarray:
        """Return bool, in a shape that can be broadcast to (...): true for chains in which the rule
        allows every move."""
        if len(self._moves) == 1:
            return rule.allows(self.state, *self._moves[0])
        allows = functools.reduce(np.logical_and, (self._allows_move(rule, n)
                                                   for n in range(len(self.moves))))
        if rule.is_additive:
            return allows
        for index in zip(*np.nonzero(rule.couples(self.state, self.moves)), strict=True):
            allows[index] = self._tried_out(rule, index)
        return allows

    def _allows_move(self, rule: Rule, n: int) -> np.ndarray:
        """Return bool (...): true for chains in which the rule allows the move at position ``n``.
        The effects of the other moves of the chain on load and room are included."""
        return rule.allows(self.state, *self.moves[n], self.moves[:n] + self.moves[n + 1:])

    def has_room(self, n: int) -> np.ndarray:
        """Return bool (...): true for chains in which all additive rules (rules about room and
        load) allow the move at position ``n``. Other rules are not evaluated, because that would
        take much longer."""
        return functools.reduce(np.logical_and, (
            self._allows_move(rule, n) for rule in self.model.rules if rule.is_additive),
            np.ones(self.shape, dtype=bool))

    def _chain(self, index: tuple[int, ...]) -> list[tuple[int, int]]:
        return [(int(vms[index]), int(hosts[index])) for vms, hosts in self.moves]

    def _tried_out(self, rule: Rule, index: tuple[int, ...]) -> bool:
        chain = self._chain(index)
        for vm, host in chain:
            trial = self.state.after(move for move in chain if move[0] != vm)
            if not rule.allows(trial, np.array([vm]), np.array([host]))[0]:
                return False
        return True

    def _misplacing(self) -> np.ndarray:
        """Return float64 (...): the part of :attr:`price` for members of soft server groups that
        violate the policy of their group."""
        change = functools.reduce(np.add, (self._misplacing_of(*move) for move in self.moves))
        if len(self.moves) > 1:
            for index in zip(*np.nonzero(
                    self.model.share_group(self.moves, self.model.breakable)), strict=True):
                trial = self.state.after(self._chain(index))
                change[index] = trial.misplacing() - self.state.misplacing()
        return change

    def _misplacing_of(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        position, groups, change = self._misplaced_more(vms, hosts)
        beyond = self.state.groups.misplaced[groups] - self.state.allowed[groups]
        change = np.maximum(beyond + change, 0) - np.maximum(beyond, 0)
        return (self.model.prices.soft_group_cost or 0.0) * np.bincount(
            position, weights=change * self.model.breakable[groups],
            minlength=vms.size).reshape(self.shape)

    def _misplaced_more(self, vms: np.ndarray,
                        hosts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the effect of moves on server groups, as three arrays. If an instance is a member
        of several groups, its move has an entry for each of these groups.

        :returns: three arrays intp: the position of the move in the flattened ``vms``; the group;
            and the change of the number of members that violate the policy of the group
        """
        vms, hosts = vms.reshape(-1), hosts.reshape(-1)
        position, groups = self.model.memberships.expand(vms)
        return position, groups, self.state.groups.change(
            groups, self.state.vm_host[vms[position]], hosts[position])
