"""The rules of operators: on which hosts servers may be, and which servers are kept together or
apart. A rule that states a preference forbids nothing, but sets a penalty for servers on unwanted
hosts.

Rules about the hosts of servers are compiled into sets of hosts. Rules about several servers are
compiled into groups. A rule may select servers by properties that the owners of servers can change,
such as tags. Such a rule is relaxed if a host cannot be emptied otherwise.
"""

import functools
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import Group
from kronos_nova.model import Problem
from kronos_nova.model import Rule
from kronos_nova.model import State
from kronos_nova.model.prices import Preferences
from kronos_nova.model.rules import GroupPolicy
from kronos_nova.model.rules import PlacementRule
from kronos_nova.objects.domains import Place
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies.rules import HOST
from kronos_nova.policies.rules import MUST
from kronos_nova.policies.rules import MUST_NOT
from kronos_nova.policies.rules import SHOULD
from kronos_nova.policies.rules import SHOULD_NOT
from kronos_nova.policies.selection import Selections
from kronos_nova.policies.selection import is_joint

REASON = 'rule'


class OperatorRules:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot, rules: ConstraintRules) -> Iterator[Rule]:
        yield from _placement(problem, rules.selections)
        forbids = np.array([bool(group.rule) for group in problem.groups], dtype=bool)
        if forbids.any():
            firm = np.array([not group.yields for group in problem.groups], dtype=bool)
            yield GroupPolicy(reason=REASON, forbids=forbids, firm=firm)


def _placement(problem: Problem, selections: Selections) -> Iterator[PlacementRule]:
    subjects = _Subjects(problem, selections)
    for yields in (False, True):
        kind, sets = subjects.narrowed((MUST, MUST_NOT), yields)
        if kind.any():
            yield _placement_rule(subjects, kind, sets, yields)


def _placement_rule(subjects: '_Subjects', kind: np.ndarray, sets: Sequence[tuple[int, ...]],
                    yields: bool) -> PlacementRule:
    wanted, hosts = subjects.wanted, subjects.hosts

    def names(vm: int, host: int | None = None) -> str:
        return subjects.names(sets[kind[vm]], host)

    def why(state: State, vm: int, host: int) -> str:
        return f'{names(vm, host)} keeps it off {hosts[host]}'

    return PlacementRule(
        reason=REASON, kind=kind, why=why, names=names, yields=yields,
        allowed=np.array([wanted[list(numbers)].all(axis=0) for numbers in sets], dtype=bool))


def preferences(problem: Problem, selections: Selections) -> Preferences | None:
    """Return the penalties that rules set for servers on unwanted hosts; None if no rule sets a
    penalty."""
    subjects = _Subjects(problem, selections)
    kind, sets = subjects.narrowed((SHOULD, SHOULD_NOT))
    if not kind.any():
        return None
    prices, unwanted = np.array([each.rule.price for each in selections.placing]), ~subjects.wanted

    def names(vm: int, host: int | None = None) -> str:
        return subjects.names(sets[kind[vm]], host)

    return Preferences(kind=kind, names=names, cost=np.array([
        prices[list(numbers)] @ unwanted[list(numbers)] for numbers in sets], dtype=float))


class _Subjects:
    """The operators' rules in which hosts are listed, with the instances to which each rule
    applies.

    hosts : names of the problem's hosts
    """

    def __init__(self, problem: Problem, selections: Selections):
        self.hosts, self._placing = problem.hosts, selections.placing
        numbers, self._sets = selections.sets_of(problem.vms)
        self._kind = np.array(numbers, dtype=np.intp)

    def narrowed(self, relations: Collection[str],
                 yields: bool | None = None) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        """Group the instances by the rules with one of ``relations`` that apply to them. Instances
        to which the same rules apply share one set of rules.

        :param relations: relations of rules to hosts, such as ``must_run_on``
        :param yields: True to include only rules that may be relaxed if a host cannot be emptied
            otherwise; False to include only the other rules; None to include all rules
        :returns: (kinds, sets). ``sets`` is the list of the distinct sets of rules. A set is a
            tuple with the positions of its rules; the first set is empty. ``kinds`` is intp (V,),
            for each instance the position of its set in ``sets``
        """
        chosen = {number for number, each in enumerate(self._placing)
                  if each.rule.relation in relations and yields in (None, each.rule.yields)}
        sets: dict[tuple[int, ...], int] = {(): 0}
        kinds = [sets.setdefault(tuple(number for number in numbers if number in chosen), len(sets))
                 for numbers in self._sets]
        return np.array(kinds, dtype=np.intp)[self._kind], list(sets)

    @functools.cached_property
    def wanted(self) -> np.ndarray:
        """bool (n, H), a row for each of n rules: true where the rule accepts the host for its
        servers. A rule that names wanted hosts accepts these hosts; a rule that names unwanted
        hosts accepts all other hosts."""
        # One row for each distinct set of hosts, because many rules name the same hosts.
        rows = {hosts: np.array([host in hosts for host in self.hosts], dtype=bool)
                for hosts in {each.hosts for each in self._placing}}
        named = np.array([rows[each.hosts] for each in self._placing], dtype=bool)
        is_for = np.array([each.rule.relation in (MUST, SHOULD) for each in self._placing])
        return named.reshape(len(is_for), len(self.hosts)) == is_for[:, None]

    def names(self, numbers: Iterable[int], host: int | None) -> str:
        """Return a text with the names of those rules that do not accept ``host`` for their
        servers. If ``host`` is None, the text has the names of all the rules.

        :param numbers: positions of the rules
        """
        return _names([self._placing[number].rule.name for number in numbers
                       if host is None or not self.wanted[number, host]])


