"""The executor's port to Nova, in-process, on Nova's own objects."""

import datetime

from nova import context
from nova import objects

from kronos_nova.objects import move as moves
from kronos_nova.plugin import compute_api
from tests.functional import base


class ForgottenRequestTest(base.NovaTestCase):
    """An instance marked as migrating by somebody who died before there was a migration."""

    def setUp(self):
        super().setUp()
        self.server = self.boot('host1')
        self.port = compute_api.InProcessComputeApi()
        now = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
        self.move = moves.MoveRecord(
            uuid='11111111-1111-1111-1111-111111111111', plan_uuid='a-plan', aggregate='rack',
            ordinal=1, phase='spread', instance_uuid=self.server['id'], source='host1',
            destination='host2', memory_mb=512, reason='load', state=moves.MIGRATING,
            not_before=now, created_at=now, requested_at=now)

    def mark(self, task_state):
        instance = objects.Instance.get_by_uuid(context.get_admin_context(), self.server['id'])
        instance.task_state = task_state
        instance.save()

    def test_it_is_set_free_and_can_be_moved_again(self):
        self.mark('migrating')
        self.assertIsNone(self.port.migration(self.move))
        self.assertTrue(self.port.set_free(self.move))
        self.assertIsNone(self.port.instance(self.server['id']).task_state)
        self.port.live_migrate(self.move)
        self.server_on(self.server, 'host2')

    def test_one_that_does_something_else_by_now_is_left_alone(self):
        self.mark('rebooting')
        self.assertFalse(self.port.set_free(self.move))
        self.assertEqual('rebooting', self.port.instance(self.server['id']).task_state)
