"""``kronos-record`` against a cloud's API and a Prometheus over real HTTP, read back."""

import contextlib
import io
import json
import os
import pathlib
import re
import urllib.parse

import fixtures
import testtools

from kronos_nova import exception
from kronos_nova import policies
from kronos_nova.cmd import record
from kronos_nova.cycle.metrics import MetricsReader
from kronos_nova.cycle.metrics import measure_guests
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.objects.metrics import IMBALANCE
from kronos_nova.objects.metrics import VM_PROFILE
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.record import reader
from kronos_nova.record import replay
from kronos_nova.record.metrics import RecordedMetrics
from tests.unit.db.fixtures import ControlDatabase
from tests.unit.fakes_web_server import WebServer
from tests.unit.inventory.fakes_public_api import Cloud
from tests.unit.inventory.fakes_public_api import server
from tests.unit.inventory.fakes_public_api import service

POLICIES = """# the cloud of acme
policies:
  - name: cpu
    mode: spread
    weight: 1.0
    threshold: 0.1
    imbalance_query: 'load{site="acme", host=~"cmp1|cmp2|rate"}'
    vm_profile_query: weight
    vm_profile_label: domain
    vm_profile_label_type: name
"""
OF_MOVES = """
    forecast:
      history_query: 'hourly{site="acme"}'
migration:
  dirty_rate_query: 'dirty{site="acme"}'
  link_query: 'link{site="acme"}'
  label: domain_uuid
"""
"""Other parts that a policies file may have."""

REFUSED = b'{"status": "error", "errorType": "bad_data", "error": "parse error"}'

NEVER = replay.Durations(aggregate=0, instance=0, quarantine=0)


def vector(*series):
    return json.dumps({'status': 'success', 'data': {'resultType': 'vector', 'result': [
        {'metric': labels, 'value': [1700000000, str(value)]} for labels, value in series]}},
        indent=3).encode()


