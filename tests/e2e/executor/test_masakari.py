"""Hosts are rebooted while they are drained, next to a masakari that watches them.

It needs an environment with masakari, which ``KRONOS_E2E_MASAKARI`` names.
"""

import datetime
import os
import pathlib

from kronos_nova.db.drains import Drains
from tests.e2e.box import settings
from tests.e2e.box.masakari import Masakari
from tests.e2e.box.processes import wait_for
from tests.e2e.executor import test_drain

VENV = os.environ.get('KRONOS_E2E_MASAKARI')
TIMES = int(os.environ.get('KRONOS_E2E_REBOOTS', 20))
HTTP_ACCEPTED, HTTP_CONFLICT = 202, 409


class MasakariTest(test_drain.DrainTestCase):
    computes, conductors, workers, keystone = 4, 1, 1, True
    executor = {'masakari': True}

    @classmethod
    def setUpClass(cls):
        if not VENV or not (pathlib.Path(VENV) / 'bin/masakari-api').exists():
            raise cls.skipException('KRONOS_E2E_MASAKARI names no environment with masakari')
        super().setUpClass()
        try:
            cls.masakari.start(cls.cloud.settings.timeout)
            cls.masakari.watch(cls.cloud.settings.hosts())
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def prepare(cls, conf):
        super().prepare(conf)
        cls.masakari = Masakari(cls.cloud, VENV, settings.Ports().take())
        cls.cloud.configure(nova_conf={**conf, 'kronos_nova': cls.cloud.identity.caller(None)})

    @classmethod
    def tearDownClass(cls):
        cls.masakari.stop()
        super().tearDownClass()

    def service(self):
        return self.cloud.client.services()[self.drained]

    def drain(self):
        code, said = self.run_manage('host', 'drain', self.drained)
        self.assertEqual(test_drain.EMPTY, code, said)
        wait_for(lambda: Drains(self.database).latest(self.drained).state == 'empty', 120,
                 'it is not emptied')

    def reboot(self, status):
        """Let the host end and come back; masakari answers its monitor with a status."""
        compute = self.cloud.nova.computes[self.drained]
        compute.process.kill()
        at = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)
        self.assertEqual(status, self.masakari.notify(self.drained, at.isoformat()))
        compute.start()
        wait_for(lambda: self.service()['state'] == 'up', 120, 'it does not come back')

    def release(self):
        code, said = self.run_manage('host', 'release', self.drained)
        self.assertEqual(test_drain.EMPTY, code, said)
        self.assertEqual('enabled', self.service()['status'])
        self.assertFalse(self.masakari.host(self.drained)['on_maintenance'])

    def wait_until_it_acted(self):
        def is_over():
            ended = {each['status'] for each in self.masakari.notifications()}
            return not ended & {'new', 'running'}
        wait_for(is_over, 120, lambda: f'{self.masakari.notifications()}', interval=0.5)

    def test_a_host_that_is_rebooted_under_a_drain_is_watched_and_enabled_in_the_end(self):
        """Every other time an operator has masakari watch the host too early: it takes the reboot
        for a failure and writes its own reason over that of the drain."""
        for number in range(TIMES):
            self.drained = self.hosts[number % len(self.hosts)]
            servers = [uuid for uuid, _host in self.boot(2, self.drained)]
            self.drain()
            self.assertTrue(self.masakari.host(self.drained)['on_maintenance'])
            is_too_early = number % 2
            if is_too_early:
                self.masakari.set_maintenance(self.drained, False)
            self.reboot(HTTP_ACCEPTED if is_too_early else HTTP_CONFLICT)
            if is_too_early:
                self.wait_until_it_acted()
                self.assertIn('Masakari', self.service()['disabled_reason'])
            self.release()
            self.assertEqual({'ACTIVE'}, {self.cloud.client.server(uuid)['status']
                                          for uuid in servers})
            self._delete(servers)
            print(f'\nREBOOT {number + 1} of {self.drained}: masakari '
                  f'{"acted" if is_too_early else "refused the report"}; enabled, watched',
                  flush=True)
