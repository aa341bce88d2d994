"""The source fails while a cold migration is confirmed."""

from nova import exception

from tests.functional.regressions import base


class FailedConfirmationTest(base.RegressionTestCase):
    def test_nothing_is_held_on_the_source(self):
        server = self.boot_server()
        self._migrate_server(server)

        def fail(*_args, **_kwargs):
            raise exception.HypervisorUnavailable()

        self.stub_out('tests.functional.mixed.fakes_drivers.Steered.confirm_migration', fail)
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self._wait_for_migration_status(server, ['error'])
        self._wait_for_server_parameter(
            server, {'status': 'ERROR', 'OS-EXT-SRV-ATTR:host': 'host2'})

        self.assert_holds_alone(server, 'host2')
        self.reconcile()
        self.assert_holds_alone(server, 'host2')
