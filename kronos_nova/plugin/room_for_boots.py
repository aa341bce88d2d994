"""Release of reserved room for new servers that find no host. The room is reserved by allocations
in placement, for servers of one flavor.

Placement does not know for which servers an allocation reserves room. So placement offers the room
to no server, not even to a server of this flavor. If the scheduler finds no host for servers of
this flavor, the allocations for the requested number of servers are removed, and the scheduler is
asked once more. If the scheduler finds no host again, the allocations are restored. Otherwise, the
next evaluation counts the servers that were started, and restores the allocations that these
servers did not need.
"""

from collections.abc import Callable
from collections.abc import Iterable

from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db import engine as db_engine
from kronos_nova.db import holds
from kronos_nova.objects.hold import Hold
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.room_allocations import RoomAllocations
from kronos_nova.plugin.nova_types import RequestSpec

LOG = logging.getLogger(__name__)


def give_way(database: db_engine.Database, allocations: Callable[[], RoomAllocations],
             request_spec: RequestSpec, count: int) -> list[Consumer]:
    """Remove the allocations that keep room for ``count`` servers like those of ``request_spec``,
    so that Nova can now start these servers in the room. An error here is logged and does not
    affect Nova's request.

    :param database: the control database, whose statements fail early rather than delay Nova's
        request
    :param allocations: callable that returns the RoomAllocations
    :param count: number of servers
    :returns: the consumers whose allocations were removed, for :func:`restore`
    """
    try:
        known = _consumers(holds.Holds(database).in_force(), request_spec)
        # Servers that were started since the last evaluation have used the room of some consumers.
        given = allocations().give_back(allocations().first_held(known, count)) if known else []
    except (db_exc.DBError, exception.KronosException) as e:
        LOG.warning('Nova found no host for a server of flavor %s. Kronos cannot find out whether '
                    'room is kept for such servers, or cannot free this room: %s',
                    request_spec.flavor.name, db_engine.first_line(e))
        return []
    if given:
        LOG.info('Nova found no host for %d servers of flavor %s of project %s. Kronos has removed '
                 '%d allocations that kept room for such servers, and asks the scheduler again',
                 count, request_spec.flavor.name, request_spec.project_id, len(given))
    return given


def restore(allocations: Callable[[], RoomAllocations], given: list[Consumer]) -> None:
    """Restore the allocations that :func:`give_way` has removed, because the servers were not
    started in the room. After an error, the next evaluation restores the allocations.

    :param allocations: callable that returns the RoomAllocations
    :param given: the result of :func:`give_way`
    """
    try:
        allocations().restore(given)
    except exception.KronosException as e:
        LOG.warning('%d allocations that kept room for servers could not be restored, after Nova '
                    'found no host even in this room. The next evaluation restores them: %s',
                    len(given), db_engine.first_line(e))


def _consumers(kept: Iterable[Hold], request_spec: RequestSpec) -> list[str]:
    """Return the uuids of the consumers in placement that keep room for servers like those of
    ``request_spec``. Consumers of the oldest hold (reservation of room) come first."""
    return [uuid for each in kept
            if each.is_for(request_spec.flavor.name, request_spec.project_id or '')
            for uuid, _host in sorted(each.consumers.items(), key=lambda item: item[::-1])]
