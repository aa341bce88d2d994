"""The planning worker that kronos-engine starts; see kronos_nova.engine.planning_worker."""

import sys

from oslo_config import cfg

from kronos_nova.cmd import daemon
from kronos_nova.cycle.room_requests import RoomRequests
from kronos_nova.drain.progress import HostDrains
from kronos_nova.engine import planning_worker
from kronos_nova.engine import unreadable_files
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.placement import dry_run
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.room_allocations import RoomAllocations


def main(argv: list[str] | None = None) -> int:
    """Run the planning worker.

    :returns: the exit status
    """
    args = planning_worker.parse(__spec__.name, argv)
    may_write = planning_worker.end_with_parent()
    with unreadable_files.end_process():
        conf = daemon.load_config('kronos-engine', args.arguments)
    return planning_worker.serve(conf, lambda: make_sources(conf), args.answers, may_write)


def make_sources(conf: cfg.ConfigOpts) -> planning_worker.Sources:
    connection = connect(conf)
    inventory = OpenStackInventory(
        connection, domain_keys=conf.kronos.failure_domain_key)
    return planning_worker.Sources(inventory=inventory, history=inventory.past_moves,
                                   dry_run=dry_run.from_connection(connection),
                                   requesters=(HostDrains, RoomRequests),
                                   room_allocations=RoomAllocations(
                                       PlacementClient(connection.placement)))


if __name__ == '__main__':
    sys.exit(main())
