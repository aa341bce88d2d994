"""Requests through keystoneauth's adapters after the wall clock was set back."""

import importlib.util
import logging
import pathlib
from unittest import mock

import fixtures
import testtools
from keystoneauth1 import _fair_semaphore
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import api
from kronos_nova.inventory import request_clock
from kronos_nova.inventory.connection import connect

HOUR = 3600


class HostClock:
    """The clocks of a host, in the place of the module ``time``; sleeps do not last."""

    def __init__(self):
        self._wall, self._monotonic = 1_800_000_000.0, 5000.0
        self.slept = 0.0

    def time(self):
        return self._wall

    def monotonic(self):
        return self._monotonic

    def set_back(self, seconds):
        self._wall -= seconds

    def sleep(self, seconds):
        self.slept += seconds
        self._wall += seconds
        self._monotonic += seconds


def stock_module():
    """Return keystoneauth's module as it is installed, whatever was replaced in this process."""
    found = importlib.util.spec_from_file_location('stock_semaphore', _fair_semaphore.__file__)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class RequestClockTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = HostClock()
        module = stock_module()
        module.time = self.clock
        self.stock = module.FairSemaphore
        self.useFixture(fixtures.MockPatchObject(request_clock, 'time', self.clock))
        self.useFixture(fixtures.MockPatchObject(request_clock, '_SEMAPHORE', self.stock))

    def ask(self, semaphore, times=1):
        """Return for how long requests waited."""
        self.clock.slept = 0.0
        for _request in range(times):
            with semaphore:
                pass
        return self.clock.slept

    def test_keystoneauth_has_the_bug(self):
        semaphore = self.stock(None, 0.0)
        self.clock.set_back(HOUR)
        self.assertEqual(HOUR, self.ask(semaphore))

    def test_a_clock_that_was_set_back_delays_no_request(self):
        before = self.stock(None, 0.0)
        request_clock.install()
        semaphores = [before, self.stock(None, 0.0), self.stock(2, 0.0)]
        self.clock.set_back(HOUR)
        self.assertEqual([0.0] * 3, [self.ask(each) for each in semaphores])
        self.clock.set_back(-2 * HOUR)
        self.assertEqual([0.0] * 3, [self.ask(each) for each in semaphores])

    def test_the_space_between_requests_stays(self):
        request_clock.install()
        semaphore = self.stock(None, 0.5)
        self.assertEqual(1.5, self.ask(semaphore, times=4))
        self.clock.sleep(10)
        self.assertEqual(0.5, self.ask(semaphore, times=2))

    def test_another_keystoneauth_is_left_as_it_is(self):
        log = self.useFixture(fixtures.FakeLogger(request_clock.__name__, level=logging.WARNING))

        def advance(semaphore, count):
            return count
        self.stock._advance_timer = advance
        wait = self.stock._wait_for_execution
        request_clock.install()
        self.assertIs(advance, self.stock._advance_timer)
        self.assertIs(wait, self.stock._wait_for_execution)
        self.assertIn('The fix request_clock is not active', log.output)
        self.assertIn('FairSemaphore._advance_timer has other parameters', log.output)


class InstalledTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.installed = self.useFixture(
            fixtures.MockPatchObject(request_clock, 'install', mock.Mock())).mock
        self.nova_conf = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'nova.conf')
        self.nova_conf.write_text('[kronos_nova]\nauth_type = admin_token\ntoken = t\n'
                                  'endpoint = http://nova.invalid\n')
        self.arguments = [f'--config-file={self.nova_conf}']

    def test_it_is_before_a_connection_to_the_cloud_is_made(self):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf(self.arguments, project='kronos')
        connect(conf)
        self.assertEqual(1, self.installed.call_count)

    def test_it_is_before_the_api_asks_keystone(self):
        api.load(self.arguments)
        self.assertEqual(1, self.installed.call_count)
