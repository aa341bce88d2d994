"""The rules of operators, and the servers and hosts that each rule selects in the present cloud."""

import dataclasses
from collections.abc import Iterator

from kronos_nova import plural
from kronos_nova.objects import domains
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import PolicySet
from kronos_nova.policies.conflicts import conflicts
from kronos_nova.policies.selection import Selections
from kronos_nova.services import names as known_names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule, with the numbers of servers and hosts that it selects in the present cloud.

    servers : number of servers that the rule selects
    yields : true if the rule may be violated to empty a host. This holds for rules that select
        servers by properties that users set on their servers
    hosts : number of hosts that the rule's relation names; None if the relation names no hosts
    violated : number of servers that would have to move so that the rule is obeyed
    example : name of one server that would have to move; None if there is none
    conflicts : sentences about problems of the rule in this cloud
    """

    rule: str
    relation: str
    servers: int
    yields: bool
    hosts: int | None
    violated: int
    example: str | None
    conflicts: tuple[str, ...]


def rows(policies: PolicySet, snapshot: Snapshot, levels: list[str]) -> Iterator[RuleRow]:
    """Yield a RuleRow for each rule.

    :param levels: levels of failure domains, the largest first
    """
    found = Selections(policies.rules, snapshot)
    violated, wrong = found.violated(), conflicts(found, snapshot, levels)
    names = known_names.of_cloud(snapshot)
    for each in found:
        name, servers = each.rule.name, violated.get(each.rule.name, frozenset())
        yield RuleRow(
            rule=name, relation=each.rule.relation, servers=len(each.servers),
            yields=each.rule.yields, violated=len(servers),
            hosts=None if each.rule.places is None else len(each.hosts),
            example=min((names[uuid] for uuid in servers), default=None),
            conflicts=tuple(wrong.get(name, ())))


def problems(found: list[RuleRow]) -> list[str]:
    """Return the conflicts of all rules, each with the name of its rule."""
    return [f'{row.rule}: {text}' for row in found for text in row.conflicts]


def summary(found: list[RuleRow]) -> str:
    """Return a line of text with the number of rules and the number of violated rules."""
    violated = sum(1 for row in found if row.violated)
    return f'{plural.count(len(found), "rule")}, {violated} of them violated'


def contradictory_domains(snapshot: Snapshot, levels: list[str]) -> list[str]:
    """Return a text for each host whose aggregates put it in several failure domains of one
    level."""
    return [f'{host} is in {level} {" and ".join(names)}'
            for host, stated in sorted(domains.stated(snapshot.aggregates, levels).items())
            for level, names in stated.items() if len(names) > 1]
