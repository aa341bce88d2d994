"""The program of the planning worker, which a conductor starts; see
kronos_nova.engine.planning_worker."""

from kronos_nova.engine import gc_tuning  # isort: skip

gc_tuning.collect_rarely()  # before the modules below are loaded

from nova import monkey_patch  # isort: skip

from kronos_nova.engine import unreadable_files  # isort: skip

with unreadable_files.end_process():
    monkey_patch.patch(backend='threading')  # before other imports, as in Nova's own programs

# ruff: noqa: E402
import sys
from collections.abc import Sequence

import nova.conf
from nova import config
from nova import objects
from oslo_log import log as logging

from kronos_nova import conf as kronos_conf
from kronos_nova.cycle.room_requests import RoomRequests
from kronos_nova.drain.progress import HostDrains
from kronos_nova.engine import planning_worker
from kronos_nova.inventory import pace
from kronos_nova.placement.room_allocations import RoomAllocations
from kronos_nova.plugin import dry_run
from kronos_nova.plugin import history
from kronos_nova.plugin import inventory
from kronos_nova.plugin import placement
from kronos_nova.plugin.fixes import log_filters
from kronos_nova.plugin.fixes import request_clock

CONF = nova.conf.CONF


def main(argv: Sequence[str] | None = None) -> int:
    """Run the planning worker of nova-conductor.

    :returns: the exit status
    """
    args = planning_worker.parse(__spec__.name, argv)
    may_write = planning_worker.end_with_parent()
    # This configures RPC too: the addresses of cells may refer to the options of its transport.
    with unreadable_files.end_process():
        config.parse_args(['nova-conductor', *args.arguments])
    kronos_conf.register_opts(CONF)
    logging.setup(CONF, 'nova')
    log_filters.install()
    request_clock.install()
    objects.register_all()
    return planning_worker.serve(CONF, make_sources, args.answers, may_write)


REST_TIME = 5
"""Maximum total seconds of all pauses that one evaluation makes between its database queries. In
the pauses, the databases and placement answer other requests of nova-conductor. Raised, evaluations
take longer; lowered, the RPCs of nova-conductor wait longer. Not measured."""


PATIENCE = 30
"""Maximum seconds that an evaluation waits for an answer from the databases of cells. Raised, a
cell that is down delays the evaluation for longer; lowered, a cell may be left out although its
database has answered. The planning process runs at a low priority, and may read an answer late. Not
measured."""
SHORT_PATIENCE = 5
"""Maximum seconds that an evaluation waits for an answer from the databases of cells, if a cell did
not answer during the previous evaluation. Raised, a cell that stays down delays each evaluation for
longer; lowered, a cell that is only slow is left out. Not measured."""


def make_sources() -> planning_worker.Sources:
    return planning_worker.Sources(
        inventory=inventory.InProcessInventory(
            pace.ReadingPace(REST_TIME), PATIENCE, SHORT_PATIENCE,
            domain_keys=CONF.kronos.failure_domain_key),
        history=history.past_moves, dry_run=dry_run.SchedulerDryRun(),
        requesters=(HostDrains, RoomRequests),
        room_allocations=RoomAllocations(placement.client()))


if __name__ == '__main__':
    sys.exit(main())
