"""All operations of the API."""

from kronos_client.contract import automation
from kronos_client.contract import drains
from kronos_client.contract import evaluations
from kronos_client.contract import hosts
from kronos_client.contract import maintenance
from kronos_client.contract import moves
from kronos_client.contract import plans
from kronos_client.contract import quarantine
from kronos_client.contract import report
from kronos_client.contract import room
from kronos_client.contract import servers
from kronos_client.contract import status
from kronos_client.contract.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *status.OPERATIONS, *hosts.OPERATIONS, *plans.OPERATIONS, *moves.OPERATIONS,
    *servers.OPERATIONS, *automation.OPERATIONS, *evaluations.OPERATIONS,
    *drains.OPERATIONS, *maintenance.OPERATIONS, *quarantine.OPERATIONS,
    *report.OPERATIONS, *room.OPERATIONS)
