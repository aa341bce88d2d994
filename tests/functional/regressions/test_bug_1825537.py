"""The destination fails at the end of a resize, when the server is its own already."""

from nova import exception

from tests.functional.mixed import base as mixed
from tests.functional.regressions import base


class FailedResizeTest(base.RegressionTestCase):
    def test_the_destination_alone_is_held(self):
        server = self.boot_server()

        def fail(*_args, **_kwargs):
            raise exception.VirtualInterfaceCreateException()

        self.stub_out('tests.functional.mixed.fakes_drivers.Steered.finish_migration', fail)
        self.api.post_server_action(
            server['id'], {'resize': {'flavorRef': self.flavors[mixed.LARGE_DISK]}})
        self._wait_for_migration_status(server, ['error'])
        self._wait_for_server_parameter(
            server, {'status': 'ERROR', 'OS-EXT-SRV-ATTR:host': 'host2'})

        self.assert_holds_alone(server, 'host2', disk=mixed.LARGE_DISK)
        # Nova gives the server its old flavor back, and leaves the allocation of the new one.
        self.assertEqual(mixed.SMALL_DISK, self.api.get_server(server['id'])['flavor']['disk'])
        self.reconcile()
        self.assert_holds_alone(server, 'host2', disk=mixed.SMALL_DISK)
