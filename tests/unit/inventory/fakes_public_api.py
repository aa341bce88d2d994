"""A small cloud's public API over real HTTP, answering as Nova and placement do."""

import copy
import json
import urllib.parse

from tests.unit.fakes_web_server import WebServer

VERSIONS = {
    '/compute/v2.1': {'version': {
        'id': 'v2.1', 'status': 'CURRENT', 'version': '2.100', 'min_version': '2.1',
        'links': [{'rel': 'self', 'href': '/compute/v2.1'}]}},
    '/placement': {'versions': [{
        'id': 'v1.0', 'status': 'CURRENT', 'max_version': '1.39', 'min_version': '1.0',
        'links': [{'rel': 'self', 'href': ''}]}]},
}
SHARED_DISK = 'shared-disk'
PAGE = 2
"""Nova's ``[api] max_limit`` here, so that every list has several pages."""


def server(number, host, **changes):
    return {
        'id': f'00000000-0000-0000-0000-{number:012d}', 'name': f'web{number}', 'status': 'ACTIVE',
        'tenant_id': 'p1', 'locked': False, 'metadata': {}, 'OS-EXT-SRV-ATTR:host': host,
        'OS-EXT-SRV-ATTR:instance_name': f'instance-{number:08x}', 'OS-EXT-STS:task_state': None,
        'image': '', 'tags': [],
        'flavor': {'vcpus': 2, 'ram': 2048, 'disk': 10, 'ephemeral': 5, 'swap': 0,
                   'original_name': 'm1', 'extra_specs': {'hw:cpu_policy': 'shared'}}, **changes}


def hypervisor(number, host, kind='QEMU'):
    return {'id': f'aaaaaaaa-0000-0000-0000-{number:012d}', 'hypervisor_hostname': host,
            'hypervisor_type': kind, 'state': 'up', 'status': 'enabled',
            'hypervisor_version': 8002001,
            'cpu_info': {'arch': 'x86_64', 'model': 'Haswell', 'vendor': 'Intel',
                         'topology': {'cores': 8}, 'features': ['sse', 'aes']},
            'service': {'host': host, 'id': f's{number}', 'disabled_reason': None}}


def service(host, **changes):
    return {'host': host, 'binary': 'nova-compute', 'state': 'up', 'status': 'enabled',
            'forced_down': False, 'disabled_reason': None, 'zone': 'nova', **changes}


def inventory(total, reserved=0, ratio=1.0):
    return {'total': total, 'reserved': reserved, 'allocation_ratio': ratio, 'min_unit': 1,
            'max_unit': total, 'step_size': 1}


def migration(number, instance, source, destination, status='running'):
    return {'id': number, 'uuid': f'bbbbbbbb-0000-0000-0000-{number:012d}', 'status': status,
            'instance_uuid': instance, 'source_compute': source, 'dest_compute': destination,
            'migration_type': 'live-migration', 'created_at': '2026-11-20T11:59:00.000000',
            'updated_at': None}


