"""Reads the cloud in-process: Nova's objects from its databases, placement by Nova's client."""

import collections

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import servicegroup
from nova.api.openstack import common
from nova.db.api import api
from nova.db.api import models
from oslo_db import exception as db_exc
from oslo_utils import timeutils

from kronos_nova import exception
from kronos_nova.inventory import providers
from kronos_nova.inventory import shape
from kronos_nova.objects import migration_status
from kronos_nova.objects import nova_facts
from kronos_nova.objects import snapshot
from kronos_nova.plugin import cells
from kronos_nova.plugin import placement
from kronos_nova.plugin.compute_api import service_of


class InProcessInventory:
    """An inventory source for the conductor that reaches the API database and every cell's."""

    def __init__(self):
        self._servicegroup_api = servicegroup.API()
        self._placement = placement.client()

    def read(self) -> snapshot.Snapshot:
        """Hosts with QEMU or KVM and what runs there, all projects and cells.

        :raises InventoryError: a database, a cell or placement cannot be read
        """
        taken_at = timeutils.utcnow().strftime('%Y-%m-%dT%H:%M:%SZ')
        context = cells.admin_context()
        try:
            return self._read(context, taken_at)
        except (db_exc.DBError, nova_exception.NovaException) as e:
            raise exception.InventoryError(problem=str(e)) from e

    def _read(self, context, taken_at):
        nodes, instances, migrations = [], [], []
        for cell in cells.mappings(context):
            with nova_context.target_cell(context, cell) as cell_context:
                nodes.extend(self._nodes(cell_context, cell.name or cell.uuid))
                instances.extend(self._instances(cell_context))
                migrations.extend(_migrations(cell_context))
        trees = providers.read_trees(self._placement,
                                     {node.uuid for node, _service, _cell in nodes})
        hosts = tuple(_host(node, service, cell, trees.of[node.uuid])
                      for node, service, cell in nodes)
        held = {host.name: shape.held_by_consumer(trees.of[host.uuid]) for host in hosts}
        shared = shape.held_by_consumer(each.provider for each in trees.sharing.values())
        names = {host.uuid: host.name for host in hosts}
        return snapshot.Snapshot(
            taken_at=taken_at, hosts=hosts,
            instances=tuple(_instance(i, held[i.host].get(i.uuid, {}), shared.get(i.uuid, {}))
                            for i in instances if i.host in held),
            aggregates=tuple(_aggregate(a, held) for a in objects.AggregateList.get_all(context)),
            server_groups=tuple(_server_group(g)
                                for g in objects.InstanceGroupList.get_all(context)),
            shared_providers=tuple(shape.shared_provider(uuid, found, names)
                                   for uuid, found in trees.sharing.items()),
        ).with_moves_under_way(migrations)

    def _nodes(self, context, cell):
        """[(ComputeNode, Service, cell name)]"""
        services = {service.host: service_of(self._servicegroup_api, service)
                    for service in objects.ServiceList.get_by_binary(
                        context, 'nova-compute', include_disabled=True)}
        return [(node, services[node.host], cell)
                for node in objects.ComputeNodeList.get_all(context)
                if nova_facts.is_supported(node.hypervisor_type) and node.host in services]

    @staticmethod
    def _instances(context):
        return objects.InstanceList.get_by_filters(
            context, {'deleted': False}, expected_attrs=['flavor', 'metadata'])


def aggregate_hosts():
    """{name of an aggregate: names of its hosts}

    By columns: a conductor reads it for every evaluation, and there may be thousands of hosts.

    :raises InventoryError: the API database cannot be read
    """
    found = collections.defaultdict(list)
    try:
        for name, host in _memberships(cells.admin_context()):
            found[name].append(host)
    except (db_exc.DBError, nova_exception.NovaException) as e:
        raise exception.InventoryError(problem=str(e)) from e
    return dict(found)


@api.context_manager.reader
def _memberships(context):
    """[(name of an aggregate, name of a host)]"""
    return context.session.query(models.Aggregate.name, models.AggregateHost.host).join(
        models.AggregateHost, models.AggregateHost.aggregate_id == models.Aggregate.id).all()


def _migrations(context):
    """MovesUnderWay that Nova knows of in a cell, whoever asked for them."""
    rows = objects.MigrationList.get_by_filters(
        context, {'status': list(migration_status.LEAVING)})
    return [snapshot.MoveUnderWay(instance_uuid=row.instance_uuid, source=row.source_compute,
                                  destination=row.dest_compute)
            for row in rows if row.dest_compute]


def _host(node, service, cell, tree):
    return snapshot.Host(
        name=node.host, uuid=node.uuid, cell=cell, hypervisor_type=node.hypervisor_type,
        service=service, inventory=shape.inventory(tree), used=shape.used(tree))


def _instance(instance, resources, shared_resources):
    flavor = instance.flavor
    return snapshot.Instance(
        uuid=instance.uuid, name=instance.name, display_name=instance.display_name or '',
        host=instance.host, project_id=instance.project_id,
        status=common.status_from_state(instance.vm_state, instance.task_state),
        task_state=instance.task_state, locked=bool(instance.locked), vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb, disk_gb=flavor.root_gb + flavor.ephemeral_gb,
        metadata=dict(instance.metadata), flavor_extra_specs=dict(flavor.extra_specs),
        resources=resources, shared_resources=shared_resources)


def _aggregate(aggregate, hosts):
    return snapshot.Aggregate(
        name=aggregate.name, uuid=aggregate.uuid, availability_zone=aggregate.availability_zone,
        metadata=dict(aggregate.metadata),
        hosts=tuple(host for host in aggregate.hosts if host in hosts))


def _server_group(group):
    return snapshot.ServerGroup(
        uuid=group.uuid, name=group.name, policy=group.policy, members=tuple(group.members),
        rules={name: int(value) for name, value in group.rules.items()})
