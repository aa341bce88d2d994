"""Room that is held at a destination before the move begins, over RPC."""

import datetime

import fixtures
from nova import context
from nova import objects

from kronos_nova import exception
from kronos_nova.objects import move as moves
from kronos_nova.plugin import claim_rpc
from kronos_nova.plugin import compute_api
from tests.functional.claims import base

SMALL = (1, 512, 1)


class TwoPhaseTestCase(base.ClaimsTestCase):
    def setUp(self):
        super().setUp()
        self.context = context.get_admin_context()
        self.client = claim_rpc.ClaimsClient()
        self.server = self.boot('host1')

    def instance(self):
        return objects.Instance.get_by_uuid(self.context, self.server['id'],
                                            expected_attrs=['flavor', 'numa_topology'])

    def prepare(self, host='host2'):
        return self.client.prepare(self.context, host, self.instance())

    def recorded(self, host='host2'):
        """The usage that Nova's scheduler sees."""
        node = objects.ComputeNode.get_first_node_by_host_for_old_compat(self.context, host)
        return node.vcpus_used, node.memory_mb_used - base.RESERVED[1], node.local_gb_used


class TwoPhaseTest(TwoPhaseTestCase):
    def test_room_is_held_counted_kept_and_given_back(self):
        claim_id = self.prepare()
        self.assertEqual(SMALL, self.usage('host2'))
        self.assertEqual(SMALL, self.recorded())
        self.assertEqual([(self.server['id'], 1, *SMALL, 'prepared')], self.rows('host2'))

        self.assertTrue(self.client.abort(self.context, 'host2', claim_id))
        self.assertEqual((0, 0, 0), self.usage('host2'))
        self.assertEqual((0, 0, 0), self.recorded())
        self.assertEqual([], self.rows('host2'))

    def test_every_step_may_be_repeated(self):
        claim_id = self.prepare()
        self.assertEqual(claim_id, self.prepare())
        self.assertEqual(SMALL, self.usage('host2'))
        self.assertEqual([True, False],
                         [self.client.abort(self.context, 'host2', claim_id) for _ in range(2)])
        self.assertEqual((0, 0, 0), self.usage('host2'))

        claim_id = self.prepare()
        self.assertEqual([True, False],
                         [self.client.confirm(self.context, 'host2', claim_id) for _ in range(2)])
        self.assertFalse(self.client.abort(self.context, 'host2', claim_id))
        self.assertEqual(SMALL, self.usage('host2'))

    def test_a_late_abort_of_one_claim_does_not_end_the_next(self):
        first = self.prepare()
        self.client.abort(self.context, 'host2', first)
        second = self.prepare()
        self.assertNotEqual(first, second)
        self.assertFalse(self.client.abort(self.context, 'host2', first))
        self.assertEqual(SMALL, self.usage('host2'))

    def test_audits_and_restarts_keep_it(self):
        claim_id = self.prepare()
        self.audit('host2')
        self.assertEqual(SMALL, self.usage('host2'))
        self.restart('host2')
        self.assertEqual(SMALL, self.usage('host2'))
        self.audit('host2')
        self.assertEqual(SMALL, self.usage('host2'))
        self.assertTrue(self.client.abort(self.context, 'host2', claim_id))
        self.assertClaimsAreUsage()

    def test_an_audit_that_breaks_off_loses_nothing(self):
        self.prepare()
        with fixtures.MonkeyPatch(
                'nova.compute.resource_tracker.ResourceTracker._ensure_compute_id_for_instances',
                lambda *_args: 1 / 0):
            tracker = self.tracker('host2')
            self.assertRaises(ZeroDivisionError, tracker.update_available_resource, self.context,
                              'host2')
        self.assertEqual(SMALL, self.usage('host2'))
        self.audit('host2')
        self.assertEqual(SMALL, self.usage('host2'))
        self.assertEqual(1, len(self.rows('host2')))

    def test_the_move_itself_is_never_counted_twice(self):
        claim_id = self.prepare()
        self.migrate(self.server, 'host2')
        self._wait_for_migration_status(self.server, ['completed'])
        self.assertEqual(SMALL, self.usage('host2'))

        self.assertTrue(self.client.confirm(self.context, 'host2', claim_id))
        self.audit()

        self.assertEqual(SMALL, self.usage('host2'))
        self.assertEqual([(self.server['id'], 0, *SMALL, 'claimed')], self.rows())
        self.assertFalse(self.client.abort(self.context, 'host2', claim_id))
        self.assertSurvivesRestart()

    def test_it_expires_when_nothing_comes_of_it(self):
        self.prepare()
        tracker = self.tracker('host2')
        later = tracker.ledger.clock() + datetime.timedelta(seconds=299)
        tracker.ledger.clock = lambda: later
        tracker.release_orphans(self.context)
        self.assertEqual(SMALL, self.usage('host2'))

        later += datetime.timedelta(seconds=2)
        self.computes['host2'].manager._release_orphan_claims(self.context)

        self.assertEqual(((0, 0, 0), []), (self.usage('host2'), self.rows('host2')))
        self.assertEqual((0, 0, 0), self.recorded())

    def test_the_audit_releases_it_too_and_says_so(self):
        self.prepare()
        tracker = self.tracker('host2')
        later = tracker.ledger.clock() + datetime.timedelta(seconds=301)
        tracker.ledger.clock = lambda: later
        self.audit('host2')
        self.assertEqual(((0, 0, 0), []), (self.usage('host2'), self.rows('host2')))
        self.assertIn(f'Released the claim of instance {self.server["id"]}',
                      self.stdlog.logger.output)

    def test_an_operator_who_removes_the_row_releases_it(self):
        self.prepare()
        with base.sqlite3.connect(f'{self.state}/claim.sqlite') as connection:
            connection.execute("DELETE FROM claims WHERE state = 'prepared'")
        self.audit('host2')
        self.assertEqual((0, 0, 0), self.usage('host2'))

    def test_numa_cells_that_do_not_fit_are_a_pre_flight_failure(self):
        cell = objects.NUMACell(
            id=0, cpuset={0, 1}, pcpuset={0, 1}, memory=256, cpu_usage=0, memory_usage=0,
            pinned_cpus=set(), siblings=[{0}, {1}], socket=0,
            mempages=[objects.NUMAPagesTopology(size_kb=4, total=65536, used=0)])
        tracker = self.tracker('host2')
        tracker.compute_nodes['host2'].numa_topology = objects.NUMATopology(cells=[cell])._to_json()
        instance = self.instance()
        instance.flavor.extra_specs = {'hw:numa_nodes': '1', 'hw:mem_page_size': 'small'}

        error = self.assertRaises(exception.PreFlightError, self.client.prepare, self.context,
                                  'host2', instance)

        self.assertIn('NUMA topology cannot fit', str(error))
        self.assertEqual(((0, 0, 0), []), (self.usage('host2'), self.rows('host2')))

    def test_devices_that_are_not_there_are_a_pre_flight_failure(self):
        self.flags(alias=['{"name": "nic", "vendor_id": "8086", "product_id": "1528"}'],
                   group='pci')
        instance = self.instance()
        instance.flavor.extra_specs = {'pci_passthrough:alias': 'nic:1'}
        error = self.assertRaises(exception.PreFlightError, self.client.prepare, self.context,
                                  'host2', instance)
        self.assertIn('Claim pci failed', str(error))