class RecordTestCase(testtools.TestCase):
    kronos = ''

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(ControlDatabase()).database
        self.cloud = Cloud()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.target = self.folder / 'snapshot'
        self.answers = {
            'load': vector(({'host': 'cmp1', 'site': 'acme'}, 0.7), ({'host': 'cmp2'}, 0.1),
                           ({'host': 'ceph1'}, 0.2)),
            'weight': vector(*(({'domain': f'instance-{n:08x}', 'project_name': 'secret'}, 0.1 * n)
                               for n in range(1, 4)))}
        api = self.useFixture(self.cloud.fixture()).url
        prometheus = self.useFixture(WebServer(self.answer)).url
        (self.folder / 'policies.yaml').write_text(POLICIES)
        (self.folder / 'kronos.sqlite').symlink_to(self.database.engine.url.database)
        (self.folder / 'nova.conf').write_text(
            f'[DEFAULT]\nstate_path = {self.folder}\n'
            f'[kronos]\npolicies_file = {self.folder}/policies.yaml\n{self.kronos}'
            f'[kronos_prometheus]\nurl = {prometheus}\nmax_retries = 0\n'
            '[kronos_nova]\nauth_type = admin_token\ntoken = t\n'
            f'endpoint = {api}\nendpoint_override = {api}/compute/v2.1\n'
            f'placement_endpoint_override = {api}/placement\n')

    def ask_of_moves(self):
        self.uuid = self.cloud.servers[0]['id']
        (self.folder / 'policies.yaml').write_text(POLICIES + OF_MOVES)
        self.answers |= {
            'dirty': vector(({'domain_uuid': self.uuid, 'site': 'acme'}, 512 * 2**20)),
            'link': vector(({'host': 'cmp1', 'site': 'acme'}, 1250 * 2**20))}

    def answer(self, handler):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query)['query'][0]
        body = self.answers[re.match(r'\w+', query)[0]]
        handler.send_response(400 if body is REFUSED else 200)
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def run_command(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = record.main([str(self.target), '--config-file',
                                  str(self.folder / 'nova.conf'), *args])
        return status, out.getvalue(), err.getvalue()


class RecordTest(RecordTestCase):
    def test_what_is_recorded_is_read_back(self):
        status, out, _ = self.run_command('--cloud', 'test', '-f', 'json')
        self.assertEqual(0, status)
        self.assertEqual((3, 3, 1, 3, 2), tuple(json.loads(out)[name] for name in (
            'hosts', 'instances', 'aggregates', 'server_groups', 'answers_of_prometheus')))
        recording = reader.read(self.target)
        self.assertEqual(['cmp1', 'cmp2', 'cmp3'], [h.name for h in recording.snapshot.hosts])
        self.assertEqual({'MEMORY_MB': 2048, 'VCPU': 2}, recording.snapshot.instances[0].resources)
        source = RecordedMetrics(self.target)
        source.check(policies.load(self.target / 'policies.yaml'))
        self.assertEqual(3, len(source.query(MetricQuery('cpu', IMBALANCE, '')).samples))
        self.assertEqual(3, len(source.query(MetricQuery('cpu', VM_PROFILE, '')).samples))

    def test_the_files_are_those_of_the_format(self):
        self.run_command('--cloud', 'test')
        files = sorted(str(path.relative_to(self.target))
                       for path in self.target.rglob('*') if path.is_file())
        self.assertEqual(['cooldowns.json', 'history.json', 'inventory.json', 'meta.json',
                          'metrics/cpu/imbalance.json', 'metrics/cpu/vm_profile.json',
                          'options.json', 'policies.yaml'], files)
        self.assertEqual(self.answers['load'],
                         (self.target / 'metrics/cpu/imbalance.json').read_bytes())
        self.assertEqual(POLICIES, (self.target / 'policies.yaml').read_text())
        self.assertEqual({'aggregate_cooldowns': {}, 'instance_cooldowns': {},
                          'instance_quarantines': {}},
                         json.loads((self.target / 'cooldowns.json').read_text()))
        meta = json.loads((self.target / 'meta.json').read_text())
        self.assertEqual((3, 'test'), (meta['format'], meta['cloud']))

    def test_a_cloud_without_a_control_database_is_recorded_without_its_past(self):
        (self.folder / 'kronos.sqlite').unlink()
        status, _, err = self.run_command()
        self.assertEqual(0, status)
        self.assertIn('history.json is left out, and a replay expects every load to stay', err)
        self.assertFalse((self.target / 'history.json').exists())
        self.assertFalse(reader.read(self.target).has_history)

    def test_the_same_cloud_gives_the_same_inventory_in_any_order(self):
        self.run_command()
        first = (self.target / 'inventory.json').read_bytes()
        for table in (self.cloud.servers, self.cloud.hypervisors, self.cloud.services):
            table.reverse()
        self.target = self.folder / 'again'
        self.run_command()
        self.assertEqual(first, (self.target / 'inventory.json').read_bytes())

    def test_a_folder_with_something_in_it_is_left_alone(self):
        self.target.mkdir()
        (self.target / 'mine').write_text('')
        status, _, err = self.run_command()
        self.assertEqual(1, status)
        self.assertIn('is not empty', err)
        self.assertEqual(['mine'], os.listdir(self.target))

    def test_what_is_asked_of_moves_is_recorded_and_goes_into_a_replay(self):
        self.ask_of_moves()
        self.run_command()
        recording, policy_set = replay.read(self.target)
        self.assertEqual(self.answers['dirty'],
                         (self.target / 'metrics/_migration/dirty_rate.json').read_bytes())
        measured = measure_guests(
            policy_set.migration, MetricsReader(recording.metrics))
        self.assertEqual(({self.uuid: 512.0}, {'cmp1': 1250.0}, {}),
                         (measured.dirty, measured.links, measured.used))

    def test_an_answer_of_moves_that_is_none_is_named_before_a_replay(self):
        self.ask_of_moves()
        self.run_command()
        (self.target / 'metrics/_migration/link.json').write_text('<html>')
        error = self.assertRaises(exception.SnapshotError, replay.read, self.target)
        self.assertIn('metrics/_migration/link.json', str(error))

    def test_nothing_is_written_when_something_cannot_be_read(self):
        self.answers['weight'] = b'<html>'
        status, _, err = self.run_command()
        self.assertEqual(1, status)
        self.assertIn('HTML', err)
        self.answers['weight'] = self.answers['load']
        self.cloud.refuse['/compute/v2.1/os-services'] = (500, b'{}')
        self.assertEqual(1, self.run_command()[0])
        self.assertFalse(self.target.exists())

    def test_wrong_promql_is_reported_with_its_place(self):
        self.ask_of_moves()
        for name, place in (('weight', 'policy cpu, vm_profile_query: status 400'),
                            ('link', 'migration.link_query: status 400')):
            with self.subTest(name):
                known, self.answers[name] = self.answers[name], REFUSED
                status, _, err = self.run_command()
                self.assertEqual((1, False), (status, self.target.exists()))
                self.assertIn(place, err)
                self.answers[name] = known

    def test_options_that_are_no_good(self):
        for text, said in (('', 'auth_type'), ('[kronos_prometheus]\nurl = ftp://x\n', 'ftp')):
            (self.folder / 'nova.conf').write_text(
                text + f'[kronos]\npolicies_file = {self.folder}/policies.yaml\n')
            status, _, err = self.run_command()
            self.assertEqual(1, status)
            self.assertIn(said, err)


class AnonymiseTest(RecordTestCase):
    def setUp(self):
        super().setUp()
        self.cloud.servers = [
            server(n, host, name=f'acme-{n}', tenant_id='acme-project',
                   metadata={'owner': 'jane@acme', 'kronos:move': 'never'})
            for n, host in ((1, 'cmp2'), (2, 'cmp1'), (3, 'cmp1'))]
        self.cloud.aggregates[0]['metadata']['filter_tenant_id'] = 'acme-project,other'
        self.cloud.groups[0].update(
            name='acme-db', members=[self.cloud.servers[0]['id'], 'deleted-acme-server'])

    def anonymised(self):
        self.assertEqual((0, ''), self.run_command('--anonymise')[::2])
        return reader.read(self.target).snapshot

    def test_no_name_uuid_or_project_is_left_in_any_file(self):
        originals = ['acme', 'cmp1', 'cmp2', 'ceph1', 'web1', 'jane', 'secret', 'gpu', 'az1',
                     *(s['id'] for s in self.cloud.servers),
                     *(h['id'] for h in self.cloud.hypervisors)]
        self.anonymised()
        paths = [*self.target.rglob('*.*')]
        self.assertGreater(len(paths), 3)
        for path in paths:
            text = path.read_text()
            for original in originals:
                self.assertNotIn(original, text, path)

    def test_nor_by_what_is_asked_of_moves_and_of_the_past(self):
        self.ask_of_moves()
        self.test_no_name_uuid_or_project_is_left_in_any_file()
        recording, policy_set = replay.read(self.target)
        instance, host = recording.snapshot.instances[0], recording.snapshot.hosts[0]
        measured = measure_guests(
            policy_set.migration, MetricsReader(recording.metrics))
        self.assertEqual(({instance.uuid: 512.0}, {host.name: 1250.0}),
                         (measured.dirty, measured.links))

    def test_what_a_plan_depends_on_is_the_same(self):
        snapshot = self.anonymised()
        source = RecordedMetrics(self.target)
        self.assertEqual(['host-00001', 'host-00002', 'host-00003'],
                         [host.name for host in snapshot.hosts])
        self.assertEqual(['host-00002', 'host-00001', 'host-00001'],
                         [instance.host for instance in snapshot.instances])
        self.assertEqual({'kronos:move': 'never'}, snapshot.instances[0].metadata)
        aggregate, = snapshot.aggregates
        project = snapshot.instances[0].project_id
        self.assertEqual({'availability_zone': 'zone-1', 'filter_tenant_id': f'{project},value-1'},
                         aggregate.metadata)
        self.assertEqual(snapshot.instances[0].uuid, snapshot.server_groups[0].members[0])
        vector = source.query(MetricQuery('cpu', VM_PROFILE, ''))
        self.assertEqual([({'domain': instance.name}, number * 0.1)
                          for number, instance in enumerate(snapshot.instances, 1)],
                         [(s.labels, s.value) for s in vector.samples])
        vector = source.query(MetricQuery('cpu', IMBALANCE, ''))
        self.assertEqual([({'host': 'host-00001'}, 0.7), ({'host': 'host-00002'}, 0.1),
                          ({'host': 'unknown-1'}, 0.2)],
                         [(s.labels, s.value) for s in vector.samples])

    def test_policies_stay_but_for_their_promql(self):
        self.anonymised()
        policy, = policies.load(self.target / 'policies.yaml').policies
        self.assertEqual(('cpu', 0.1, 'domain', 'anonymised', 'anonymised'), (
            policy.name, policy.threshold, policy.vm_profile_label, policy.imbalance_query,
            policy.vm_profile_query))

    def test_buffers_stay_under_other_names(self):
        with (self.folder / 'policies.yaml').open('a') as file:
            file.write('buffers:\n'
                       '- {name: acme-huge, aggregate: gpu, flavor: acme.huge, keep: 2}\n'
                       '- {name: acme-gone, aggregate: acme, flavor: "8:1024", keep: "5%"}\n')
        self.test_no_name_uuid_or_project_is_left_in_any_file()
        [aggregate] = reader.read(self.target).snapshot.aggregates
        self.assertEqual(
            [('buffer-001', aggregate.name, 'unknown-1', 2),
             ('buffer-002', 'unknown-1', '8:1024', '5%')],
            [(each.name, each.aggregate, each.flavor, each.keep)
             for each in policies.load(self.target / 'policies.yaml').buffers])

    def test_an_answer_that_is_not_whole_stays_so(self):
        """Plans do not use it, whatever names its warning has."""
        whole = json.loads(self.answers['load'])
        for number, (doubt, is_used) in enumerate((
                ({}, True), ({'warnings': ['store acme-7 did not answer']}, False),
                ({'warnings': ['PromQL info: metric might not be a counter']}, True),
                ({'isPartial': True}, False))):
            with self.subTest(doubt):
                self.answers['load'] = json.dumps(whole | doubt).encode()
                used = []
                for arguments in ((), ('--anonymise',)):
                    self.target = self.folder / f'{number}{len(arguments)}'
                    self.assertEqual(0, self.run_command(*arguments)[0])
                    recording, policy_set = replay.read(self.target)
                    report = replay.replay(recording, policy_set, EngineOptions(), NEVER)
                    used.append(any(policy.state == 'ok' for each in report.aggregates
                                    for policy in each.policies))
                self.assertEqual([is_used] * 2, used)
                self.assertNotIn('acme', (self.target / 'metrics/cpu/imbalance.json').read_text())

    def test_the_plan_is_the_same_under_other_names(self):
        self.compare_plans((f'instance-{n:08x}', {}, 0.2) for n in range(1, 9))

    def test_the_plan_is_the_same_if_another_cloud_has_servers_of_the_same_names(self):
        """Two clouds share a Prometheus. A label tells the hosts of one from those of the other."""
        self.compare_plans((f'instance-{n:08x}', {'host': host}, load) for n in range(1, 9)
                           for host, load in ((f'cmp{1 + n % 2}', 0.2), ('acme-other', 0.9)))
        self.assertNotIn('acme-other', (self.target / 'metrics/cpu/vm_profile.json').read_text())

    def compare_plans(self, weights):
        """Compare the plans of a snapshot and of an anonymised snapshot of the same cloud.

        :param weights: (name of the libvirt domain, further labels, load) of each series
        """
        self.cloud.services = [service(f'cmp{n}') for n in (1, 2, 3)]
        self.cloud.servers = [server(n, f'cmp{1 + n % 2}') for n in range(1, 9)]
        self.answers['load'] = vector(*(({'host': f'cmp{n}'}, load)
                                        for n, load in ((1, 0.8), (2, 0.8), (3, 0.0))))
        self.answers['weight'] = vector(*(({'domain': name, **labels}, load)
                                          for name, labels, load in weights))
        plans = []
        for arguments in ((), ('--anonymise',)):
            self.target = self.folder / f'snapshot{len(arguments)}'
            self.assertEqual(0, self.run_command(*arguments)[0])
            recording, policy_set = replay.read(self.target, None)
            report = replay.replay(recording, policy_set, EngineOptions(), NEVER)
            hosts = sorted(host.name for host in recording.snapshot.hosts)
            instances = sorted(instance.uuid for instance in recording.snapshot.instances)
            plans.append([(instances.index(move.instance_uuid), hosts.index(move.source),
                           hosts.index(move.destination), move.combined_after)
                          for aggregate in report.aggregates for move in aggregate.moves])
        self.assertNotEqual([], plans[0])
        self.assertEqual(*plans)
