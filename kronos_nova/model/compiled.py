"""The compiled model of one aggregate: its arrays, the rules that forbid moves, and the prices of
moves."""

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
from kronos_nova.model.rules import PlacementRule
from kronos_nova.model.rules import Rule

if TYPE_CHECKING:
    from kronos_nova.model.state import State

FREE = Prices()


class Model:
    """A problem with all rules and prices. A price is the cost of a move in units of combined
    imbalance. A model does not change while an aggregate is planned.

    rules : rules that forbid moves, in the order of their evaluation; callback rules come last
    prices : Prices of moves
    memberships : members of server groups
    breakable : bool, one value for each group: true if moves may violate the policy of the group.
        Each violation adds to the price of the moves
    guests : intp (H,), number of instances on each host before any move, including instances that
        are migrating to the host
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
        """Return a copy with ``rules`` as additional rules."""
        other = copy.copy(self)
        other.__dict__.pop('for_emptying', None)
        other.rules = _callbacks_last((*self.rules, *rules))
        return other

    @functools.cached_property
    def for_emptying(self) -> 'Model':
        """A copy without those rules and server groups that may be broken to empty a host. The copy
        is used for hosts that cannot be emptied under all rules."""
        other = self.with_rules()
        other.rules = tuple(rule.for_emptying() if isinstance(rule, GroupPolicy) else rule
                            for rule in self.rules if not rule.yields)
        return other

    def with_ceiling(self, state: 'State', ceiling: float) -> 'Model':
        """Return a copy with the rule that no host is above ``ceiling`` in any policy after any
        move. The limit of a host that is already above the ceiling is its score in ``state``.

        :param ceiling: the overload ceiling, a score
        """
        return self.with_rules(LoadLimit(
            most=np.maximum(ceiling, state.scores), by_capacity=False, is_passing=True,
            what='the overload ceiling, or what it has now,'))

    def with_mark(self, state: 'State', mark: float | np.ndarray) -> 'Model':
        """Return a copy with the rule that no host ends above ``mark`` in any policy. The limit of
        a host that is already above the mark is its score in ``state``.

        :param mark: limit of the score, one for all policies, or float64 (P,)
        """
        return self.with_rules(LoadLimit(
            most=np.maximum(mark, state.scores), by_capacity=False,
            what='the mark above which it is full, or what it has now,'))

    def serial(self, vm: int) -> tuple[int, ...]:
        """Return the positions of the server groups of an instance. While the instance is moved, no
        other member of these groups may be moved. Nova does not count a group member that is
        migrating, so two such moves could together violate the policy of the group.
        """
        return tuple(self.memberships.groups_of(vm).tolist())

    def sharing_with(self, host: int) -> list[int]:
        """Return the host and all hosts that share a resource provider with this host, such as the
        provider of a shared disk."""
        hosts, classes = np.indices((len(self.guests), len(self.problem.resource_classes)))
        rows = np.asarray(self.problem.row(hosts, classes))
        return sorted({host, *np.flatnonzero((rows == rows[host]).any(axis=1)).tolist()})

    def hinders(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return bool (n, n), for n moves of different instances: true where the move of the row
        may make the move of the column impossible. This is so if both moves go to one host, or to
        hosts that share a provider; if both instances are members of a group that does not look at
        each host alone; and for all moves if a rule looks at all hosts together.

        :param vms, hosts: intp (n,), the instances and their destinations
        """
        if any(rule.is_overall for rule in self.rules):
            return np.ones((len(vms), len(vms)), dtype=bool)
        each, number = np.unique(hosts, return_inverse=True)
        near = np.eye(len(each), dtype=bool)
        for c in range(len(self.problem.resource_classes)):
            rows = np.asarray(self.problem.row(each, c))
            near |= rows[:, None] == rows
        found = near[np.ix_(number, number)]
        members = self.memberships
        for group in np.flatnonzero(members.is_wide).tolist():
            inside = members.has(np.full(len(vms), group), vms)
            found |= inside[:, None] & inside
        return found

    def share_group(self, moves: Chains, wanted: np.ndarray) -> np.ndarray:
        """Return bool (...): true for chains in which two instances are members of the same wanted
        group. A chain is several moves that are made together.

        :param wanted: bool (G,), one value for each of G groups; true for the wanted groups
        """
        chains = [vms.reshape(-1) for vms, _hosts in moves]
        shared = np.zeros(len(chains[0]), dtype=bool)
        for one, other in itertools.combinations(chains, 2):
            position, groups = self.memberships.expand(one)
            both = wanted[groups] & self.memberships.has(groups, other[position])
            shared[position[both]] = True
        return shared.reshape(moves[0][0].shape)

    def broken(self, state: 'State', hard: bool, soft: bool) -> np.ndarray:
        """Return bool (G,), one value for each of G groups: true for server groups with members
        that violate the policy of the group.

        :param hard: whether groups with a hard policy are included
        :param soft: whether groups with a soft policy are included
        """
        return (state.groups.misplaced > 0) & ~self.memberships.by_rule & np.where(
            self.memberships.hard, hard, soft)

    def broken_rules(self, state: 'State') -> np.ndarray:
        """Return bool (G,), one value for each of G groups: true for operators' rules about several
        servers that are violated in ``state``."""
        return (state.groups.misplaced > 0) & self.memberships.by_rule

    def astray(self, state: 'State') -> np.ndarray:
        """Return bool (V,): true for instances on a host that an operator's rule forbids."""
        return self.is_astray(np.arange(len(self.problem.vms)), state.vm_host)

    def violations(self, state: 'State') -> int:
        """Return the number of violations of operators' rules. Each instance on a forbidden host is
        one violation. Each server that violates a rule about several servers is one violation."""
        misplaced = state.groups.misplaced[self.memberships.by_rule].sum()
        return int(self.astray(state).sum() + misplaced)

    def misplaced(self, state: 'State', wanted: np.ndarray) -> tuple[int, int]:
        """Return the numbers of members that violate the hard and the soft policies of the wanted
        groups.

        :param wanted: bool (G,), one value for each of G groups; true for the wanted groups
        """
        hard, soft = (int(state.groups.misplaced[wanted & policies].sum())
                      for policies in (self.memberships.hard, ~self.memberships.hard))
        return hard, soft

    def repaired_without(self, state: 'State', vm: int, wanted: np.ndarray) -> np.ndarray:
        """Return bool (G,): true for the wanted groups of which a violation may end if the instance
        leaves its host. This is so if the members are kept together, or if too many members are on
        the host.

        :param wanted: bool (G,), true for the wanted groups, which are violated
        """
        every = np.arange(len(wanted))
        crowd = state.groups.on(every, np.full(len(every), state.vm_host[vm]))
        return wanted & (~self.memberships.anti | (crowd > self.memberships.most))

    def is_astray(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return bool (n,): true where an operator's rule forbids the instance to be on the host at
        the same position."""
        wrong = np.zeros(len(vms), dtype=bool)
        for rule in self._placement_rules:
            wrong |= ~rule.allowed[rule.kind[vms], hosts]
        return wrong

    def rules_against(self, vm: int, host: int) -> str:
        """Return a text with the names of the operators' rules that forbid the instance to be on
        the host; '' if there is no such rule."""
        found = [rule.names(vm, host) for rule in self._placement_rules
                 if not rule.allowed[rule.kind[vm], host]]
        return ' and '.join(found)

    def rules_of(self, vm: int) -> str:
        """Return a text with the names of the operators' rules that apply to an instance; '' if no
        rule applies."""
        found = [rule.names(vm) for rule in self._placement_rules if rule.kind[vm]]
        found += [f'rule {self.memberships.groups[group].rule}'
                  for group in self.memberships.groups_of(vm) if self.memberships.by_rule[group]]
        return ' and '.join(found)

    @property
    def kinds_by_rules(self) -> list[np.ndarray]:
        """A list of arrays intp (V,), each with a number for every instance. If different rules of
        operators apply to two instances, the two have different numbers in at least one of the
        arrays."""
        preferences = self.prices.preferences
        return [rule.kind for rule in self._placement_rules] + (
            [] if preferences is None else [preferences.kind])

    @property
    def _placement_rules(self) -> list[PlacementRule]:
        return [rule for rule in self.rules if isinstance(rule, PlacementRule)]

    def movable_members(self, groups: np.ndarray) -> np.ndarray:
        """Return intp: the movable instances that are members of a wanted group, sorted.

        :param groups: bool (G,), one value for each of G groups; true for the wanted groups
        """
        members = self.memberships.members[groups[self.memberships.member_of]]
        return np.unique(members[self.problem.movable[members]])

    def names_of(self, groups: np.ndarray, vm: int) -> str:
        """Return a text with the names of the wanted groups that an instance is a member of.

        :param groups: bool (G,), one value for each of G groups; true for the wanted groups
        """
        return ', '.join(self.memberships.groups[group].name
                         for group in self.memberships.groups_of(vm) if groups[group])


def _callbacks_last(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(sorted(rules, key=lambda rule: isinstance(rule, CallbackRule)))
