"""The executor's interface to compute hosts inside nova-conductor."""

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

from nova import exception as nova_exception
from nova import objects
from nova import servicegroup
from nova.api.openstack import common
from nova.compute import api
from oslo_log import log as logging

from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.objects import migration_status
from kronos_nova.objects import snapshot
from kronos_nova.plugin import cells
from kronos_nova.plugin import compute_api
from kronos_nova.plugin import nova_tables
from kronos_nova.plugin import outages
from kronos_nova.plugin.nova_types import Instance

LOG = logging.getLogger(__name__)

COMPUTE = 'nova-compute'


class InProcessHostApi:
    """A HostApi that calls Nova's own code. Methods that only read send no RPC."""

    def __init__(self) -> None:
        self.servicegroup_api = servicegroup.API()

    def service(self, host: str) -> snapshot.Service | None:
        return compute_api.find_service(self.servicegroup_api, host)

    def servers_on(self, host: str) -> list[ServerOnHost]:
        with compute_api.answered(host):
            context = cells.admin_context()
            if not cells.target_host(context, host):
                return []
            here = objects.InstanceList.get_by_host(context, host)
            moved = {move.instance_uuid
                     for move in nova_tables.migrations(context, migration_status.NOT_LET_GO_OF)
                     if move.source == host} - {each.uuid for each in here}
            unsettled = objects.InstanceList.get_by_filters(
                context, {'uuid': sorted(moved), 'deleted': False}) if moved else ()
            return [*map(_on_host, here), *(dataclasses.replace(_on_host(each), is_unsettled=True)
                                            for each in unsettled)]

    def server(self, uuid: str) -> ServerOnHost | None:
        with compute_api.answered(uuid):
            context = cells.admin_context()
            if not cells.target_instance(context, uuid):
                return None
            try:
                return _on_host(objects.Instance.get_by_uuid(context, uuid, expected_attrs=[]))
            except nova_exception.InstanceNotFound:
                return None

    def disable(self, host: str, reason: str) -> None:
        self._update(host, {'disabled': True, 'disabled_reason': reason})

    def enable(self, host: str) -> None:
        self._update(host, {'disabled': False, 'disabled_reason': None})

    def stop(self, server: str) -> None:
        self._act(server, 'stop')

    def start(self, server: str) -> None:
        self._act(server, 'start')

    @staticmethod
    def _act(server: str, action: str) -> None:
        with compute_api.answered(server):
            context = cells.request_context()
            if not cells.target_instance(context, server):
                return
            try:
                instance = objects.Instance.get_by_uuid(context, server, expected_attrs=['flavor'])
                context.project_id = instance.project_id
                getattr(api.API(), action)(context, instance)
            except (nova_exception.InstanceInvalidState, nova_exception.InstanceNotFound) as e:
                # Another worker or the server's owner has done it already, or has deleted the
                # server.
                LOG.info('Server %s: a request to %s the server is not needed any more: %s', server,
                         action, e)
            except nova_exception.NovaException as e:
                if outages.is_outage(e):
                    raise
                LOG.warning('A drain requested Nova to %s server %s, and Nova refused: %s', action,
                            server, e)

    @staticmethod
    def _update(host: str, values: Mapping[str, Any]) -> None:
        with compute_api.answered(host), contextlib.suppress(
                nova_exception.HostMappingNotFound, nova_exception.HostBinaryNotFound):
            api.HostAPI().service_update_by_host_and_binary(
                cells.admin_context(), host, COMPUTE, values)


def _on_host(found: Instance) -> ServerOnHost:
    return ServerOnHost(uuid=found.uuid, name=found.display_name or '', task_state=found.task_state,
                        is_locked=bool(found.locked),
                        status=common.status_from_state(found.vm_state, found.task_state))
