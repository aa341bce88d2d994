"""Live migrations by an administrator, no plan in sight, with ``atomic_moves = all``."""

from tests.e2e import base
from tests.e2e import box

CONF = {'kronos': {'automation': 'off', 'atomic_moves': 'all'}}


class AtomicTestCase:
    """Tests for every concurrency mode."""

    def test_the_migration_holds_the_source_while_it_runs(self):
        server = self.boot('split', 'compute1')
        self.cloud.nova.set_faults({'default': {'outcome': 'hang'}})
        self.client.live_migrate(server, 'compute2')
        migration = self.client.migration(server, ('running',))
        self.assertEqual(({'compute1': base.RESOURCES}, 'MIGRATION'),
                         self.client.allocations(migration['uuid']))
        self.assertEqual(({'compute2': base.RESOURCES}, 'INSTANCE'),
                         self.client.allocations(server))
        self.cloud.nova.set_faults({'default': {'seconds': 1}})
        self.assertEqual('completed', self.client.migration_ended(server)['status'])
        self.assert_clean()

    def test_one_request_writes_all_allocations(self):
        server = self.boot('counted', 'compute1')
        self.cloud.nova.set_faults({'default': {'seconds': 1}})

        def migrate():
            self.client.live_migrate(server)
            self.assertEqual('completed', self.client.migration_ended(server)['status'])
        writes = self.writes_during(migrate)
        migration = self.client.migration(server)
        [post] = [entry for entry in writes
                  if entry['method'] == 'POST' and server in entry['body']]
        self.assertEqual({server, migration['uuid']}, set(post['body']))
        # A PUT for the migration lets go of the source, right after it is called completed.
        self.assertNotIn(f'/allocations/{server}',
                         [entry['path'] for entry in writes if entry['method'] == 'PUT'])
        self.assertNotEqual('compute1', self.client.host(server))
        self.assert_clean()

    def test_a_migration_that_fails_gives_the_source_back(self):
        server = self.boot('failing', 'compute3')
        self.cloud.nova.set_faults({'instances': {'failing': {'outcome': 'fail', 'seconds': 1}}})
        self.client.live_migrate(server, 'compute2')
        migration = self.client.migration_ended(server)
        self.assertEqual('failed', migration['status'])
        self.assertEqual({'compute3': base.RESOURCES}, self.client.allocations(server)[0])
        self.assertEqual({}, self.client.allocations(migration['uuid'])[0])
        self.assert_clean()

    def test_a_destination_that_refuses_changes_nothing(self):
        server = self.boot('refused', 'compute3')
        self.cloud.nova.set_faults({'instances': {'refused': {'outcome': 'refuse'}}})
        self.client.live_migrate(server, 'compute2')
        self.assertEqual('error', self.client.migration_ended(server)['status'])
        self.client.wait_active([server])
        self.assertEqual('compute3', self.client.host(server))
        self.assert_clean()


class AtomicInThreadsTest(AtomicTestCase, base.CloudTestCase):
    settings = box.Settings(computes=3, kronos=True, nova_conf=CONF, concurrency='threading')


class AtomicUnderEventletTest(AtomicTestCase, base.CloudTestCase):
    settings = box.Settings(computes=3, kronos=True, nova_conf=CONF, concurrency='eventlet')


class AtomicWithKeystoneTest(AtomicTestCase, base.CloudTestCase):
    settings = box.Settings(computes=3, kronos=True, nova_conf=CONF, keystone=True)
