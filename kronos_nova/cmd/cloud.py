"""Access of commands to the cloud. If ``[kronos] run_in`` is ``daemons``, commands use Nova's
public API. Otherwise, they run Nova's code in their own process."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.executor.hosts import HostApi
from kronos_nova.executor.openstack_hosts import OpenStackHostApi
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.metrics import prometheus
from kronos_nova.objects.dry_run import DryRun
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.placement import dry_run
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.room_allocations import RoomAllocations
from kronos_nova.plugin import standalone


@dataclasses.dataclass(frozen=True, slots=True)
class Cloud:
    """The access to the cloud that commands need.

    read : function that returns a Snapshot of the present cloud
    read_flavors : function that returns Nova's flavors
    hosts : the HostApi
    room_allocations : function that returns a RoomAllocations, which allocates room in placement
        for future servers
    dry_run : the DryRun, which finds out whether a move is possible. In a process that runs Nova's
        code, the DryRun asks Nova's scheduler; in other processes, it asks placement
    """

    read: Callable[[], Snapshot]
    read_flavors: Callable[[], tuple[Shape, ...]]
    hosts: HostApi
    room_allocations: Callable[[], RoomAllocations]
    dry_run: DryRun = not_asked


def open_cloud(app: Any) -> Cloud:
    """Return the access to the cloud that the command's configuration describes.

    :param app: the kronos-manage that runs, with ``conf`` and ``options``
    :raises ConfigurationError: options for reaching the cloud are missing
    """
    if app.conf.kronos.run_in == 'daemons':
        connection = connect(app.conf)
        source = OpenStackInventory(connection, domain_keys=app.conf.kronos.failure_domain_key)
        return Cloud(source.read, source.read_flavors, OpenStackHostApi(connection),
                     lambda: RoomAllocations(PlacementClient(connection.placement)),
                     dry_run.from_connection(connection))
    standalone.load_nova(app.options.config_file, app.options.config_dir)
    # Imported late: these modules import Nova, which has to be configured first.
    from kronos_nova.plugin import host_api
    from kronos_nova.plugin import inventory
    from kronos_nova.plugin import placement
    from kronos_nova.plugin.dry_run import SchedulerDryRun
    found = inventory.InProcessInventory(domain_keys=app.conf.kronos.failure_domain_key)
    return Cloud(found.read, found.read_flavors, host_api.InProcessHostApi(),
                 lambda: RoomAllocations(placement.client()), SchedulerDryRun())


def planner_ports(conf: cfg.ConfigOpts, asked: DryRun) -> PlannerPorts:
    """Return the PlannerPorts (metrics source, clock and dry run) of a command that plans.

    :param asked: the dry run of the :class:`Cloud`
    """
    return PlannerPorts(source=prometheus.for_cycle(conf), clock=time.monotonic, now=time.time(),
                        dry_run=asked)
