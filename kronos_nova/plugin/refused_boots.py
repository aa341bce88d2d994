"""Requests to make room for servers like those for which Nova found no host. Kronos records the
requests, so that later servers of the same flavor find a host."""

import datetime

from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import uuidutils

from kronos_nova import exception
from kronos_nova.db import engine as db_engine
from kronos_nova.db import holds
from kronos_nova.objects import hold
from kronos_nova.plugin import inventory
from kronos_nova.plugin.nova_types import RequestSpec

LOG = logging.getLogger(__name__)

MOST = 20
"""Maximum number of open requests to make room for new servers that Kronos itself has recorded.
Kronos records a request if Nova finds no host for new servers, at most one for each flavor and
project. Raised, a full cloud may fill the table of requests; lowered, Kronos makes room for fewer
flavors and projects at a time. Not measured."""


def note(database: db_engine.Database, request_spec: RequestSpec, hold_seconds: int) -> None:
    """Record a request to make room for servers like those of ``request_spec``. Nothing is recorded
    if an equal request or :data:`MOST` requests are open already.

    Nothing is recorded if ``request_spec`` names a host, because room on another host does not help
    these servers. An error of this function is logged and does not affect Nova's request.

    :param database: the control database, with short timeouts because a request of Nova waits
    :param hold_seconds: seconds for which the room is kept after it was made
    """
    try:
        if not _names_host(request_spec):
            _note(holds.Holds(database), request_spec, hold_seconds, database.utcnow())
    except (db_exc.DBError, exception.KronosException) as e:
        LOG.warning('Nova found no host for servers of flavor %s, and Kronos makes no room for '
                    'these servers, because the request for room cannot be recorded in the control '
                    'database: %s', request_spec.flavor.name, db_engine.first_line(e))


def _note(store: holds.Holds, request_spec: RequestSpec, hold_seconds: int,
          now: datetime.datetime) -> None:
    shape, project = inventory.shape_of(request_spec.flavor), request_spec.project_id
    known = [each for each in store.in_states(hold.OPEN) if each.requested_by == hold.KRONOS]
    if len(known) >= MOST or any(each.shape == shape and each.project_id == project
                                 for each in known):
        return
    wanted = hold.Hold(
        uuid=uuidutils.generate_uuid(), aggregate=hold.ANY, shape=shape,
        count=request_spec.num_instances, state=hold.REQUESTED, project_id=project,
        availability_zone=request_spec.availability_zone or '', requested_by=hold.KRONOS,
        requested_at=now, reason='Nova found no host for such servers', hold_seconds=hold_seconds,
        expires_at=now + datetime.timedelta(seconds=hold.CHOICE_SECONDS))
    store.request(wanted)
    LOG.info('Nova found no host for %d servers of flavor %s of project %s. The next evaluations '
             'search for moves that make room for as many such servers (request for room: %s)',
             wanted.count, shape.name, project, wanted.uuid)


def _names_host(request_spec: RequestSpec) -> bool:
    destination = request_spec.requested_destination
    return bool(request_spec.force_hosts or request_spec.force_nodes
                or (destination and 'host' in destination and destination.host))
