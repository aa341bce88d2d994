"""The source's nova-compute dies in the middle of a live migration; its hypervisor goes on.

When it starts again Nova sets the instance free at the source, wherever its guest runs by then, and
has nothing removed at the destination.
"""

import pathlib

from nova.compute import power_state
from nova.compute import rpcapi

from tests.functional.regressions import base
from tests.functional.regressions import guests


class InterruptedLiveMigrationTest(guests.GuestsTestCase):
    def interrupt(self):
        server = self.boot_server()
        died = self.die_in('tests.functional.mixed.fakes_drivers.Steered.live_migration')
        self.migrate(server)
        self.assertTrue(died.wait(30))
        return server

    def test_while_a_conductor_prepares_it(self):
        server = self.boot_server()
        real = rpcapi.ComputeAPI.check_can_live_migrate_destination

        def check(*args, **kwargs):
            self.restart_source()
            return real(*args, **kwargs)

        self.stub_out('nova.compute.rpcapi.ComputeAPI.check_can_live_migrate_destination', check)
        self.migrate(server)
        self.assert_ended(server, 'host2', 'ACTIVE', 'completed')

    def test_the_guest_is_still_here(self):
        server = self.interrupt()
        self.restart_source()
        self.assert_ended(server, 'host1', 'ACTIVE', 'failed')
        self.assertEqual([], self.kept())

    def kept(self):
        return [*pathlib.Path(self.state).glob('live-migrations/*')]

    def test_the_guest_has_arrived_meanwhile(self):
        server = self.interrupt()
        self.guest_at('host1', server, power_state.NOSTATE)
        self.guest_at('host2', server, power_state.RUNNING)
        self.restart_source()
        self.assert_ended(server, 'host2', 'ACTIVE', 'completed')
        self.assertTrue(self.is_running('host2', server))

    def test_the_guest_runs_there_while_its_memory_is_still_copied(self):
        """Post-copy: what is paused here has pages that the other needs."""
        server = self.interrupt()
        self.guest_at('host1', server, power_state.PAUSED)
        self.guest_at('host2', server, power_state.RUNNING)
        looks = iter((True, True, True, False))

        def is_copied(driver, instance):
            still = next(looks)
            if not still:
                self.guest_at('host1', server, power_state.NOSTATE)
            return still

        self.stub_out('kronos_nova.plugin.fixes.guest_state.is_copied', is_copied)
        powered_off = []
        self.stub_out('nova.virt.fake.FakeDriver.power_off',
                      lambda driver, instance, *_, **__: powered_off.append(instance))
        self.restart_source()
        self.assert_ended(server, 'host2', 'ACTIVE', 'completed')
        self.assertEqual([], powered_off)

    def test_the_guest_has_ended_meanwhile(self):
        server = self.interrupt()
        self.guest_at('host1', server, power_state.SHUTDOWN)
        self.restart_source()
        self.assert_ended(server, 'host1', 'SHUTOFF', 'failed')

    def test_one_after_another_that_an_operator_set_free(self):
        server = self.interrupt()
        self.api.post_server_action(server['id'], {'os-resetState': {'state': 'active'}})
        self.restart_source()
        self.assertEqual([], self.kept())
        self.reconcile(stalled=0)
        self.stub_out('nova.compute.manager.ComputeManager._do_live_migration',
                      lambda *args, **kwargs: None)
        self.migrate(server)
        self._wait_for_migration_status(server, ['queued'])

        self.restart_source()

        self.assert_ended(server, 'host1', 'ACTIVE', 'error')
        self.assertEqual({'error'}, {each['status'] for each in self.api.api_get(
            '/os-migrations').body['migrations']})

    def test_while_nova_completes_it(self):
        server = self.boot_server()
        died = self.die_in('nova.compute.manager.ComputeManager._post_live_migration')
        self.stub_out('tests.functional.mixed.fakes_drivers.Steered.post_live_migration',
                      lambda *args, **kwargs: None)
        self.migrate(server)
        self.assertTrue(died.wait(30))
        self.guest_at('host1', server, power_state.NOSTATE)
        self.guest_at('host2', server, power_state.RUNNING)
        self.restart_source()
        self.assert_ended(server, 'host2', 'ACTIVE', 'completed')


StockInterruptedLiveMigrationTest = base.on_stock_nova(InterruptedLiveMigrationTest)