class ExecutorsPortTest(TwoPhaseTestCase):
    """The executor holds and releases room through its port to Nova."""

    def setUp(self):
        super().setUp()
        self.port = compute_api.InProcessComputeApi()
        now = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
        self.move = moves.MoveRecord(
            uuid='a-move', plan_uuid='a-plan', aggregate='rack', ordinal=0, phase='spread',
            instance_uuid=self.server['id'], source='host1', destination='host2', memory_mb=512,
            reason='load', state=moves.CLAIMING, not_before=now, created_at=now)

    def test_a_move_that_fails_gives_the_room_back(self):
        self.port.hold_room(self.move)
        self.port.hold_room(self.move)
        self.assertEqual(SMALL, self.usage('host2'))
        self.port.release_room(self.move, has_moved=False)
        self.port.release_room(self.move, has_moved=False)
        self.assertEqual((0, 0, 0), self.usage('host2'))

    def test_a_move_that_was_made_leaves_it_to_the_instance(self):
        self.port.hold_room(self.move)
        self.migrate(self.server, 'host2')
        self._wait_for_migration_status(self.server, ['completed'])
        self.port.release_room(self.move, has_moved=True)
        self.audit()
        self.assertEqual(SMALL, self.usage('host2'))
        self.assertEqual([(self.server['id'], 0, *SMALL, 'claimed')], self.rows())


