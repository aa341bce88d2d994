"""Maintenance: hosts that are serviced one after the other."""

from kronos_nova.contract.base import Maybe
from kronos_nova.contract.base import Response
from kronos_nova.contract.base import Time
from kronos_nova.contract.operation import Operation
from kronos_nova.contract.status import MaintainedHost


class Maintenance(Response):
    """The maintenance that is not done, with its hosts in order. ``serviced`` is the number of
    hosts that are serviced and released, ``expected_end`` a prediction by these, null where there
    is none yet."""

    uuid: str
    state: str
    requested_by: str
    requested_at: Time
    hosts: list[MaintainedHost]
    serviced: int
    expected_end: Maybe


SHOW = Operation(
    name='maintenance:show', method='GET', path='/v1/maintenance', response=Maintenance,
    refusals=(404,), summary='The maintenance in progress.')

OPERATIONS = (SHOW,)
