"""The base of commands that call one operation of the contract.

A command turns its arguments into a request and the response into rows. The application that runs
it provides the client: in its own process in ``kronos-manage``, over HTTP in ``openstack``.
"""

from cliff import command
from cliff import lister

from kronos_nova.contract.base import Request
from kronos_nova.contract.base import Response
from kronos_nova.contract.operation import Operation


class Command(command.Command):
    """A command that prints at most a sentence."""

    def call(self, operation: Operation, request: Request) -> Response | None:
        return self.app.client_manager.rebalancing.call(operation, request)


class Lister(Command, lister.Lister):
    """A command that prints a table."""
