"""Operations on a maintenance, in which hosts are emptied and serviced in turn."""

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import OneHost
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import OPERATOR
from kronos_client.contract.operation import Operation


class HostInMaintenance(Response):
    """A host of a maintenance. ``left`` is the number of servers on the host, and ``blocked`` the
    number of these servers that cannot leave; both are null before the host is drained.
    ``is_released`` is true once the host was enabled again."""

    host: str
    state: str
    left: int | None
    blocked: int | None
    is_released: bool


class Maintenance(Response):
    """A maintenance and its hosts, in the order in which they are serviced.

    serviced : number of hosts that are serviced and released
    expected_end : end that is predicted from the serviced hosts; null before the first host is
        serviced
    is_run : whether a process carries out the maintenance now
    """

    uuid: str
    state: str
    requested_by: str
    requested_at: Time
    hosts: list[HostInMaintenance]
    serviced: int
    expected_end: Maybe
    is_run: bool


SHOW = Operation(
    name='maintenance:show', method='GET', path='/v1/maintenance', response=Maintenance,
    command='maintenance show', refusals=(404,), summary='The maintenance in progress.')
STOP = Operation(
    name='maintenance:stop', method='POST', path='/v1/maintenance/stop', response=Maintenance,
    command='maintenance stop', audience=OPERATOR, refusals=(404,),
    summary='Stop the maintenance once the hosts that are being serviced are done.')
END = Operation(
    name='maintenance:end', method='POST', path='/v1/maintenance/end', response=Maintenance,
    command='maintenance end', audience=OPERATOR, refusals=(404,),
    summary='End the maintenance for good; hosts whose service has not begun stay as they are.')
DONE = Operation(
    name='maintenance:done', method='POST', path='/v1/maintenance/hosts/{host}/done',
    request=OneHost, response=Maintenance, command='maintenance done', audience=OPERATOR,
    refusals=(404, 409), summary='Report that a host was serviced.')

OPERATIONS = (SHOW, STOP, END, DONE)
