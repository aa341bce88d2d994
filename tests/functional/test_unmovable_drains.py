"""Whole drains of servers that Nova does not migrate live: they run again afterwards."""

import dataclasses
import time
import types

import fixtures

from kronos_nova import clock
from kronos_nova.db import drains as db_drains
from kronos_nova.drain import orders
from kronos_nova.drain import states
from kronos_nova.drain.disabling import DrainService
from kronos_nova.drain.progress import HostDrains
from kronos_nova.objects import snapshot
from kronos_nova.plugin import host_api
from tests.functional.test_balancing import BalancingTestCase

COLD, FOR_GOOD = 'deployment', 'user'
"""Owners of a vTPM's secret with whom Nova migrates a server cold only, or not at all."""
TRAITS = ('COMPUTE_SECURITY_TPM_2_0', 'COMPUTE_SECURITY_TPM_CRB',
          'COMPUTE_SECURITY_TPM_SECRET_SECURITY_DEPLOYMENT',
          'COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER')
CLOSED = '*; 0 0 29 2 *; 1'


class UnmovableTest(BalancingTestCase):
    """host1 has a server with a vTPM and one that Nova migrates live."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch('kronos_nova.drain.disabling.LOOK_AGAIN_SECONDS', 0))
        for host in self.hosts:
            provider = self.uuid_of(host)
            self._set_provider_traits(provider, [*self._get_provider_traits(provider), *TRAITS])
        self.drains = db_drains.Drains(self.database)
        self.service = DrainService(types.SimpleNamespace(
            journal=self.journal, utcnow=clock.utcnow, seconds=time.monotonic,
            aggregates=(snapshot.UNASSIGNED,)), host_api.InProcessHostApi())

    def boot_both(self, secret):
        flavor = self._create_flavor(memory_mb=512, vcpu=1, disk=1, ephemeral=0, extra_spec={
            'hw:tpm_version': '2.0', 'hw:tpm_model': 'tpm-crb',
            'hw:tpm_secret_security': secret})
        self.bound = self.boot('host1', flavor_id=flavor)
        self.free = self.boot('host1')

    def drain(self, unmovable):
        wanted = dataclasses.replace(
            orders.Wish(who='jane', unmovable=unmovable).to_drain('host1'),
            aggregate=snapshot.UNASSIGNED)
        self.drains.request([wanted])
        return wanted.uuid

    def until(self, uuid, *wanted):
        """Let a worker drain until the drain is in a state; it is in it for three looks."""
        seen = 0
        with fixtures.Timeout(120, gentle=True):
            while seen < 3:
                self.service.tick()
                self.evaluate(requesters=(HostDrains,))
                self.worker.tick()
                found = self.drains.get(uuid)
                seen = seen + 1 if found.state in wanted and (
                    not self.journal.aggregates_with_open_plans()) else 0
                time.sleep(0.2)
        return found

    def test_one_that_is_migrated_cold_runs_at_its_new_host(self):
        self.boot_both(COLD)
        self.until(self.drain(states.MOVE_COLD), states.EMPTY)
        found = self.api.get_server(self.bound['id'])
        self.assertNotEqual('host1', found['OS-EXT-SRV-ATTR:host'])
        self.server_on(self.bound, found['OS-EXT-SRV-ATTR:host'])
        self.assertEqual([found['OS-EXT-SRV-ATTR:host']], list(self.held_by(self.bound['id'])))
        self.assertNotIn('host1', self.hosts_of([self.bound, self.free]))

    def test_one_that_is_stopped_runs_again_once_the_host_is_released(self):
        self.boot_both(FOR_GOOD)
        uuid = self.drain(states.STOP)
        self.until(uuid, states.EMPTY)
        found = self.api.get_server(self.bound['id'])
        self.assertEqual(('host1', 'SHUTOFF'), (found['OS-EXT-SRV-ATTR:host'], found['status']))
        self.assertNotIn('host1', self.hosts_of([self.free]))
        orders.release(self.drains, self.drains.get(uuid), 'jane')
        self.until(uuid, states.RELEASED)
        self.server_on(self.bound, 'host1')
        self.assertEqual('enabled', self.service.hosts.service('host1').status)

    def test_one_that_its_owner_locked_is_left_running(self):
        self.boot_both(COLD)
        self.api.post_server_action(self.bound['id'], {'lock': None})
        for unmovable in (states.MOVE_COLD, states.STOP):
            found = self.until(self.drain(unmovable), states.BLOCKED)
            self.assertEqual([self.bound['id']], list(found.blocked))
            self.assertIn('not interrupted, because it is locked', found.blocked[self.bound['id']])
            self.server_on(self.bound, 'host1')
            orders.release(self.drains, found, 'jane')
            self.until(found.uuid, states.RELEASED)

    def test_outside_maintenance_windows_it_is_left_running(self):
        self.flags(maintenance_window=[CLOSED], group='kronos')
        self.boot_both(COLD)
        found = self.until(self.drain(states.MOVE_COLD), states.BLOCKED)
        self.assertIn('maintenance window only', found.blocked[self.bound['id']])
        self.server_on(self.bound, 'host1')
        self.assertNotIn('host1', self.hosts_of([self.free]))
