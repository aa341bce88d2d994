"""Commands on servers in quarantine."""

import argparse

from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.contract import quarantine as contract

COLUMNS = ('Instance', 'Name', 'Since', 'Until', 'Reason')


class List(command.Lister):
    """List the servers in quarantine: servers that Kronos does not move for some time, because a
    move of theirs failed."""

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.LIST, contract.LIST.request())
        return COLUMNS, [
            (each.instance_uuid, columns.Optional(each.instance_name), columns.Time(each.since),
             columns.Time(each.until) if each.until else 'released by hand', each.reason)
            for each in found.servers]


class Remove(command.Command):
    """End the quarantine of a server, so that it may be moved again."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('server', metavar='<uuid>', help='Uuid of the server.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.call(contract.REMOVE, contract.RemoveQuarantine(server=parsed_args.server))
