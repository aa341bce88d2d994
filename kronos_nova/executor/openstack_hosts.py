"""The executor's port to hosts by Nova's public API."""

import dataclasses
from urllib import parse

from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.executor.openstack import OpenStackComputeApi
from kronos_nova.objects import migration_status


class OpenStackHostApi(OpenStackComputeApi):
    """HostApi over the public API."""

    def servers_on(self, host):
        found, marker = [], ''
        while page := self._get(host, '/servers/detail?all_tenants=1&soft_deleted=True&limit=1000'
                                      f'&host={parse.quote(host, "")}{marker}')['servers']:
            found += map(_on_host, page)
            marker = f'&marker={page[-1]["id"]}'
        return [*found, *self._unsettled(host, {server.uuid for server in found})]

    def _unsettled(self, host, here):
        moved = set()
        for status in migration_status.NOT_LET_GO_OF:
            path = f'/os-migrations?status={status}&source_compute={parse.quote(host, "")}'
            moved |= {each['instance_uuid'] for each in self._get(host, path)['migrations']
                      if each['source_compute'] == host}
        for uuid in sorted(moved - here):
            answer = self._get(host, f'/servers/{uuid}')
            if answer is not None:
                yield dataclasses.replace(_on_host(answer['server']), is_unsettled=True)

    def disable(self, host, reason):
        self._update(host, {'status': 'disabled', 'disabled_reason': reason})

    def enable(self, host):
        self._update(host, {'status': 'enabled'})

    def _update(self, host, values):
        for service in self._services(host):
            self._request(host, 'PUT', f'/os-services/{service["id"]}', json=values)


def _on_host(server):
    return ServerOnHost(uuid=server['id'], name=server['name'], status=server['status'],
                        task_state=server['OS-EXT-STS:task_state'])
