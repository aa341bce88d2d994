"""Requests to placement for a boot and for a live migration: no more than stock Nova makes."""

from tests.functional.mixed import base

# Requests, and those of them that write, as Nova 34 makes them.
BOOT = (6, 1)
LIVE_MIGRATION = (13, 3)


class RequestsTest(base.MixedCloud):
    kronos = frozenset(base.SERVICES)

    def setUp(self):
        super().setUp()
        # The first of everything asks for what is kept then.
        server = self.boot_server()
        self.live_migration(server)
        self._delete_server(server)

    def asked_since(self, number):
        asked = self.placement_fixture.requests[number:]
        return len(asked), sum(method != 'GET' for method, *_ in asked)

    def asked_for(self):
        """The requests of a boot and of a live migration."""
        asked = self.placement_fixture.requests
        before = len(asked)
        server = self._create_server(
            networks='none', flavor_id=self.flavors[base.SMALL_DISK])
        boot, before = self.asked_since(before), len(asked)
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['completed'])
        self.server_on(server, 'host2')
        # The last that it asks is to delete what the migration holds.
        self._wait_for_assert(lambda: self.assertEqual(
            ('PUT', f'/allocations/{migration["uuid"]}'), asked[-1][:2]))
        return boot, self.asked_since(before)

    def test_not_oftener_than_nova_and_written_less_often(self):
        boot, (requests, writes) = self.asked_for()

        self.assertEqual(BOOT, boot)
        self.assertLessEqual(requests, LIVE_MIGRATION[0])
        self.assertEqual(LIVE_MIGRATION[1] - 1, writes)


class StockRequestsTest(RequestsTest):
    kronos = base.STOCK

    def test_not_oftener_than_nova_and_written_less_often(self):
        self.assertEqual((BOOT, LIVE_MIGRATION), self.asked_for())
