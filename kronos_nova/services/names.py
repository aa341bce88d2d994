"""Search for servers by name or uuid, and for the reasons why servers stayed on their hosts."""

from collections.abc import Iterator
from typing import NamedTuple

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.cycle import aggregates
from kronos_nova.db import cycles
from kronos_nova.db import move_queries
from kronos_nova.db import server_names
from kronos_nova.db.engine import Database
from kronos_nova.objects import plan as plans
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.services.context import Context


def uuid_of(context: Context, server: str) -> str:
    """Return the uuid of a server of which Kronos has a record.

    :param server: name or uuid of the server
    :raises ServerNotFound: Kronos has no record of such a server
    :raises ServerAmbiguous: several servers have this name
    """
    found = server_names.ServerNames(context.database).find(server)
    if len(found) > 1:
        raise exception.ServerAmbiguous(
            server=server, count=len(found), uuids=', '.join(sorted(found)))
    if found:
        return found[0]
    uuid = server.lower()
    if move_queries.knows_server(context.database, uuid) or any(
            uuid in skip.instances for _aggregate, report in _reports_that_name(
                context.database, uuid) for skip in report.not_moved):
        return uuid
    raise exception.ServerNotFound(server=server)


def of_cloud(snapshot: Snapshot) -> dict[str, str]:
    """Return {uuid: name} of the servers of a cloud. A name is chosen by a tenant, and is made safe
    for terminals."""
    return {each.uuid: boundary.shown(each.display_name) for each in snapshot.instances}


class Stay(NamedTuple):
    """The reason why the last evaluation of an aggregate left a server on its host. ``detail`` is
    an additional text; it may be empty."""

    reason: str
    aggregate: str
    detail: str


def stay_of(context: Context, uuid: str) -> Stay | None:
    """Return the reason why the last evaluation did not move a server; None if no evaluation of an
    aggregate that Kronos plans gives a reason."""
    in_scope = {*aggregates.aggregates_in_scope(context.conf)}
    for aggregate, report in _reports_that_name(context.database, uuid):
        for skip in report.not_moved:
            if aggregate in in_scope and uuid in skip.instances:
                return Stay(skip.reason, aggregate, dict(skip.details).get(uuid, ''))
    return None


def immovable(database: Database, uuid: str) -> plans.Immovable | None:
    """Return the Immovable of a server in the last evaluation: the reason why Nova cannot migrate
    the server live, and whether Nova can migrate it cold. Return None if the last evaluation has
    none."""
    return next((each for _aggregate, report in _reports_that_name(database, uuid)
                 for each in report.immovable if each.instance_uuid == uuid), None)


def _reports_that_name(database: Database,
                       uuid: str) -> Iterator[tuple[str, plans.AggregateReport]]:
    """Yield (aggregate, report of its last evaluation) for each report that contains the uuid of a
    server."""
    for row in cycles.Cycles(database).last():
        # Most reports do not contain the uuid, and are not parsed.
        if row.report and f'"{uuid}"' in row.report:
            yield row.aggregate, plans.AggregateReport.from_json(row.report)
