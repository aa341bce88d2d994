"""Judges plans by an operator's rules. Nothing of the product is imported: rules are read as they
are written, and each is worked out again from the snapshot alone."""

import collections
import fnmatch

CLOSED_AT_NOON = ' 3 '
"""Part of a window that is closed when the clouds of the tests are recorded."""


class Referee:
    """A cloud as the snapshot's files have it: lists of hosts and instances, and of rules."""

    def __init__(self, hosts, instances, rules, aggregates=()):
        self.hosts = {host['name']: host for host in hosts}
        self.instances = {each['uuid']: each for each in instances}
        self.rules, self.aggregates = rules, aggregates

    def place(self):
        """{uuid: host}, as the snapshot has it."""
        return {uuid: each['host'] for uuid, each in self.instances.items()}

    def wrong(self, moves, emptied=None):
        """The errors of moves (uuid, destination), made one after the other.

        :param emptied: a host that is to be left; what rules by owners' words say yields there
        """
        place, made, found = self.place(), collections.Counter(), []
        for uuid, host in moves:
            before = {rule['name']: self.misplaced(rule, place) for rule in self.rules}
            leaves = place[uuid] == emptied
            place[uuid] = host
            made[uuid] += 1
            for rule in self.rules:
                if leaves and self._yields(rule):
                    continue
                name = rule['name']
                if uuid in self.selected(rule) and self._is_against(rule, host, made[uuid]):
                    found.append(f'{name} is against {uuid} on {host}')
                if self._is_joint(rule) and self.misplaced(rule, place) > before[name]:
                    found.append(f'{name} is broken by {uuid} on {host}')
        return found

    @staticmethod
    def _yields(rule):
        """Return whether the owners of servers select them: the rule gives way where a host is
        emptied."""
        chosen = set(rule['servers'])
        return bool(chosen & {'tag', 'metadata', 'name'}) and not chosen & {'project', 'uuid'}

    def is_held(self, uuid):
        """Return whether a rule does not let a server move at all when the clouds are recorded."""
        return any(uuid in self.selected(rule) and (
            'never_move' in rule or CLOSED_AT_NOON in rule.get('move_only', [''])[0])
            for rule in self.rules)

    def kept_apart(self):
        """(uuids of servers that are kept apart, level) of each part of each such rule."""
        for rule in self.rules:
            if 'keep_apart' in rule:
                servers = self.selected(rule)
                for project in sorted({self._part(rule, uuid) for uuid in servers}):
                    yield ({uuid for uuid in servers if self._part(rule, uuid) == project},
                           rule['keep_apart'])

    def violations(self, kind, place):
        """Return how many servers are where rules would not have them.

        :param kind: how the names of the relations begin
        """
        return sum(self.misplaced(rule, place) for rule in self.rules
                   if any(key.startswith(kind) for key in rule))

    def selected(self, rule):
        """Uuids of the servers of a rule."""
        return {uuid for uuid, each in self.instances.items()
                if all(self._fits(each, key, wanted) for key, wanted in rule['servers'].items())}

    @staticmethod
    def _fits(instance, key, wanted):
        if key in ('image', 'metadata'):
            have = instance['image']['properties'] if key == 'image' else instance['metadata']
            return all(name in have and fnmatch.fnmatchcase(have[name], value)
                       for name, value in wanted.items())
        words = [wanted] if isinstance(wanted, str) else wanted
        values = {'uuid': [instance['uuid']], 'project': [instance['project_id']],
                  'flavor': [instance['flavor']['name']], 'tag': instance['tags'],
                  'name': [instance['display_name']]}[key]
        return any(fnmatch.fnmatchcase(value, word) for value in values for word in words)

    def wants(self, rule, host):
        """Return whether a rule that names hosts would have its servers on one of them."""
        for key, sign in (('must_run_on', True), ('should_run_on', True),
                          ('must_not_run_on', False), ('should_not_run_on', False)):
            if key in rule:
                return self._is_named(rule[key], host) == sign
        raise AssertionError(rule)

    def _is_named(self, places, host):
        def words(value):
            return [value] if isinstance(value, str) else value

        found = any(fnmatch.fnmatchcase(host, word) for word in words(places.get('hosts', [])))
        for aggregate in self.aggregates:
            found |= host in aggregate['hosts'] and any(
                fnmatch.fnmatchcase(aggregate['name'], word)
                for word in words(places.get('aggregate', [])))
        for level, names in places.get('domain', {}).items():
            found |= any(fnmatch.fnmatchcase(self.hosts[host]['domains'].get(level, ''), word)
                         for word in words(names))
        return found

    def _is_against(self, rule, host, moves):
        if 'must_run_on' in rule or 'must_not_run_on' in rule:
            return not self.wants(rule, host)
        if 'move_only' in rule:
            return CLOSED_AT_NOON in rule['move_only'][0]
        return 'never_move' in rule or moves > rule.get('max_moves', moves)

    @staticmethod
    def _is_joint(rule):
        return not {'keep_together', 'keep_apart', 'at_most_hosts'}.isdisjoint(rule)

    def misplaced(self, rule, place):
        """Return how many servers of a rule would have to be elsewhere."""
        servers = self.selected(rule)
        if any('run_on' in key for key in rule):
            return sum(not self.wants(rule, place[uuid]) for uuid in servers)
        if not self._is_joint(rule):
            return 0
        level = rule.get('keep_together') or rule.get('keep_apart') or 'host'
        total = 0
        for project in {self._part(rule, uuid) for uuid in servers}:
            there = collections.Counter(
                self.domain(place[uuid], level) for uuid in servers
                if self._part(rule, uuid) == project)
            if 'keep_apart' in rule:
                total += sum(count - 1 for count in there.values())
            else:
                total += sum(sorted(there.values(), reverse=True)[rule.get('at_most_hosts', 1):])
        return total

    def _part(self, rule, uuid):
        """The project, where a rule holds for the servers of each by themselves."""
        return self.instances[uuid]['project_id'] if self._yields(rule) else ''

    def domain(self, host, level):
        """The domain of a host at a level, in those that it is in."""
        if level == 'host':
            return host
        domains = self.hosts[host]['domains']
        levels = list(domains)
        return tuple(domains[each] for each in levels[:levels.index(level) + 1])
