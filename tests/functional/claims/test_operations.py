"""After every operation the rows are what the tracker holds, and a restart changes nothing."""

from unittest import mock

from nova import exception
from nova.virt import fake

from tests.functional.claims import base

SMALL = (1, 512, 1)
MEDIUM = (2, 4096, 40)


class OperationsTest(base.ClaimsTestCase):
    def setUp(self):
        super().setUp()
        self.small, self.medium = self._flavors()

    def _flavors(self):
        by_name = {flavor['name']: flavor for flavor in self.api.get_flavors()}
        return by_name['m1.tiny'], by_name['m1.small']

    def assertHeld(self, host, *rows):  # noqa: N802
        self.assertEqual(sorted(rows), sorted(row[:2] + row[2:5] for row in self.rows(host)))
        self.assertClaimsAreUsage()

    def test_boot_and_delete(self):
        server = self.boot('host1')
        self.assertHeld('host1', (server['id'], 0, *SMALL))
        self.assertHeld('host2')
        self.assertSurvivesRestart()

        self._delete_server(server)
        self.assertHeld('host1')
        self.assertSurvivesRestart()

    def resized(self, server, host=None):
        self._resize_server(server, self.medium['id'])
        return self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']

    def test_resize_to_another_host_confirmed(self):
        server = self.boot('host1')
        self.assertEqual('host2', self.resized(server))
        grown = self.rows('host2')[0][2:5]
        self.assertHeld('host1', (server['id'], 0, *SMALL))
        self.assertHeld('host2', (server['id'], 1, *grown))
        self.assertSurvivesRestart()
        self.audit()
        self.assertClaimsAreUsage()

        self._confirm_resize(server)
        self.assertHeld('host1')
        self.audit('host2')
        self.assertHeld('host2', (server['id'], 0, *grown))
        self.assertSurvivesRestart()

    def test_resize_to_another_host_reverted(self):
        server = self.boot('host1')
        self.resized(server)
        self._revert_resize(server)
        self.assertHeld('host2')
        self.assertHeld('host1', (server['id'], 0, *SMALL))
        self.assertSurvivesRestart()

    def test_cold_migration(self):
        server = self.boot('host1')
        self._migrate_server(server)
        self.assertEqual([1], [row[1] for row in self.rows('host2')])
        self.assertClaimsAreUsage()
        self._confirm_resize(server)
        self.audit('host2')
        self.assertHeld('host2', (server['id'], 0, *SMALL))
        self.assertSurvivesRestart()

    def test_live_migration(self):
        server = self.boot('host1')
        self.migrate(server, 'host2')
        self._wait_for_migration_status(server, ['completed'])
        self.audit()
        self.assertHeld('host1')
        self.assertHeld('host2', (server['id'], 0, *SMALL))
        self.assertSurvivesRestart()

    def test_live_migration_that_the_destination_refuses(self):
        server = self.boot('host1')
        with mock.patch.object(fake.FakeDriver, 'pre_live_migration', autospec=True,
                               side_effect=exception.MigrationPreCheckError(reason='no')):
            self.migrate(server, 'host2')
            self._wait_for_migration_status(server, ['error', 'failed'])
            self.server_on(server, 'host1')
        self.assertHeld('host1', (server['id'], 0, *SMALL))
        self.assertHeld('host2')
        self.assertSurvivesRestart()

    def test_rebuild(self):
        server = self.boot('host1')
        self._rebuild_server(server, 'a2459075-d96c-40d5-893e-577ff92e721c')
        self.assertHeld('host1', (server['id'], 0, *SMALL))
        self.assertSurvivesRestart()

    def test_shelve_and_unshelve(self):
        server = self.boot('host1')
        self.flags(shelved_offload_time=-1)
        self._shelve_server(server, expected_state='SHELVED')
        self.assertHeld('host1', (server['id'], 0, *SMALL))
        self._shelve_offload_server(server)
        self.assertHeld('host1')
        self.assertSurvivesRestart()

        self._unshelve_server(server)
        self.assertEqual([(server['id'], 0, *SMALL)], [row[:5] for row in self.rows()])
        self.assertClaimsAreUsage()
        self.assertSurvivesRestart()

    def test_a_build_that_fails(self):
        with mock.patch.object(fake.FakeDriver, 'spawn', autospec=True,
                               side_effect=exception.BuildAbortException(
                                   instance_uuid='x', reason='no')):
            self._create_server(host='host1', networks='none', expected_state='ERROR')
        self.assertHeld('host1')
        self.assertSurvivesRestart()

    def test_a_claim_that_fails(self):
        with mock.patch('nova.compute.claims.Claim._test_pci', return_value='no devices'):
            self._create_server(host='host1', networks='none', expected_state='ERROR')
        self.assertHeld('host1')
        self.assertSurvivesRestart()

    def test_a_resize_whose_claim_fails(self):
        server = self.boot('host1')
        with mock.patch('nova.compute.claims.Claim._test_pci', return_value='no devices'):
            self.api.post_server_action(
                server['id'], {'resize': {'flavorRef': self.medium['id']}})
            self._wait_for_migration_status(server, ['error'])
        self.audit()
        self.assertHeld('host1', (server['id'], 0, *SMALL))
        self.assertHeld('host2')
        self.assertSurvivesRestart()

    def test_evacuation(self):
        server = self.boot('host1')
        self.computes['host1'].stop()
        self.api.put_service_force_down(self.service_id('host1'), True)
        self._evacuate_server(server, expected_host='host2', expected_migration_status='done')
        self.assertEqual(1, len(self.rows('host2')))
        self.assertEqual([(server['id'], 0, *SMALL)], [row[:5] for row in self.rows('host1')])

        self.restart('host1')
        self.api.put_service_force_down(self.service_id('host1'), False)
        self.audit()
        self.assertHeld('host1')
        self.assertHeld('host2', (server['id'], 0, *SMALL))
        self.assertSurvivesRestart()

    def service_id(self, host):
        return self.api.get_services(host=host, binary='nova-compute')[0]['id']


