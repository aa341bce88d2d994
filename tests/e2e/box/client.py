"""Requests of users and tests to the box, by its public APIs alone."""

import itertools

from keystoneauth1 import adapter
from keystoneauth1 import session

from tests.e2e.box.processes import wait_for
from tests.e2e.box.settings import BoxError

COMPUTE_VERSION = '2.96'
PLACEMENT_VERSION = '1.39'
MIGRATION_ENDED = ('completed', 'failed', 'error', 'cancelled')


class Client:
    """
    :param identity: says how to get a token
    :param endpoints: service type -> URL
    """

    def __init__(self, identity, endpoints):
        def api(service, version=None):
            url = endpoints[service]
            return adapter.Adapter(
                session.Session(auth=identity.plugin(url)), endpoint_override=url,
                service_type=service, default_microversion=version, user_agent='box')
        self._compute = api('compute', COMPUTE_VERSION)
        self._placement = api('placement', PLACEMENT_VERSION)
        self._image = api('image')
        self._numbers = itertools.count(1)
        self.poll_seconds = 0.3

    def compute(self, method, path, **kwargs):
        """One request to Nova; the body of the answer, or None if it has none."""
        return _body(self._compute.request(path, method, **kwargs))

    def placement(self, method, path, **kwargs):
        return _body(self._placement.request(path, method, **kwargs))

    # -- what there is

    def hypervisors(self):
        return self.compute('GET', '/os-hypervisors/detail')['hypervisors']

    def services(self, binary='nova-compute'):
        """Service records by host."""
        listed = self.compute('GET', f'/os-services?binary={binary}')['services']
        return {service['host']: service for service in listed}

    def servers(self):
        return self.compute('GET', '/servers/detail?all_tenants=1&limit=1000')['servers']

    def server(self, uuid):
        return self.compute('GET', f'/servers/{uuid}')['server']

    def host(self, uuid):
        return self.server(uuid)['OS-EXT-SRV-ATTR:host']

    def migrations(self, **filters):
        query = '&'.join(f'{name}={value}' for name, value in filters.items())
        return self.compute('GET', f'/os-migrations?{query}')['migrations']

    def providers(self):
        """Resource provider uuid -> name."""
        listed = self.placement('GET', '/resource_providers')['resource_providers']
        return {provider['uuid']: provider['name'] for provider in listed}

    def allocations(self, consumer):
        """Return a consumer's allocations, provider name -> resources, and its consumer type."""
        answer = self.placement('GET', f'/allocations/{consumer}')
        names = self.providers()
        held = {names[uuid]: part['resources'] for uuid, part in answer['allocations'].items()}
        return held, answer.get('consumer_type')

    def consumers(self):
        """Every consumer that holds anything: consumer uuid -> names of its providers."""
        found = {}
        for uuid, name in self.providers().items():
            held = self.placement('GET', f'/resource_providers/{uuid}/allocations')
            for consumer in held['allocations']:
                found.setdefault(consumer, []).append(name)
        return found

    # -- set up

    def create_image(self, data=b'\0' * 512, disk='raw', container='bare', **properties):
        image = _body(self._image.post('/v2/images', json={
            'name': 'box', 'disk_format': disk, 'container_format': container, **properties}))
        self._image.put(f'/v2/images/{image["id"]}/file', data=data,
                        headers={'Content-Type': 'application/octet-stream'})
        return image['id']

    def create_flavor(self, name, vcpus, ram, disk=1, extra_specs=None):
        flavor = self.compute('POST', '/flavors', json={'flavor': {
            'name': name, 'id': name, 'vcpus': vcpus, 'ram': ram, 'disk': disk}})['flavor']
        if extra_specs:
            self.compute('POST', f'/flavors/{name}/os-extra_specs',
                         json={'extra_specs': extra_specs})
        return flavor['id']

    def create_aggregate(self, name, hosts):
        """Create an aggregate with hosts, and return its number. The aggregate has another name
        until it has all hosts, so that no cycle plans only some of them."""
        made = self.compute('POST', '/os-aggregates', json={'aggregate': {
            'name': f'{name} without all hosts'}})
        number = made['aggregate']['id']
        for host in hosts:
            self.compute('POST', f'/os-aggregates/{number}/action',
                         json={'add_host': {'host': host}})
        self.compute('PUT', f'/os-aggregates/{number}', json={'aggregate': {'name': name}})
        return number

    def create_server_group(self, name, policy):
        group = self.compute('POST', '/os-server-groups', json={
            'server_group': {'name': name, 'policy': policy}})
        return group['server_group']['id']

    # -- servers

    def create(self, image, name=None, flavor='m1.small', host=None, group=None, metadata=None):
        """Ask for a server and return its uuid without waiting for it."""
        server = {'name': name or f'server{next(self._numbers)}', 'imageRef': image,
                  'flavorRef': flavor, 'networks': 'none', 'metadata': metadata or {}}
        if host:
            server['host'] = host
        body = {'server': server}
        if group:
            body['os:scheduler_hints'] = {'group': group}
        return self.compute('POST', '/servers', json=body)['server']['id']

    def wait_active(self, uuids, timeout=180):
        """Wait until all are ACTIVE; their records by uuid."""
        def ended():
            found = {server['id']: server for server in self.servers()}
            states = {uuid: found[uuid]['status'] for uuid in uuids}
            broken = [uuid for uuid, status in states.items() if status == 'ERROR']
            if broken:
                faults = {found[uuid].get('fault', {}).get('message') for uuid in broken}
                raise BoxError(f'{len(broken)} servers are in ERROR: {faults}')
            return all(status == 'ACTIVE' for status in states.values()) and found
        return wait_for(ended, timeout, 'the servers are not ACTIVE', self.poll_seconds)

    def delete(self, uuid):
        self.compute('DELETE', f'/servers/{uuid}')

    # -- live migration

    def live_migrate(self, uuid, host=None):
        """Ask for a live migration, as an administrator would."""
        self.compute('POST', f'/servers/{uuid}/action', json={
            'os-migrateLive': {'host': host, 'block_migration': 'auto'}})

    def migration(self, uuid, status=None, timeout=60):
        """The newest migration of a server, once it has one (of that status)."""
        def found():
            newest = max(self.migrations(instance_uuid=uuid), key=lambda each: each['id'],
                         default=None)
            if newest and (status is None or newest['status'] in status):
                return newest
        return wait_for(found, timeout, f'{uuid} has no migration {status or ""}',
                        self.poll_seconds)

    def migration_ended(self, uuid, timeout=180):
        return self.migration(uuid, MIGRATION_ENDED, timeout)


def _body(response):
    return response.json() if response.content else None
