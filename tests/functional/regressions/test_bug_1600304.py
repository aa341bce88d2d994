"""The record of a migration that ended long ago, of a server that is resized elsewhere today."""

from nova import context
from nova import objects

from tests.functional.regressions import base


class StaleMigrationTest(base.RegressionTestCase):
    hosts = ('host1', 'host2', 'host3')

    def used(self, host):
        """Return the VCPUs that a host counts as used."""
        return self.computes[host].manager.rt.compute_nodes[host].vcpus_used

    def test_its_host_does_not_count_the_server(self):
        server = self.boot_server()
        node = self.computes['host3'].manager.rt.compute_nodes['host3']
        stale = objects.Migration(
            context.get_admin_context(), instance_uuid=server['id'], status='post-migrating',
            migration_type='migration', source_compute='host3', source_node='host3',
            dest_compute='host3', dest_node='host3', dest_compute_id=node.id,
            old_instance_type_id=1, new_instance_type_id=1, user_id='user',
            project_id=server['tenant_id'])
        stale.create()
        self._migrate_server(server)

        for _audit in range(2):
            self.computes['host3'].manager.update_available_resource(context.get_admin_context())
            self.assertEqual(0, self.used('host3'))
        self.computes['host3'] = self.restart_compute_service(self.computes['host3'])

        self.assertEqual(0, self.used('host3'))
        self._confirm_resize(server)
        self.assertEqual([0, 1, 0], [self.used(host) for host in self.hosts])
