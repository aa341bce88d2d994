"""A client that runs operations in its own process."""

from oslo_db import exception as db_exc

from kronos_nova.contract.base import Request
from kronos_nova.contract.base import Response
from kronos_nova.contract.operation import Operation
from kronos_nova.services import dispatch
from kronos_nova.services.context import Context


class InProcessClient:
    """Takes and returns what :class:`kronos_nova.client.http.HttpClient` does."""

    def __init__(self, context: Context):
        self._context = context

    def call(self, operation: Operation, request: Request) -> Response | None:
        """
        :raises KronosException: the operation is refused
        :raises StopPending: it is stopped without the control database
        :raises Unreachable: the control database does not answer
        """
        context = self._context
        try:
            return dispatch.run(operation, context, request)
        except db_exc.DBError as error:
            # Only now: most commands do not need it.
            from kronos_nova.services.without_database import WithoutDatabase
            return WithoutDatabase(context.conf, context.who, error).call(operation, request)
