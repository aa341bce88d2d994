"""Commands about room: how many new servers fit, whether the servers of a lost host restart, and
which moves make room."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from kronos_client import plural
from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.contract import room as contract

LOST = 4
"""Exit code of a command that finds too little room for servers (no unit). The name comes from the
first case: some servers of a lost host cannot restart on other hosts. The second case: some new
servers do not fit. Fixed: scripts depend on the code."""
VERDICTS = {contract.FITS: 'all restart', contract.DOES_NOT: 'not all restart',
            contract.NOT_FOUND: 'not known'}


def add_change_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe hypothetical changes of the cloud."""
    group = parser.add_argument_group('hypothetical changes of the cloud', 'The result is computed '
                                      'as if these changes were made, in this order; each argument '
                                      'may be repeated.')
    group.add_argument('--ratio', metavar='<class>=<ratio>', action='append', default=[],
                       help='Assume another allocation ratio of a resource class on all hosts, '
                            'such as VCPU=8; may be repeated.')
    group.add_argument('--add', metavar='<n>:like=<host>', action='append', default=[],
                       help='Assume <n> more hosts, empty and otherwise like <host>; may be '
                            'repeated.')
    group.add_argument('--lose', metavar='<host>', action='append', default=[],
                       help='Assume that this host fails, or all hosts of a failure domain such as '
                            'rack=r3. May be repeated: all these hosts then fail at the same time. '
                            'The servers of these hosts restart on the other hosts.')
    group.add_argument('--boot', metavar='<n>:<flavor>', action='append', default=[],
                       help='Assume <n> new servers of a flavor: its name, or a size such as '
                            '4:8192:40 (VCPUs, MiB, GiB); may be repeated.')


