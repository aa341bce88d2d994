"""Operators' rules in Nova's scheduler, for a boot, a resize or an evacuation.

Nova's scheduler knows less about a server than an evaluation does. Three kinds of rules therefore
apply only in evaluations:

* rules that select servers by name, tag or metadata
* rules that select hosts by trait
* rules about several servers, unless a server group selects the servers
"""

import dataclasses
import fnmatch
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping

from kronos_nova.objects import domains
from kronos_nova.objects.snapshot import DEFAULT_ZONE
from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.policies.rules import HOST
from kronos_nova.policies.rules import MUST
from kronos_nova.policies.rules import MUST_NOT
from kronos_nova.policies.rules import SHOULD
from kronos_nova.policies.rules import SHOULD_NOT
from kronos_nova.policies.rules import OperatorRule
from kronos_nova.policies.rules import ServerSelector
from kronos_nova.policies.selection import is_joint


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestedServer:
    """The properties of a server that Nova's scheduler knows. ``groups`` are the uuid and the name
    of its server group. ``others`` are the hosts of the other members of the group."""

    uuid: str = ''
    project: str = ''
    flavor: str = ''
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    groups: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    zone: str = DEFAULT_ZONE


class RequestRules:
    """The operators' rules that can be applied when Nova chooses a host for a server.

    :param aggregates: all aggregates, with their hosts
    :param levels: levels of failure domains, the largest first
    """

    def __init__(self, rules: Iterable[OperatorRule] = (), aggregates: Iterable[Aggregate] = (),
                 levels: Iterable[str] = ()):
        levels, aggregates = tuple(levels), tuple(aggregates)
        self._domains = domains.domains_of_hosts(aggregates, levels)
        self._in: dict[str, list[str]] = {}
        for each in aggregates:
            for host in each.hosts:
                self._in.setdefault(host, []).append(each.name)
        self._rules = [_Rule(rule, self) for rule in rules if _is_known_at_a_request(rule)]

    def place(self, host: str, level: str) -> tuple[str, ...]:
        """Return a key that is equal for all hosts in the same failure domain at a level. The key
        has the names of the domains of the host, from the largest level to ``level``. A host
        without a domain at this level counts as a domain of its own."""
        found = self._domains.get(host, {})
        if level == HOST or level not in found:
            return HOST, host
        names = list(found)
        return tuple(found[name] for name in names[:names.index(level) + 1])

    def aggregates_of(self, host: str) -> list[str]:
        return self._in.get(host, [])

    def domains_of(self, host: str) -> Mapping[str, str]:
        return self._domains.get(host, {})

    def refused(self, server: RequestedServer, hosts: Iterable[str]) -> set[str]:
        """Return the hosts on which a rule forbids the server."""
        rules = [rule for rule in self._rules if rule.is_firm and rule.selects(server)]
        return {host for host in hosts if not all(rule.allows(server, host) for rule in rules)
                } if rules else set()

    def costs(self, server: RequestedServer, hosts: Iterable[str]) -> list[float]:
        """Return the cost of the server on each host, in the order of ``hosts``. The cost is the
        sum of the costs of the rules that prefer other hosts for the server. Costs are in the unit
        of the combined imbalance, the weighted sum of the imbalances of all policies."""
        rules = [rule for rule in self._rules if not rule.is_firm and rule.selects(server)]
        return [sum(rule.rule.price for rule in rules if not rule.wants(host)) for host in hosts]


def _is_known_at_a_request(rule: OperatorRule) -> bool:
    servers = rule.servers
    if servers.tag or servers.metadata or servers.name or (
            rule.places is not None and rule.places.trait):
        return False
    return rule.places is not None or bool(servers.server_group and is_joint(rule))


def _fits(words: Iterable[str] | None) -> Callable[[str], object]:
    """Return a function that checks a text, such as a name. Its result is true if the text equals
    one of ``words``, or matches one of ``words`` as a pattern. If ``words`` is None, the result is
    true for every text that is not empty."""
    if words is None:
        return bool
    # A name may contain the characters of a pattern, so each word also matches itself.
    return re.compile('|'.join(f'{fnmatch.translate(word)}|{re.escape(word)}\\Z' for word in words)
                      ).match


class _Rule:
    """One rule, evaluated for servers that Nova schedules. Its result for each host is cached."""

    def __init__(self, rule: OperatorRule, among: RequestRules):
        self.rule, self._among = rule, among
        self.is_firm = rule.relation not in (SHOULD, SHOULD_NOT)
        self._wants: dict[str, bool] = {}
        self._checks = list(_checks(rule.servers))
        places = rule.places
        self._hosts = None if places is None or not places.hosts else _fits(places.hosts)
        self._aggregates = None if places is None or not places.aggregate else _fits(
            places.aggregate)
        self._domains = {} if places is None else {
            level: _fits(words) for level, words in (places.domain or {}).items()}

    def selects(self, server: RequestedServer) -> bool:
        return all(check(server) for check in self._checks)

    def allows(self, server: RequestedServer, host: str) -> bool:
        if self.rule.relation in (MUST, MUST_NOT):
            return self.wants(host)
        there = {self._among.place(other, self.rule.level) for other in server.others}
        is_there = self._among.place(host, self.rule.level) in there
        if self.rule.keep_apart:
            return not is_there
        return is_there or len(there) < (self.rule.at_most_hosts or 1)

    def wants(self, host: str) -> bool:
        """Return True if the rule accepts or prefers its servers on a host, else False."""
        found = self._wants.get(host)
        if found is None:
            found = self._wants[host] = self._is_named(host) == (
                self.rule.relation in (MUST, SHOULD))
        return found

    def _is_named(self, host: str) -> bool:
        stated = self._among.domains_of(host)
        return bool(
            self._hosts and self._hosts(host)
            or self._aggregates and any(map(self._aggregates, self._among.aggregates_of(host)))
            or any(level in stated and fits(stated[level])
                   for level, fits in self._domains.items()))


def _checks(servers: ServerSelector) -> Iterable[Callable[[RequestedServer], object]]:
    """Yield a function for each key of a selector. The function checks whether a server matches the
    key."""
    if servers.uuid is not None:
        fits_uuid = _fits(servers.uuid)
        yield lambda server: fits_uuid(server.uuid)
    if servers.project is not None:
        fits_project = _fits(servers.project)
        yield lambda server: fits_project(server.project)
    if servers.flavor is not None:
        fits_flavor = _fits(servers.flavor)
        yield lambda server: fits_flavor(server.flavor)
    if servers.availability_zone is not None:
        fits_zone = _fits(servers.availability_zone)
        yield lambda server: fits_zone(server.zone)
    if servers.server_group is not None:
        fits_group = _fits(servers.server_group)
        yield lambda server: any(map(fits_group, server.groups))
    if servers.image is not None:
        wanted = {key: _fits([word]) for key, word in servers.image.items()}
        yield lambda server: all(key in server.image and fits(server.image[key])
                                 for key, fits in wanted.items())
