"""MariaDB and placement alone, with Nova's tables but none of its services."""

import contextlib
import json

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint

from tests.e2e.box import apis
from tests.e2e.box import conffile
from tests.e2e.box import identity
from tests.e2e.box import processes
from tests.e2e.box import schema
from tests.e2e.box.mariadb import MariaDB
from tests.e2e.box.settings import Ports

PLACEMENT_PROCESSES = 2
"""As the smallest of deployments has them: one is as fast as one core."""

FLAVOR = {
    'nova_object.name': 'Flavor', 'nova_object.namespace': 'nova', 'nova_object.version': '1.2',
    'nova_object.data': {'name': 'small', 'flavorid': 'small', 'vcpus': 1, 'memory_mb': 512,
                         'root_gb': 1, 'ephemeral_gb': 0, 'swap': 0, 'extra_specs': {}}}
"""The flavor of all instances, as Nova writes it."""


class Services:
    """A context manager. ``adapter`` is a keystoneauth adapter for placement."""

    def __init__(self):
        self._end = contextlib.ExitStack()
        self.root = self._end.enter_context(processes.folder('kronos-services-'))
        ports = Ports()
        self.database = MariaDB(self.root, ports)
        self.placement = apis.Placement(self.root, ports, processes=PLACEMENT_PROCESSES)
        self._ports = ports

    def __enter__(self):
        self.database.restore(schema.saved_databases(self._ports, 240))
        self.database.start(60)
        self.placement.configure(self.database, identity.FixedToken())
        self.placement.start()
        self.placement.process.wait_ready(60)
        auth = token_endpoint.Token(self.placement.url, 'admin')
        self.adapter = adapter.Adapter(session.Session(auth=auth), service_type='placement')
        return self

    def __exit__(self, *_exc):
        self._end.close()

    def take_port(self):
        return self._ports.take()

    def nova_conf(self, *layers):
        """:param layers: more sections; a later one wins"""
        return conffile.write(self.root / 'nova.conf', {
            'DEFAULT': {'transport_url': 'rabbit://nobody:nobody@127.0.0.1:1/',
                        'state_path': self.root},
            'api_database': {'connection': self.database.url('nova_api')},
            'database': {'connection': self.database.url('nova_cell1')},
            'placement': {'auth_type': 'admin_token', 'token': 'admin',
                          'endpoint': self.placement.url},
            'kronos_database': {'connection': self.database.url('kronos')}}, *layers)

    def record(self, nodes, instances):
        """Write compute nodes, and instances of the flavor :data:`FLAVOR`, into Nova's tables.

        :param nodes: uuids; the first is that of host0, and so on
        :param instances: (uuid, number of its host)
        """
        hosts = [(uuid, f'host{number}', f'host{number}') for number, uuid in enumerate(nodes)]
        with self.database.connect('nova_cell1') as connection, connection.cursor() as cursor:
            cursor.executemany(
                'INSERT INTO compute_nodes (created_at, deleted, uuid, host, hypervisor_hostname, '
                'vcpus, memory_mb, local_gb, vcpus_used, memory_mb_used, local_gb_used, '
                "hypervisor_type, hypervisor_version, cpu_info, mapped) VALUES ('2026-01-01', 0, "
                "%s, %s, %s, 64, 65536, 1000, 0, 0, 0, 'QEMU', 1, '{}', 1)", hosts)
            cursor.executemany(
                'INSERT INTO instances (created_at, updated_at, deleted, uuid, host, node, '
                'project_id, user_id, vm_state, hidden, image_ref) VALUES '
                "('2026-01-01', '2026-01-01', 0, %s, %s, %s, 'a-project', 'u', 'active', 0, 'i')",
                [(uuid, f'host{number}', f'host{number}') for uuid, number in instances])
            cursor.executemany(
                'INSERT INTO instance_extra (created_at, deleted, instance_uuid, flavor) VALUES '
                "('2026-01-01', 0, %s, %s)",
                [(uuid, json.dumps({'cur': FLAVOR})) for uuid, _number in instances])
        [cell] = self.database.query('nova_api',
                                     "SELECT id FROM cell_mappings WHERE name = 'cell1'")
        with self.database.connect('nova_api') as connection, connection.cursor() as cursor:
            cursor.executemany(
                'INSERT INTO instance_mappings (created_at, instance_uuid, cell_id, project_id, '
                "user_id, queued_for_delete) VALUES ('2026-01-01', %s, %s, 'a-project', 'u', 0)",
                [(uuid, cell['id']) for uuid, _number in instances])