def _names(names: Iterable[str]) -> str:
    names = list(names)
    return f'rule{"s" if names[1:] else ""} {" and ".join(names)}'


def _positions(names: Sequence[str]) -> dict[str, int]:
    return {name: position for position, name in enumerate(names)}


def rule_groups(selections: Selections, vms: Sequence[str], hosts: Sequence[str],
                moved: Mapping[str, str]) -> tuple[Group, ...]:
    """Return a server group for each rule that keeps several servers together or apart. The members
    of the group are the instances of the problem that the rule selects.

    The group also counts two kinds of selected servers that the plan does not move:

    * servers that are migrating to a host of the problem, or to the failure domain (such as a rack)
      of a host of the problem
    * servers that are not instances of the problem, and are in the place of a host of the problem

    :param vms, hosts: uuids of the instances and names of the hosts of the problem
    :param moved: {uuid of an instance: present host}, for instances that are no longer on their
        host in the snapshot
    """
    here, index = _positions(vms), _positions(hosts)
    uuids, found = frozenset(vms), []
    for each in selections:
        if not is_joint(each.rule):
            continue
        first, places = _places(selections, each.rule.level, hosts)
        place_of = selections.places(each.rule.level)
        for part in each.parts:
            members = sorted(here[uuid] for uuid in uuids & part)
            fixed = [at for uuid in sorted(part if members else ())
                     for host in _fixed(selections, uuid, uuid in uuids, moved, place_of)
                     if (at := index.get(host) if places is None else first.get(
                         place_of.get(host, (HOST, host)))) is not None]
            if not members or len(members) + len(fixed) < 2:
                continue
            found.append(Group(
                uuid=each.rule.name, name=each.rule.name, rule=each.rule.name,
                yields=each.rule.yields, members=np.array(members, dtype=np.intp), hard=True,
                anti=each.rule.keep_apart is not None, most_places=each.rule.at_most_hosts or 1,
                arriving=np.array(fixed, dtype=np.intp), places=places))
    return tuple(found)


def _fixed(selections: Selections, uuid: str, is_member: bool, moved: Mapping[str, str],
           place_of: Mapping[str, Place]) -> Iterator[str]:
    """Yield the hosts on which a server counts without being moved by the plan: its destination, if
    it is migrating to another place, and its present host, if it is not an instance of the problem.

    :param moved: as for :func:`rule_groups`
    :param place_of: {host: its failure domain}
    """
    present, destination = moved.get(uuid, selections.host_of[uuid]), selections.arriving.get(uuid)
    if not is_member:
        yield present
    if destination is not None and place_of.get(destination) != place_of.get(present):
        yield destination


def _places(selections: Selections, level: str,
            hosts: Sequence[str]) -> tuple[dict[Place, int], np.ndarray | None]:
    """Return the failure domains of a level, such as racks, and the failure domain of each host. A
    failure domain is identified by the index of its first host. Return ({}, None) for the level
    of hosts, because every host is its own failure domain.

    :returns: {failure domain: index of its first host}; and intp (H,), for each host the index that
        identifies its failure domain
    """
    if level == HOST:
        return {}, None
    place_of = selections.places(level)
    first: dict[Place, int] = {}
    places = [first.setdefault(place_of[host], number) for number, host in enumerate(hosts)]
    return first, np.array(places, dtype=np.intp)