def changes(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a request that describe the hypothetical changes."""
    return {name: getattr(parsed_args, name) for name in contract.Changes.__struct_fields__}


class _AboutRoom(command.Lister):
    """The base of commands about room in the present cloud, or in the cloud after hypothetical
    changes."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_change_arguments(parser)
        return parser

    def say_outcome(self, outcome: contract.Outcome) -> None:
        """Print the servers that have no place after the hypothetical changes: servers of lost
        hosts that cannot restart elsewhere, and new servers for which there is no room. If there
        are any, set the exit code to :data:`LOST`."""
        for uuid, why in outcome.left.items():
            self.say(f'Does not restart: {columns.server(uuid, outcome.names.get(uuid))}: {why}')
        for flavor, count in outcome.not_booted.items():
            self.say(f'No room for {count} of the new servers {flavor}.')
        if outcome.left or outcome.not_booted:
            self.exit_code = LOST


class Capacity(_AboutRoom):
    """Show how many more servers of each flavor fit into the cloud. Each flavor is counted as if
    all new servers had that flavor.

    The column Now has the number of servers that fit. The column Hosts has the number of hosts with
    room for at least one server. The column Short has the resource that runs out first. The column
    Unusable has the free capacity that no server of the flavor can use, because too little is free
    on each host for one more server.

    With --loss, the column "After loss" has the number that still fits after the failure of one
    host, when the servers of this host have restarted on other hosts. The host is the one whose
    failure leaves the smallest number. The column is empty if there is a host whose servers cannot
    all restart; "failover" shows why.

    With --moves, the column "After moves" has the number that fits after moving servers that exist.
    "room fragments" shows these moves.

    With --aggregate, the column "Full in" has the predicted number of days until no further server
    fits. The prediction is made from the counts of past evaluations, for the flavors in [kronos]
    slot_flavors.

    Exit codes: 0 the result is shown; 1 the request was refused; 4 after the changes that options
    such as --lose and --boot assume, some server does not restart, or some new server finds no
    room.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--flavor', metavar='<flavor>', action='append', default=[],
                            type=arguments.name,
                            help='Name of a flavor to count, or a size such as 4:8192:40 (VCPUs, '
                                 'MiB, GiB); may be repeated; default: all flavors.')
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Count only hosts of this aggregate.')
        parser.add_argument('--project', metavar='<uuid>', type=arguments.name,
                            help='Count only hosts that take servers of this project.')
        parser.add_argument('--loss', action='store_true',
                            help='Show also how many servers fit after the failure of any one '
                                 'host.')
        parser.add_argument('--moves', metavar='<n>', type=arguments.POSITIVE,
                            help='Show also how many servers fit after at most <n> moves of '
                                 'servers that exist.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.CAPACITY, contract.ShowCapacity(
            flavors=parsed_args.flavor, aggregate=parsed_args.aggregate,
            project=parsed_args.project, loss=parsed_args.loss, moves=parsed_args.moves,
            **changes(parsed_args)))
        self.say_outcome(found.outcome)
        if found.not_restarting:
            self.say(f'{plural.count(len(found.not_restarting), "host")} (such as '
                     f'{found.not_restarting[0]}) may not fail: not all of the servers on it would '
                     'restart on other hosts. "failover" shows why.')
        has_trend = any(each.full_in_days is not None for each in found.slots)
        shown = ('Flavor', 'Now', *(['After loss'] if parsed_args.loss else []),
                 *(['After moves'] if parsed_args.moves else []),
                 *(['Full in'] if has_trend else []), 'Hosts', 'Short', 'Unusable')
        return shown, [
            (each.flavor, each.now,
             *([columns.Optional(each.after_loss)] if parsed_args.loss else []),
             *([each.after_moves] if parsed_args.moves else []),
             *([columns.Optional(_full_in(each))] if has_trend else []), len(each.hosts),
             columns.Optional(each.short),
             columns.Lines([f'{amount:g} {name}' for name, amount in each.unusable.items()],
                           separator=', '))
            for each in found.slots]


def _full_in(slots: contract.FlavorSlots) -> str | None:
    """Return a text with the number of days until no further server fits, such as "40 ± 9 days".
    Return None if the number is not known."""
    if slots.full_in_days is None:
        return None
    return f'{slots.full_in_days:.0f} ± {slots.full_in_days_error:.0f} days'


class Failover(_AboutRoom):
    """Show for each host whether all of its servers can restart on other hosts if the host fails.

    Each failure is assumed alone, while all other hosts work. Masakari, and "openstack server
    evacuate" without a destination, let Nova's scheduler choose a host for one server after the
    other. The column "In Nova's order" says whether all servers restart in this way. If the column
    says "no" for a host whose servers can all restart, a suitable destination has to be given for
    each server.

    Exit codes: 0 all servers can restart; 1 the request was refused; 4 the servers of a host cannot
    all restart, or it is unknown whether they can.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='*', metavar='<host>', type=arguments.name,
                            help='Name of a host whose failure is assumed; may be repeated, and '
                                 'each failure is assumed alone; default: all hosts with servers.')
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Assume only failures of hosts of this aggregate, and that '
                                 'their servers restart only within the aggregate.')
        parser.add_argument('--all', action='store_true',
                            help='Show all hosts. By default, a host is shown only if some of its '
                                 'servers cannot restart, or can restart only at destinations that '
                                 'an operator gives.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.FAILOVER, contract.CheckFailover(
            hosts=parsed_args.hosts, aggregate=parsed_args.aggregate, **changes(parsed_args)))
        self.say_outcome(found.outcome)
        lost = [each for each in found.hosts if each.verdict != contract.FITS]
        by_name = [each for each in found.hosts
                   if each.verdict == contract.FITS and not each.in_novas_order]
        self.say(f'{len(found.hosts) - len(lost)} of {plural.count(len(found.hosts), "host")} may '
                 f'fail: all of their servers restart. For {len(by_name)} of them, that takes '
                 'destinations that are chosen for the servers.')
        if lost:
            self.exit_code = LOST
        shown = found.hosts if parsed_args.all or parsed_args.hosts else [*lost, *by_name]
        return ('Host', 'Servers', 'Verdict', "In Nova's order", 'Left'), [
            (each.host, each.servers, VERDICTS.get(each.verdict, each.verdict),
             'yes' if each.in_novas_order else 'no',
             columns.Lines([f'{columns.server(uuid, each.names.get(uuid))}: {why}'
                            for uuid, why in each.left.items()]))
            for each in shown]


def moves_table(moves: Iterable[contract.RoomMove]) -> command.Table:
    """Return (names of the columns, rows) of a table of moves that make room."""
    return ('Server', 'Source', 'Destination', 'GiB'), [
        (columns.server(each.instance_uuid, each.instance_name), each.source,
         each.destination, round(each.memory_mb / 1024, 1)) for each in moves]


def add_count_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the number of new servers."""
    parser.add_argument('--count', metavar='<n>', type=arguments.POSITIVE, default=1,
                        help='Number of new servers; default: 1.')


def sentences(room: contract.Room, count: int) -> Iterator[str]:
    """Yield sentences about the moves that make room.

    :param room: Room of the response
    :param count: number of new servers in the request
    """
    places = ', '.join(f'{number} on {name}' for name, number in room.hosts.items())
    yield (f'There is room for {sum(room.hosts.values())} of {plural.count(count, "server")} '
           f'after {plural.count(len(room.moves), "move")} that copy '
           f'{room.memory_mb / 1024:.1f} GiB{f": {places}" if places else ""}.')
    for why in room.missing:
        yield f'There is no room for the other servers: {why}.'


class _Moves(_AboutRoom):
    """The base of commands that show moves which make room for servers of one flavor."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('flavor', metavar='<flavor>', type=arguments.name,
                            help='Name of the flavor of the new servers, or a size such as '
                                 '4:8192:40 (VCPUs, MiB, GiB).')
        self.add_count(parser)
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Place the new servers on hosts of this aggregate, and move '
                                 'servers only within it.')
        parser.add_argument('--project', metavar='<uuid>', type=arguments.name,
                            help='Assume that the new servers belong to this project.')
        return parser

    def add_count(self, parser: argparse.ArgumentParser) -> None:
        """Add the argument for the number of servers or moves."""
        raise NotImplementedError


