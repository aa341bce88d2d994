"""``openstack kronos``, a kronos-api and a keystone, each a process of its own."""

import json
import pathlib
import subprocess
import sys

import fixtures
import testtools

from kronos_nova import clock
from kronos_nova.cmd import manage
from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal as db_journal
from kronos_nova.objects import plan as plans
from tests.functional.osc import keystone as ks
from tests.unit.db import fixtures as db_fixtures

API = [sys.executable, '-c', 'import sys; from kronos_nova.cmd import start; sys.exit(start.api())']


class OpenStackTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.keystone = self.useFixture(ks.Keystone())
        for name in ('ops', 'service', 'tenants'):
            self.keystone.project(name)
        self.keystone.person('kronos', 'service', 'service')
        self.keystone.person('olga', 'ops', 'kronos_operator')
        self.keystone.person('rita', 'ops', 'kronos_reader')
        self.keystone.person('tom', 'tenants', 'member')
        self.journal = db_journal.Journal(self.serve(), 'one')

    def serve(self):
        """A kronos-api in the catalogue; the Database that it reads."""
        folder, port = pathlib.Path(self.useFixture(fixtures.TempDir()).path), ks.free_port()
        config = folder / 'nova.conf'
        config.write_text(
            f'[DEFAULT]\nstate_path = {folder}\n[kronos]\naggregates = gpu\n'
            'automation = approve\n'
            f'[kronos_api]\nport = {port}\n[keystone_authtoken]\nauth_type = password\n'
            f'auth_url = {self.keystone.url}\nwww_authenticate_uri = {self.keystone.url}\n'
            f'username = kronos\npassword = {ks.PASSWORD}\nproject_name = service\n'
            'user_domain_name = Default\nproject_domain_name = Default\n')
        self.assertEqual(0, manage.main([f'--config-file={config}', 'db', 'sync', 'control']) or 0)
        self.useFixture(ks.Process(f'http://127.0.0.1:{port}/healthcheck',
                                   [*API, f'--config-file={config}'], folder / 'api.log'))
        self.keystone.service('kronos', f'http://127.0.0.1:{port}')
        engine = db_engine.create_engine(f'sqlite:///{folder}/kronos.sqlite')
        self.addCleanup(engine.dispose)
        return db_engine.Database(engine)

    def openstack(self, user, project, *words, expected=0):
        """Return the output of a user's command."""
        command = pathlib.Path(sys.executable).with_name('openstack')
        done = subprocess.run([command, 'kronos', *words], capture_output=True, text=True,
                              timeout=120, env={
            'PATH': '/bin', 'HOME': self.keystone.folder, 'OS_AUTH_URL': self.keystone.url,
            'OS_USERNAME': user, 'OS_PASSWORD': ks.PASSWORD, 'OS_PROJECT_NAME': project,
            'OS_USER_DOMAIN_NAME': 'Default', 'OS_PROJECT_DOMAIN_NAME': 'Default',
            'OS_IDENTITY_API_VERSION': '3'})
        self.assertEqual(expected, done.returncode, done.stdout + done.stderr)
        return done.stdout or done.stderr

    def test_who_may_what_is_keystones_word(self):
        now = clock.utcnow()
        uuid = self.journal.record_plan(db_fixtures.report([('vm1', 'a', 'b')]), plans.PROPOSED,
                                        now, now.replace(year=now.year + 1))
        self.assertIn('does not permit', self.openstack('tom', 'tenants', 'plan', 'list',
                                                        expected=1))
        [row] = json.loads(self.openstack('rita', 'ops', 'plan', 'list', '-f', 'json'))
        self.assertEqual((uuid, 'proposed'), (row['UUID'], row['State']))
        self.assertIn('kronos:plans:approve', self.openstack(
            'rita', 'ops', 'plan', 'approve', uuid, expected=1))
        self.openstack('olga', 'ops', 'plan', 'approve', uuid)
        self.assertEqual('olga@Default (API)', self.journal.plan(uuid).approved_by)
        self.openstack('olga', 'ops', 'automation', 'set', 'approve', expected=1)
        [row] = json.loads(self.openstack('admin', 'admin', 'automation', 'set', 'approve',
                                          '-f', 'json'))
        self.assertEqual(('approve', 'admin@Default (API)'), (row['Level'], row['Set by']))
        self.assertIn('gpu: approve', self.openstack('rita', 'ops', 'status', expected=4))
