"""An operator's rules: taken or refused with everything wrong, and what they select."""

import dataclasses

import ddt
import testtools

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.objects import snapshot as objects
from kronos_nova.policies.conflicts import conflicts
from kronos_nova.policies.selection import Selections

POLICY = ('policies: [{name: cpu, mode: spread, weight: 1, threshold: 0.1, imbalance_query: a, '
          'vm_profile_query: b}]\n')
UP = objects.Service(state='up', status='enabled')


def rules(text):
    return policies.parse(f'{POLICY}rules:\n{text}', 'p.yaml').rules


def host(name, traits=None, **domains):
    return objects.Host(name=name, uuid=name, service=UP, inventory={}, domains=domains,
                        traits=traits)


def instance(uuid, host_name='a1', **rest):
    return objects.Instance(**{
        'uuid': uuid, 'name': uuid, 'display_name': uuid, 'host': host_name, 'project_id': 'p1',
        'status': 'ACTIVE', 'vcpus': 1, 'memory_mb': 1, 'disk_gb': 0, **rest})


GROUP = 'd2bd23a6-2b52-4c3b-8a8e-3c1d4c4f5c11'
HOSTS = (host('a1', ('CUSTOM_GPU',), room='a', rack='r1'),
         host('a2', ('CUSTOM_SSD', 'HW_X'), room='a', rack='r2'),
         host('b1', ('CUSTOM_SSD',), room='b', rack='r1'), host('c1'))
CLOUD = objects.Snapshot(
    taken_at='2026-11-20T12:00:00Z', hosts=HOSTS,
    aggregates=(objects.Aggregate(name='new', uuid='new', hosts=('b1', 'c1'),
                                  availability_zone='az1'),),
    server_groups=(objects.ServerGroup(uuid=GROUP, name='quorum', policy='affinity',
                                       members=('i1', 'i2', 'gone')),),
    instances=(
        instance('i1', display_name='db-1', tags=('db', 'x'), metadata={'kronos:role': 'main'},
                 flavor=objects.Flavor(name='m1.big')),
        instance('i2', display_name='db-2', project_id='p2', tags=('db',),
                 image=objects.Image(id='im', properties={'os_distro': 'rhel'})),
        instance('i3', 'b1', display_name='web[1]', flavor=objects.Flavor(name='m2')),
        instance('i4', 'c1', display_name='Db-3', tags=('db',))))


