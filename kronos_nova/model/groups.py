"""Server groups as counters: how many members of each are on each host."""

import copy
from collections.abc import Sequence

import numpy as np

from kronos_nova.model.keys import contains
from kronos_nova.model.keys import find
from kronos_nova.model.problem import Problem


class Memberships:
    """Which instances are in which of G groups; never changes.

    anti, hard : bool (G,); most : intp (G,), members of an anti group that may share a host;
    size : intp (G,), members, those under way to a further host counted at both
    """

    def __init__(self, problem: Problem):
        groups = problem.groups
        self.groups, self.hosts = groups, len(problem.hosts)
        self.anti = np.array([group.anti for group in groups], dtype=bool)
        self.hard = np.array([group.hard for group in groups], dtype=bool)
        self.most = np.array([group.max_per_host for group in groups], dtype=np.intp)
        self.members, self.member_of = _rows([group.members for group in groups])
        self.arriving, self.arriving_of = _rows([group.arriving for group in groups])
        self.size = (np.bincount(self.member_of, minlength=len(groups))
                     + np.bincount(self.arriving_of, minlength=len(groups)))
        by_vm = np.argsort(self.members, kind='stable')
        self._group_of = self.member_of[by_vm]
        self._count = np.bincount(self.members, minlength=len(problem.vms))
        self._first = np.cumsum(self._count) - self._count
        self._keys = np.sort(self.member_of * len(problem.vms) + self.members)

    def groups_of(self, vm: int) -> np.ndarray:
        """intp: the groups of an instance."""
        return self._group_of[self._first[vm]:self._first[vm] + self._count[vm]]

    def has(self, groups: np.ndarray, vms: np.ndarray) -> np.ndarray:
        """bool (n,): whether each group has the instance for a member."""
        return contains(self._keys, groups * len(self._count) + vms)

    def expand(self, vms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every group of every instance: intp (m,), the position in ``vms`` (n,), and intp (m,),
        the group."""
        count = self._count[vms]
        position = np.repeat(np.arange(len(vms)), count)
        offset = np.arange(len(position)) - np.repeat(np.cumsum(count) - count, count)
        return position, self._group_of[self._first[vms[position]] + offset]


def _rows(lists: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """All of the lists in one row, and from which each is."""
    row = np.concatenate([np.zeros(0, dtype=np.intp), *lists]).astype(np.intp)
    return row, np.repeat(np.arange(len(lists)), [len(one) for one in lists])


class GroupCounts:
    """Members of each group on each host, kept up to date move by move.

    Only pairs of group and host that hold or held a member take memory. A member is misplaced where
    its group does not want it: above ``most`` on a host, or not on the host that has most.

    misplaced : intp (G,)
    """

    def __init__(self, memberships: Memberships, vm_host: np.ndarray):
        self.memberships = memberships
        hosts = np.concatenate([vm_host[memberships.members], memberships.arriving])
        groups = np.concatenate([memberships.member_of, memberships.arriving_of])
        self._keys, self._counts = np.unique(groups * memberships.hosts + hosts,
                                             return_counts=True)
        count = len(memberships.groups)
        self._first, self._ties, self._second, self.misplaced = np.zeros((4, count), dtype=np.intp)
        if count:
            self._summarise(np.arange(count), self._keys // memberships.hosts, self._counts)

    def copy(self) -> 'GroupCounts':
        other = copy.copy(self)
        for name in ('_counts', '_first', '_ties', '_second', 'misplaced'):
            setattr(other, name, getattr(self, name).copy())
        return other

    def _summarise(self, groups: np.ndarray, of: np.ndarray, counts: np.ndarray) -> None:
        """For each of ``groups``: the most members on a host, on how many hosts as many are, the
        most on any other host, and how many are misplaced.

        :param of: intp, the groups of ``counts``, sorted
        """
        begin = np.searchsorted(of, groups)
        first = np.maximum.reduceat(counts, begin)
        is_first = counts == np.repeat(first, np.diff(np.append(begin, len(of))))
        self._first[groups] = first
        self._ties[groups] = np.add.reduceat(is_first.astype(np.intp), begin)
        self._second[groups] = np.maximum.reduceat(np.where(is_first, 0, counts), begin)
        over = np.maximum(counts - self.memberships.most[of], 0)
        self.misplaced[groups] = np.where(
            self.memberships.anti[groups], np.add.reduceat(over, begin),
            self.memberships.size[groups] - first)

    def add(self, vm: int, host: int, amount: int) -> None:
        """Count an instance on a host (1) or not any more (-1)."""
        for group in self.memberships.groups_of(vm):
            key = group * self.memberships.hosts + host
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
        """intp (n,): members of each group on each host."""
        if not len(self._keys):
            return np.zeros(np.shape(groups), dtype=np.intp)
        place, found = find(self._keys, groups * self.memberships.hosts + hosts)
        return np.where(found, self._counts[place], 0)

    def most_others(self, groups: np.ndarray, hosts: np.ndarray) -> np.ndarray:
        """intp (n,): of the members but one on that host, the most on any host."""
        first = self._first[groups]
        is_alone = (self.on(groups, hosts) == first) & (self._ties[groups] == 1)
        return np.where(is_alone, np.maximum(first - 1, self._second[groups]), first)

    def change(self, groups: np.ndarray, sources: np.ndarray,
               destinations: np.ndarray) -> np.ndarray:
        """intp (n,): how many more are misplaced once a member goes from host to host."""
        most = self.memberships.most[groups]
        there = self.on(groups, destinations)
        apart = (there >= most).astype(np.intp) - (self.on(groups, sources) > most)
        together = self._first[groups] - np.maximum(self.most_others(groups, sources), there + 1)
        return np.where(self.memberships.anti[groups], apart, together)
