"""``tools/demo.sh``: a checkout has an environment of its own, which no other demo takes away."""

import os
import pathlib
import shutil
import subprocess
import time

import fixtures
import testtools

ROOT = pathlib.Path(__file__).parents[2]

PYTHON = """#!/bin/sh
# A Python that makes environments of itself, and a demo that lasts until a file is there.
case "$*" in
    *'-m venv'*) for folder; do :; done; mkdir -p "$folder/bin"; cp "$0" "$folder/bin/python" ;;
    *tests.e2e.demo*) echo "$0" >> "$RUNNING"; while [ ! -e "$END" ]; do sleep 0.05; done ;;
esac
"""
FILES = ('requirements.txt', 'constraints.txt', 'setup.cfg', 'kronos_nova/client/setup.cfg',
         'tests/e2e/requirements.txt', 'tools/demo.sh')


class EnvironmentTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.running, self.end = self.folder / 'running', self.folder / 'end'
        self.running.touch()
        self.programs = self.folder / 'bin'
        self.write(self.programs / 'id', '#!/bin/sh\necho 0\n')
        self.write(self.programs / 'python3', PYTHON)

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def checkout(self, name):
        folder = self.folder / name
        for each in FILES:
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / each, folder / each)
        self.write(folder / 'tools/machine.sh', 'debian_packages() { :; }\n')
        return folder

    def begin(self, checkout):
        begun = subprocess.Popen(
            ['/bin/sh', checkout / 'tools/demo.sh'], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env={
                'PATH': f'{self.programs}:{os.environ["PATH"]}', 'HOME': str(self.folder),
                'PYTHON': str(self.programs / 'python3'), 'RUNNING': str(self.running),
                'END': str(self.end)})
        self.addCleanup(self.finish, begun)
        return begun

    def finish(self, demo):
        self.end.touch()
        demo.communicate(timeout=30)

    def wait_for(self, count):
        """The environments of the demos that run, once there are so many."""
        ends = time.monotonic() + 30
        while (found := self.running.read_text().splitlines()) and len(found) < count or not found:
            if time.monotonic() > ends:
                raise AssertionError(f'{len(found)} of {count} demos run')
            time.sleep(0.05)
        return found

    def test_demos_of_two_checkouts_run_side_by_side(self):
        demos = [self.begin(self.checkout(name)) for name in ('one', 'two')]
        found = self.wait_for(2)
        self.assertEqual(2, len({*found}))
        self.assertTrue(all(map(os.path.exists, found)))
        self.end.touch()
        self.assertEqual([0, 0], [demo.wait(30) for demo in demos])

    def test_demos_of_one_checkout_share_what_was_installed_once(self):
        checkout = self.checkout('one')
        demos = [self.begin(checkout), self.begin(checkout)]
        self.assertEqual(1, len({*self.wait_for(2)}))
        self.end.touch()
        said = [demo.communicate(timeout=30)[0] for demo in demos]
        self.assertEqual(1, sum('installing' in text for text in said))

    def test_an_environment_is_not_made_again_under_a_demo_that_runs(self):
        checkout = self.checkout('one')
        self.begin(checkout)
        [python] = self.wait_for(1)
        with open(checkout / 'requirements.txt', 'a') as file:
            file.write('another\n')
        other = self.begin(checkout)
        said, _none = other.communicate(timeout=30)
        self.assertEqual((2, True), (other.returncode, 'End it first' in said))
        self.assertTrue(os.path.exists(python))
        self.end.touch()
