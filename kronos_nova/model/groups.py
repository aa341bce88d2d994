"""Counters of server groups: the number of members of each group in each place. A place is a host
or a failure domain."""

import copy
from collections.abc import Sequence

import numpy as np

from kronos_nova.model.keys import contains
from kronos_nova.model.keys import find
from kronos_nova.model.problem import Group
from kronos_nova.model.problem import Problem


class Memberships:
    """The members of each of G groups: server groups, and rules of operators about several servers.
    The members never change. A place is a host or a failure domain.

    anti : bool (G,), true for groups whose members are kept apart
    hard : bool (G,), true for groups whose policy must hold
    by_rule : bool (G,), true for groups that stand for rules of operators
    most : intp (G,), maximum number of members in one place, for groups whose members are kept
        apart
    most_places : intp (G,), maximum number of places that the members may use, for all other groups
    size : intp (G,), number of members; a member that is migrating counts at both hosts
    is_wide : bool (G,), true for groups in which a member on one host can affect whether another
        host is allowed: groups whose members are kept together, or apart by failure domains
    """

    def __init__(self, problem: Problem):
        groups = problem.groups
        self.groups, self.hosts = groups, len(problem.hosts)
        self.anti = np.array([group.anti for group in groups], dtype=bool)
        self.hard = np.array([group.hard for group in groups], dtype=bool)
        self.by_rule = np.array([bool(group.rule) for group in groups], dtype=bool)
        self.most = np.array([group.max_per_host for group in groups], dtype=np.intp)
        self.most_places = np.array([group.most_places for group in groups], dtype=np.intp)
        self._places, self._level = _levels(groups, self.hosts)
        self.members, self.member_of = _rows([group.members for group in groups])
        self.arriving, self.arriving_of = _rows([group.arriving for group in groups])
        self.size = (np.bincount(self.member_of, minlength=len(groups))
                     + np.bincount(self.arriving_of, minlength=len(groups)))
        self.is_wide = ~self.anti | np.array([group.places is not None for group in groups],
                                             dtype=bool)
        by_vm = np.argsort(self.members, kind='stable')
        self._group_of = self.member_of[by_vm]
        self._count = np.bincount(self.members, minlength=len(problem.vms))
        self._first = np.cumsum(self._count) - self._count
        self._keys = np.sort(self.member_of * len(problem.vms) + self.members)

    def place(self, groups: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return intp (n,): for each pair of a group and a host, the number of the host's place.
        The places of a group are either hosts or failure domains. Host -1 stands for no host; its
        place is -1."""
        return hosts if len(self._places) == 1 else self._places[self._level[groups], hosts]

    def groups_of(self, vm: int) -> np.ndarray:
        """Return intp: the groups that an instance is a member of."""
        return self._group_of[self._first[vm]:self._first[vm] + self._count[vm]]

    def has(self, groups: np.ndarray, vms: np.ndarray) -> np.ndarray:
        """Return bool (n,): true where the instance is a member of the group at the same
        position."""
        return contains(self._keys, groups * len(self._count) + vms)

    def expand(self, vms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays with an entry for each group of each instance.

        :returns: two arrays intp of equal length: the position of the instance in ``vms``, and the
            group
        """
        count = self._count[vms]
        position = np.repeat(np.arange(len(vms)), count)
        offset = np.arange(len(position)) - np.repeat(np.cumsum(count) - count, count)
        return position, self._group_of[self._first[vms[position]] + offset]


def _levels(groups: Sequence[Group], hosts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of hosts at L levels, and the level of each of G groups. At the first
    level, every host is a place of its own. At each further level, a failure domain is a place.

    :returns: intp (L, H + 1), the number of the place of each host at each level; the last column
        is -1, for an instance on no host. And intp (G,), the level at which the members of each
        group are counted
    """
    own = np.arange(hosts)
    levels = {own.tobytes(): 0}
    level = np.array([0 if group.places is None else levels.setdefault(
        group.places.astype(np.intp).tobytes(), len(levels)) for group in groups], dtype=np.intp)
    places = np.stack([np.frombuffer(each, dtype=np.intp) for each in levels])
    return np.pad(places, ((0, 0), (0, 1)), constant_values=-1), level


def _rows(lists: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays: the elements of all lists one after the other, and for each element the
    position of its list."""
    row = np.concatenate([np.zeros(0, dtype=np.intp), *lists]).astype(np.intp)
    return row, np.repeat(np.arange(len(lists)), [len(one) for one in lists])


class GroupCounts:
    """The number of members of each group in each place, updated with every move. A place is a host
    or a failure domain.

    A member is *misplaced* if it violates the policy of its group:

    * If members are kept apart, the group may have at most ``most`` members in a place. All further
      members in the place are misplaced.
    * If members are kept together, the group may use at most ``most_places`` places: those with the
      largest numbers of its members. Its members in all other places are misplaced.

    ``most`` and ``most_places`` are attributes of :class:`Memberships`.

    Counts are stored only for pairs of a group and a place that have or had a member.

    misplaced : intp (G,), number of misplaced members of each of G groups
    """

    def __init__(self, memberships: Memberships, vm_host: np.ndarray):
        self.memberships = memberships
        hosts = np.concatenate([vm_host[memberships.members], memberships.arriving])
        groups = np.concatenate([memberships.member_of, memberships.arriving_of])
        self._keys, self._counts = np.unique(
            groups * memberships.hosts + memberships.place(groups, hosts), return_counts=True)
        count = len(memberships.groups)
        self._last, self._next, self.misplaced = np.zeros((3, count), dtype=np.intp)
        if count:
            self._summarise(np.arange(count), self._keys // memberships.hosts, self._counts)

    def copy(self) -> 'GroupCounts':
        other = copy.copy(self)
        for name in ('_counts', '_last', '_next', 'misplaced'):
            setattr(other, name, getattr(self, name).copy())
        return other

    def _summarise(self, groups: np.ndarray, of: np.ndarray, counts: np.ndarray) -> None:
        """Update ``_last``, ``_next`` and ``misplaced`` for each of ``groups``.

        The places of a group are sorted by their number of members, the largest first. A group
        whose members are kept together may use the first ``most_places`` places. ``_last`` is the
        number of members in the last of these places. ``_next`` is the number of members in the
        following place. ``misplaced`` is the number of members that violate the policy of the
        group.

        :param of: intp, the group of each entry of ``counts``, sorted
        :param counts: intp, number of members in each place
        """
        begin = np.searchsorted(of, groups)
        counts = counts[np.lexsort((-counts, of))]
        rank = np.arange(len(of)) - np.repeat(begin, np.diff(np.append(begin, len(of))))
        places = self.memberships.most_places[of]

        def total(wanted: np.ndarray) -> np.ndarray:
            return np.add.reduceat(np.where(wanted, counts, 0), begin)

        self._last[groups] = total(rank == places - 1)
        self._next[groups] = total(rank == places)
        over = np.maximum(counts - self.memberships.most[of], 0)
        self.misplaced[groups] = np.where(
            self.memberships.anti[groups], np.add.reduceat(over, begin), total(rank >= places))

    def add(self, vm: int, host: int, amount: int) -> None:
        """Add an instance to the counts of its groups at a host, or remove the instance from these
        counts.

        :param amount: 1 to add the instance, -1 to remove it
        """
        for group in self.memberships.groups_of(vm):
            key = group * self.memberships.hosts + int(self.memberships.place(
                np.array([group]), np.array([host]))[0])
            place = np.searchsorted(self._keys, key)
            if place == len(self._keys) or self._keys[place] != key:
                self._keys = np.insert(self._keys, place, key)
                self._counts = np.insert(self._counts, place, 0)
            self._counts[place] += amount
            begin, end = np.searchsorted(
                self._keys, np.array([group, group + 1]) * self.memberships.hosts)
            self._summarise(np.array([group]), np.full(end - begin, group),
                            self._counts[begin:end])

    def on(self, groups: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return intp (n,), one number for each pair of a group and a host: the number of members
        of the group in the place (host or failure domain) of the host."""
        if not len(self._keys):
            return np.zeros(np.shape(groups), dtype=np.intp)
        members = self.memberships
        place, found = find(self._keys, groups * members.hosts + members.place(groups, hosts))
        return np.where(found, self._counts[place], 0)

    def _is_needed(self, groups: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return bool (n,), one value for each pair of a group and a host: true if ``_last`` of the
        group falls by 1 when one member leaves the host. This is so if the place of the host has
        ``_last`` members, and ``_next`` is lower than ``_last``.

        ``_last`` and ``_next`` are explained in :meth:`_summarise`.
        """
        return (self.on(groups, hosts) == self._last[groups]) & (
            self._next[groups] < self._last[groups])

    def least_others(self, groups: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """Return intp (n,), one number for each of n moves of group members. The members of these
        groups are kept together. A member may move only to a place (host or failure domain) that
        has at least this number of other members.

        A group may use at most ``most_places`` places. These are the places with the largest
        numbers of its members. The result is the number of members in the smallest of these places,
        once the moved member has left its host.

        :param groups: intp (n,), the group of each moved member
        :param hosts: intp (n,), the host that each moved member leaves
        """
        return self._last[groups] - self._is_needed(groups, hosts)

    def may_gather(self, group: int, hosts: np.ndarray) -> np.ndarray:
        """Return bool (n,): true for hosts to whose places (hosts or failure domains) at least one
        member of the group may move from another place. The members of the group are kept together.

        :param hosts: intp (n,)
        """
        least = max(self._last[group] - (self._next[group] < self._last[group]), 1)
        return self.on(np.full(len(hosts), group), hosts) >= least

    def change(self, groups: np.ndarray, sources: np.ndarray,
               destinations: np.ndarray) -> np.ndarray:
        """Return intp (n,): the change of the number of members that violate the policy of their
        group, if one member of each group moves from its source to its destination."""
        members, most = self.memberships, self.memberships.most[groups]
        there, here = self.on(groups, destinations), self.on(groups, sources)
        apart = (there >= most).astype(np.intp) - (here > most)
        counted = (here > self._last[groups]) | self._is_needed(groups, sources)
        together = counted.astype(np.intp) - (there >= self.least_others(groups, sources))
        change = np.where(members.anti[groups], apart, together)
        return np.where(members.place(groups, sources) == members.place(groups, destinations), 0,
                        change)
