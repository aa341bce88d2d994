"""The table of all operations of the API."""

from kronos_client.contract import table
from kronos_nova.api import access
from kronos_nova.api import events
from kronos_nova.api import snapshots
from kronos_nova.api.operation import serve

OPERATIONS = (*access.OPERATIONS, *events.OPERATIONS, *snapshots.OPERATIONS,
              *map(serve, table.OPERATIONS))
"""The operations at the paths of the API."""
