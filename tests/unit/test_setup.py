"""``tools/setup.sh`` never installs into the environment of another checkout."""

import pathlib
import shutil
import subprocess

import fixtures
import testtools

ROOT = pathlib.Path(__file__).parents[2]
FILES = ('requirements.txt', 'test-requirements.txt', 'doc/requirements.txt', 'constraints.txt',
         'setup.cfg', 'kronos_nova/client/setup.cfg', 'bindep.txt', 'tests/e2e/requirements.txt',
         'tools/setup.sh', 'tools/machine.sh')


class LinkedEnvironmentTest(testtools.TestCase):
    def test_a_link_is_refused_and_the_other_environment_left_as_it_is(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        other, checkout = folder / 'other', folder / 'checkout'
        other.mkdir()
        for name in FILES:
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)
        (checkout / '.venv').symlink_to(other)
        found = subprocess.run(['sh', 'tools/setup.sh', '--if-needed'], cwd=checkout, text=True,
                               capture_output=True, timeout=60)
        self.assertEqual(2, found.returncode)
        self.assertIn('.venv is a link', found.stderr)
        self.assertIn('Remove the link.', found.stderr)
        self.assertEqual([], list(other.iterdir()))
