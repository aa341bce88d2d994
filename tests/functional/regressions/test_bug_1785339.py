"""A server whose resize was reverted is moved with the amounts of its own flavor."""

from nova import context
from nova import objects

from tests.functional.mixed import base as mixed
from tests.functional.regressions import base


class RevertedResizeTest(base.RegressionTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.boot_server()
        self.resize_that_is_reverted(self.server)
        self.assert_holds_alone(self.server, 'host1')

    def spec(self):
        return objects.RequestSpec.get_by_instance_uuid(
            context.get_admin_context(), self.server['id'])

    def test_in_a_live_migration(self):
        self.assertEqual(mixed.SMALL_DISK, self.spec().flavor.root_gb)
        self.assert_holds_alone(self.server, *self.live_migration(self.server)[0])

    def test_even_where_the_request_was_not_reverted(self):
        """As by a Nova that has the bug."""
        spec = self.spec()
        spec.flavor = objects.Flavor.get_by_flavor_id(
            context.get_admin_context(), self.flavors[mixed.LARGE_DISK])
        spec.save()
        self.assertEqual(mixed.LARGE_DISK, self.spec().flavor.root_gb)
        self.assert_holds_alone(self.server, *self.live_migration(self.server)[0])
