"""The wheel is whole: installed beside a stock Nova, in an environment that has
nothing else of this repository, every part is there and starts.

The wheel is built from the sdist, so that either has everything. ``pip`` takes the packages from
its cache, which tools/setup.sh has filled.
"""

import configparser
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import venv
import zipfile

import testtools

from tools import generate

ROOT = generate.ROOT
PBR = {'PBR_VERSION': '0.0.1', **dict.fromkeys(
    ('SKIP_GENERATE_AUTHORS', 'SKIP_WRITE_GIT_CHANGELOG', 'SKIP_GENERATE_RENO'), '1')}
"""Files that pbr makes of the history, which the copy that is built does not have."""

SHARED = {'share/man/man1': 'doc/man', 'share/kronos/ansible': 'etc/ansible',
          'share/kronos/systemd': 'etc/systemd', **{
              f'share/kronos/{name}': f'etc/kronos/{name}'
              for name in ('grafana', 'policies', 'prometheus', 'samples')}}
"""Places of installed files, and their places in the repository."""

SUCCESS = 0
"""The code of oslo.upgradecheck for success."""

SECONDS = 600
"""For a command, on a busy machine."""

CLIENT = 'kronos_nova/client/'
"""The project folder of kronos-client."""

LOADS = """
import importlib.metadata
import sys
points = importlib.metadata.distribution(sys.argv[1]).entry_points
for point in points:
    point.load()
print(len(points))
"""

NOVA = """
import sys
from nova import config, service
config.parse_args(['nova-conductor', '--config-file', sys.argv[1]])
print(*(service.SERVICE_MANAGERS[name] for name in (
    'nova-conductor', 'nova-compute', 'nova-scheduler')))
"""

NOVA_CONF = """
[DEFAULT]
transport_url = fake:/
state_path = {folder}
[oslo_messaging_notifications]
driver = kronos
[kronos]
aggregates = general
policies_file = {policies}
[keystone_authtoken]
auth_type = none
"""


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=SECONDS,
                          check=False, **options)
    if done.returncode:
        raise AssertionError(f'{command} ended with {done.returncode}:\n{done.stdout[-4000:]}\n'
                             f'{done.stderr[-4000:]}')
    return done.stdout


def tracked():
    return run('git', '-C', ROOT, 'ls-files').split()


def build(folder):
    """The sdist, the wheel that is made of it, and the wheels of two releases of kronos-client.

    Of a copy: what building leaves in a folder is in the way of what runs there.
    """
    copy = folder / 'copy'
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    run('git', '-C', copy, 'init', '--quiet')
    run('git', '-C', copy, 'add', '--all')
    run(sys.executable, '-c', f'from pbr import build; build.build_sdist({str(folder)!r})',
        cwd=copy, env=os.environ | PBR)
    [sdist] = folder.glob('*.tar.gz')
    run(sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps',
        '--wheel-dir', folder, sdist)
    for version in ('0.0.1', '0.0.2'):
        run(sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps', '--wheel-dir', folder,
            copy / CLIENT, env=os.environ | PBR | {'PBR_VERSION': version})
    return sdist, *sorted(folder.glob('*.whl'), reverse=True)


def make_environment(folder, *packages):
    venv.create(folder, with_pip=True, symlinks=True)
    run(folder / 'bin/python', '-m', 'pip', 'install', '--quiet', '--no-compile',
        '--disable-pip-version-check', '--constraint', ROOT / 'constraints.txt', *packages,
        cwd=folder)


