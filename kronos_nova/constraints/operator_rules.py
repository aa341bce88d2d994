"""The rules of an operator: which hosts servers may be on, what they cost elsewhere, and which are
kept together or apart.

Rules that name hosts become sets of hosts, rules about several servers become groups. What the
owners of servers select gives way in a drain, as their metadata does elsewhere.
"""

import collections
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
from kronos_nova.policies.selection import Selection
from kronos_nova.policies.selection import Selections
from kronos_nova.policies.selection import is_joint

REASON = 'rule'


class OperatorRules:
    @staticmethod
    def compile(problem: Problem, snapshot: Snapshot, rules: ConstraintRules) -> Iterator[Rule]:
        for yields in (False, True):
            found = [each for each in rules.selections if each.rule.relation in (MUST, MUST_NOT)
                     and each.rule.yields == yields]
            yield from _placement(problem, found, yields)
        forbids = np.array([bool(group.rule) for group in problem.groups], dtype=bool)
        if forbids.any():
            firm = np.array([not group.yields for group in problem.groups], dtype=bool)
            yield GroupPolicy(reason=REASON, forbids=forbids, firm=firm)


def _placement(problem: Problem, found: Sequence[Selection],
               yields: bool) -> Iterator[PlacementRule]:
    kind, sets = _kinds(problem, found)
    if not kind.any():
        return
    wanted = _wanted(problem, found)
    allowed = np.array([wanted[list(numbers)].all(axis=0) for numbers in sets], dtype=bool)

    def names(vm: int, host: int | None = None) -> str:
        return _names([found[n].rule.name for n in sets[kind[vm]]
                       if host is None or not wanted[n, host]])

    def why(state: State, vm: int, host: int) -> str:
        return f'{names(vm, host)} keeps it off {problem.hosts[host]}'

    yield PlacementRule(reason=REASON, kind=kind, allowed=allowed, why=why, names=names,
                        yields=yields)


def preferences(problem: Problem, selections: Iterable[Selection]) -> Preferences | None:
    """Make what servers cost on hosts where rules would rather not have them; None where nothing
    does."""
    found = [each for each in selections if each.rule.relation in (SHOULD, SHOULD_NOT)]
    kind, sets = _kinds(problem, found)
    if not kind.any():
        return None
    prices = np.array([each.rule.price for each in found])
    unwanted = ~_wanted(problem, found)

    def names(vm: int, host: int | None = None) -> str:
        return _names([found[n].rule.name for n in sets[kind[vm]]
                       if host is None or unwanted[n, host]])

    return Preferences(kind=kind, names=names, cost=np.array([
        prices[list(numbers)] @ unwanted[list(numbers)] for numbers in sets], dtype=float))


def _wanted(problem: Problem, found: Sequence[Selection]) -> np.ndarray:
    """bool (n, H): whether each rule would have its servers on each host."""
    named = np.array([[host in each.hosts for host in problem.hosts] for each in found],
                     dtype=bool).reshape(len(found), len(problem.hosts))
    wanted = np.array([each.rule.relation in (MUST, SHOULD) for each in found], dtype=bool)
    return named == wanted[:, None]


def _kinds(problem: Problem,
           found: Sequence[Selection]) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """The set of rules that each instance is subject to, intp (V,); and the numbers of the rules in
    each set, that of no rule first."""
    here, rules_of = _positions(problem.vms), collections.defaultdict(list)
    uuids = frozenset(problem.vms)
    for number, each in enumerate(found):
        for uuid in uuids & each.servers:
            rules_of[here[uuid]].append(number)
    sets: dict[tuple[int, ...], int] = {(): 0}
    kind = np.zeros(len(problem.vms), dtype=np.intp)
    for vm in sorted(rules_of):
        kind[vm] = sets.setdefault(tuple(rules_of[vm]), len(sets))
    return kind, list(sets)


def _names(names: Iterable[str]) -> str:
    names = list(names)
    return f'rule{"s" if names[1:] else ""} {" and ".join(names)}'


def _positions(names: Sequence[str]) -> dict[str, int]:
    return {name: position for position, name in enumerate(names)}


def rule_groups(selections: Selections, vms: Sequence[str], hosts: Sequence[str],
                moved: Mapping[str, str]) -> tuple[Group, ...]:
    """Make the groups that rules about several servers are here.

    A server that is on its way to a host, or at a place of the problem but not on its hosts, counts
    there and is no member that moves.

    :param moved: uuid to the host, of instances that are not where the snapshot has them
    """
    here, index = _positions(vms), _positions(hosts)
    arriving = selections.arriving
    uuids, found = frozenset(vms), []
    for each in selections:
        if not is_joint(each.rule):
            continue
        first, places = _places(selections, each.rule.level, hosts)
        for part in each.parts:
            members = sorted(here[uuid] for uuid in uuids & part)
            fixed = [index[arriving[uuid]] for uuid in sorted(part & arriving.keys())
                     if arriving[uuid] in index]
            if members and places is not None:
                place_of = selections.places(each.rule.level)
                there = (place_of.get(moved.get(uuid, selections.host_of[uuid]))
                         for uuid in sorted(part - uuids - arriving.keys()))
                fixed += [first[place] for place in there if place in first]
            if not members or len(members) + len(fixed) < 2:
                continue
            found.append(Group(
                uuid=each.rule.name, name=each.rule.name, rule=each.rule.name,
                yields=each.rule.yields, members=np.array(members, dtype=np.intp), hard=True,
                anti=each.rule.keep_apart is not None, most_places=each.rule.at_most_hosts or 1,
                arriving=np.array(fixed, dtype=np.intp), places=places))
    return tuple(found)


def _places(selections: Selections, level: str,
            hosts: Sequence[str]) -> tuple[dict[Place, int], np.ndarray | None]:
    """Each place to the first of the hosts that is there, and intp (H,) that of each host. None
    where every host is a place."""
    if level == HOST:
        return {}, None
    place_of = selections.places(level)
    first: dict[Place, int] = {}
    places = [first.setdefault(place_of[host], number) for number, host in enumerate(hosts)]
    return first, np.array(places, dtype=np.intp)