@ddt.ddt
class RulesTest(testtools.TestCase):
    @ddt.data(
        ('{name: A, servers: {tag: x}, never_move: true}', 'rules[0] (A).name'),
        ('{name: a, servers: {}, never_move: true}', 'selects no servers'),
        ('{name: a, servers: {colour: red}, never_move: true}', 'servers.colour'),
        ('{name: a, servers: {tag: []}, never_move: true}', 'servers.tag'),
        ('{name: a, servers: {metadata: {role: db}}, never_move: true}', 'begin with kronos:'),
        ('{name: a, servers: {tag: x}}', 'has 0 relations'),
        ('{name: a, servers: {tag: x}, never_move: true, keep_apart: rack}',
         'has 2 relations (keep_apart, never_move)'),
        ('{name: a, servers: {tag: x}, never_move: false}', 'never_move'),
        ('{name: a, servers: {tag: x}, at_most_hosts: 0}', 'at_most_hosts'),
        ('{name: a, servers: {tag: x}, at_most_hosts: "3"}', 'at_most_hosts'),
        ('{name: a, servers: {tag: x}, must_run_on: {}}', 'names no host'),
        ('{name: a, servers: {tag: x}, must_run_on: {hosts: a1}, cost: 0.1}', 'cost has an effect'),
        ('{name: a, servers: {tag: x}, should_run_on: {hosts: a1}, cost: 2}', 'cost'),
        ('{name: a, servers: {tag: x}, move_only: "gpu; 99 * * * *; 5"}', 'not a cron expression'),
    )
    @ddt.unpack
    def test_what_is_wrong_is_refused_with_its_place(self, row, problem):
        error = self.assertRaises(exception.PolicyError, rules, f'- {row}')
        for word in ('p.yaml', 'rules[0]', problem):
            self.assertIn(word, str(error))

    def test_names_are_unique(self):
        row = '- {name: a, servers: {tag: x}, never_move: true}\n'
        self.assertIn('names of rules must be unique, but are repeated: a', str(
            self.assertRaises(exception.PolicyError, rules, row + row)))

    def test_a_rule_has_one_relation_and_its_defaults(self):
        [rule] = rules('- {name: a, servers: {tag: x}, should_run_on: {hosts: [a1]}}')
        self.assertEqual(('should_run_on', 0.02, 'host', True),
                         (rule.relation, rule.price, rule.level, rule.yields))
        [rule] = rules('- {name: a, servers: {flavor: x}, keep_apart: rack}')
        self.assertEqual(('keep_apart', 'rack', False), (rule.relation, rule.level, rule.yields))

    @ddt.data(
        ('{tag: db}', True), ('{name: "db-*"}', True), ('{metadata: {"kronos:role": a}}', True),
        ('{server_group: quorum}', True), (f'{{server_group: [{GROUP}, quorum]}}', True),
        ('{name: "db-*", flavor: m1}', True), ('{name: "db-*", project: p1}', False),
        ('{tag: db, project: p1}', False), ('{tag: db, uuid: [i1]}', False),
        (f'{{server_group: {GROUP}}}', False), ('{flavor: m1}', False), ('{project: p1}', False))
    @ddt.unpack
    def test_what_any_owner_can_set_holds_no_host_that_is_emptied(self, servers, yields):
        [rule] = rules(f'- {{name: a, servers: {servers}, never_move: true}}')
        self.assertEqual(yields, rule.yields)

    @ddt.data(
        ('{tag: db}', 'i1 i2 i4'), ('{tag: [x, other]}', 'i1'), ('{name: db-*}', 'i1 i2'),
        ('{name: "web[[]1]"}', 'i3'), ('{name: web*}', 'i3'),
        ('{name: "web[1]"}', 'i3'), ('{name: "web[2]"}', ''), ('{name: "*-?"}', 'i1 i2 i4'),
        ('{flavor: "m?"}', 'i3'), ('{flavor: ["m1.*", m2]}', 'i1 i3'),
        ('{image: {os_distro: "rh*"}}', 'i2'), ('{image: {os_distro: debian}}', ''),
        ('{metadata: {"kronos:role": main}}', 'i1'), ('{project: p2}', 'i2'),
        ('{server_group: quorum}', 'i1 i2'), (f'{{server_group: {GROUP}}}', 'i1 i2'),
        ('{availability_zone: az1}', 'i3 i4'), ('{availability_zone: nova}', 'i1 i2'),
        ('{uuid: [i4, i9]}', 'i4'), ('{tag: db, project: p1}', 'i1 i4'))
    @ddt.unpack
    def test_servers_are_selected_by_all_keys(self, servers, expected):
        [found] = Selections(rules(f'- {{name: a, servers: {servers}, never_move: true}}'), CLOUD)
        self.assertEqual(expected.split(), sorted(found.servers))

    @ddt.data(
        ('{hosts: a1}', 'a1'), ('{hosts: "[ab]1"}', 'a1 b1'), ('{aggregate: new}', 'b1 c1'),
        ('{domain: {rack: r1}}', 'a1 b1'), ('{domain: {room: a, rack: r1}}', 'a1 a2 b1'),
        ('{domain: {rack: ["*"]}, hosts: c1}', 'a1 a2 b1 c1'), ('{domain: {row: x}}', ''),
        ('{trait: CUSTOM_SSD}', 'a2 b1'), ('{trait: "CUSTOM_*"}', 'a1 a2 b1'))
    @ddt.unpack
    def test_hosts_are_named_by_any_key(self, places, expected):
        [found] = Selections(rules(
            f'- {{name: a, servers: {{tag: db}}, must_run_on: {places}}}'), CLOUD)
        self.assertEqual(expected.split(), sorted(found.hosts))

    def test_what_owners_select_is_kept_together_or_apart_in_each_project(self):
        for servers, parts in (('{tag: db}', [['i1', 'i4'], ['i2']]),
                               ('{tag: db, uuid: [i1, i2]}', [['i1', 'i2']]),
                               ('{server_group: quorum}', [['i1'], ['i2']]),
                               (f'{{server_group: {GROUP}}}', [['i1', 'i2']]),
                               ('{tag: db, project: [p1, p2]}', [['i1', 'i2', 'i4']])):
            [found] = Selections(rules(
                f'- {{name: a, servers: {servers}, keep_apart: host}}'), CLOUD)
            self.assertEqual(parts, sorted(sorted(part) for part in found.parts))

    def test_what_is_violated(self):
        found = Selections(rules(
            '- {name: inside, servers: {tag: db}, must_run_on: {domain: {room: a}}}\n'
            '- {name: outside, servers: {tag: db}, should_not_run_on: {hosts: a1}}\n'
            '- {name: apart, servers: {uuid: [i1, i2]}, keep_apart: rack}\n'
            '- {name: near, servers: {uuid: [i1, i2, i3]}, keep_together: rack}\n'
            '- {name: few, servers: {uuid: [i1, i2, i3]}, at_most_hosts: 2}\n'
            '- {name: still, servers: {tag: db}, never_move: true}\n'), CLOUD).violated()
        self.assertEqual({'inside': {'i4'}, 'outside': {'i1', 'i2'}, 'apart': {'i2'},
                          'near': {'i3'}}, found)

    def test_a_host_without_a_domain_is_one_of_its_own(self):
        [a1, _a2, b1, c1] = [Selections((), CLOUD).places('rack')[each.name] for each in HOSTS]
        self.assertEqual(3, len({a1, b1, c1}))

    def conflicts(self, text, **rest):
        cloud = dataclasses.replace(CLOUD, **rest)
        return conflicts(Selections(rules(text), cloud), cloud, ['room', 'rack'])

    def test_what_selects_nothing_or_cannot_be_kept(self):
        found = self.conflicts(
            '- {name: unmatched, servers: {tag: other}, never_move: true}\n'
            '- {name: nowhere, servers: {tag: db}, must_run_on: {hosts: z9}}\n'
            '- {name: rows, servers: {tag: db}, keep_apart: row}\n'
            '- {name: many, servers: {uuid: [i1, i2, i3, i4]}, keep_apart: room}\n'
            '- {name: fine, servers: {tag: db}, keep_apart: rack}\n', server_groups=())
        self.assertEqual(
            {'unmatched': ['it selects no server'], 'nowhere': ['it names no host that there is'],
             'rows': ['row is not in [kronos] failure_domain_key'],
             'many': ['4 servers are to be apart, and there are 3 places']}, found)

    def test_rules_that_leave_no_host(self):
        found = self.conflicts(
            '- {name: a, servers: {tag: db}, must_run_on: {domain: {room: a}}}\n'
            '- {name: b, servers: {name: "db-*"}, must_not_run_on: {hosts: "a?"}}\n'
            '- {name: c, servers: {tag: db}, must_not_run_on: {hosts: a1}}\n')
        self.assertEqual(['rules a and b and c together leave no host to 2 servers'], found['a'])
        self.assertEqual({'a', 'b', 'c'}, {*found})
        self.assertEqual({}, self.conflicts(
            '- {name: a, servers: {tag: db}, must_run_on: {domain: {room: a}}}\n'
            '- {name: c, servers: {tag: db}, must_not_run_on: {hosts: a1}}\n'))

    @ddt.data(('host', 'rack', True), ('rack', 'rack', True), ('rack', 'room', True),
              ('room', 'rack', False), ('rack', 'host', False))
    @ddt.unpack
    def test_together_and_apart_contradict_each_other(self, together, apart, contradict):
        found = self.conflicts(
            f'- {{name: a, servers: {{uuid: [i2, i1]}}, keep_together: {together}}}\n'
            f'- {{name: b, servers: {{uuid: [i1, i2]}}, keep_apart: {apart}}}\n', server_groups=())
        said = ['a and b contradict each other about 2 servers']
        self.assertEqual({'a': said, 'b': said} if contradict else {}, found)

    @ddt.data(('affinity', {}, 'keep_apart: rack', True), ('affinity', {}, 'keep_together: host',
                                                            False),
              ('anti-affinity', {}, 'keep_together: host', True),
              ('anti-affinity', {'max_server_per_host': 2}, 'keep_together: host', False),
              ('anti-affinity', {}, 'at_most_hosts: 1', True),
              ('anti-affinity', {}, 'at_most_hosts: 2', False),
              ('soft-affinity', {}, 'keep_apart: host', False))
    @ddt.unpack
    def test_a_rule_contradicts_a_server_group(self, policy, limits, relation, contradicts):
        group = dataclasses.replace(CLOUD.server_groups[0], policy=policy, rules=limits)
        found = self.conflicts(f'- {{name: a, servers: {{uuid: [i1, i2]}}, {relation}}}',
                               server_groups=(group,))
        self.assertEqual({'a': [f'it contradicts the {policy} of server group quorum about 2 '
                                'servers']} if contradicts else {}, found)
