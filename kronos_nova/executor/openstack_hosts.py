"""The executor's port to hosts by Nova's public API."""

from urllib import parse

from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.executor.openstack import OpenStackComputeApi


class OpenStackHostApi(OpenStackComputeApi):
    """HostApi over the public API."""

    def servers_on(self, host):
        found, marker = [], ''
        while page := self._get(host, '/servers/detail?all_tenants=1&soft_deleted=True&limit=1000'
                                      f'&host={parse.quote(host, "")}{marker}')['servers']:
            found += [ServerOnHost(uuid=server['id'], name=server['name'],
                                   status=server['status'],
                                   task_state=server['OS-EXT-STS:task_state']) for server in page]
            marker = f'&marker={page[-1]["id"]}'
        return found

    def disable(self, host, reason):
        self._update(host, {'status': 'disabled', 'disabled_reason': reason})

    def enable(self, host):
        self._update(host, {'status': 'enabled'})

    def _update(self, host, values):
        for service in self._services(host):
            self._request(host, 'PUT', f'/os-services/{service["id"]}', json=values)
