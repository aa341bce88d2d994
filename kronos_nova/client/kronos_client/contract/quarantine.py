"""Operations on the quarantine. A server in quarantine is not moved for some time, because one of
its moves failed."""

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import OPERATOR
from kronos_client.contract.operation import Operation


class Quarantined(Response):
    """A server in quarantine. ``until`` is null if the quarantine lasts until an operator ends
    it."""

    instance_uuid: str
    instance_name: str | None
    since: Time
    until: Maybe
    reason: str


class Quarantine(Response):
    servers: list[Quarantined]


class RemoveQuarantine(Request):
    """A request to end the quarantine of a server. ``server`` is its uuid."""

    server: str


LIST = Operation(
    name='quarantine:list', command='quarantine list', method='GET', path='/v1/quarantine',
    response=Quarantine,
    summary='Servers that are not moved for some time, because a move of theirs failed.')
REMOVE: Operation[None] = Operation(
    name='quarantine:end', command='quarantine remove', method='DELETE',
    path='/v1/quarantine/{server}', request=RemoveQuarantine, audience=OPERATOR, status=204,
    refusals=(404,), summary='End the quarantine of a server, so that it may be moved again.')

OPERATIONS = (LIST, REMOVE)
