"""Servers by the names that people type."""

from kronos_nova import exception
from kronos_nova.db import move_queries
from kronos_nova.db import server_names
from kronos_nova.services.context import Context


def uuid_of(context: Context, server: str) -> str:
    """The uuid of a server that Kronos knows.

    :param server: its name or its uuid
    :raises ServerNotFound: there is no such server in names, moves and quarantines
    :raises ServerAmbiguous: several servers have that name
    """
    found = server_names.ServerNames(context.database).find(server)
    if len(found) > 1:
        raise exception.ServerAmbiguous(
            server=server, count=len(found), uuids=', '.join(sorted(found)))
    if found:
        return found[0]
    if move_queries.knows_server(context.database, server):
        return server
    raise exception.ServerNotFound(server=server)
