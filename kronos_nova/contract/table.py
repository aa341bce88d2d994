"""All operations."""

from kronos_nova.contract import automation
from kronos_nova.contract import drains
from kronos_nova.contract import evaluations
from kronos_nova.contract import maintenance
from kronos_nova.contract import moves
from kronos_nova.contract import plans
from kronos_nova.contract import quarantine
from kronos_nova.contract import servers
from kronos_nova.contract import status

OPERATIONS = (*status.OPERATIONS, *plans.OPERATIONS, *moves.OPERATIONS, *servers.OPERATIONS,
              *automation.OPERATIONS, *evaluations.OPERATIONS, *drains.OPERATIONS,
              *maintenance.OPERATIONS, *quarantine.OPERATIONS)