class AbortedTest(base.ClaimsTestCase):
    compute_driver = 'fake.FakeLiveMigrateDriver'

    def test_a_live_migration_that_is_aborted(self):
        server = self.boot('host1')
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['running'])
        self.audit('host2')    # only then does Nova count it there
        self.assertEqual([(server['id'], 1, *SMALL)], [row[:5] for row in self.rows('host2')])

        self.api.delete_migration(server['id'], migration['id'])
        self._wait_for_migration_status(server, ['cancelled'])
        self.server_on(server, 'host1')
        self.assertClaimsAreUsage()

        self.audit('host2')    # only then does Nova take it back
        self.assertEqual(([], (0, 0, 0)), (self.rows('host2'), self.usage('host2')))
        self.assertEqual([(server['id'], 0, *SMALL)], [row[:5] for row in self.rows('host1')])
        self.assertSurvivesRestart()


class SameHostTest(base.ClaimsTestCase):
    compute_driver = 'fake.SameHostColdMigrateDriver'
    hosts = ('host1',)

    def setUp(self):
        super().setUp()
        self.flags(allow_resize_to_same_host=True)
        self.server = self.boot('host1')
        flavors = {flavor['name']: flavor for flavor in self.api.get_flavors()}
        self._resize_server(self.server, flavors['m1.small']['id'])

    def sides(self):
        return [(row[1], row[2:5]) for row in sorted(self.rows(), key=lambda row: row[1])]

    def test_both_sides_are_held_and_confirming_leaves_the_new(self):
        (old_side, old), (new_side, new) = self.sides()
        self.assertEqual((0, 1, SMALL), (old_side, new_side, old))
        self.assertSurvivesRestart()
        self._confirm_resize(self.server)
        self.assertEqual([(0, new)], self.sides())
        self.assertClaimsAreUsage()
        self.assertSurvivesRestart()

    def test_reverting_leaves_the_old(self):
        self._revert_resize(self.server)
        self.assertEqual([(0, SMALL)], self.sides())
        self.assertClaimsAreUsage()
        self.assertSurvivesRestart()
