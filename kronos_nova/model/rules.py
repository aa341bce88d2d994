"""The kinds of rules into which constraints are compiled.

A rule is evaluated for many moves at once. Each rule has a reason, which is reported for the
instances that stay because of the rule.

A chain is several moves that are made together. A rule that depends only on sums over the moves of
a chain is *additive* (``is_additive``), and gets the other moves of the chain as an argument. Any
other rule reports the chains whose moves affect each other (``couples``). These chains are
evaluated on a copy of the state.
"""

import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import ClassVar

import numpy as np

from kronos_nova.model import numa
from kronos_nova.model.arrays import ArrayMove
from kronos_nova.model.arrays import Chains
from kronos_nova.model.arrays import Index
from kronos_nova.model.keys import contains
from kronos_nova.model.problem import TOLERANCE
from kronos_nova.model.problem import Group
from kronos_nova.model.problem import Problem

if TYPE_CHECKING:
    from kronos_nova.model.groups import Memberships
    from kronos_nova.model.numa import CellUse
    from kronos_nova.model.state import State

Why = Callable[['State', int, int], str]
"""A function of (state, instance, host) that returns the reason why a rule forbids the host, as
text. The function is only called for hosts that the rule forbids. A rule without a field of this
type has a method ``why`` instead."""


@dataclasses.dataclass(eq=False, kw_only=True)
class Rule:
    """A rule that may forbid an instance to go to a host.

    is_additive : whether the rule depends only on sums over the moves that are made together, such
        as the sum of their memory
    is_overall : whether a move between any hosts may change what the rule allows on another host
    reason : word of :data:`~kronos_nova.objects.plan.SKIP_REASONS` for instances that stay because
        of the rule
    yields : whether the rule may be relaxed if a host cannot be emptied otherwise
    is_provisional : whether the rule may forbid moves that are possible in another plan. Such a
        rule rests on earlier moves of this plan, or on answers about some hosts only. Nothing is
        proven by such a rule
    """

    is_additive: ClassVar[bool] = True
    is_overall: ClassVar[bool] = False
    reason: str
    yields: bool = False
    is_provisional: bool = False

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        """Return bool (...): true where the instance may go to the host. ``vms`` and ``hosts`` are
        broadcast to one shape. The value for an instance's own host has no meaning.

        :param others: further moves that are made together with the move of ``vms`` to ``hosts``;
            only passed to additive rules
        """
        raise NotImplementedError

    def narrows(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return bool, one value for each of ``vms``: true if the rule may forbid at least one of
        the hosts to the instance. An instance with false need not be checked against the rule.

        :param vms: intp, instances
        :param hosts: intp, possible destinations
        """
        return np.ones(len(vms), dtype=bool)

    def needed_before(self, state: 'State',
                      moves: Sequence[tuple[int, int]]) -> Sequence[tuple[int, ...]]:
        """Return, for each of ``moves`` (instance, destination), the positions of earlier moves
        that must end before the move, because the rule might forbid the move without them. Moves
        off the destination need not be included.

        :param state: the state before the moves, which are made one after the other
        """
        return [()] * len(moves)

    def couples(self, state: 'State', moves: Chains) -> np.ndarray:
        """Return bool (...): true for chains in which one move may change whether the rule allows
        another move. A chain is several moves that are made together. This method is only called
        for rules that are not additive."""
        return np.ones(moves[0][0].shape, dtype=bool)


@dataclasses.dataclass(eq=False, kw_only=True)
class AllowedHosts(Rule):
    """A rule that lists the hosts to which instances may go. Instances that may go to the same
    hosts are of one kind.

    kind : intp (V,), row of ``allowed`` for each instance
    allowed : bool (kinds, H), true for the hosts that are permitted to each kind
    """

    why: Why
    kind: np.ndarray
    allowed: np.ndarray

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        return self.allowed[self.kind[vms], hosts]

    def narrows(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        return ~np.asarray(self.allowed[:, hosts].all(axis=1))[self.kind[vms]]


@dataclasses.dataclass(eq=False, kw_only=True)
class PlacementRule(AllowedHosts):
    """The placement rules of operators, as one rule of the model: a list of the hosts on which each
    instance may run. An instance on any other host has to be moved.

    names : function of (instance, host) that returns a text with the rules that forbid the host.
        Without a host, the text has all rules that apply to the instance
    """

    names: Callable[..., str]


class ForbiddenPairs(Rule):
    """A rule that lists pairs of an instance and a host to which the instance may not go."""

    def __init__(self, problem: Problem, pairs: Iterable[tuple[str, str]], reason: str, why: Why,
                 yields: bool = False, is_provisional: bool = False):
        """
        :param pairs: (uuid of an instance, name of a host); pairs with an instance or a host
            outside of the problem are ignored
        """
        super().__init__(reason=reason, yields=yields, is_provisional=is_provisional)
        self.why, self._hosts = why, len(problem.hosts)
        pairs = set(pairs)
        wanted = {uuid for uuid, _name in pairs}
        vms = {uuid: index for index, uuid in enumerate(problem.vms) if uuid in wanted}
        hosts = {name: index for index, name in enumerate(problem.hosts)}
        self._keys = np.array(sorted(vms[uuid] * self._hosts + hosts[name] for uuid, name in pairs
                                     if uuid in vms and name in hosts), dtype=np.intp)

    def __len__(self) -> int:
        return len(self._keys)

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        return ~contains(self._keys, vms * self._hosts + hosts)

    def narrows(self, vms: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        return np.isin(vms, self._keys // self._hosts)


class Room(Rule):
    """A rule by which a destination must have room for an instance's allocation in every resource
    class. The class may be allocated from the host or from a provider that the host shares."""

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        permitted = np.ones((), dtype=bool)
        # A loop over the classes is much faster than all() over so short an axis.
        for c in range(len(state.problem.resource_classes)):
            permitted = permitted & self._fits(state, c, vms, hosts, others)
        return permitted

    def _fits(self, state: 'State', c: int, vms: Index, hosts: Index, others: Chains) -> np.ndarray:
        problem = state.problem
        demand, row = problem.demands[:, c][vms], problem.row(hosts, c)
        free = (problem.limits[:, c] - state.used[:, c])[row] + TOLERANCE
        for other, there in others:
            amount = problem.demands[other, c]
            free = free + amount * (problem.row(state.vm_host[other], c) == row)
            free = free - amount * (problem.row(there, c) == row)
        stays = row == problem.row(state.vm_host[vms], c)
        return (demand <= free) | (demand == 0) | stays

    def why(self, state: 'State', vm: int, host: int) -> str:
        problem = state.problem
        short = next(c for c in range(len(problem.resource_classes))
                     if not self._fits(state, c, vm, host, ()))
        return (f'{problem.hosts[host]} has no room for {problem.demands[vm, short]:g} '
                f'{problem.resource_classes[short]}')

    def linear(self, state: 'State', hosts: np.ndarray,
               vms: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the room of hosts and the needs of instances, for searches that only compare sums.
        In such a search, instances fit on a host if, in each of k resource classes, the sum of
        their needs is at most the room of the host.

        Shared providers are not considered. If a host gets a class from a shared provider, the
        returned room of this class is more than all instances together need, so that the class
        never limits the host.

        :returns: float64 (h, k), the free room of each of h hosts; float64 (h, k), the total room
            of each host; and float64 (v, k), the needs of each of v instances
        """
        problem = state.problem
        free, limits = (problem.limits - state.used)[hosts], problem.limits[hosts]
        own = problem.row(hosts[:, None], np.arange(free.shape[1])) == hosts[:, None]
        enough = problem.demands.sum(axis=0) + 1.0
        return (np.where(own, free, enough), np.where(own, limits, enough), problem.demands[vms])


@dataclasses.dataclass(eq=False, kw_only=True)
class ArrivalLimit(Rule):
    """A limit of the load that arriving instances may cause on a host, for a policy in which the
    loads of instances are not known.

    Because the loads are not known, the worst is assumed: an arriving instance adds the most load
    that it may cause, and a leaving instance takes no load away.

    scores : float64 (H,), scores before any move; NaN if not measured
    weights : float64 (V,), the most load that each instance may cause
    host_scale : float64 (H,), the score that a load of 1 causes on each host
    most : float64 (H,), the limit of each host
    """

    policy: str
    scores: np.ndarray
    weights: np.ndarray
    host_scale: np.ndarray
    most: np.ndarray

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        home = state.problem.vm_host
        free = self._free(state)[hosts]
        for other, there in others:
            free = free - self.weights[other] * self.host_scale[there] * (
                (there == hosts) & (there != home[other]))
        # A resource that is not measured on a host (NaN) limits nothing there.
        return ~(self.weights[vms] * self.host_scale[hosts] > free + TOLERANCE) | (
            hosts == home[vms])

    def _free(self, state: 'State') -> np.ndarray:
        """Return float64 (H,): the load that may still be added to each host."""
        moved = np.flatnonzero(state.vm_host != state.problem.vm_host)
        places = state.vm_host[moved]
        return self.most - self.scores - np.bincount(
            places, self.weights[moved] * self.host_scale[places], len(self.scores))

    def why(self, state: 'State', vm: int, host: int) -> str:
        share = self.weights[vm] * self.host_scale[host]
        return (f'{state.problem.hosts[host]} has {self.policy} {self.scores[host]:.3g} and could '
                f'pass {self.most[host]:.3g}: the flavor of the instance may use {share:.3g}')


@dataclasses.dataclass(eq=False, kw_only=True)
class LoadLimit(Rule):
    """A limit of each host's load.

    most : float64 (H, P), the limits; inf for no limit
    what : name of the limit in texts
    is_passing : whether a search for an end state may ignore the limit. Such a limit is checked
        later, after each move, when the order of the moves is searched
    by_capacity : True if the limit applies to the higher one of score and capacity score; False if
        the limit applies to the score. A capacity score that is NaN (not measured) does not count
    """

    reason: str = 'threshold'
    yields: bool = True
    most: np.ndarray
    what: str
    by_capacity: bool
    is_passing: bool = False

    def load(self, state: 'State', at: Index | tuple[np.ndarray, ...]) -> np.ndarray:
        """Return float64 (..., P): for each host, the load to which the limit applies.

        :param at: index of the hosts, or of pairs of hosts and policies
        """
        scores = state.scores[at]
        return np.fmax(scores, state.capacity_scores[at]) if self.by_capacity else scores

    def projected(self, state: 'State', vms: Index, hosts: Index,
                  others: Chains = ()) -> np.ndarray:
        """Return float64 (..., P): for each host, the load to which the limit applies, after the
        instance has arrived.

        :param others: other moves of the same chains, whose loads count as well
        """
        problem, scale = state.problem, state.problem.host_scale[hosts]
        load = self.load(state, hosts) + problem.weights[vms] * scale
        for other, there in others:
            sign = np.equal(there, hosts).astype(int) - (state.vm_host[other] == hosts)
            load = load + sign[..., None] * problem.weights[other] * scale
        return load

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        within = self.projected(state, vms, hosts, others) <= self.most[hosts] + TOLERANCE
        permitted = np.ones((), dtype=bool)
        # A loop over the policies is much faster than all() over so short an axis.
        for p in range(within.shape[-1]):
            permitted = permitted & within[..., p]
        return permitted

    def why(self, state: 'State', vm: int, host: int) -> str:
        problem, load = state.problem, self.projected(state, vm, host)
        p = int((load > self.most[host] + TOLERANCE).argmax())
        return (f'{problem.hosts[host]} would be at {load[p]:.3f} in {problem.policies[p]}, over '
                f'{self.what} of {self.most[host, p]:g}')

    def linear(self, state: 'State', hosts: np.ndarray,
               vms: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays for a search that compares sums, in the shapes of
        :meth:`Room.linear`: the load that may still be added to each host, the load that each host
        may have, and the loads of instances. The unit is the unit of the instances' loads."""
        policies = np.flatnonzero(np.isfinite(self.most).any(axis=0))
        problem, at = state.problem, np.ix_(hosts, policies)
        return ((self.most[at] - self.load(state, at)) / problem.host_scale[at],
                self.most[at] / problem.host_scale[at], problem.weights[vms][:, policies])


@dataclasses.dataclass(eq=False, kw_only=True)
class GroupPolicy(Rule):
    """A rule by which moves must not violate server groups and operators' rules about several
    servers. A place is a host or a failure domain.

    If members are kept apart, a place may have at most a given number of members. If members are
    kept together, a member may move only to one of the places with the largest numbers of other
    members.

    forbids : bool (G,), one value for each of G groups; true if the rule applies to the group
    firm : bool (G,), true for groups that are never relaxed, even if a host cannot be emptied
        otherwise
    """

    is_additive: ClassVar[bool] = False
    reason: str = 'group'
    forbids: np.ndarray
    firm: np.ndarray

    def for_emptying(self) -> 'GroupPolicy':
        return dataclasses.replace(self, forbids=self.forbids & self.firm)

    def together_only(self, memberships: 'Memberships') -> 'GroupPolicy':
        """Return a copy of the rule that only applies to groups whose members are kept together.
        The copy is used in searches that evaluate each move of a plan alone. Such a search cannot
        judge the other groups: whether their members are apart depends on all moves of the plan."""
        return dataclasses.replace(self, forbids=self.forbids & ~memberships.anti)

    def why(self, state: 'State', vm: int, host: int) -> str:
        groups = state.model.memberships.groups_of(vm)
        groups = groups[self.forbids[groups]]
        allows = self.allows_groups(state, groups, np.full(len(groups), vm),
                                    np.full(len(groups), host))
        broken = [state.problem.groups[group] for group in groups[~allows]]
        against = next((each for each in broken if each.hard), broken[0])
        name, soft = state.problem.hosts[host], '' if against.hard else 'soft-'
        if against.rule:
            return f'rule {against.rule} {_wish(against)}, and {name} does not fit'
        if not against.anti:
            return f'other members of {soft}affinity group {against.name} are not on {name}'
        most = f'{against.max_per_host} members' if against.max_per_host > 1 else 'a member'
        return f'{name} has {most} of {soft}anti-affinity group {against.name}'

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        vms, hosts = np.broadcast_arrays(vms, hosts)
        permitted = np.ones(vms.size, dtype=bool)
        position, groups = state.model.memberships.expand(vms.reshape(-1))
        counted = self.forbids[groups]
        position, groups = position[counted], groups[counted]
        if len(position):
            vm, host, *flat = (np.broadcast_to(part, vms.shape).reshape(-1)[position]
                               for part in (vms, hosts, *itertools.chain(*others)))
            allows = self.allows_groups(state, groups, vm, host,
                                        list(zip(flat[::2], flat[1::2], strict=True)))
            permitted[position[~allows]] = False
        return permitted.reshape(vms.shape)

    def allows_groups(self, state: 'State', groups: np.ndarray, vms: np.ndarray, hosts: np.ndarray,
                      others: Sequence[ArrayMove] = ()) -> np.ndarray:
        """Return bool (n,): true where the group allows its member on the host. The arrays
        ``groups``, ``vms`` (the members) and ``hosts`` are intp (n,).

        :param others: other moves of the same chains, which count only for groups whose members are
            kept apart
        """
        counts, members = state.groups, state.model.memberships
        there, place = counts.on(groups, hosts), members.place(groups, hosts)
        inside = there
        for other, to in others:
            change = (members.place(groups, to) == place).astype(np.intp) - (
                members.place(groups, state.vm_host[other]) == place)
            inside = inside + change * members.has(groups, other)
        home = state.vm_host[vms]
        return (members.place(groups, home) == place) | np.where(
            members.anti[groups], inside < members.most[groups],
            there >= counts.least_others(groups, home))

    def room(self, state: 'State', group: int, hosts: np.ndarray) -> np.ndarray | None:
        """Return intp (n,): for each host, the number of further members of a group that the host
        may take. If the group is kept apart by failure domains, the number is that of the host's
        failure domain. Return None if the rule does not keep the members of the group apart."""
        members = state.model.memberships
        if self.forbids[group] and members.anti[group]:
            return members.most[group] - state.groups.on(np.full(len(hosts), group), hosts)
        return None

    def couples(self, state: 'State', moves: Chains) -> np.ndarray:
        return state.model.share_group(moves, self.forbids & ~state.model.memberships.anti)


def _wish(group: Group) -> str:
    """Return a text about the placement that an operator's rule requires for its servers."""
    kind = 'hosts' if group.places is None else 'domains'
    if group.anti:
        return f'keeps servers apart by {kind}'
    if group.most_places == 1:
        return f'keeps servers together by {kind}'
    return f'keeps servers on {group.most_places} {kind} at most'


@dataclasses.dataclass(eq=False, kw_only=True)
class ReservedRoom(Rule):
    """A rule by which moves must leave room free: at least ``needed`` in every resource class,
    summed over the counted hosts that have instances. If less room is free already before a move,
    the move must not reduce it further.

    Empty hosts do not count. So only three kinds of moves change this sum: moves that empty a host,
    moves to an empty host, and moves from a host that is not counted.

    needed : float64 (C,), room that has to stay free in each of C resource classes
    counted : bool (H,), true for hosts that can take instances. A host whose load is not known
        counts as well
    """

    is_additive: ClassVar[bool] = False
    is_overall: ClassVar[bool] = True
    reason: str = 'reserve'
    why: Why
    needed: np.ndarray
    counted: np.ndarray

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        problem, free = state.problem, self._free(state)
        in_use = self.counted & (state.guests > 0)
        sources = state.vm_host[vms]
        counted, empties = self.counted[sources], state.guests[sources] == 1
        permitted = np.ones((), dtype=bool)
        for c, now in enumerate(self._room(state)):
            # The part of an allocation on the hosts themselves, without sharing providers.
            taken, freed = (problem.demands[vms, c] * (problem.row(at, c) == at)
                            for at in (hosts, sources))
            left = np.where(empties, -free[sources, c], freed) * counted
            then = now + left + np.where(in_use[hosts], 0.0, free[hosts, c]) - taken
            permitted = permitted & ((then >= self.needed[c] - TOLERANCE)
                                     | (then >= now - TOLERANCE))
        return permitted

    def needed_before(self, state: 'State',
                      moves: Sequence[tuple[int, int]]) -> Sequence[tuple[int, ...]]:
        after = state.copy()
        vms, hosts = (np.array(column, dtype=np.intp)
                      for column in zip(*moves, strict=True)) if moves else np.zeros((2, 0), int)
        leave = np.bincount(state.vm_host[np.unique(vms)], minlength=len(state.guests))
        may_be_empty = self.counted & (state.guests <= leave)
        own = np.array([self._own(state, vm, host) for vm, host in enumerate(state.vm_host)])
        counts = self.counted & ((state.guests > 0) | np.isin(np.arange(len(leave)), hosts))
        free, empty = self._free(state)[counts], self._free(state)
        np.add.at(empty, state.vm_host, own)
        # The least room: that of all hosts in use, and none of those that may be empty.
        least = free.sum(axis=0) - np.maximum(empty[may_be_empty & counts], 0.0).sum(axis=0)
        chain = []
        for number, (vm, host) in enumerate(moves):
            source = after.move(vm, host)
            change = (self._own(state, vm, source) * self.counted[source]
                      - self._own(state, vm, host) * self.counted[host])
            least = least + np.minimum(change, 0.0)
            if may_be_empty[[source, host]].any() or change.any():
                chain.append(number)
        is_enough = (least >= np.minimum(self.needed, self._room(state)) - TOLERANCE).all()
        before = {} if is_enough else dict(zip(chain[1:], chain, strict=False))
        return [(before[n],) if n in before else () for n in range(len(moves))]

    @staticmethod
    def _own(state: 'State', vm: int, host: int) -> np.ndarray:
        """Return float64 (C,): the amount of each of C resource classes that the instance needs of
        the host itself, without providers that hosts share."""
        demands = state.problem.demands[vm]
        return np.asarray(demands * (state.problem.row(host, np.arange(len(demands))) == host))

    @staticmethod
    def _free(state: 'State') -> np.ndarray:
        """Return float64 (H, C): the room in each of C resource classes that is free on each
        host."""
        return np.asarray((state.problem.limits - state.used)[:len(state.guests)])

    def _room(self, state: 'State') -> np.ndarray:
        """Return float64 (C,): the room in each of C resource classes that is free on the counted
        hosts that have instances."""
        return np.asarray(self._free(state)[self.counted & (state.guests > 0)].sum(axis=0))


@dataclasses.dataclass(eq=False, kw_only=True)
class CellRoom(Rule):
    """A rule by which a destination must have room for the NUMA topology of a server. Each cell of
    the topology needs a separate NUMA cell of the host."""

    is_additive: ClassVar[bool] = False
    reason: str = 'capacity'

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        use = _cells(state)
        kinds, row = np.unique(use.cells.kind[vms], return_inverse=True)
        return use.fits(kinds)[row.reshape(np.shape(vms)), hosts]

    def couples(self, state: 'State', moves: Chains) -> np.ndarray:
        needs = [_cells(state).cells.kind[vms] > 0 for vms, _hosts in moves]
        found = np.zeros(moves[0][0].shape, dtype=bool)
        for one, other in itertools.permutations(range(len(moves)), 2):
            (vms, _hosts), destination = moves[other], moves[one][1]
            meets = (moves[other][1] == destination) | (state.vm_host[vms] == destination)
            found |= needs[one] & needs[other] & meets
        return found

    def why(self, state: 'State', vm: int, host: int) -> str:
        cells = _cells(state).cells
        parts = cells.parts[cells.kind[vm]]
        wants = ' and '.join(sorted({numa.wish(need) for need in parts}))
        name = state.problem.hosts[host]
        if len(parts) == 1:
            return f'{name} has no NUMA cell with {wants} free'
        return f'{name} does not have {len(parts)} NUMA cells with {wants} free'

    def linear(self, state: 'State', hosts: np.ndarray,
               vms: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays for a search that compares sums, in the shapes of
        :meth:`Room.linear`. The room of a host is the sum of the room in its NUMA cells. The need
        of an instance is the sum of the needs of the cells of its NUMA topology.

        :returns: the free room of each host, the total room of each host, and the needs of
            instances
        """
        return _cells(state).sums(hosts, vms)


def _cells(state: 'State') -> 'CellUse':
    if state.cells is None:
        raise TypeError('the problem has no cells')
    return state.cells


@dataclasses.dataclass(eq=False, kw_only=True)
class CallbackRule(Rule):
    """A rule that calls a function for each move. The calls are slow, so the rule is evaluated
    after all other rules."""

    is_additive: ClassVar[bool] = False
    is_overall: ClassVar[bool] = True
    why: Why
    allows_one: Callable[['State', int, int], bool]

    def allows(self, state: 'State', vms: np.ndarray, hosts: np.ndarray,
               others: Chains = ()) -> np.ndarray:
        vms, hosts = np.broadcast_arrays(vms, hosts)
        answers = [self.allows_one(state, int(vm), int(host))
                   for vm, host in zip(vms.flat, hosts.flat, strict=True)]
        return np.array(answers, dtype=bool).reshape(vms.shape)
