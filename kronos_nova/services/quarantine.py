"""Operations on servers in quarantine: list the servers, and release one server."""

from kronos_client.contract import quarantine as contract
from kronos_client.contract.base import Request
from kronos_nova.db import cooldowns
from kronos_nova.services.context import Context


def list_servers(context: Context, _request: Request) -> contract.Quarantine:
    found = cooldowns.Cooldowns(context.database).quarantines(context.utcnow())
    names = context.names_of(row[0] for row in found)
    return contract.Quarantine(servers=[
        contract.Quarantined(instance_uuid=uuid, instance_name=names.get(uuid), since=since,
                             until=until, reason=reason) for uuid, until, reason, since in found])


def remove(context: Context, request: contract.RemoveQuarantine) -> None:
    """Release a server from quarantine.

    :raises QuarantineNotFound: the server is not in quarantine
    """
    cooldowns.Cooldowns(context.database).release(request.server)


FUNCTIONS = {contract.LIST.name: list_servers, contract.REMOVE.name: remove}
