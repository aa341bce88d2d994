"""``kronos-test-config`` on the hosts of a cloud that works, whatever they are and run in."""

import json
import subprocess

import testtools

from tests.e2e import box
from tests.e2e.box import auth
from tests.e2e.box import conffile
from tests.e2e.box.settings import command
from tests.e2e.executor.test_daemons import POLICIES

OF_NOVA = {'nova', 'scope', 'names', 'exporters', 'loads', 'rules', 'buffers'}
ON_CONDUCTOR = {'api', 'claims'}
ON_COMPUTE = {*OF_NOVA, 'api', 'windows', 'policies', 'prometheus', 'noise', 'placement',
              'database'}
ON_DAEMON = {'api', 'claims', 'plugin'}


class InstallsTest(testtools.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cloud = box.Cloud(box.Settings(computes=2, kronos=True))
        cls.addClassCleanup(cls.cloud.stop)
        policies = cls.cloud.root / 'policies.yaml'
        cls.cloud.root.mkdir(exist_ok=True)
        policies.write_text(POLICIES)
        cls.cloud.configure(nova_conf={'kronos': {
            'aggregates': 'rack', 'policies_file': policies}})
        cls.cloud.start()
        client = cls.cloud.client
        client.create_aggregate('rack', cls.cloud.settings.hosts())
        client.create_flavor('m1.small', vcpus=1, ram=64)
        for host in cls.cloud.settings.hosts():
            cls.cloud.boot(f'on {host}', host=host)
        cls.cloud.monitoring.wait_series('libvirt_domain_info_virtual_cpus', 2)

    def configured(self, name, sections):
        """A file for ``--config-file``."""
        return conffile.write(self.cloud.root / 'etc' / f'{name}.conf', sections)

    def examine(self, *files, arguments=(), expected=0):
        """(what it took the host for, checks that were not made)"""
        done = subprocess.run(
            [*command('kronos-nova', 'kronos-test-config'), '-f', 'json', *arguments,
             *(f'--config-file={path}' for path in files)], capture_output=True, text=True)
        self.assertEqual((expected, ''), (done.returncode, done.stderr), done.stdout)
        found = json.loads(done.stdout)
        for row in found['queries'] if expected == 0 else ():
            self.assertEqual(('ok', 2, 2), (row['state'], row['matched'], row['expected']), row)
        return found['role'], {row['check'] for row in found['checks'] if row['state'] != 'ok'}

    def both(self, *files, expected):
        for backend in ('threading', 'eventlet'):
            more = self.configured(backend, {'DEFAULT': {'concurrency_backend': backend}})
            self.assertEqual(expected, self.examine(*files, more), backend)

    def test_a_conductors(self):
        nova = self.cloud.nova
        self.both(nova.conf, nova.conductors[0].own_conf, expected=('conductor', ON_CONDUCTOR))

    def test_a_computes(self):
        nova = self.cloud.nova
        self.both(nova.compute_conf, nova.computes['compute1'].own_conf,
                  expected=('compute', ON_COMPUTE))

    def test_a_daemons(self):
        url = self.cloud.nova_api.url
        own = self.configured('kronos', {
            'DEFAULT': {'transport_url': self.cloud.broker.url},
            'kronos': self.cloud.settings.nova_conf['kronos'] | {'run_in': 'daemons'},
            'kronos_database': {'connection': self.cloud.database.url('kronos')},
            'kronos_prometheus': {'url': self.cloud.monitoring.url},
            'kronos_nova': {
                'auth_type': 'admin_token', 'token': auth.TOKEN, 'endpoint': url,
                'endpoint_override': f'{url}/v2.1',
                'placement_endpoint_override': self.cloud.placement.url}})
        self.both(own, expected=('daemon', ON_DAEMON))

    def test_a_conductor_whose_databases_refuse_it(self):
        spoilt = self.configured('spoilt', {
            'api_database': {'connection': self.cloud.database.url('nova_api').replace(
                'box:box', 'box:wrong')}})
        nova = self.cloud.nova
        role, failed = self.examine(nova.conf, spoilt, expected=1)
        self.assertEqual(('conductor', {*ON_CONDUCTOR, *OF_NOVA}), (role, failed))
