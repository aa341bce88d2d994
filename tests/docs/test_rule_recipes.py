"""Each recipe of the documentation does what the page says, on a cloud made for them."""

import collections
import dataclasses
import datetime
import pathlib
import re

import fixtures
import jsonschema
import testtools
import yaml

from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.drain import planning
from kronos_nova.drain import states
from kronos_nova.objects import snapshot as objects
from kronos_nova.policies import schema
from kronos_nova.record import replay
from tests.unit.drain.test_planning import Silent
from tests.unit.rules.clouds import RuleCloud
from tests.unit.rules.test_plans import DURATIONS
from tools import generate

PAGE = (generate.ROOT / 'doc/source/rules.rst').read_text()
RECIPES = dict(re.findall(
    r'^([A-Z][^\n]+)\n-+\n.*?code-block:: yaml\n\n(.*?)(?=\n\S)',
    PAGE.partition('\nRecipes\n')[2], re.MULTILINE | re.DOTALL))
"""Title to the text of the rules."""

RACK = {f'cmp{n}': f'r{(n + 1) // 2}' for n in range(1, 9)}
ROOM = {host: 'a' if rack in ('r1', 'r2') else 'b' for host, rack in RACK.items()}
SERVERS = {
    'ora-1': ('cmp5', {'flavor': 'oracle.large'}), 'ora-2': ('cmp1', {'flavor': 'oracle.small'}),
    'win-1': ('cmp1', {'os': 'windows'}), 'win-2': ('cmp4', {'os': 'windows'}),
    'win-3': ('cmp6', {'os': 'windows'}), 'build-1': ('cmp8', {'flavor': 'ci.small'}),
    'db-1': ('cmp3', {'tags': ['db']}), 'db-2': ('cmp3', {'tags': ['db']}),
    'web-1': ('cmp1', {}), 'web-2': ('cmp1', {}), 'web-3': ('cmp2', {}), 'web-4': ('cmp3', {}),
    'pair-1': ('cmp1', {}), 'pair-2': ('cmp3', {}), 'app-1': ('cmp5', {}), 'app-2': ('cmp7', {}),
    'noisy-1': ('cmp4', {'noisy': 'yes'}), 'noisy-2': ('cmp4', {'noisy': 'yes'}),
    'gpu-1': ('cmp8', {'flavor': 'gpu.one'}),
    'legacy-1': ('cmp3', {}), 'phone-1': ('cmp3', {'flavor': 'voice.one'})}


class RecipeCloud(RuleCloud):
    """Every server that a recipe speaks of, none where the recipe wants it."""

    def __init__(self, rules):
        super().__init__(0, hosts=0, vms=0, rules=0, threshold=0.3)
        self.rules = rules
        self.hosts = [self._host(n) | {'name': name, 'domains': {
            'room': ROOM[name], 'rack': RACK[name]}} for n, name in enumerate(RACK)]
        self.instances = [self._made(*each) for each in SERVERS.items()]
        self.load = {each['uuid']: 0.12 if each['host'] == 'cmp3' else 0.02
                     for each in self.instances}

    def _made(self, name, where):
        host, traits = where
        return {'uuid': name, 'name': name, 'display_name': name, 'project_id': 'shop',
                'host': host, 'status': 'ACTIVE', 'task_state': None, 'locked': False, 'vcpus': 1,
                'memory_mb': 512, 'disk_gb': 0, 'flavor_extra_specs': {}, 'resources': {'VCPU': 1},
                'metadata': {'kronos:noisy': traits['noisy']} if 'noisy' in traits else {},
                'flavor': {'name': traits.get('flavor', 'm1')}, 'tags': traits.get('tags', []),
                'image': {'id': 'im', 'properties': {'os_distro': traits.get('os', 'debian')}}}

    def aggregates(self):
        chosen = {'all': list(RACK), 'licensed': ['cmp1', 'cmp2'], 'new': ['cmp7', 'cmp8']}
        return [{'name': name, 'uuid': name, 'availability_zone': None, 'metadata': {},
                 'hosts': hosts} for name, hosts in chosen.items()]

    def groups(self):
        return [{'uuid': name, 'name': name, 'policy': 'soft-anti-affinity', 'rules': None,
                 'members': members} for name, members in (
                     ('pair', ['pair-1', 'pair-2']), ('near', ['app-1', 'app-2']))]


