"""A client that runs operations in its own process."""

from oslo_db import exception as db_exc

from kronos_nova.contract import errors
from kronos_nova.contract.base import Request
from kronos_nova.contract.base import Response
from kronos_nova.contract.operation import Operation
from kronos_nova.db.error_text import error_text
from kronos_nova.services import dispatch
from kronos_nova.services.context import Context


class InProcessClient:
    """Takes and returns what :class:`kronos_nova.client.http.HttpClient` does."""

    def __init__(self, context: Context):
        self._context = context

    def call(self, operation: Operation, request: Request) -> Response | None:
        """
        :raises KronosException: the operation is refused
        :raises Unreachable: the control database does not answer
        """
        try:
            return dispatch.run(operation, self._context, request)
        except db_exc.DBError as error:
            raise errors.Unreachable(error_text(error)) from error
