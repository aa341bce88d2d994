"""A client that runs operations in its own process."""

import datetime

import msgspec
from oslo_db import exception as db_exc

from kronos_client.contract import errors
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.operation import Operation
from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.services import dispatch
from kronos_nova.services.context import Context


class InProcessClient:
    """A client that runs operations in its own process, without the API. It has the interface of
    :class:`kronos_client.http.HttpClient`."""

    def __init__(self, context: Context):
        self._context = context

    def call(self, operation: Operation, request: Request) -> Response | None:
        """Run an operation in this process. An exception of the operation is converted to an
        exception of the contract.

        :raises Refused: the operation is refused
        :raises StopPending: the stop is in force, but is not in the control database yet
        :raises Unreachable: the control database, Nova or Prometheus does not answer
        """
        context = self._context
        try:
            if getattr(request, 'deadline', None):
                # The user gave a time by the clock of this host, which must agree with that of the
                # database.
                context.database.utcnow.check()
            _refuse_outside_contract(operation, request)
            return dispatch.run(operation, context, request)
        except db_exc.DBError as error:
            # Imported late: most commands do not need it.
            from kronos_nova.services.without_database import WithoutDatabase
            return WithoutDatabase(context.conf, context.who, error).call(operation, request)
        except dispatch.UNANSWERED as error:
            raise errors.Unreachable(str(error)) from error
        except exception.KronosException as error:
            raise errors.Refused(str(error), error.code) from error


def _refuse_outside_contract(operation: Operation, request: Request) -> None:
    """Raise an error for a request that the API would refuse. The API decodes requests by msgspec,
    which checks the fields. Requests in this process are made without decoding, so their fields
    have not been checked yet.

    :raises Refused: a field is out of the bounds of the contract
    """
    try:
        msgspec.convert(msgspec.to_builtins(request, builtin_types=(datetime.datetime,)),
                        operation.request)
    except msgspec.ValidationError as error:
        raise errors.Refused(str(error), boundary.OutOfBounds.code) from error
