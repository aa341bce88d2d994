"""``openstack allocation move show`` with a real Nova and a real placement."""

import types

from kronos_nova.osc import allocation
from tests.functional import base
from tests.functional.inventory import public


class ShowMoveTest(base.NovaTestCase):
    managers = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor'}
    hosts = ('host1', 'host2')

    def show(self, server):
        app = types.SimpleNamespace(client_manager=types.SimpleNamespace(
            kronos=self.placement_client, sdk_connection=public.public_connection(self)))
        command = allocation.ShowMove(app, None)
        columns, rows = command.take_action(command.get_parser('x').parse_args([server]))
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def test_a_server_of_any_project_is_found_by_its_name(self):
        server = self.boot('host1')
        self.migrate(server, 'host2')
        migration = self._wait_for_migration_status(server, ['completed'])
        self.assertNotEqual('admin', server['tenant_id'])

        ours, past = self.show(server['name'])

        self.assertEqual(('instance', 'ACTIVE', server['id'], 'host2'),
                         tuple(ours[name] for name in ('Role', 'Status', 'Consumer', 'Provider')))
        self.assertIn('VCPU=1', ours['Resources'])
        self.assertEqual(('live-migration', 'completed', migration['uuid'], '', ''),
                         tuple(past[name] for name in (
                             'Role', 'Status', 'Consumer', 'Provider', 'Resources')))
