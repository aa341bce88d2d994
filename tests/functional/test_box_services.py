"""The start and the end of services of the cloud in a box."""

import os
import pathlib
import signal
import subprocess
import sys

import fixtures
import requests
import testtools

from tests.e2e.box import processes
from tests.e2e.box.settings import Ports

SLOW = """import os, pathlib, time
while not pathlib.Path(os.environ['LOADED']).exists():
    time.sleep(0.05)
def application(environ, start_response):
    start_response('200 OK', [])
    return [str(os.getpid()).encode()]
"""

FORKS_IN_A_THREAD = """import subprocess, threading, time
threading.Thread(target=lambda: (subprocess.Popen(['sleep', '60']), time.sleep(60))).start()
"""

MAKES_DATABASES = """
from tests.e2e.box import schema
from tests.e2e.box.settings import Ports
schema.saved_databases(Ports(), 60, print)
"""


class ServeTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.root / 'slow.py').write_text(SLOW)
        self.port = Ports().take()

    def test_who_asks_is_refused_until_the_application_is_there(self):
        loaded = self.root / 'loaded'
        process = processes.Process(
            'slow', [sys.executable, '-m', 'tests.e2e.box.serve', 'slow', self.port,
                     self.root / 'access.log', 2], self.root,
            env={'PYTHONPATH': f'{self.root}{os.pathsep}{processes.PYTHONPATH}',
                 'LOADED': str(loaded)})
        process.start()
        self.addCleanup(process.kill)
        # The second is made when the first has bound the port.
        processes.wait_for(process.children, 30, 'there is one process only')
        self.assertRaises(requests.ConnectionError, self.ask)
        loaded.touch()
        processes.wait_for(self.is_served, 60, 'no server answers')

    def ask(self):
        return requests.get(f'http://127.0.0.1:{self.port}/', timeout=5)

    def is_served(self):
        try:
            return self.ask().ok
        except requests.ConnectionError:
            return False


class ChildrenTest(testtools.TestCase):
    def test_workers_that_a_thread_of_a_service_forked_are_found(self):
        process = processes.Process(
            'forks', [sys.executable, '-c', FORKS_IN_A_THREAD],
            pathlib.Path(self.useFixture(fixtures.TempDir()).path))
        process.start()
        self.addCleanup(process.kill)
        processes.wait_for(process.children, 30, 'there is no child')


class FirstStartTest(testtools.TestCase):
    def test_a_script_that_is_killed_while_it_makes_the_databases_leaves_nothing(self):
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        script = subprocess.Popen(
            [sys.executable, '-c', MAKES_DATABASES], cwd=processes.SOURCE,
            env={**os.environ, 'TMPDIR': str(root), 'KRONOS_BOX_CACHE': str(root / 'cache')})
        self.addCleanup(script.kill)
        processes.wait_for(lambda: [*root.glob('*/run/mariadb.pid')], 60, 'no MariaDB')
        [record] = root.glob('*/run/mariadb.pid')
        pid, started = map(int, record.read_text().split())
        os.kill(script.pid, signal.SIGKILL)
        processes.wait_for(lambda: processes.start_time(pid) != started, 60, 'MariaDB is left')
        processes.wait_for(lambda: not [*root.glob('kronos-*')], 60,
                           lambda: f'{[*root.iterdir()]} are left')


class FolderTest(testtools.TestCase):
    """A box deletes its folder, and never anybody else's."""

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.root / 'letters').write_text('Dear Jane')

    def refusal(self, *arguments):
        done = subprocess.run([sys.executable, '-m', 'tests.e2e.box', *map(str, arguments)],
                              cwd=processes.SOURCE, capture_output=True, text=True, timeout=60)
        self.assertEqual(1, done.returncode, done)
        self.assertEqual(['letters'], os.listdir(self.root))
        return done.stderr

    def test_what_is_no_box_is_not_ended(self):
        self.assertIn('not the folder of a box', self.refusal('stop', self.root))

    def test_a_box_has_no_folder_where_something_is(self):
        self.assertIn('is there already', self.refusal('start', '--root', self.root))

    def test_nor_one_with_a_name_that_does_not_do(self):
        for name in ('x' * 99, "Jane's box", 'a:b'):
            self.assertIn('does not do', self.refusal('start', '--root', self.root / name))
