"""Lock files in a folder that cannot be written."""

import pathlib
import shutil

import fixtures
import testtools

from kronos_nova import exception
from kronos_nova.engine import locks


class UnwritableTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.state_path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'state'
        self.logger = self.useFixture(fixtures.FakeLogger())

    def make(self):
        made = locks.AggregateLocks(None, str(self.state_path), 'me')
        self.addCleanup(made.release_all)
        return made

    def test_a_folder_that_cannot_be_made_is_an_error_of_the_configuration(self):
        self.state_path.write_text('no folder')
        error = self.assertRaises(exception.ConfigurationError, self.make)
        self.assertIn(f'state_path: {self.state_path}/kronos-locks cannot be made', str(error))
        self.state_path.unlink()
        self.assertTrue(self.make().acquire('gpu'))

    def test_a_file_that_cannot_be_made_is_no_lock(self):
        made, folder = self.make(), self.state_path / 'kronos-locks'
        shutil.rmtree(folder)
        folder.write_text('no folder')
        self.assertFalse(made.acquire('gpu'))
        self.assertIn('The lock on aggregate gpu cannot be acquired now', self.logger.output)
        folder.unlink()
        self.assertTrue(made.acquire('gpu'))
