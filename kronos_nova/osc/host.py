"""``openstack kronos host``: empty hosts, know that they are, and open them again."""

from osc_lib.command import command

from kronos_nova import exception
from kronos_nova.cli import columns
from kronos_nova.cmd import host as shared
from kronos_nova.contract import drains as contract
from kronos_nova.contract import errors
from kronos_nova.objects import drain as drains

DRAINS = ('Host', 'State', 'Servers', 'Left', 'Blocked', 'Waits for', 'Requested by',
          'Requested at', 'Reason', 'Problem')


CODES = {exception.DrainRefused.code: shared.BLOCKED, exception.HostDown.code: shared.DOWN}
"""Exit codes of refusals, by the code of the error."""


class Drain(command.Command):
    """Empty hosts: say whether and where everything fits, disable them, and move what is there.

    What runs is migrated live; with --with-stopped what is stopped is migrated cold and confirmed.
    It is done at every level of automation and outside maintenance windows, and goes on until
    "kronos host release", whatever dies meanwhile. Does not wait; "kronos host status" tells how
    far it is.

    Hosts that no server can leave, and the last hosts of an aggregate, are drained with --force
    only.

    Exit codes: 0 begun, or with --check everything fits; 1 refused; 4 something is blocked
    (--check), or nothing can leave; 5 a host is down.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        shared.add_wish(parser)
        return parser

    def take_action(self, parsed_args):
        try:
            found = self.app.client_manager.rebalancing.call(contract.BEGIN, _request(parsed_args))
        except errors.Refused as refused:
            if refused.code not in CODES:
                raise
            self.app.stdout.write(f'{refused}\n')
            return CODES[refused.code]
        for line in _lines(found):
            self.app.stdout.write(f'{line}\n')
        if not parsed_args.check:
            self.app.stdout.write('Draining; "openstack kronos host status" tells how far it is.\n')
            return shared.EMPTY
        return shared.BLOCKED if any(each.blocked for each in found.checked) else shared.EMPTY


def _request(parsed_args):
    return contract.BeginDrains(
        hosts=parsed_args.hosts, check=parsed_args.check, reason=parsed_args.reason,
        force=parsed_args.force, with_stopped=parsed_args.with_stopped,
        parallel=parsed_args.parallel, deadline=parsed_args.deadline,
        keep_spare=parsed_args.keep_spare)


def _lines(found):
    """What a check found, for people."""
    for each in found.checked:
        yield (f'{each.host}: {columns.count(each.servers, "server")}, {each.leaving} can leave, '
               f'{each.memory_mb / 1024:.1f} GiB')
        for destination, count in each.destinations.items():
            yield f'    {count} to {destination}'
        for uuid, why in sorted(each.blocked.items()):
            yield f'    blocked: {columns.server(uuid, each.names.get(uuid))}: {why}'
    if found.expected_seconds:
        yield f'Expected: about {columns.duration(found.expected_seconds)}.'


class Status(command.Lister):
    """Show how far hosts are emptied, and what stays on them and why; without a name, all that are.

    Exit codes: 0 each that is named is empty; 1 it could not be told; 3 not yet; 4 blocked. Of
    several hosts, the highest. A host that was never drained, or was released, is not empty.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='*', metavar='<host>')
        return parser

    def take_action(self, parsed_args):
        wanted = parsed_args.hosts
        found = [each for each in self.app.client_manager.rebalancing.call(
            contract.LIST, contract.ListDrains()).drains if each.host in wanted or not wanted]
        states = {each.host: each.state for each in found}
        self.code = max((_code(states.get(host)) for host in wanted), default=shared.EMPTY)
        return DRAINS, [_row(each) for each in found]

    def run(self, parsed_args):
        return super().run(parsed_args) or self.code


def _code(state):
    return {drains.EMPTY: shared.EMPTY, drains.BLOCKED: shared.BLOCKED}.get(state, shared.NOT_YET)


def _row(drain):
    return (drain.host, drain.state, columns.Optional(drain.servers), columns.Optional(drain.left),
            columns.Lines([{'server': uuid, 'why': why}
                           for uuid, why in sorted(drain.blocked.items())],
                          lambda each: f'{each["server"]}: {each["why"]}'),
            drain.waits_for, drain.requested_by, columns.Time(drain.requested_at), drain.reason,
            drain.problem)


class Release(command.Command):
    """Enable hosts that a drain disabled; a drain that is under way ends.

    A host that was disabled before the drain, or by somebody else since, stays disabled. Moves that
    have begun are carried to their end. One that a maintenance is servicing is not released.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='+', metavar='<host>')
        return parser

    def take_action(self, parsed_args):
        for host in dict.fromkeys(parsed_args.hosts):
            self.app.client_manager.rebalancing.call(
                contract.RELEASE, contract.ReleaseHost(host=host))
            self.app.stdout.write(f'{host}: will be enabled by the first worker that looks.\n')
