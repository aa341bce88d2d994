"""The user of a destination's request to Glance for the base of a disk."""

import datetime

import nova.conf
from keystoneauth1 import loading
from nova import context as nova_context
from nova import objects
from nova import service_auth
from nova.compute import api
from nova.virt import fake

from kronos_nova.objects import move as moves
from kronos_nova.plugin import compute_api
from tests.functional import base


class ImagesTest(base.NovaTestCase):
    managers = {'nova-compute': 'kronos_nova.plugin.managers.Compute'}

    def setUp(self):
        super().setUp()
        self.server = self.boot('host1')
        self.asked_with = []
        for name in ('pre_live_migration', 'finish_migration'):
            self.listen(name)

    def listen(self, name):
        real = getattr(fake.FakeDriver, name)

        def method(driver, context, *args, **kwargs):
            self.asked_with.append(context.get_auth_plugin().get_token(None))
            return real(driver, context, *args, **kwargs)

        self.stub_out(f'nova.virt.fake.FakeDriver.{name}', method)

    def configure_service_user(self):
        service_auth.reset_globals()
        self.addCleanup(service_auth.reset_globals)
        for option in loading.get_auth_plugin_conf_options('admin_token'):
            nova.conf.CONF.register_opt(option, 'service_user')
        self.flags(auth_type='admin_token', endpoint='http://image', token='of Nova itself',
                   group='service_user')

    def a_move(self):
        now = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
        return moves.MoveRecord(
            uuid='11111111-1111-1111-1111-111111111111', plan_uuid='a-plan', aggregate='rack',
            ordinal=1, phase='spread', instance_uuid=self.server['id'], source='host1',
            destination='host2', memory_mb=512, reason='load', state=moves.MIGRATING,
            not_before=now, created_at=now, requested_at=now)

    def test_a_live_migration_of_a_plan_fetches_as_nova(self):
        self.configure_service_user()
        compute_api.InProcessComputeApi().live_migrate(self.a_move())
        self._wait_for_migration_status(self.server, ['completed'])
        self.assertEqual(['of Nova itself'], self.asked_with)

    def test_a_cold_migration_of_a_plan_does_too(self):
        self.configure_service_user()
        compute_api.InProcessComputeApi().cold_migrate(self.a_move())
        self._wait_for_state_change(self.server, 'VERIFY_RESIZE')
        self.assertEqual(['of Nova itself'], self.asked_with)

    def test_without_one_it_is_as_in_plain_nova(self):
        compute_api.InProcessComputeApi().live_migrate(self.a_move())
        self._wait_for_migration_status(self.server, ['completed'])
        self.assertEqual([None], self.asked_with)

    def test_a_request_with_a_token_keeps_it(self):
        self.configure_service_user()
        context = nova_context.RequestContext(
            'admin', base.PROJECT_ID, is_admin=True, auth_token='of an administrator')
        with nova_context.target_cell(context, self.cell_mappings['cell1']) as in_cell:
            instance = objects.Instance.get_by_uuid(in_cell, self.server['id'])
            api.API().live_migrate(in_cell, instance, 'auto', False, 'host2')
        self._wait_for_migration_status(self.server, ['completed'])
        self.assertEqual(['of an administrator'], self.asked_with)
