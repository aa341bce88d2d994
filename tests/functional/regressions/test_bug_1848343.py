"""A server that is deleted while it is moved gets its allocation back, and keeps it for ever."""

from tests.functional.mixed import fakes_drivers
from tests.functional.regressions import base


class DeletedInMidMigrationTest(base.RegressionTestCase):
    def delete(self, server):
        self._delete_server(server)

    def before(self, name, server):
        """Delete the server right before ``name`` of Nova's is called."""
        module, _, attributes = name.partition(':')
        owner, _, function = attributes.partition('.')
        path = f'{module}.{owner}.{function}'
        owner = getattr(__import__(module, fromlist=[owner]), owner)
        real = getattr(owner, function)

        def delete_first(*args, **kwargs):
            self.delete(server)
            return real(*args, **kwargs)

        self.stub_out(path, delete_first)

    def disable_destination(self):
        service = self.computes['host2'].service_ref
        self.api.put_service(service.uuid, {'status': 'disabled'})

    def test_the_conductor_rolls_a_live_migration_back(self):
        server = self.boot_server()
        self.disable_destination()
        self.before('nova.scheduler.client.query:SchedulerQueryClient.select_destinations', server)

        self.migrate(server)
        self._wait_for_action_fail_completion(
            server, 'live-migration', 'conductor_live_migrate_instance')

        self.assert_holds_alone(server)

    def test_the_conductor_rolls_a_cold_migration_back(self):
        server = self.boot_server()
        self.disable_destination()
        self.before('nova.scheduler.client.query:SchedulerQueryClient.select_destinations', server)

        self.api.post_server_action(server['id'], {'migrate': None})
        self._assert_resize_migrate_action_fail(server, 'migrate', 'InstanceNotFound')

        self.assert_holds_alone(server)

    def test_the_destination_rolls_a_cold_migration_back(self):
        server = self.boot_server()
        self.before('nova.compute.manager:ComputeManager._prep_resize', server)

        self.api.post_server_action(server['id'], {'migrate': None})
        self._wait_for_action_fail_completion(server, 'migrate', 'compute_prep_resize')

        self.assert_holds_alone(server)

    def test_the_source_rolls_a_live_migration_back(self):
        server = self.boot_server()
        self.hold(server)
        self.delete(server)

        fakes_drivers.COURSE.let_go('failed')

        self.assert_holds_alone(server)


StockDeletedInMidMigrationTest = base.on_stock_nova(DeletedInMidMigrationTest)
