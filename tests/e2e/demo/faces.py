"""What an operator uses: the page, ``openstack kronos``, a recording and its replay."""

import json
import os
import pathlib
import subprocess
import tempfile

import requests

from tests.e2e.box import conffile
from tests.e2e.box.settings import PYTHONPATH
from tests.e2e.box.settings import command

SECONDS = 120
"""Seconds that a command may take. Raised, one that hangs ends the demo later; lowered, a busy
machine fails it."""


def look(cloud):
    """Use each of them once.

    :param cloud: a Cloud with keystone
    :returns: a dict for result.json; ``passed`` is whether each did what it should
    """
    with tempfile.TemporaryDirectory() as folder:
        recording = pathlib.Path(folder, 'recording')
        recorded = _run(cloud, 'kronos-record', *_configured(cloud, folder), recording)
        replayed = _run(cloud, 'kronos-replay', recording, '-f', 'json')
    page = requests.get(f'{cloud.api.url}/ui/', timeout=SECONDS)
    status = _run(cloud, 'openstack', 'kronos', 'status', '-f', 'json',
                  package='python-openstackclient')
    return {
        'page': {'url': page.url, 'status': page.status_code},
        'openstack_kronos_status': _outcome(status),
        'recorded': recorded.returncode, 'replayed': _outcome(replayed),
        # 3 is a warning: a plan that has just ended may be one.
        'passed': page.ok and status.returncode in (0, 3)
        and not recorded.returncode and not replayed.returncode}


def _configured(cloud, folder):
    conf = pathlib.Path(folder, 'record.conf')
    conffile.write(conf, {'kronos_nova': {
        name: value for name, value in cloud.identity.caller(None).items() if value}})
    return '--config-file', cloud.nova.conf, '--config-file', conf


def _run(cloud, name, *arguments, package='kronos-nova'):
    return subprocess.run(
        [*map(str, (*command(package, name), *arguments))], capture_output=True, text=True,
        timeout=SECONDS,
        env={**os.environ, 'PYTHONPATH': PYTHONPATH, **cloud.identity.credentials(),
             'OS_KRONOS_ENDPOINT': cloud.api.url})


def _outcome(done):
    """The JSON that a command printed, or why there is none."""
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {'exit': done.returncode, 'error': done.stderr[-2000:]}
