"""The servers and hosts in a snapshot of the cloud that operators' rules select."""

import bisect
import collections
import dataclasses
import fnmatch
import functools
import operator
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from kronos_nova.objects import domains
from kronos_nova.objects.snapshot import DEFAULT_ZONE
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies.rules import HOST
from kronos_nova.policies.rules import MUST
from kronos_nova.policies.rules import SHOULD
from kronos_nova.policies.rules import OperatorRule
from kronos_nova.policies.rules import Places
from kronos_nova.policies.rules import ServerSelector

_PATTERN = re.compile(r'[*?\[]')

Uuids = frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The servers and hosts that a rule selects.

    servers : uuids of the servers
    hosts : names of the hosts that the rule names; empty if the rule names no hosts
    parts : sets of servers, by uuid. A rule that keeps servers together, apart or on few hosts
        applies to each set separately. Empty for other rules
    """

    rule: OperatorRule
    servers: Uuids
    hosts: frozenset[str]
    parts: tuple[Uuids, ...]

    def wants(self, host: str) -> bool:
        """Return True if a rule that names hosts accepts or prefers its servers on a host, else
        False."""
        return (host in self.hosts) == (self.rule.relation in (MUST, SHOULD))


class Selections:
    """The selections of several rules in a snapshot, in the order of the rules.

    Servers and hosts that do not exist are left out.
    """

    def __init__(self, rules: Iterable[OperatorRule] = (), snapshot: Snapshot | None = None):
        self._snapshot = snapshot
        rules = tuple(rules)
        index = _Index(snapshot) if snapshot is not None and rules else None
        self._all = () if index is None else tuple(_selection(rule, index) for rule in rules)
        self._places: dict[str, dict[str, domains.Place]] = {}
        self._sets: tuple[tuple[str, ...], list[int], list[tuple[int, ...]]] | None = None

    def __iter__(self) -> Iterator[Selection]:
        return iter(self._all)

    @functools.cached_property
    def placing(self) -> tuple[Selection, ...]:
        """The selections of the rules that name hosts."""
        return tuple(each for each in self._all if each.rule.places is not None)

    @functools.cached_property
    def placed(self) -> dict[str, tuple[int, ...]]:
        """{instance uuid: positions in ``placing`` of the rules that select the instance}."""
        found: dict[str, tuple[int, ...]] = {}
        for number, each in enumerate(self.placing):
            for uuid in each.servers:
                found[uuid] = (*found.get(uuid, ()), number)
        return found

    def sets_of(self, uuids: tuple[str, ...]) -> tuple[list[int], list[tuple[int, ...]]]:
        """Return the rules that select each instance, of the rules in ``placing``. Many instances
        are selected by the same set of rules. To save memory, each different set is stored once,
        and the result is two lists (numbers, sets). The set of rules of the instance ``uuids[i]``
        is ``sets[numbers[i]]``.

        A set is a tuple of positions in ``placing``. The first set is empty. The result of the
        latest call is cached.
        """
        if self._sets is None or self._sets[0] is not uuids:
            sets: dict[tuple[int, ...], int] = {(): 0}
            number_of = {uuid: sets.setdefault(self.placed[uuid], len(sets))
                         for uuid in uuids if uuid in self.placed}
            self._sets = uuids, [number_of.get(uuid, 0) for uuid in uuids], list(sets)
        return self._sets[1:]

    @functools.cached_property
    def host_of(self) -> dict[str, str]:
        """{instance uuid: name of its host}."""
        return {} if self._snapshot is None else {
            each.uuid: each.host for each in self._snapshot.instances}

    @functools.cached_property
    def arriving(self) -> dict[str, str]:
        """{uuid of a migrating instance: name of its destination}."""
        return {} if self._snapshot is None else {
            move.instance_uuid: move.destination for move in self._snapshot.moves_under_way}

    def places(self, level: str) -> dict[str, domains.Place]:
        """Return {host: its failure domain at a level}. A host without a domain counts as a domain
        of its own."""
        if level not in self._places:
            self._places[level] = {} if self._snapshot is None else {
                host.name: (HOST, host.name) if level == HOST else
                domains.place(host, level) or (HOST, host.name) for host in self._snapshot.hosts}
        return self._places[level]

    def violated(self) -> dict[str, Uuids]:
        """Return {name of a violated rule: uuids of its servers that have to move}. Once these
        servers have moved, the rule holds."""
        found = {each.rule.name: frozenset(self._misplaced(each)) for each in self._all}
        return {name: wrong for name, wrong in found.items() if wrong}

    def _misplaced(self, found: Selection) -> Iterator[str]:
        if found.rule.places is not None:
            yield from (uuid for uuid in found.servers if not found.wants(self.host_of[uuid]))
        elif is_joint(found.rule):
            places = self.places(found.rule.level)
            for part in found.parts:
                there = collections.defaultdict(list)
                for uuid in sorted(part):
                    there[places[self.host_of[uuid]]].append(uuid)
                most = sorted(there.values(), key=len, reverse=True)
                if found.rule.keep_apart:
                    yield from (uuid for uuids in most for uuid in uuids[1:])
                else:
                    yield from (uuid for uuids in most[found.rule.at_most_hosts or 1:]
                                for uuid in uuids)


def is_joint(rule: OperatorRule) -> bool:
    """Return True if a rule keeps its servers together, apart or on few hosts, else False."""
    return bool(rule.keep_together or rule.keep_apart or rule.at_most_hosts)


def _selection(rule: OperatorRule, index: '_Index') -> Selection:
    servers = index.servers(rule.servers)
    return Selection(rule=rule, servers=servers, parts=_parts(rule, servers, index),
                     hosts=frozenset() if rule.places is None else index.hosts(rule.places))


def _parts(rule: OperatorRule, servers: Uuids, index: '_Index') -> tuple[Uuids, ...]:
    """Return sets of servers; the rule applies to each set separately. If the rule selects servers
    by values that their owners set, such as tags, there is a set for each project, so that no owner
    affects another project. Otherwise there is one set of all servers. The result is empty for a
    rule about single servers."""
    if not is_joint(rule):
        return ()
    if not rule.servers.is_of_owners:
        return (servers,)
    owned = collections.defaultdict(set)
    for uuid in servers:
        owned[index.project(uuid)].add(uuid)
    return tuple(frozenset(owned[project]) for project in sorted(owned))


class _Index:
    """Indexes of the servers and hosts of a snapshot. Rules select servers and hosts by several
    kinds of values, such as names of aggregates. There is an index for each kind. It is built when
    the first rule needs it."""

    def __init__(self, snapshot: Snapshot):
        self._snapshot = snapshot
        self._known: dict[str, _Values] = {}

    def project(self, uuid: str) -> str:
        return self._projects[uuid]

    @functools.cached_property
    def _projects(self) -> dict[str, str]:
        return {each.uuid: each.project_id or '' for each in self._snapshot.instances}

    def servers(self, wanted: ServerSelector) -> Uuids:
        """Return the uuids of the servers that a rule selects by ``wanted``. A server has to match
        all keys of ``wanted``, such as ``project`` and ``flavor``."""
        found: list[set[str]] = [] if wanted.uuid is None else [
            self._projects.keys() & wanted.uuid]
        found += [self._by(name).matching(words) for name, words in (
            ('project', wanted.project), ('flavor', wanted.flavor),
            ('tag', wanted.tag), ('server_group', wanted.server_group), ('name', wanted.name),
            ('availability_zone', wanted.availability_zone)) if words is not None]
        found += [self._by(f'{name}:{key}').matching((word,))
                  for name, pairs in (('image', wanted.image), ('metadata', wanted.metadata))
                  for key, word in (pairs or {}).items()]
        found.sort(key=len)
        return frozenset(functools.reduce(operator.and_, found))

    def hosts(self, wanted: Places) -> frozenset[str]:
        """Return the names of the hosts that a rule names by ``wanted``. A host has to match only
        one of the keys of ``wanted``, such as ``hosts`` or ``aggregate``."""
        found: set[str] = set()
        if wanted.hosts:
            found |= self._by('host').matching(wanted.hosts)
        if wanted.aggregate:
            found |= self._by('aggregate').matching(wanted.aggregate)
        if wanted.trait:
            found |= self._by('trait').matching(wanted.trait)
        for level, words in (wanted.domain or {}).items():
            found |= self._by(f'domain:{level}').matching(words)
        return frozenset(found)

    def _by(self, name: str) -> '_Values':
        if name not in self._known:
            kind, _colon, key = name.partition(':')
            self._known[name] = _Values(self._pairs(kind, key))
        return self._known[name]

    def _pairs(self, kind: str, key: str) -> Iterable[tuple[str, str]]:
        """Return the pairs for one index: (value, uuid of a server or name of a host with this
        value).

        :param kind: kind of the values, such as ``aggregate``
        :param key: key of the metadata or image property, or level of the failure domain
        """
        snapshot = self._snapshot
        if kind == 'host':
            return ((host.name, host.name) for host in snapshot.hosts)
        if kind == 'aggregate':
            return ((each.name, host) for each in snapshot.aggregates for host in each.hosts)
        if kind == 'trait':
            return ((trait, host.name) for host in snapshot.hosts for trait in host.traits or ())
        if kind == 'domain':
            return ((host.domains[key], host.name) for host in snapshot.hosts
                    if key in host.domains)
        if kind == 'server_group':
            return ((name, member) for group in snapshot.server_groups
                    for name in (group.uuid, group.name) for member in group.members
                    if member in self._projects)
        if kind == 'availability_zone':
            return ((self._zones.get(each.host, DEFAULT_ZONE), each.uuid)
                    for each in snapshot.instances)
        return _OF_SERVERS[kind](snapshot.instances, key)

    @functools.cached_property
    def _zones(self) -> dict[str, str]:
        return self._snapshot.zones()


_Pairs = Iterable[tuple[str, str]]
"""Pairs of (value, uuid of a server with this value)."""

# Each kind has a loop of its own, because a call for each server would take most of the time.
_OF_SERVERS: dict[str, Callable[[Iterable[Instance], str], _Pairs]] = {
    'project': lambda instances, key: (
        (each.project_id, each.uuid) for each in instances if each.project_id),
    'flavor': lambda instances, key: (
        (each.flavor.name, each.uuid) for each in instances if each.flavor),
    'tag': lambda instances, key: (
        (tag, each.uuid) for each in instances for tag in each.tags),
    'name': lambda instances, key: (
        (each.display_name, each.uuid) for each in instances),
    'image': lambda instances, key: (
        (each.image.properties[key], each.uuid) for each in instances
        if each.image and key in each.image.properties),
    'metadata': lambda instances, key: (
        (each.metadata[key], each.uuid) for each in instances if key in each.metadata),
}
"""{kind of values: function that returns (value, server uuid) pairs of instances for a key}."""


class _Values:
    """An index of servers or hosts by value. To be fast, a pattern is compared only with some
    values: those that begin with the part of the pattern before its first wildcard."""

    def __init__(self, pairs: Iterable[tuple[str, str]]):
        self._having: dict[str, list[str]] = {}
        for value, having in pairs:
            if value in self._having:
                self._having[value].append(having)
            else:
                self._having[value] = [having]

    @functools.cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._having)

    def matching(self, words: Iterable[str]) -> set[str]:
        """Return the servers or hosts with a value that equals one of ``words``, or matches one of
        ``words`` as a pattern."""
        return {having for word in words for value in (word, *self._values(word))
                for having in self._having.get(value, ())}

    def _values(self, word: str) -> Iterable[str]:
        """Return the values that match a pattern. The result is empty for a word that is no
        pattern."""
        pattern = _PATTERN.search(word)
        if pattern is None:
            return ()
        begin = word[:pattern.start()]
        beginning = self._sorted[
            bisect.bisect_left(self._sorted, begin):
            bisect.bisect_right(self._sorted, begin, key=lambda value: value[:len(begin)])]
        # A pattern such as "gpu-*" matches every value with this beginning.
        return beginning if word == f'{begin}*' else filter(
            re.compile(fnmatch.translate(word)).match, beginning)
