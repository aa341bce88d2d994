"""``kronos-manage`` with a nova.conf and a state directory of its own."""

import os

import fixtures
import testtools

from kronos_nova.cmd import manage


class ManageTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.state = self.useFixture(fixtures.TempDir()).path
        self.config = os.path.join(self.state, 'nova.conf')
        self.configure(f'[DEFAULT]\nstate_path = {self.state}\n')
        self.out = self.useFixture(fixtures.StringStream('stdout')).stream
        self.err = self.useFixture(fixtures.StringStream('stderr')).stream
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.out))
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.err))

    def configure(self, text):
        with open(self.config, 'w') as config:
            config.write(text)

    def written(self, stream):
        stream.flush()
        stream.seek(0)
        return stream.read()

    def run_manage(self, *args):
        return manage.main(['--config-file', self.config, *args])
