"""All operations."""

from kronos_nova.contract import moves
from kronos_nova.contract import plans
from kronos_nova.contract import quarantine
from kronos_nova.contract import servers

OPERATIONS = (*plans.OPERATIONS, *moves.OPERATIONS, *servers.OPERATIONS,
              *quarantine.OPERATIONS)
