"""The executor's interface to compute hosts by Nova's public API."""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from urllib import parse

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.executor.openstack import OpenStackComputeApi
from kronos_nova.executor.openstack import message_of
from kronos_nova.objects import migration_meaning
from kronos_nova.objects import migration_status

LOG = logging.getLogger(__name__)

TO_CONFIRM = 'VERIFY_RESIZE'
"""Status of a server that waits for its resize to be confirmed."""


class OpenStackHostApi(OpenStackComputeApi):
    """A HostApi that uses Nova's public API."""

    def servers_on(self, host: str) -> list[ServerOnHost]:
        found: list[ServerOnHost] = []
        marker, seen = '', set[str]()
        path = ('/servers/detail?all_tenants=1&soft_deleted=True&limit=1000'
                f'&host={parse.quote(host, "")}')
        while page := self._list(host, f'{path}{marker}', 'servers'):
            found += map(_on_host, page)
            marker = f'&marker={page[-1]["id"]}'
            if marker in seen:
                raise exception.NovaClientError(
                    instance=host, reason="Nova's list of its servers does not end: the same page "
                                          'is returned again and again')
            seen.add(marker)
        found += self._unsettled(host, {server.uuid for server in found})
        self._services(host)  # Nova leaves a cell that is down out of the lists above.
        return found

    def server(self, uuid: str) -> ServerOnHost | None:
        server = self._server(uuid)
        return None if server is None else _on_host(server)

    def _unsettled(self, host: str, here: set[str]) -> Iterator[ServerOnHost]:
        moved = collections.defaultdict(list)
        for status in migration_status.NOT_LET_GO_OF:
            path = f'/os-migrations?status={status}&source_compute={parse.quote(host, "")}'
            for each in self._list(host, path, 'migrations'):
                if each['source_compute'] == host:
                    moved[each['instance_uuid']].append((status, each))
        for uuid in sorted(moved.keys() - here):
            server = self._server(uuid)
            if server is not None and _needs_source(server, moved[uuid]):
                yield dataclasses.replace(_on_host(server), is_unsettled=True)

    def disable(self, host: str, reason: str) -> None:
        self._update(host, {'status': 'disabled', 'disabled_reason': reason})

    def enable(self, host: str) -> None:
        self._update(host, {'status': 'enabled'})

    def stop(self, server: str) -> None:
        self._act(server, 'os-stop')

    def start(self, server: str) -> None:
        self._act(server, 'os-start')

    def _act(self, server: str, action: str) -> None:
        answer = self._request(server, 'POST', f'/servers/{server}/action', json={action: None})
        if answer.status_code >= 400:
            LOG.warning('Nova refused the action %s for server %s, which a drain requested: %s',
                        action, server, answer.reason)

    def _update(self, host: str, values: dict[str, str]) -> None:
        for service in self._services(host):
            answer = self._request(host, 'PUT', f'/os-services/{service["id"]}', json=values)
            if answer.status_code >= 400:
                raise exception.NovaClientError(
                    instance=host, reason='Nova refused to change its nova-compute service: '
                                          f'{message_of(answer)}')


def _needs_source(server: dict[str, Any], migrations: Iterable[tuple[str, dict[str, Any]]]) -> bool:
    """Return True if one of ``migrations`` is in progress, or waits to be confirmed or reverted.
    The server may then still return to the host that it has left.

    :param migrations: [(status, migration as Nova lists it)]
    """
    now = migration_meaning.InstanceNow(
        host=server.get('OS-EXT-SRV-ATTR:host'),
        vm_state=migration_meaning.RESIZED if server['status'] == TO_CONFIRM else None,
        task_state=server['OS-EXT-STS:task_state'])
    return any(migration_meaning.meaning(
        status, each['source_compute'], each.get('dest_compute'), now,
    ) in (migration_meaning.MOVES, migration_meaning.WAITS) for status, each in migrations)


def _on_host(server: dict[str, Any]) -> ServerOnHost:
    return ServerOnHost(uuid=server['id'], name=server['name'], status=server['status'],
                        task_state=server['OS-EXT-STS:task_state'],
                        is_locked=bool(server['locked']))