class RoomFragments(_Moves):
    """Show the moves after which the largest number of new servers of a flavor fits. Nothing is
    changed.

    Free capacity that is spread over several hosts, in pieces too small for the flavor, can be
    joined on one host by moving servers. The moves are shown in an order in which they can run.

    Exit codes: 0 the moves are shown; 1 the request was refused; 4 after the changes that options
    such as --lose and --boot assume, a server does not restart or a new server finds no room.
    """

    def add_count(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--moves', metavar='<n>', type=arguments.POSITIVE, default=50,
                            help='Maximum number of moves; default: 50.')

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.FRAGMENTS, contract.ShowFragments(
            flavor=parsed_args.flavor, moves=parsed_args.moves, aggregate=parsed_args.aggregate,
            project=parsed_args.project, **changes(parsed_args)))
        self.say_outcome(found.outcome)
        self.say(f'{found.before} new servers fit now, and {found.after} after '
                 f'{plural.count(len(found.moves), "move")} that copy '
                 f'{found.memory_mb / 1024:.1f} GiB. Such servers cannot use '
                 f'{found.rate_before:.0%} of the free CPUs now, and {found.rate_after:.0%} after '
                 'the moves.')
        return moves_table(found.moves)


class RoomCheck(_Moves):
    """Show the moves after which a number of new servers of a flavor fit. Nothing is changed.

    The moves are those with the least memory to copy, and are shown in an order in which they can
    run.

    Exit codes: 0 all new servers fit, now or after the moves; 1 the request was refused; 4 there is
    no room for all of the new servers.
    """

    def add_count(self, parser: argparse.ArgumentParser) -> None:
        add_count_argument(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.CHECK, contract.CheckRoom(
            flavor=parsed_args.flavor, count=parsed_args.count, aggregate=parsed_args.aggregate,
            project=parsed_args.project, **changes(parsed_args)))
        self.say_outcome(found.outcome)
        for sentence in sentences(found, parsed_args.count):
            self.say(sentence)
        if found.missing:
            self.exit_code = LOST
        return moves_table(found.moves)