def entry_points(setup):
    """The number of entry points that a setup.cfg has."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(setup)
    return sum(len(text.strip().splitlines()) for text in parser['entry_points'].values())


def free_port():
    with socket.socket() as found:
        found.bind(('127.0.0.1', 0))
        return found.getsockname()[1]


class PackageTest(testtools.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix='kronos-package-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.sdist, cls.wheel, cls.newer_client, cls.client = build(cls.folder / 'dist')
        cls.env = cls.folder / 'env'
        make_environment(cls.env, 'nova', cls.wheel, cls.client)
        cls.conf = cls.folder / 'nova.conf'
        cls.conf.write_text(NOVA_CONF.format(
            folder=cls.folder, policies=cls.env / 'share/kronos/policies/cpu-memory.yaml'))
        cls.command('kronos-manage', '--config-file', cls.conf, 'db', 'sync', 'control')

    @classmethod
    def command(cls, name, *arguments):
        """Run a program of the environment, out of sight of the repository."""
        return run(cls.env / 'bin' / name, *arguments, cwd=cls.folder, env={
            'PATH': f'{cls.env}/bin:/usr/bin:/bin', 'HOME': str(cls.folder), 'LC_ALL': 'C.UTF-8'})

    def test_the_sdist_and_the_wheel_have_every_file(self):
        with tarfile.open(self.sdist) as archive:
            packed = {name.partition('/')[2] for name in archive.getnames()}
        self.assertEqual({'.gitignore'}, {
            name for name in tracked() if not name.startswith(CLIENT)} - packed)
        wanted = {name for name in tracked() if name.startswith('kronos_nova/')}
        ours = {name for name in wanted if name.startswith(CLIENT)}
        self.assertEqual(set(), wanted - ours - self.files_of(self.wheel))
        self.assertEqual(set(), {
            name.removeprefix(CLIENT) for name in ours if 'kronos_client/' in name
        } - self.files_of(self.client))

    def files_of(self, wheel):
        with zipfile.ZipFile(wheel) as archive:
            return {*archive.namelist()}

    def test_no_file_is_in_both_wheels(self):
        self.assertEqual(set(), self.files_of(self.wheel) & self.files_of(self.client))

    def test_a_client_of_another_release_is_not_installed_with_it(self):
        done = subprocess.run(
            [self.env / 'bin/python', '-m', 'pip', 'install', '--dry-run', '--no-index',
             self.wheel, self.newer_client], capture_output=True, text=True, timeout=SECONDS,
            check=False, cwd=self.folder)
        self.assertEqual(1, done.returncode)
        self.assertIn('kronos-client==0.0.1', done.stdout + done.stderr)

    def test_what_is_shared_is_installed(self):
        for target, source in SHARED.items():
            self.assertEqual(*({path.name for path in folder.iterdir()}
                               for folder in (ROOT / source, self.env / target)))

    def test_requirements_agree_with_novas(self):
        self.command('python', '-m', 'pip', 'check')

    def test_every_entry_point_can_be_loaded(self):
        for name, setup in (('kronos-nova', ROOT), ('kronos-client', ROOT / CLIENT)):
            self.assertEqual(str(entry_points(setup / 'setup.cfg')),
                             self.command('python', '-c', LOADS, name).split()[-1])

    def test_every_program_starts(self):
        pages = sorted((ROOT / 'doc/man').glob('*.1'))
        self.assertGreater(len(pages), 7)
        for path in pages:
            self.assertIn('--config-file', self.command(path.stem, '--help'))

    def test_nova_loads_it_by_a_line_of_nova_conf(self):
        self.assertEqual(3, self.command('python', '-c', NOVA, self.conf).count('kronos_nova.'))

    def test_it_fits_the_nova_beside_it_and_its_tables_are_made(self):
        checked = json.loads(self.command('kronos-status', '--config-file', self.conf, 'upgrade',
                                          'check', '--json'))
        self.assertEqual({SUCCESS}, {each['result'] for each in checked['checks']})
        self.assertEqual([], json.loads(self.command(
            'kronos-manage', '--config-file', self.conf, 'plan', 'list', '-f', 'json')))

    def test_samples_can_be_made_of_what_is_installed(self):
        self.assertIn('[kronos]', self.command('oslo-config-generator', '--namespace',
                                               'kronos_nova'))
        self.assertIn('kronos_reader', self.command('oslopolicy-sample-generator', '--namespace',
                                                    'kronos_nova'))

    def test_the_exporter_serves_metrics(self):
        self.assertIn('kronos_control_database_up 1.0', self.served('exporter', '/metrics'))

    def test_the_api_answers(self):
        self.assertIn('OK', self.served('api', '/healthcheck'))

    def served(self, name, path):
        """Return the first answer of a daemon."""
        # Chosen just before the start: others on the machine take free ports too.
        port = free_port()
        conf = self.folder / f'{name}.conf'
        conf.write_text(f'[kronos_{name}]\nport = {port}\n')
        with open(self.folder / f'{name}.log', 'wb') as log:
            process = subprocess.Popen(
                [self.env / f'bin/kronos-{name}', '--config-file', self.conf, '--config-file',
                 conf], stdout=log, stderr=log, cwd=self.folder)
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.send_signal, signal.SIGTERM)
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                with urllib.request.urlopen(
                        f'http://127.0.0.1:{port}{path}', timeout=30) as answer:
                    return answer.read().decode()
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.folder / f'{name}.log').read_text()) from None
                time.sleep(0.3)


class ClientTest(testtools.TestCase):
    """kronos-client on a machine that has python-openstackclient and nothing of Nova."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix='kronos-client-')))
        _sdist, cls.wheel, cls.newer, cls.client = build(cls.folder / 'dist')

    def setUp(self):
        super().setUp()
        self.env = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(dir=self.folder))) / 'env'
        make_environment(self.env, 'python-openstackclient', self.client)

    def pip(self, *arguments):
        return run(self.env / 'bin/python', '-m', 'pip', *arguments, cwd=self.env)

    def commands(self):
        """The commands of Kronos that ``openstack`` has."""
        groups = json.loads(run(self.env / 'bin/openstack', 'command', 'list', '-f', 'json',
                                cwd=self.env, env={'PATH': os.environ['PATH']}))
        return [command for group in groups for command in group['Commands']
                if command.startswith('kronos ')]

    def test_it_is_installed_upgraded_and_removed(self):
        wanted = entry_points(ROOT / CLIENT / 'setup.cfg') - 1    # one is the plugin itself
        self.assertEqual(wanted, len(self.commands()))
        self.assertIn('--deadline', run(self.env / 'bin/openstack', 'kronos', 'host', 'drain',
                                        '--help', cwd=self.env))
        installed = {each['name'].lower() for each in json.loads(
            self.pip('list', '--format', 'json'))}
        self.assertEqual(set(), {'kronos-nova', 'nova', 'numpy', 'sqlalchemy'} & installed)
        self.pip('install', '--quiet', '--no-index', '--upgrade', self.newer)
        self.pip('check')
        self.assertEqual(wanted, len(self.commands()))
        self.pip('uninstall', '--quiet', '--yes', 'kronos-client')
        self.assertEqual([], self.commands())
        self.assertEqual([], [*(self.env / 'lib').rglob('kronos_client*')])

    def test_it_stays_when_the_service_is_removed(self):
        self.pip('install', '--quiet', '--no-deps', '--no-index', self.wheel)
        before = self.commands()
        self.pip('uninstall', '--quiet', '--yes', 'kronos-nova')
        self.assertEqual(before, self.commands())
        self.assertEqual([], [*(self.env / 'lib').rglob('kronos_nova*')])
