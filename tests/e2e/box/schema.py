"""The fresh databases of a cloud: made once by the services' own commands, then copied.

Making them takes most of a first start. What they hold depends on the versions installed alone:
the cell's addresses are templates that Nova fills from its nova.conf.
"""

import concurrent.futures
import fcntl
import hashlib
import importlib.metadata
import os
import pathlib
import subprocess
import sys

from tests.e2e.box import conffile
from tests.e2e.box import processes
from tests.e2e.box.mariadb import MariaDB
from tests.e2e.box.settings import BoxError
from tests.e2e.box.settings import command

NETLOC = '{scheme}://{username}:{password}@{hostname}:{port}'
NEUTRON_TABLES = """
import sys
import sqlalchemy
from neutron.db.migration.models import head
head.get_metadata().create_all(sqlalchemy.create_engine(sys.argv[1]))
"""
PACKAGES = ('nova', 'openstack-placement', 'glance', 'keystone', 'neutron')


def cache():
    """The folder that outlives the boxes: ``KRONOS_BOX_CACHE``, or one in the user's cache."""
    home = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
    return pathlib.Path(os.environ.get('KRONOS_BOX_CACHE') or
                        pathlib.Path(home) / 'kronos-nova' / 'box')


def saved_databases(ports, timeout, progress=lambda text: None):
    """The folder of a stopped MariaDB that has every service's tables, made at the first call.

    :param progress: called with a line of text for each part that is done
    """
    cache().mkdir(parents=True, exist_ok=True)
    saved = cache() / f'mariadb-{_fingerprint()}'
    with (cache() / 'lock').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not saved.exists():
            progress('making the tables of all services, which later starts copy')
            with processes.folder('kronos-schema-') as root:
                _make(root, ports, saved, timeout, progress)
    return saved


def _fingerprint():
    """Changes when a service, MariaDB or this recipe does."""
    seen = [f'{name} {_version(name)}' for name in PACKAGES]
    seen.append(subprocess.run(['mariadbd', '--version'], capture_output=True, text=True).stdout)
    seen += [path.read_text() for path in (pathlib.Path(__file__),
                                           pathlib.Path(__file__).with_name('mariadb.py'))]
    return hashlib.sha256('\n'.join(seen).encode()).hexdigest()[:16]


def _version(package):
    """The version of an installed package; keystone need not be there."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ''


def _make(root, ports, saved, timeout, progress):
    database = MariaDB(root, ports)
    database.install()
    database.start(timeout)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        steps = [_nova, _placement, _glance, _neutron]
        if _version('keystone'):
            steps.append(_keystone)
        made = {pool.submit(step, root, database): step.__name__.strip('_') for step in steps}
        for number, work in enumerate(concurrent.futures.as_completed(made), 1):
            work.result()
            progress(f'tables of {made[work]} are made ({number} of {len(made)})')
    database.save(saved)


def _nova(root, database):
    conf = conffile.write(root / 'nova.conf', {
        'DEFAULT': {'transport_url': 'rabbit://guest:guest@127.0.0.1:5672/', 'state_path': root},
        'api_database': {'connection': database.url('nova_api')},
        'database': {'connection': database.url('nova_cell1')}})
    for arguments in (
            ['api_db', 'sync'],
            ['cell_v2', 'map_cell0', '--database_connection', f'{NETLOC}/nova_cell0?{{query}}'],
            ['cell_v2', 'create_cell', '--name', 'cell1',
             '--transport-url', f'{NETLOC}/{{path}}',
             '--database_connection', f'{NETLOC}/nova_cell1?{{query}}'],
            ['db', 'sync']):
        _run([*command('nova', 'nova-manage'), '--config-file', conf, *arguments])


def _placement(root, database):
    folder = root / 'placement'
    conf = conffile.write(folder / 'placement.conf', {
        'placement_database': {'connection': database.url('placement')}})
    _run([*command('openstack-placement', 'placement-manage'), '--config-file', conf, 'db', 'sync'])


def _glance(root, database):
    conf = conffile.write(root / 'glance-api.conf', {
        'DEFAULT': {'enabled_backends': 'file:file'},
        'database': {'connection': database.url('glance')}})
    _run([*command('glance', 'glance-manage'), '--config-file', conf, 'db_sync'])


def _keystone(root, database):
    conf = conffile.write(root / 'keystone.conf', {
        'database': {'connection': database.url('keystone')}})
    _run([*command('keystone', 'keystone-manage'), '--config-file', conf, 'db_sync'])


def _neutron(root, database):
    """From the models: the migrations take four times as long and end at the same tables."""
    _run([sys.executable, '-c', NEUTRON_TABLES, database.url('neutron')])


def _run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise BoxError(f'{" ".join(map(str, words))}:\n{done.stdout}{done.stderr}')
