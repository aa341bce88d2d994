"""A live cloud: checked, recorded, and planned again from the recording."""

import json
import pathlib
import subprocess
import sys

import fixtures
import testtools

from tests.e2e import box
from tests.e2e.box import auth
from tests.e2e.box import processes
from tests.e2e.box.settings import command

POLICIES = """policies:
  - name: memory
    mode: spread
    weight: 1.0
    threshold: 0.02
    imbalance_query: 1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes
    vm_profile_query: |
      libvirt_domain_info_memory_usage_bytes
        / on (host) group_left () node_memory_MemTotal_bytes
"""
# Six on compute1 and one on compute2 use memory that does not change while the test looks.
SERVERS = {f'web{number}': ('compute1', 0.1 * number) for number in range(1, 7)}
SERVERS['web7'] = ('compute2', 0.9)


class RecordTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        policies = self.folder / 'policies.yaml'
        policies.write_text(POLICIES)
        self.cloud = box.Cloud(box.Settings(computes=3, kronos=True, nova_conf={'kronos': {
            'policies_file': policies, 'aggregates': 'rack', 'evaluation_interval': 5,
            'automation': 'observe', 'cooldown': 0, 'restraint': 0}}))
        self.addCleanup(self.cloud.stop)
        self.cloud.start()
        self.conf = self.folder / 'api.conf'
        self.conf.write_text(
            f'[kronos_nova]\nauth_type = admin_token\ntoken = {auth.TOKEN}\n'
            f'endpoint = {self.cloud.nova_api.url}\n'
            f'endpoint_override = {self.cloud.nova_api.url}/v2.1\n'
            f'placement_endpoint_override = {self.cloud.placement.url}\n')

    def run_command(self, name, *arguments):
        """Exit status and what was printed."""
        done = subprocess.run(
            [*command('kronos-nova', name), *map(str, arguments)],
            capture_output=True, text=True, timeout=120)
        print(done.stderr, file=sys.stderr)
        return done.returncode, done.stdout

    @property
    def configured(self):
        return '--config-file', self.cloud.nova.conf, '--config-file', self.conf

    def populate(self):
        client = self.cloud.client
        client.create_flavor('m1.small', vcpus=1, ram=8192)
        client.create_aggregate('rack', self.cloud.settings.hosts())
        group = client.create_server_group('db', 'anti-affinity')
        self.cloud.monitoring.set_load(
            {name: {'cpu': 0.1, 'memory': memory} for name, (_, memory) in SERVERS.items()})
        uuids = {name: self.cloud.boot(name, host=host, group=group if name == 'web7' else None)[0]
                 for name, (host, _) in SERVERS.items()}
        client.compute('POST', f'/servers/{uuids["web1"]}/action', json={'lock': None})
        client.compute('POST', f'/servers/{uuids["web6"]}/metadata',
                       json={'metadata': {'kronos:move': 'never'}})
        return uuids

    def plans(self):
        return json.loads(self.cloud.manage('plan', 'list', '-f', 'json'))

    def plan_of_the_conductor(self):
        """The newest that was made, or made again, once everything was as it is now."""
        known = {(plan['UUID'], plan['Last made at']) for plan in self.plans()}

        def another():
            return [plan for plan in self.plans()[:1]
                    if (plan['UUID'], plan['Last made at']) not in known]
        newest, = processes.wait_for(another, 120, 'the conductor plans nothing', interval=1)
        return json.loads(self.cloud.manage('plan', 'show', newest['UUID'], '-f', 'json'))

    def test_a_recorded_cloud_is_planned_as_the_conductor_planned_it(self):
        uuids = self.populate()
        self.cloud.monitoring.wait_series('libvirt_domain_info_memory_usage_bytes', len(SERVERS))

        status, out = self.run_command('kronos-test-config', *self.configured, '-f', 'json')
        report = json.loads(out)
        # There is no nova-compute's file, and no kronos-api.
        self.assertEqual(['claims', 'api'], [row['check'] for row in report['checks']
                                             if row['state'] == 'not checked'])
        self.assertEqual([], [row for row in report['checks'] + report['queries']
                              if row['state'] not in ('ok', 'not checked')])
        self.assertEqual(0, status)
        self.assertEqual([(3, 3), (7, 7)],
                         [(row['matched'], row['expected']) for row in report['queries']])

        planned = self.plan_of_the_conductor()
        self.assertNotEqual([], planned['moves'])
        moved = {move['instance_uuid'] for move in planned['moves']}
        self.assertNotIn(uuids['web1'], moved)
        self.assertNotIn(uuids['web6'], moved)
        for arguments in ((), ('--anonymise',)):
            snapshot = self.folder / f'snapshot{len(arguments)}'
            status, out = self.run_command('kronos-record', snapshot, *self.configured, *arguments)
            self.assertEqual(0, status)
            self.assertRegex(out, r'instances +\| 7 ')
            status, out = self.run_command('kronos-replay', snapshot, '-f', 'json')
            self.assertEqual(0, status)
            rack = json.loads(out)['aggregates'][0]
            self.assertAlmostEqual(planned['policies'][0]['imbalance_before'],
                                   rack['policies'][0]['imbalance_before'], places=6)
            self.assertEqual(len(planned['moves']), len(rack['moves']))
            if not arguments:
                keys = ('order', 'instance_uuid', 'source', 'destination', 'phase')
                self.assertEqual([[move[key] for key in keys] for move in planned['moves']],
                                 [[move[key] for key in keys] for move in rack['moves']])
