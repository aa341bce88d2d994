"""The executor's port to hosts, in-process."""

import dataclasses

from nova import objects
from nova import servicegroup
from nova.api.openstack import common
from nova.compute import api

from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.objects import migration_status
from kronos_nova.plugin import cells
from kronos_nova.plugin import compute_api
from kronos_nova.plugin import nova_tables

COMPUTE = 'nova-compute'


class InProcessHostApi:
    """HostApi over Nova's own code. What only reads needs no RPC."""

    def __init__(self):
        self.servicegroup_api = servicegroup.API()

    def service(self, host):
        return compute_api.find_service(self.servicegroup_api, host)

    def servers_on(self, host):
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

    def disable(self, host, reason):
        self._update(host, {'disabled': True, 'disabled_reason': reason})

    def enable(self, host):
        self._update(host, {'disabled': False, 'disabled_reason': None})

    @staticmethod
    def _update(host, values):
        with compute_api.answered(host):
            api.HostAPI().service_update_by_host_and_binary(
                cells.admin_context(), host, COMPUTE, values)


def _on_host(found):
    return ServerOnHost(uuid=found.uuid, name=found.display_name or '', task_state=found.task_state,
                        status=common.status_from_state(found.vm_state, found.task_state))
