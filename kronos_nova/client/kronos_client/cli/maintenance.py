"""Commands on the maintenance in progress. The commands that carry out a maintenance are in
``kronos-manage`` only, because these commands run hooks, which are programs on the machine of the
operator."""

import argparse

from kronos_client import plural
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.contract import maintenance as contract
from kronos_client.contract.base import OneHost

COLUMNS = ('Host', 'State', 'Servers left', 'Blocked')
AT_WORK = ('draining', 'hook', 'returning')
"""States of a host that a maintenance has begun to service and not finished."""


def _hosts_in(found: contract.Maintenance, *states: str) -> str:
    return ', '.join(each.host for each in found.hosts if each.state in states) or 'none'


class Show(command.Lister):
    """Show the hosts of the maintenance in progress, in the order of servicing, and the state of
    each.

    With the default format, a line above the table shows how many hosts have been serviced so far,
    and when the maintenance is expected to end.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.SHOW, contract.SHOW.request())
        if parsed_args.formatter == 'table':
            self.say(_summary(found))
        return COLUMNS, [(each.host, each.state, columns.Optional(each.left),
                          columns.Optional(each.blocked)) for each in found.hosts]


def _summary(found: contract.Maintenance) -> str:
    text = f'{found.serviced} of {plural.count(len(found.hosts), "host")} serviced, {found.state}'
    end = found.expected_end
    return text if end is None else f'{text} until about {columns.local(end)}'


class Stop(command.Command):
    """Stop the maintenance in progress. The hosts that are being serviced are finished first; no
    further host is drained.

    "maintenance resume" continues with the remaining hosts. "maintenance end" ends the maintenance
    without servicing the remaining hosts.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        found = self.call(contract.STOP, contract.STOP.request())
        self.say(f'Stopped; hosts still at work: {_hosts_in(found, *AT_WORK)}.')


class End(command.Command):
    """End the maintenance for good. Hosts whose service has not begun are left as they are.

    A host that is being serviced stays disabled. The maintenance no longer releases it. The command
    names these hosts; "host release" enables each of them.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        found = self.call(contract.END, contract.END.request())
        self.say(f'Ended; hosts not serviced: {_hosts_in(found, "waiting")}.')
        for each in found.hosts:
            if each.state in (*AT_WORK, 'failed') and not each.is_released:
                self.say(f'{each.host} is {each.state}: "host release {each.host}" ends that.')


class Done(command.Command):
    """Report that a host was serviced. The maintenance then releases the host and continues. The
    report is needed if the maintenance runs without --hook, or if the hook of the host has failed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='Name of the host that '
                                                                  'was serviced.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        found = self.call(contract.DONE, OneHost(host=parsed_args.host))
        if not found.is_run:
            self.say('The report is recorded, but no process runs the maintenance; "kronos-manage '
                     'maintenance resume" continues the maintenance.')
