"""Checks of operators' rules against the present cloud. The checks find rules that select nothing,
and rules that contradict each other or a server group."""

import collections
from collections.abc import Iterator
from collections.abc import Sequence

from kronos_nova import plural
from kronos_nova.objects.snapshot import ServerGroup
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies.rules import HOST
from kronos_nova.policies.rules import MUST
from kronos_nova.policies.rules import MUST_NOT
from kronos_nova.policies.rules import OperatorRule
from kronos_nova.policies.selection import Selection
from kronos_nova.policies.selection import Selections


def conflicts(found: Selections, snapshot: Snapshot,
              levels: Sequence[str]) -> dict[str, list[str]]:
    """Return {name of a rule: sentences that describe its problems}. Rules without problems are
    left out.

    :param levels: levels of failure domains, the largest first
    """
    levels = (*levels, HOST)
    result: dict[str, list[str]] = collections.defaultdict(list)
    for each in found:
        for problem in _alone(each, found, levels):
            result[each.rule.name].append(problem)
    for names, problem in (*_no_host(found, snapshot), *_pairs(found, levels),
                           *_groups(found, snapshot)):
        for name in names:
            result[name].append(problem)
    return dict(result)


def _alone(each: Selection, found: Selections, levels: Sequence[str]) -> Iterator[str]:
    rule = each.rule
    if not each.servers:
        yield 'it selects no server'
    if rule.places is not None and not each.hosts:
        yield 'it names no host that there is'
    named = [rule.level, *((rule.places.domain or {}) if rule.places else ())]
    for level in named:
        if level not in levels:
            yield f'{level} is not in [kronos] failure_domain_key'
    if rule.keep_apart and rule.level in levels:
        places = len(set(found.places(rule.level).values()))
        most = max(map(len, each.parts), default=0)
        if most > places:
            yield f'{most} servers are to be apart, and there are {places} places'


def _no_host(found: Selections,
             snapshot: Snapshot) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (names of rules, sentence) for each set of rules that together forbid every host to
    some servers."""
    rules_of = collections.defaultdict(list)
    static = [each for each in found if each.rule.relation in (MUST, MUST_NOT)]
    for number, each in enumerate(static):
        for uuid in each.servers:
            rules_of[uuid].append(number)
    sets: dict[tuple[int, ...], int] = collections.Counter(map(tuple, rules_of.values()))
    for numbers, count in sorted(sets.items()):
        rules = [static[number] for number in numbers]
        if len(rules) > 1 and not any(all(each.wants(host.name) for each in rules)
                                      for host in snapshot.hosts):
            names = tuple(each.rule.name for each in rules)
            yield names, (f'rules {" and ".join(names)} together leave no host to '
                          f'{plural.count(count, "server")}')


def _pairs(found: Selections,
           levels: Sequence[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield (names of two rules, sentence) for each pair of rules that contradict each other."""
    apart = [each for each in found if each.rule.keep_apart and each.rule.level in levels]
    joined = [each for each in found if (each.rule.keep_together or each.rule.at_most_hosts)
              and each.rule.level in levels]
    for one in joined:
        for other in apart:
            # Hosts of one small domain, such as a rack, are also in one larger domain.
            if levels.index(one.rule.level) < levels.index(other.rule.level):
                continue
            both = max((len(first & second) for first in one.parts for second in other.parts),
                       default=0)
            if both > (one.rule.at_most_hosts or 1):
                yield ((one.rule.name, other.rule.name),
                       f'{one.rule.name} and {other.rule.name} contradict each other about {both} '
                       'servers')


def _groups(found: Selections,
            snapshot: Snapshot) -> Iterator[tuple[tuple[str], str]]:
    """Yield (name of a rule, sentence) for each rule that contradicts a server group."""
    for group in snapshot.server_groups:
        members = frozenset(group.members)
        for each in found:
            most = max((len(part & members) for part in each.parts), default=0)
            if most > 1 and _contradicts(each.rule, group, most):
                yield ((each.rule.name,), f'it contradicts the {group.policy} of server group '
                                          f'{group.name} about {most} servers')


def _contradicts(rule: OperatorRule, group: ServerGroup, members: int) -> bool:
    if group.policy == 'affinity':
        return rule.keep_apart is not None
    if group.policy != 'anti-affinity':
        return False
    most = max(1, group.rules.get('max_server_per_host', 1))
    together = rule.keep_together == HOST or rule.at_most_hosts is not None
    return together and members > most * (rule.at_most_hosts or 1)
