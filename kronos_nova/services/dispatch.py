"""Runs an operation of the contract, for the API and for commands alike."""

import msgspec

from kronos_nova import boundary
from kronos_nova.contract.base import Request
from kronos_nova.contract.base import Response
from kronos_nova.contract.operation import Operation
from kronos_nova.services import automation
from kronos_nova.services import moves
from kronos_nova.services import plans
from kronos_nova.services import quarantine
from kronos_nova.services import servers
from kronos_nova.services import status
from kronos_nova.services.context import Context

TEXT_CHARACTERS = 1000
"""Characters of a text in a request. Raised, tables and logs have longer lines; lowered, reasons
are cut. Chosen as the limit of ``Reason`` in the contract."""

FUNCTIONS = {**status.FUNCTIONS, **plans.FUNCTIONS, **moves.FUNCTIONS, **servers.FUNCTIONS,
             **automation.FUNCTIONS, **quarantine.FUNCTIONS}
"""The function of each operation, by the operation's name."""


def run(operation: Operation, context: Context, request: Request) -> Response | None:
    """
    :raises OutOfBounds: a text has characters that end lines or move the cursor
    :raises KronosException: the operation is refused
    """
    return FUNCTIONS[operation.name](context, _checked(request))


def _checked(request):
    """The request with a reason that can be shown; any other text is refused instead."""
    if hasattr(request, 'reason'):
        request = msgspec.structs.replace(
            request, reason=boundary.remark(request.reason, TEXT_CHARACTERS))
    for name, value in msgspec.structs.asdict(request).items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                boundary.storable(each, name, TEXT_CHARACTERS)
    return request
