"""All operations of the API."""

from kronos_nova.api import acting
from kronos_nova.api import listening
from kronos_nova.api import reading
from kronos_nova.api import snapshots
from kronos_nova.api import watching
from kronos_nova.api.call import serve
from kronos_nova.contract import table

OPERATIONS = (*reading.OPERATIONS, *watching.OPERATIONS, *listening.OPERATIONS,
              *snapshots.OPERATIONS, *acting.OPERATIONS, *map(serve, table.OPERATIONS))
"""What stands at the paths of the API."""
