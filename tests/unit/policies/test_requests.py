"""Rules when Nova chooses a host: as far as they are known then, and quickly."""

import dataclasses

import ddt
import testtools

from kronos_nova.objects.snapshot import Aggregate
from kronos_nova.policies.requests import RequestedServer
from kronos_nova.policies.requests import RequestRules
from tests.unit.policies.test_rules import rules

HOSTS = ('a1', 'a2', 'b1', 'c1')
AGGREGATES = (Aggregate(name='rack1', uuid='1', hosts=('a1', 'b1'), metadata={'rack': 'r1'}),
              Aggregate(name='rack2', uuid='2', hosts=('a2',), metadata={'rack': 'r2'}))
SERVER = RequestedServer(
    uuid='i1', project='p1', flavor='m1.big', image={'os_distro': 'rhel'},
    groups=('g1', 'quorum', 'rows[1]'), others=('a1',))


def made(text):
    return RequestRules(rules(text), AGGREGATES, ['rack'])


@ddt.ddt
class RequestRulesTest(testtools.TestCase):
    @ddt.data(
        ('{project: p1}', True), ('{project: p2}', False), ('{flavor: "m1.*"}', True),
        ('{flavor: m1}', False), ('{server_group: "rows[1]"}', True),
        ('{image: {os_distro: "rh*"}}', True),
        ('{image: {os_distro: rhel, other: x}}', False), ('{server_group: quorum}', True),
        ('{server_group: other}', False), ('{uuid: [i1]}', True),
        ('{availability_zone: nova}', True), ('{availability_zone: az1}', False),
        ('{project: p1, flavor: m2}', False))
    @ddt.unpack
    def test_servers_are_selected_by_what_nova_knows(self, servers, is_selected):
        found = made(f'- {{name: a, servers: {servers}, must_run_on: {{hosts: a1}}}}')
        self.assertEqual({'a2', 'b1', 'c1'} if is_selected else set(),
                         found.refused(SERVER, HOSTS))

    @ddt.data('{tag: db}', '{name: "db-*"}', '{metadata: {"kronos:role": db}}')
    def test_what_is_not_known_yet_is_left_to_evaluations(self, servers):
        found = made(f'- {{name: a, servers: {servers}, must_run_on: {{hosts: a1}}}}')
        self.assertEqual(set(), found.refused(SERVER, HOSTS))

    @ddt.data(('must_run_on: {hosts: "[ab]?"}', 'c1'), ('must_not_run_on: {hosts: "a?"}', 'a1 a2'),
              ('must_run_on: {aggregate: "rack*"}', 'c1'),
              ('must_run_on: {domain: {rack: r1}}', 'a2 c1'),
              ('must_not_run_on: {domain: {rack: r1}, hosts: c1}', 'a1 b1 c1'),
              ('keep_apart: rack', 'a1 b1'), ('keep_apart: host', 'a1'),
              ('keep_together: rack', 'a2 c1'), ('keep_together: host', 'a2 b1 c1'),
              ('at_most_hosts: 1', 'a2 b1 c1'), ('at_most_hosts: 2', ''),
              ('should_run_on: {hosts: a1}', ''), ('never_move: true', ''))
    @ddt.unpack
    def test_hosts_that_are_refused(self, relation, refused):
        found = made(f'- {{name: a, servers: {{server_group: g1}}, {relation}}}')
        self.assertEqual(set(refused.split()), found.refused(SERVER, HOSTS))

    def test_the_first_of_a_group_goes_anywhere(self):
        found = made('- {name: a, servers: {server_group: g1}, keep_together: rack}')
        self.assertEqual(set(), found.refused(RequestedServer(groups=('g1',)), HOSTS))

    def test_a_group_that_is_on_as_many_hosts_as_may_be_gets_no_other(self):
        found = made('- {name: a, servers: {server_group: g1}, at_most_hosts: 2}')
        server = dataclasses.replace(SERVER, others=('a1', 'c1', 'a1'))
        self.assertEqual({'a2', 'b1'}, found.refused(server, HOSTS))

    def test_what_rules_would_rather_have_costs(self):
        found = made('- {name: a, servers: {project: p1}, should_run_on: {hosts: "a?"}, '
                     'cost: 0.1}\n'
                     '- {name: b, servers: {flavor: m1.big}, should_not_run_on: {hosts: a1}}\n')
        self.assertEqual([0.02, 0, 0.1, 0.1], found.costs(SERVER, HOSTS))
        self.assertEqual([0] * 4, found.costs(RequestedServer(), HOSTS))