class RoomWhatIf(_AboutRoom):
    """Show the load after hypothetical changes of the cloud, and the plan that Kronos would make
    then. Nothing is changed.

    A server of a lost host takes its load to the host on which it restarts. A new host has the load
    of an empty host of its kind. The load of new servers is not known and is not counted. The
    column Changed is the load after the changes. The column Planned is the load after the moves of
    the plan; cooldowns and plans in progress are ignored.

    Exit codes: 0 the loads are shown; 1 the request was refused; 4 a server does not restart or a
    new server finds no room.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Show only this aggregate, and let servers restart only within '
                                 'it; default: all aggregates in scope.')
        parser.add_argument('--hosts', action='store_true',
                            help='Show the load of each host, in addition to the imbalance of '
                                 'each aggregate.')
        parser.add_argument('--moves', action='store_true',
                            help='Show the restarts and moves of servers instead of the loads.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.WHAT_IF, contract.ShowChangedLoad(
            aggregate=parsed_args.aggregate, **changes(parsed_args)))
        self.say_outcome(found.outcome)
        for problem in found.problems:
            self.say(f'Not known: {problem}')
        memory = sum(move.memory_mb for move in found.moves)
        self.say(f'{plural.count(len(found.restarts), "server")} would restart on other hosts. '
                 f'The next plan would then have {plural.count(len(found.moves), "move")} and '
                 f'copy {memory / 1024:.1f} GiB.')
        if parsed_args.moves:
            head, restarts = moves_table(found.restarts)
            _head, moves = moves_table(found.moves)
            return (*head, 'For'), [*((*row, 'restart') for row in restarts),
                                    *((*row, 'plan') for row in moves)]
        return ('Aggregate', 'Policy', 'Host', 'Now', 'Changed', 'Planned'), [
            (each.aggregate, each.policy, columns.Optional(each.host),
             *(columns.Optional(None if figure is None else round(figure, 4))
               for figure in (each.now, each.changed, each.planned)))
            for each in found.loads if each.host is None or parsed_args.hosts]


class RoomMake(command.Lister):
    """Make room for new servers by moving other servers, and keep the room for them.

    The command shows the moves that are needed. The moves begin after "room approve", or at once
    with --approve. Once the room is free, it is kept for servers of the flavor, and of the project
    if one is named. The room is kept until the new servers use it, "room release" releases it, or
    --hold has passed. KronosFilter keeps the room if every nova-scheduler has this filter enabled,
    and the flavor has no resources other than VCPUs, memory and disk. Otherwise allocations in
    placement keep the room.

    Exit codes: 0 the request is recorded; 1 the request was refused; 4 there is no room for all
    servers, and nothing was recorded.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('flavor', metavar='<flavor>', type=arguments.name,
                            help='Name of the flavor of the new servers.')
        add_count_argument(parser)
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Make room on hosts of this aggregate, and move servers only '
                                 'within it; default: the aggregate in scope, if there is only '
                                 'one.')
        parser.add_argument('--for-project', metavar='<uuid>', type=arguments.name,
                            help='Keep the room for servers of this project only; default: for '
                                 'servers of any project.')
        parser.add_argument('--hold', metavar='<duration>', type=arguments.duration, default=1800,
                            help='Time for which the room is kept once it is free, such as 45m or '
                                 '8h; default: 30m.')
        parser.add_argument('--reason', metavar='<text>', default='',
                            help='Reason for the request, which is recorded and shown to other '
                                 'operators.')
        parser.add_argument('--approve', action='store_true',
                            help='Begin the moves at once, without "room approve".')
        parser.add_argument('--force', action='store_true',
                            help='Accept moves even if too little room remains to restart all '
                                 'servers of a host or failure domain after its failure. Without '
                                 'this argument, [kronos] failover_hosts and failover_domains '
                                 'forbid such moves.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.MAKE, contract.MakeRoom(
            flavor=parsed_args.flavor, count=parsed_args.count, aggregate=parsed_args.aggregate,
            project=parsed_args.for_project, hold_seconds=parsed_args.hold,
            reason=parsed_args.reason, approve=parsed_args.approve, force=parsed_args.force))
        room, hold = found.room, found.hold
        for sentence in sentences(room, parsed_args.count):
            self.say(sentence)
        if hold is None:
            self.exit_code = LOST
            self.say('Nothing was requested, and no server is moved.')
        elif hold.state == 'proposed':
            self.say(f'Nothing has begun: "room approve {hold.uuid}" lets the moves begin.')
        else:
            self.say(f'Room {hold.uuid} is {hold.state}.')
        return moves_table(room.moves)


class RoomList(command.Lister):
    """List the room that is being made or kept for new servers, in one row for each request."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--all', action='store_true',
                            help='List also room that is no longer kept: used, released, expired '
                                 'or failed.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.LIST, contract.ListRooms(all=parsed_args.all))
        return ('Room', 'Flavor', 'Count', 'Used', 'State', 'Hosts', 'Until', 'Aggregate',
                'Requested By'), [
            (each.uuid, each.flavor, each.count, len(each.used), each.state,
             ', '.join(each.hosts), columns.Time(each.expires_at), each.aggregate,
             each.requested_by) for each in found.rooms]


class _OneRoom(command.ShowOne):
    """The base class of the commands about the room of one request."""

    operation = contract.SHOW

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('room', metavar='<uuid>',
                            help='Uuid of the request for room, as "room list" shows it.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(self.operation, contract.OneRoom(room=parsed_args.room))
        return ('Room', 'Aggregate', 'Flavor', 'Count', 'Project', 'State', 'Problem', 'Moves',
                'GiB', 'Hosts', 'Used By', 'Kept By', 'Consumers', 'Plan', 'Requested By',
                'Requested At', 'Reason', 'Until', 'Finished At'), (
            found.uuid, found.aggregate, found.flavor, found.count,
            columns.Optional(found.project_id), found.state, found.problem, found.moves,
            round(found.memory_mb / 1024, 1),
            columns.Lines([f'{name}: {count}' for name, count in found.hosts.items()]),
            columns.Lines([f'{uuid} on {host}' for uuid, host in found.used.items()]),
            columns.Optional(found.keeper),
            columns.Lines([f'{uuid} on {host}' for uuid, host in found.consumers.items()]),
            columns.Optional(found.plan), found.requested_by, columns.Time(found.requested_at),
            found.reason, columns.Time(found.expires_at), columns.Time(found.finished_at))


class RoomShow(_OneRoom):
    """Show the room that is being made or kept for the new servers of one request."""


class RoomApprove(_OneRoom):
    """Approve the moves that make the room of a request, so that the moves begin.

    The moves are planned again from the present cloud. If there are now more moves than those that
    were shown, or the moves copy more memory, the request waits for approval again.
    """

    operation = contract.APPROVE


class RoomRelease(_OneRoom):
    """Release the room of a request, so that any server may use the room. Moves that make the room
    and have not begun are abandoned."""

    operation = contract.RELEASE