class Cloud:
    """The content of the API; a test changes the attributes before it asks."""

    def __init__(self):
        self.services = [service('cmp1'), service('cmp2', status='disabled', disabled_reason='RAM'),
                         service('cmp3', state='down', forced_down=True), service('metal')]
        self.hypervisors = [hypervisor(1, 'cmp1'), hypervisor(2, 'cmp2'), hypervisor(3, 'cmp3'),
                            hypervisor(4, 'metal', 'ironic')]
        self.aggregates = [{'name': 'gpu', 'uuid': 'ag1', 'availability_zone': 'az1',
                            'hosts': ['cmp1', 'metal'], 'metadata': {'availability_zone': 'az1'}}]
        self.groups = [
            {'id': 'g1', 'name': 'db', 'policy': 'anti-affinity', 'members': ['x'],
             'rules': {'max_server_per_host': 2}},
            {'id': 'g2', 'name': 'old', 'policies': ['affinity'], 'members': []},
            {'id': 'g3', 'name': 'soft', 'policy': 'soft-affinity', 'members': [], 'rules': {}}]
        self.servers = [server(1, 'cmp1'), server(2, 'cmp1', locked=True),
                        server(3, 'cmp2', **{'OS-EXT-STS:task_state': 'migrating'}),
                        server(4, 'metal'), server(5, None, status='ERROR')]
        roots = [h['id'] for h in self.hypervisors]
        self.providers = [{'uuid': uuid, 'root_provider_uuid': uuid, 'name': uuid, 'generation': 1}
                          for uuid in [*roots, SHARED_DISK]]
        self.providers.append({'uuid': 'numa0', 'root_provider_uuid': roots[0], 'name': 'numa0',
                               'generation': 1})
        self.inventories = {uuid: {'VCPU': inventory(16, 2, 4.0),
                                   'MEMORY_MB': inventory(32768, 512, 1.0)} for uuid in roots}
        self.inventories['numa0'] = {'VCPU': inventory(4, 0, 1.0), 'VGPU': inventory(2)}
        self.inventories[SHARED_DISK] = {'DISK_GB': inventory(1000, 10)}
        self.memberships = {SHARED_DISK: ['pool'], roots[0]: ['pool', 'zone'], roots[1]: ['pool'],
                            roots[2]: ['zone'], 'numa0': ['zone']}
        self.traits = {roots[0]: ['HW_CPU_X86_AVX2', 'CUSTOM_LICENCE'], 'numa0': ['HW_NUMA_ROOT']}
        self.migrations = []
        self.flavors = [{'id': '42', 'name': 'm1.medium', 'vcpus': 2, 'ram': 4096, 'disk': 20,
                         'OS-FLV-EXT-DATA:ephemeral': 5, 'swap': 512,
                         'extra_specs': {'hw:cpu_policy': 'dedicated'}}]
        self.allocations = {roots[0]: {self.servers[0]['id']: {'resources': {'MEMORY_MB': 2048}}},
                            'numa0': {self.servers[0]['id']: {'resources': {'VCPU': 2}}}}
        self.refuse = {}
        self.asked = []

    def fixture(self):
        return WebServer(self._respond)

    def _respond(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
        self.asked.append((url.path, query, handler.headers.get('OpenStack-API-Version')))
        status, body = self.refuse.get(url.path) or (200, self._body(url.path, query))
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header('Content-Type', 'application/json')
        handler.send_header('Content-Length', str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _body(self, path, query):
        if path.rstrip('/') in VERSIONS:
            return VERSIONS[path.rstrip('/')]
        lists = {'/os-services': ('services', self.services),
                 '/os-aggregates': ('aggregates', self.aggregates),
                 '/resource_classes': ('resource_classes', [{'name': 'VCPU'}]),
                 '/resource_providers': ('resource_providers', self._providers(query))}
        service_path = path.removeprefix('/compute/v2.1').removeprefix('/placement')
        if service_path in lists:
            key, content = lists[service_path]
            return {key: content}
        if service_path == '/flavors/detail':
            return self._page('flavors', copy.deepcopy(self.flavors), query)
        if service_path in ('/os-hypervisors/detail', '/servers/detail'):
            key = service_path.split('/')[1].removeprefix('os-')
            found = [each for each in getattr(self, key)
                     if each['status'] != 'SOFT_DELETED' or query.get('soft_deleted') == 'True']
            return self._page(key, copy.deepcopy(found), query)
        if service_path == '/os-server-groups':
            offset = int(query['offset'])
            return {'server_groups': self.groups[offset:offset + PAGE]}
        if service_path == '/os-migrations':
            found = [m for m in self.migrations if m['status'] == query['status']]
            return self._page('migrations', found, query, key='uuid')
        _, collection, uuid, what = service_path.split('/')
        if what == 'aggregates':
            return {what: self.memberships.get(uuid, [])}
        if what == 'traits':
            return {what: self.traits.get(uuid, [])}
        return {what: getattr(self, what).get(uuid, {})}

    def _providers(self, query):
        if 'required' in query:
            return [p for p in self.providers if p['uuid'] == SHARED_DISK]
        if 'member_of' in query:
            wanted = set(query['member_of'].removeprefix('in:').split(','))
            return [p for p in self.providers
                    if wanted & set(self.memberships.get(p['uuid'], []))]
        return self.providers

    @staticmethod
    def _page(name, content, query, key='id'):
        start = next((i + 1 for i, item in enumerate(content) if item[key] == query.get('marker')),
                     0)
        page = {name: content[start:start + PAGE]}
        if start + PAGE < len(content):
            page[f'{name}_links'] = [{'rel': 'next', 'href': 'http://elsewhere.invalid/'}]
        return page
