"""The executor's port to Nova, in-process, on Nova's own objects."""

import dataclasses
import datetime

from nova import context
from nova import objects
from nova.virt import fake

from kronos_nova.drain import states as drains
from kronos_nova.objects import move as moves
from kronos_nova.plugin import compute_api
from tests.functional import base

NOW = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


def record(server, source, destination):
    return moves.MoveRecord(
        uuid='11111111-1111-1111-1111-111111111111', plan_uuid='a-plan', aggregate='rack',
        ordinal=1, phase='spread', instance_uuid=server['id'], source=source,
        destination=destination, memory_mb=512, reason='load', state=moves.MIGRATING,
        not_before=NOW, created_at=NOW, requested_at=NOW)


class PortTestCase(base.NovaTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.boot('host1')
        self.port = compute_api.InProcessComputeApi()
        self.move = record(self.server, 'host1', 'host2')


class ForgottenRequestTest(PortTestCase):
    """An instance marked as migrating by a process that died before there was a migration."""

    task_state, ends_as = 'migrating', 'ACTIVE'

    def mark(self, task_state):
        instance = objects.Instance.get_by_uuid(context.get_admin_context(), self.server['id'])
        instance.task_state = task_state
        instance.save()

    def ask(self):
        self.port.live_migrate(self.move)

    def test_it_is_set_free_and_can_be_moved_again(self):
        self.mark(self.task_state)
        self.assertIsNone(self.port.migration(self.move))
        self.assertTrue(self.port.set_free(self.move))
        self.assertIsNone(self.port.instance(self.server['id']).task_state)
        self.ask()
        self._wait_for_server_parameter(self.server, {
            'OS-EXT-SRV-ATTR:host': 'host2', 'OS-EXT-STS:task_state': None,
            'status': self.ends_as})

    def test_one_whose_migration_a_conductor_prepares_is_left_alone(self):
        self.mark(self.task_state)
        port = compute_api.InProcessComputeApi(lambda: {self.server['id']})
        self.assertFalse(port.set_free(self.move))
        self.assertEqual(self.task_state, port.instance(self.server['id']).task_state)

    def test_one_that_does_something_else_by_now_is_left_alone(self):
        self.mark('rebooting')
        self.assertFalse(self.port.set_free(self.move))
        self.assertEqual('rebooting', self.port.instance(self.server['id']).task_state)


class ForgottenColdRequestTest(ForgottenRequestTest):
    task_state, ends_as = 'resize_prep', 'VERIFY_RESIZE'

    def setUp(self):
        super().setUp()
        self.move = dataclasses.replace(self.move, kind=drains.COLD)

    def ask(self):
        self.port.cold_migrate(self.move)


class LiveMigrationTest(base.NovaTestCase):
    """A hypervisor gets the same request as from Nova's API: it decides whether disks are copied.

    A request of Nova to copy disks is refused for instances on storage that hosts share.
    """

    def setUp(self):
        super().setUp()
        self.asked = []
        real = fake.FakeDriver.check_can_live_migrate_destination

        def check(driver, context, instance, source, destination, *disks, **named):
            self.asked.append((disks, named))
            return real(driver, context, instance, source, destination, *disks, **named)

        self.stub_out('nova.virt.fake.FakeDriver.check_can_live_migrate_destination', check)

    def test_who_asks_makes_no_difference(self):
        server = self.boot('host1')
        compute_api.InProcessComputeApi().live_migrate(record(server, 'host1', 'host2'))
        self.server_on(server, 'host2')
        self.migrate(server, 'host1')
        self.server_on(server, 'host1')
        ours, by_api = self.asked
        self.assertEqual(by_api, ours)


class RequestTest(PortTestCase):
    """Nova records each request as an instance action, and finds the action by the request's id."""

    def actions(self):
        return objects.InstanceActionList.get_by_instance_uuid(
            context.get_admin_context(), self.server['id'])

    def test_an_abort_that_comes_too_late_leaves_the_server_active(self):
        real = fake.FakeDriver.post_live_migration_at_destination
        accepted = []

        def arrive(driver, *args, **kwargs):
            accepted.append(self.port.abort(self.move))
            return real(driver, *args, **kwargs)

        self.stub_out('nova.virt.fake.FakeDriver.post_live_migration_at_destination', arrive)
        self.port.live_migrate(self.move)
        self.server_on(self.server, 'host2')
        self.assertEqual([True], accepted)
        self.assertEqual('ACTIVE', self.api.get_server(self.server['id'])['status'])
        self._wait_for_migration_status(self.server, ['completed'])

    def test_each_has_an_id_of_its_own(self):
        for source, destination in (('host1', 'host2'), ('host2', 'host1')):
            self.port.live_migrate(record(self.server, source, destination))
            self.server_on(self.server, destination)
        ids = [each.request_id for each in self.actions()]
        self.assertEqual(3, len(ids))
        self.assertEqual(3, len({*ids}))
