"""The interfaces of an operator: the page, ``openstack kronos``, a recording and its replay."""

import http
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import requests

from tests.e2e.box import conffile
from tests.e2e.box import identity
from tests.e2e.box.settings import PYTHONPATH
from tests.e2e.box.settings import command

SECONDS = 120
"""Seconds that a command may take. Raised, one that hangs ends the demo later; lowered, a busy
machine fails it."""


TRIES = 5
"""Times that a status is asked for. Raised, a keystone that hangs ends the demo later; lowered, a
busy machine fails it: with a load of 14 on two cores keystone did not answer within 5 s."""


def look(cloud, picture):
    """Use each of them once.

    :param cloud: a Cloud with keystone
    :param picture: path of a file that the page is drawn into
    :returns: a dict for result.json; ``passed`` is whether each did what it should
    """
    with tempfile.TemporaryDirectory() as folder:
        recording = pathlib.Path(folder, 'recording')
        recorded = _run(cloud, 'kronos-record', *_configured(cloud, folder), recording)
        replayed = _run(cloud, 'kronos-replay', recording, '-f', 'json')
    page = _page(cloud)
    status = _status(cloud)
    return {
        'page': {**page, **_draw(cloud, picture)},
        'openstack_kronos_status': _outcome(status),
        'recorded': recorded.returncode, 'replayed': _outcome(replayed),
        # 3 is a warning: a plan that has just ended may be one.
        'passed': page['status'] == http.HTTPStatus.OK and status.returncode in (0, 3)
        and not recorded.returncode and not replayed.returncode}


def _page(cloud):
    """Ask for the page: its address and HTTP status, or why there is none."""
    url = f'{cloud.api.url}/ui/'
    try:
        return {'url': url, 'status': requests.get(url, timeout=SECONDS).status_code}
    except requests.RequestException as error:
        return {'url': url, 'status': str(error)}


def _status(cloud):
    """Ask by ``openstack kronos``, again while keystone does not answer kronos-api in time."""
    for _try in range(TRIES):
        found = _run(cloud, 'openstack', 'kronos', 'status', '-f', 'json',
                     package='python-openstackclient')
        if 'keystone does not answer' not in found.stderr:
            break
    return found


def _draw(cloud, picture):
    """Draw the page after a login: where the picture is, or why there is none."""
    if not all(map(shutil.which, ('chromium', 'chromedriver'))):
        return {'not_drawn': 'chromium and chromium-driver are not installed'}
    # Only now: a demo without a browser needs neither.
    from selenium.common.exceptions import WebDriverException

    try:
        _draw_in_browser(cloud, picture)
    except WebDriverException as error:     # the picture is no reason to fail
        return {'not_drawn': f'the browser did not show the page: {error}'}
    return {'picture': str(picture)}


def _draw_in_browser(cloud, picture):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support import expected_conditions
    from selenium.webdriver.support.wait import WebDriverWait

    from tests.browser import Browser
    with Browser() as browser:
        browser.size(1400, 1000)
        browser.driver.get(f'{cloud.api.url}/ui/#/overview')
        wait = WebDriverWait(browser.driver, SECONDS)
        for name, value in (('user', 'admin'), ('password', identity.PASSWORD),
                            ('project', 'admin')):
            wait.until(expected_conditions.visibility_of_element_located(
                (By.NAME, name))).send_keys(value)
        browser.driver.find_element(By.CSS_SELECTOR, '#login [type=submit]').click()
        wait.until(expected_conditions.visibility_of_element_located(
            (By.CSS_SELECTOR, '#aggregates tbody tr')))
        picture.write_bytes(browser.driver.get_screenshot_as_png())


def _configured(cloud, folder):
    conf = pathlib.Path(folder, 'record.conf')
    conffile.write(conf, {'kronos_nova': {
        name: value for name, value in cloud.identity.caller(None).items() if value}})
    return '--config-file', cloud.nova.conf, '--config-file', conf


def _run(cloud, name, *arguments, package='kronos-nova'):
    """Run a command. One that takes too long has the exit status 124, as with timeout(1)."""
    called = [*map(str, (*command(package, name), *arguments))]
    try:
        return subprocess.run(
            called, capture_output=True, text=True, timeout=SECONDS,
            env={**os.environ, 'PYTHONPATH': PYTHONPATH, **cloud.identity.credentials(),
                 'OS_KRONOS_ENDPOINT': cloud.api.url})
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(called, 124, '', f'no end within {SECONDS} s')


def _outcome(done):
    """The JSON that a command printed, or why there is none."""
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {'exit': done.returncode, 'error': done.stderr[-2000:]}
