"""The maintenance in progress."""

from kronos_nova.contract import maintenance as contract
from kronos_nova.contract.base import Request
from kronos_nova.contract.status import MaintainedHost
from kronos_nova.db import maintenances
from kronos_nova.services.context import Context


def show(context: Context, _request: Request) -> contract.Maintenance:
    """
    :raises MaintenanceNotFound: none is in progress
    """
    found = maintenances.Maintenances(context.database).open()
    return contract.Maintenance.made_from(
        found, serviced=found.serviced,
        expected_end=found.expected_end(context.utcnow()), hosts=[
            MaintainedHost(host=host, state=state) for host, state in found.hosts.items()])


FUNCTIONS = {contract.SHOW.name: show}