class RecipesTest(testtools.TestCase):
    def planned(self, rules):
        """Plan with rules."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        recording, policies = replay.read(RecipeCloud(rules).write(folder))
        [report] = replay.replay(recording, policies, EngineOptions(
            aggregates=('all',), include_unassigned_hosts=False), DURATIONS).aggregates
        return report

    def ends(self, title):
        """Plan with a recipe's rules: the report, and where every server is then."""
        report = self.planned(yaml.safe_load(RECIPES[title])['rules'])
        self.assertEqual('planned', report.outcome, report.warnings)
        self.moved = {move.instance_uuid for move in report.moves}
        return report, {name: host for name, (host, _traits) in SERVERS.items()} | {
            move.instance_uuid: move.destination for move in report.moves}

    def held(self, report):
        return dict(pair for skip in report.not_moved if skip.reason == 'rule'
                    for pair in skip.details)

    def test_the_schema_takes_every_recipe(self):
        policy = yaml.safe_load((generate.ROOT / 'etc/kronos/policies/cpu-memory.yaml').read_text())
        for title, text in RECIPES.items():
            jsonschema.validate(policy | yaml.safe_load(text), schema.document())
            self.assertIn('rules', yaml.safe_load(text), title)

    def test_without_rules_every_wish_is_unfulfilled(self):
        """So that each of the others shows what its rule does."""
        hosts = {name: host for name, (host, _traits) in SERVERS.items()}
        self.assertEqual(12, len(RECIPES))
        self.assertNotIn(hosts['ora-1'], ('cmp1', 'cmp2'))
        self.assertEqual(ROOM[hosts['pair-1']], ROOM[hosts['pair-2']])
        self.assertNotEqual(RACK[hosts['app-1']], RACK[hosts['app-2']])

    def test_licences(self):
        _report, hosts = self.ends('Licences')
        self.assertLessEqual({hosts['ora-1'], hosts['ora-2']}, {'cmp1', 'cmp2'})

    def test_licences_for_a_number_of_hosts(self):
        _report, hosts = self.ends('Licences for a number of hosts')
        self.assertEqual(2, len({hosts[f'win-{n}'] for n in (1, 2, 3)}))

    def test_hosts_that_are_kept_free(self):
        _report, hosts = self.ends('Hosts that are kept free of some servers')
        self.assertNotIn(hosts['build-1'], ('cmp7', 'cmp8'))

    def test_business_hours(self):
        report, _hosts = self.ends('Business hours')
        self.assertEqual(set(), {'db-1', 'db-2'} & self.moved)
        self.assertIn('db-at-night moves it only in its windows; the next opens at '
                      '2026-11-20T19:00:00', self.held(report)['db-1'])

    def test_racks(self):
        _report, hosts = self.ends('Racks')
        self.assertEqual(4, len({RACK[hosts[f'web-{n}']] for n in (1, 2, 3, 4)}))

    def test_the_domain_of_a_server_that_a_rule_holds_is_named(self):
        there = ['db-1', 'db-2', 'web-4', 'pair-2', 'legacy-1', 'phone-1']
        report = self.planned([
            {'name': 'in-r2', 'must_run_on': {'domain': {'rack': 'r2'}},
             'servers': {'uuid': [*there]}},
            {'name': 'on-cmp3', 'must_run_on': {'hosts': 'cmp3'}, 'servers': {'uuid': [*there]}},
            {'name': 'rooms', 'keep_apart': 'room', 'servers': {'uuid': ['db-1', 'app-1']}}])
        self.assertEqual((('room', 2), ('rack', 4)), report.domains)
        held = self.held(report)
        self.assertEqual({*there}, {*held})
        in_rack = 'rules in-r2 and on-cmp3; for rule in-r2 it is in room=a, rack=r2'
        self.assertEqual(in_rack, held['db-2'])
        self.assertEqual('rules in-r2 and on-cmp3 and rule rooms; for rule in-r2 it is in '
                         'room=a, rack=r2; for rule rooms it is in room=a', held['db-1'])

    def test_pairs_of_sites(self):
        _report, hosts = self.ends('Pairs of sites')
        self.assertNotEqual(ROOM[hosts['pair-1']], ROOM[hosts['pair-2']])

    def test_prefer_new_hosts(self):
        _report, hosts = self.ends('Prefer new hosts')
        there = collections.Counter(host in ('cmp7', 'cmp8') for host in hosts.values())
        self.assertGreater(there[True], 8)

    def test_noisy_neighbours_apart(self):
        _report, hosts = self.ends('Noisy neighbours apart')
        self.assertNotEqual(hosts['noisy-1'], hosts['noisy-2'])

    def test_servers_near_each_other(self):
        _report, hosts = self.ends('Servers near each other')
        self.assertEqual(RACK[hosts['app-1']], RACK[hosts['app-2']])

    def test_servers_that_are_never_moved(self):
        report, hosts = self.ends('Servers that are never moved')
        self.assertEqual('cmp3', hosts['legacy-1'])
        self.assertEqual({'legacy-1': 'rule legacy never moves it'}, self.held(report))

    def test_servers_that_are_rarely_moved(self):
        report, _hosts = self.ends('Servers that are rarely moved')
        self.assertLessEqual(sum(move.instance_uuid == 'phone-1' for move in report.moves), 1)

    def test_servers_that_nova_does_not_migrate_live(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        recording, policies = replay.read(RecipeCloud(yaml.safe_load(
            RECIPES['Servers that Nova does not migrate live'])['rules']).write(folder))
        cloud = recording.snapshot
        cold = objects.Movability(can=objects.COLD, why='a PCI device')
        cloud = dataclasses.replace(cloud, instances=tuple(
            dataclasses.replace(each, live=cold) if each.uuid in ('gpu-1', 'build-1') else each
            for each in cloud.instances))
        found = planning.plan(
            cloud, policies, EngineOptions(aggregates=('all',)),
            PlannerPorts(source=Silent(), clock=lambda: 0.0, now=0.0), 'all', [states.Drain(
                uuid='d', host='cmp8', aggregate='all', state=states.DRAINING, requested_by='jane',
                requested_at=datetime.datetime(2026, 11, 20, tzinfo=datetime.UTC))])
        self.assertEqual({'cmp8': {'gpu-1': 'a PCI device (rule gpu)'}}, found.to_stop)
        self.assertEqual({'build-1'}, found.blocked['cmp8'].keys())
