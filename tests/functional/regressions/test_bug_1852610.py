"""An administrator deletes the service of a host that a migration leaves or goes to."""

from nova.tests.functional.api import client

from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import base


class DeletedServiceTest(base.RegressionTestCase):
    def assert_not_deleted(self, *hosts):
        for host in hosts:
            service = self.api.get_services(host=host, binary='nova-compute')[0]['id']
            error = self.assertRaises(
                client.OpenStackApiException, self.api.api_delete, f'/os-services/{service}')
            self.assertEqual(409, error.response.status_code, host)

    def test_not_in_a_live_migration(self):
        server = self.boot_server()
        self.hold(server)
        self.assert_not_deleted('host1', 'host2')
        fakes_drivers.COURSE.let_go()
        self._wait_for_migration_status(server, ['completed'])
        self.assert_holds_alone(server, 'host2')

    def test_not_before_a_resize_is_confirmed(self):
        server = self.boot_server()
        self._migrate_server(server)
        self.assert_not_deleted('host1', 'host2')
        self._confirm_resize(server)
        self.assert_holds_alone(server, 'host2')
