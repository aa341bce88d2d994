"""One aggregate, compiled: its arrays and every rule about them."""

import copy
import functools
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from kronos_nova.model.arrays import Chains
from kronos_nova.model.groups import Memberships
from kronos_nova.model.prices import Prices
from kronos_nova.model.problem import Problem
from kronos_nova.model.rules import CallbackRule
from kronos_nova.model.rules import GroupPolicy
from kronos_nova.model.rules import LoadLimit
from kronos_nova.model.rules import Rule

if TYPE_CHECKING:
    from kronos_nova.model.state import State

FREE = Prices()


class Model:
    """What never changes while an aggregate is planned.

    rules : what forbids moves, asked in this order; callback rules last
    prices : what moves cost
    memberships : of server groups
    breakable : bool (G,), soft groups that may be broken, for a price
    guests : intp (H,), instances on each host before any move, and those under way to it
    """

    def __init__(self, problem: Problem, rules: tuple[Rule, ...] = (), prices: Prices = FREE):
        self.problem, self.prices = problem, prices
        self.rules = _callbacks_last(rules)
        self.memberships = Memberships(problem)
        self.breakable = ~self.memberships.hard
        for rule in self.rules:
            if isinstance(rule, GroupPolicy):
                self.breakable = self.breakable & ~rule.forbids
        self.guests = np.bincount(np.append(problem.vm_host, problem.arriving),
                                  minlength=len(problem.hosts))

    def with_rules(self, *rules: Rule) -> 'Model':
        """The same with further rules."""
        other = copy.copy(self)
        other.__dict__.pop('for_emptying', None)
        other.rules = _callbacks_last((*self.rules, *rules))
        return other

    @functools.cached_property
    def for_emptying(self) -> 'Model':
        """The same without the rules, and the groups, that yield: by what is left hosts are emptied
        that could not be otherwise."""
        other = self.with_rules()
        other.rules = tuple(rule.for_emptying() if isinstance(rule, GroupPolicy) else rule
                            for rule in self.rules if not rule.yields)
        return other

    def with_ceiling(self, state: 'State', ceiling: float) -> 'Model':
        """The same, in which no host passes the ceiling in any policy, unless it already is above
        in ``state``: then it may not pass where it is."""
        return self.with_rules(LoadLimit(
            most=np.maximum(ceiling, state.scores), by_capacity=False, is_passing=True,
            what='the overload ceiling, or what it has now,'))

    def with_mark(self, state: 'State', mark: float | np.ndarray) -> 'Model':
        """The same, in which no host ends above the mark in any policy, unless it already is above
        in ``state``: then it may not end above where it is.

        :param mark: of all policies, or float64 (P,)
        """
        return self.with_rules(LoadLimit(
            most=np.maximum(mark, state.scores), by_capacity=False,
            what='the mark above which it is full, or what it has now,'))

    def serial(self, vm: int) -> tuple[int, ...]:
        """Numbers that instances share whose moves must not be under way together: of the server
        groups they are in, because Nova does not see a member that is on its way."""
        return tuple(self.memberships.groups_of(vm).tolist())

    def sharing_with(self, host: int) -> list[int]:
        """The host, and those that are allocated some class from the same provider."""
        hosts, classes = np.indices((len(self.guests), len(self.problem.resource_classes)))
        rows = np.asarray(self.problem.row(hosts, classes))
        return sorted({host, *np.flatnonzero((rows == rows[host]).any(axis=1)).tolist()})

    def share_group(self, moves: Chains, wanted: np.ndarray) -> np.ndarray:
        """bool (...): the chains in which two instances are in one of the wanted groups.

        :param wanted: bool (G,)
        """
        chains = [vms.reshape(-1) for vms, _hosts in moves]
        shared = np.zeros(len(chains[0]), dtype=bool)
        for one, other in itertools.combinations(chains, 2):
            position, groups = self.memberships.expand(one)
            both = wanted[groups] & self.memberships.has(groups, other[position])
            shared[position[both]] = True
        return shared.reshape(moves[0][0].shape)

    def broken(self, state: 'State', hard: bool, soft: bool) -> np.ndarray:
        """bool (G,): server groups of these kinds with misplaced members."""
        return (state.groups.misplaced > 0) & ~self.memberships.by_rule & np.where(
            self.memberships.hard, hard, soft)

    def movable_members(self, groups: np.ndarray) -> np.ndarray:
        """intp: the movable instances that are in one of the groups, sorted.

        :param groups: bool (G,)
        """
        members = self.memberships.members[groups[self.memberships.member_of]]
        return np.unique(members[self.problem.movable[members]])

    def names_of(self, groups: np.ndarray, vm: int) -> str:
        """The names of those groups that an instance is in, for a person."""
        return ', '.join(self.memberships.groups[group].name
                         for group in self.memberships.groups_of(vm) if groups[group])


def _callbacks_last(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(sorted(rules, key=lambda rule: isinstance(rule, CallbackRule)))