class SlowMoveTest(TwoPhaseTestCase):
    compute_driver = 'fake.FakeLiveMigrateDriver'

    def test_while_the_migration_runs_audits_count_it_once(self):
        self.prepare()
        self.migrate(self.server, 'host2')
        migration = self._wait_for_migration_status(self.server, ['running'])
        self.audit()
        self.assertEqual(SMALL, self.usage('host2'))
        self.assertEqual([(self.server['id'], 1, *SMALL, 'claimed')], self.rows('host2'))
        self.assertEqual(migration['uuid'], self.tracker('host2').ledger.rows('host2')[0]
                         .migration_uuid)
        self.assertSurvivesRestartOf('host2')

        self.api.force_complete_migration(self.server['id'], migration['id'])
        self._wait_for_migration_status(self.server, ['completed'])
        self.audit()
        self.assertEqual(SMALL, self.usage('host2'))
        self.assertClaimsAreUsage()

    def assertSurvivesRestartOf(self, host):  # noqa: N802
        tracker, _calls = self.reborn(host)
        self.assertEqual(SMALL, (tracker.compute_nodes[host].vcpus_used,
                                 tracker.compute_nodes[host].memory_mb_used - base.RESERVED[1],
                                 tracker.compute_nodes[host].local_gb_used))


class WithoutKronosTest(TwoPhaseTestCase):
    managers = {}

    def test_a_host_without_the_plugin_is_distinguished_from_one_without_room(self):
        self.assertIsNone(self.prepare())
        self.assertEqual((0, 0, 0), self.usage('host2'))


class SeveralNodesTest(base.ClaimsTestCase):
    hosts = ('host1',)

    def setUp(self):
        self.nodes = ['host1', 'node2']
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.fake.FakeDriver.init_host',
            lambda driver, host: driver._set_nodes(self.nodes)))
        super().setUp()
        # Nova's API wants an administrator for a server on a node by name.
        self.server = self.boot_on('node2')

    def boot_on(self, node):
        return self._create_server(networks='none', az=f'nova:host1:{node}')

    def node_usage(self, node):
        found = self.tracker('host1').compute_nodes[node]
        return found.vcpus_used, found.memory_mb_used - base.RESERVED[1], found.local_gb_used

    def test_claims_are_distinguished_by_node_through_a_restart(self):
        self.boot_on('host1')
        self.boot_on('host1')
        expected = {'host1': (2, 1024, 2), 'node2': SMALL}
        self.assertEqual(expected, {node: self.node_usage(node) for node in expected})
        self.restart('host1')
        self.assertEqual(expected, {node: self.node_usage(node) for node in expected})
        self.audit()
        self.assertEqual(expected, {node: self.node_usage(node) for node in expected})
        self.assertEqual(3, len(self.rows()))

    def test_a_node_that_is_gone_takes_its_claims_along(self):
        self._delete_server(self.server)
        self.boot_on('host1')
        manager = self.computes['host1'].manager
        manager.driver._set_nodes(['host1'])
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.fake.FakeDriver.is_node_deleted', lambda *_args: True))
        self.audit()
        self.assertEqual(1, len(self.rows()))

    def test_a_claim_in_two_phases_needs_the_node_named(self):
        instance = objects.Instance.get_by_uuid(context.get_admin_context(), self.server['id'])
        self.assertRaises(exception.PreFlightError, claim_rpc.ClaimsClient().prepare,
                          context.get_admin_context(), 'host1', instance)
