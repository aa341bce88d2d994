"""Dispatch of requests from the API and from commands. Each request is checked, and then its
operation is run."""

import datetime
import importlib
from collections.abc import Callable
from collections.abc import Mapping

import msgspec

from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.operation import Operation
from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.services.context import Context

TEXT_CHARACTERS = 1000
"""Maximum number of characters of a text in a request. A longer reason is cut to this length. Any
other longer text is refused. Raised, tables and logs have longer lines; lowered, more of the
reasons that operators give are cut. Chosen as the limit of reasons in the schema of the API."""

MODULES = {'status': 'status', 'aggregates': 'status', 'hosts': 'hosts', 'plans': 'plans',
           'moves': 'moves', 'servers': 'servers', 'automation': 'automation',
           'quarantine': 'quarantine', 'evaluations': 'evaluations', 'drains': 'drains',
           'maintenance': 'maintenance', 'report': 'report', 'room': 'room'}
"""{noun in the names of operations: module of :mod:`kronos_nova.services`}. A module is imported
when an operation first needs it, because the import of all modules would take most of the time of a
command."""

UNANSWERED = (exception.InventoryError, exception.NovaClientError, exception.MetricsError)
"""Exceptions that mean that Nova, placement or Prometheus does not answer. Any other exception
means that the request is refused, or is a fault of Kronos."""


def function_of(operation: Operation) -> Callable[[Context, Request], Response | None]:
    """Return the service function of an operation."""
    noun = operation.name.partition(':')[0]
    module = importlib.import_module(f'kronos_nova.services.{MODULES[noun]}')
    return module.FUNCTIONS[operation.name]


def run(operation: Operation, context: Context, request: Request) -> Response | None:
    """Check a request and run its operation.

    :raises OutOfBounds: a text has characters that end lines or move the cursor, or a time is
        before the first or after the last year of the calendar
    :raises KronosException: the operation is refused
    """
    if hasattr(request, 'reason'):
        request = msgspec.structs.replace(
            request, reason=boundary.remark(request.reason, TEXT_CHARACTERS))
    check(msgspec.structs.asdict(request))
    return function_of(operation)(context, request)


def check(values: Mapping[str, object]) -> None:
    """Raise an error if a value of a request cannot be stored or shown.

    :param values: the fields of a request, by name
    :raises OutOfBounds: a text has characters that end lines or move the cursor, or a time is
        before the first or after the last year of the calendar
    """
    for name, value in values.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                boundary.storable(each, name, TEXT_CHARACTERS)
            elif isinstance(each, datetime.datetime):
                _refuse_outside_calendar(each, name)


def _refuse_outside_calendar(time: datetime.datetime, what: str) -> None:
    """Raise an error if a time cannot be converted to UTC.

    :raises OutOfBounds: in UTC, the time is before the first year or after the last year of the
        calendar
    """
    try:
        time.astimezone(datetime.UTC)
    except OverflowError as error:
        raise boundary.OutOfBounds(
            what=what, problem='is outside the years 1 to 9999 (UTC)') from error
