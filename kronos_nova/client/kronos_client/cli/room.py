"""Commands about room: how many new servers fit, whether the servers of a lost host restart, and
which moves make room."""

from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.contract import room as contract

LOST = 4
"""Exit code (no unit) where not all servers of a lost host restart elsewhere, or not all new
servers fit. Fixed: scripts depend on it."""
VERDICTS = {contract.FITS: 'all restart', contract.DOES_NOT: 'not all restart',
            contract.NOT_FOUND: 'not known'}


def add_change_arguments(parser):
    """Add the arguments that describe hypothetical changes of the cloud."""
    group = parser.add_argument_group('the cloud as it would be', 'Changes that are only thought '
                                      'of, made in this order; each may be repeated.')
    group.add_argument('--ratio', metavar='<class>=<ratio>', action='append', default=[],
                       help='Another allocation ratio on all hosts, such as VCPU=8.')
    group.add_argument('--add', metavar='<n>:like=<host>', action='append', default=[],
                       help='So many empty hosts like one.')
    group.add_argument('--lose', metavar='<host>', action='append', default=[],
                       help='Hosts that fail together, by name or by failure domain such as '
                            'rack=r3; their servers restart on the others.')
    group.add_argument('--boot', metavar='<n>:<flavor>', action='append', default=[],
                       help='So many new servers.')


def changes(parsed_args):
    """Return the fields of a request that describe the hypothetical changes."""
    return {name: getattr(parsed_args, name) for name in contract.Changes.__struct_fields__}


class _AboutRoom(command.Lister):
    """The base of commands about room in the present cloud, or in the cloud after hypothetical
    changes."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        add_change_arguments(parser)
        return parser

    def say_outcome(self, outcome):
        """Print the servers that do not restart and the new servers without room after the
        hypothetical changes."""
        for uuid, why in outcome.left.items():
            self.say(f'Does not restart: {columns.server(uuid, outcome.names.get(uuid))}: {why}')
        for flavor, count in outcome.not_booted.items():
            self.say(f'No room for {count} of the new servers {flavor}.')
        if outcome.left or outcome.not_booted:
            self.exit_code = LOST


class Capacity(_AboutRoom):
    """Show how many more servers of each flavor fit into the cloud.

    Unusable is what is free of each resource on hosts that may take such servers, where the host
    has too little left for one more. Short is the resource of which too little is left for the next
    server.

    With --loss, servers are also counted for the worst loss of one host, after its servers have
    restarted on the others. The column is empty where they do not all restart, which "failover"
    explains.

    With --moves, servers are also counted after at most that many moves, for each flavor as if it
    were the only one. "room fragments" shows the moves.

    With --aggregate, Full in is the number of days after which about none fits any more. It is
    predicted from the counts that past evaluations made for [kronos] slot_flavors.

    Exit codes: 0 shown; 1 refused; 4 after changes, servers do not restart or find no room.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--flavor', metavar='<flavor>', action='append', default=[],
                            type=arguments.name,
                            help='Name of a flavor, or a size such as 4:8192:40 (VCPUs, MiB, '
                                 'GiB); may be repeated; default: all flavors.')
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Count hosts of this aggregate.')
        parser.add_argument('--project', metavar='<uuid>', type=arguments.name,
                            help='Count hosts that take servers of this project.')
        parser.add_argument('--loss', action='store_true',
                            help='Count also after the loss of any one host.')
        parser.add_argument('--moves', metavar='<n>', type=arguments.POSITIVE,
                            help='Count also after at most so many moves of servers.')
        return parser

    def take_action(self, parsed_args):
        found = self.call(contract.CAPACITY, contract.ShowCapacity(
            flavors=parsed_args.flavor, aggregate=parsed_args.aggregate,
            project=parsed_args.project, loss=parsed_args.loss, moves=parsed_args.moves,
            **changes(parsed_args)))
        self.say_outcome(found.outcome)
        if found.not_restarting:
            self.say(f'Servers of {len(found.not_restarting)} hosts do not all restart if their '
                     f'host fails, such as of {found.not_restarting[0]}; "failover" has the '
                     'reasons.')
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


def _full_in(slots):
    """Return the number of days until no further server fits, such as "40 ± 9 days"; None where
    there is no trend."""
    if slots.full_in_days is None:
        return None
    return f'{slots.full_in_days:.0f} ± {slots.full_in_days_error:.0f} days'


class Failover(_AboutRoom):
    """Show for each host whether all of its servers restart on other hosts if it fails.

    Each host is judged as if it failed alone. The column "In Nova's order" says whether all servers
    also restart if Nova's scheduler chooses the hosts one server after the other, as for Masakari
    and "nova evacuate" without a destination.

    Exit codes: 0 all servers restart; 1 refused; 4 the servers of a host do not all restart, or
    that is not known.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('hosts', nargs='*', metavar='<host>', type=arguments.name,
                            help='Hosts to judge; default: all that have servers.')
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Judge hosts of this aggregate, whose servers restart within it.')
        parser.add_argument('--all', action='store_true',
                            help='Show also the hosts whose servers all restart in any way.')
        return parser

    def take_action(self, parsed_args):
        found = self.call(contract.FAILOVER, contract.CheckFailover(
            hosts=parsed_args.hosts, aggregate=parsed_args.aggregate, **changes(parsed_args)))
        self.say_outcome(found.outcome)
        lost = [each for each in found.hosts if each.verdict != contract.FITS]
        by_name = [each for each in found.hosts
                   if each.verdict == contract.FITS and not each.in_novas_order]
        self.say(f'{len(found.hosts)} hosts: the servers of {len(found.hosts) - len(lost)} all '
                 f'restart, of {len(by_name)} of these only with named destinations.')
        if lost:
            self.exit_code = LOST
        shown = found.hosts if parsed_args.all or parsed_args.hosts else [*lost, *by_name]
        return ('Host', 'Servers', 'Verdict', "In Nova's order", 'Left'), [
            (each.host, each.servers, VERDICTS.get(each.verdict, each.verdict),
             'yes' if each.in_novas_order else 'no',
             columns.Lines([f'{columns.server(uuid, each.names.get(uuid))}: {why}'
                            for uuid, why in each.left.items()]))
            for each in shown]


def moves_table(moves):
    """Return the columns and rows of moves that make room."""
    return ('Server', 'Source', 'Destination', 'GiB'), [
        (columns.server(each.instance_uuid, each.instance_name), each.source,
         each.destination, round(each.memory_mb / 1024, 1)) for each in moves]


def add_count_argument(parser):
    """Add the argument for the number of new servers."""
    parser.add_argument('--count', metavar='<n>', type=arguments.POSITIVE, default=1,
                        help='So many servers; default: 1.')


def sentences(room, count):
    """Yield sentences about the moves that make room.

    :param room: Room of the response
    :param count: number of new servers that were asked for
    """
    places = ', '.join(f'{number} on {name}' for name, number in room.hosts.items())
    yield (f'Room for {sum(room.hosts.values())} of {count}{f": {places}" if places else ""}; '
           f'{len(room.moves)} moves copy {room.memory_mb / 1024:.1f} GiB.')
    for why in room.missing:
        yield f'No room for others: {why}.'


class _Moves(_AboutRoom):
    """The base of commands that show moves which make room for servers of one flavor."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('flavor', metavar='<flavor>', type=arguments.name,
                            help='Name of a flavor, or a size such as 4:8192:40 (VCPUs, MiB, '
                                 'GiB).')
        self.add_count(parser)
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='On hosts of this aggregate, by moves within it.')
        parser.add_argument('--project', metavar='<uuid>', type=arguments.name,
                            help='For servers of this project.')
        return parser

    def add_count(self, parser):
        """Add the argument for the number of servers or moves."""
        raise NotImplementedError


class RoomFragments(_Moves):
    """Show the moves after which the most new servers of a flavor fit. Nothing is changed.

    The moves join free room that lies on several hosts in pieces too small for the flavor. They are
    in an order in which they can run.

    Exit codes: 0 shown; 1 refused; 4 after changes, servers do not restart or find no room.
    """

    def add_count(self, parser):
        parser.add_argument('--moves', metavar='<n>', type=arguments.POSITIVE, default=50,
                            help='At most so many moves; default: 50.')

    def take_action(self, parsed_args):
        found = self.call(contract.FRAGMENTS, contract.ShowFragments(
            flavor=parsed_args.flavor, moves=parsed_args.moves, aggregate=parsed_args.aggregate,
            project=parsed_args.project, **changes(parsed_args)))
        self.say_outcome(found.outcome)
        self.say(f'{found.before} servers fit now and {found.after} after {len(found.moves)} moves '
                 f'that copy {found.memory_mb / 1024:.1f} GiB; of the free CPUs '
                 f'{found.rate_before:.0%} are of no use to them now, then '
                 f'{found.rate_after:.0%}.')
        return moves_table(found.moves)


class RoomCheck(_Moves):
    """Show the moves after which a number of new servers of a flavor fit. Nothing is changed.

    The moves are those with the least memory to copy, in an order in which they can run.

    Exit codes: 0 there is room, or these moves make it; 1 refused; 4 there is no room for all of
    the new servers.
    """

    def add_count(self, parser):
        add_count_argument(parser)

    def take_action(self, parsed_args):
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
    """Show the load after hypothetical changes of the cloud, and the moves that would follow.
    Nothing is changed.

    A server of a lost host brings its load to the host on which it restarts. A new host has the
    load of an empty host of its kind. The load of new servers is not known and does not count. The
    column Planned is the load after the moves of the plan that would follow; cooldowns and open
    plans are ignored for it.

    Exit codes: 0 shown; 1 refused; 4 servers do not restart or find no room.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Hosts of this aggregate, whose servers restart within it; '
                                 'default: all in scope.')
        parser.add_argument('--hosts', action='store_true',
                            help='Show the load of each host too.')
        parser.add_argument('--moves', action='store_true',
                            help='Show which server goes where in the place of the load.')
        return parser

    def take_action(self, parsed_args):
        found = self.call(contract.WHAT_IF, contract.ShowChangedLoad(
            aggregate=parsed_args.aggregate, **changes(parsed_args)))
        self.say_outcome(found.outcome)
        for problem in found.problems:
            self.say(f'Not known: {problem}')
        memory = sum(move.memory_mb for move in found.moves)
        self.say(f'{len(found.restarts)} servers restart elsewhere; the next plan moves '
                 f'{len(found.moves)} servers, which copies {memory / 1024:.1f} GiB.')
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
    """Make room for new servers by moving others, and keep it for them.

    The command shows the moves. They begin after "room approve", or at once with --approve. Room
    that is free is kept for servers of the flavor, and of the project if one is named, until they
    use it, it is released, or its time is over. It is kept by KronosFilter where every
    nova-scheduler has that filter enabled, or else by allocations in placement.

    Exit codes: 0 the request is recorded; 1 refused; 4 there is no room for all, and nothing was
    recorded.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('flavor', metavar='<flavor>', type=arguments.name,
                            help='Name of a flavor.')
        add_count_argument(parser)
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='On hosts of this aggregate, by moves within it; default: the '
                                 'only one in scope.')
        parser.add_argument('--for-project', metavar='<uuid>', type=arguments.name,
                            help='Keep it for servers of this project; default: of any.')
        parser.add_argument('--hold', metavar='<duration>', type=arguments.duration, default=1800,
                            help='Keep it for so long once it is there, such as 45m or 8h; '
                                 'default: 30m.')
        parser.add_argument('--reason', metavar='<text>', default='', help='Why, for others.')
        parser.add_argument('--approve', action='store_true',
                            help='Begin at once, without "room approve".')
        parser.add_argument('--force', action='store_true',
                            help='Also by moves after which hosts could not be lost any more with '
                                 'all servers restarting elsewhere ([kronos] failover_hosts, '
                                 'failover_domains).')
        return parser

    def take_action(self, parsed_args):
        found = self.call(contract.MAKE, contract.MakeRoom(
            flavor=parsed_args.flavor, count=parsed_args.count, aggregate=parsed_args.aggregate,
            project=parsed_args.for_project, hold_seconds=parsed_args.hold,
            reason=parsed_args.reason, approve=parsed_args.approve, force=parsed_args.force))
        room, hold = found.room, found.hold
        for sentence in sentences(room, parsed_args.count):
            self.say(sentence)
        if hold is None:
            self.exit_code = LOST
        elif hold.state == 'proposed':
            self.say(f'Nothing has begun: "room approve {hold.uuid}" lets the moves begin.')
        else:
            self.say(f'Room {hold.uuid} is {hold.state}.')
        return moves_table(room.moves)


class RoomList(command.Lister):
    """List the rooms that are being made or kept for new servers."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--all', action='store_true', help='Show also what has ended.')
        return parser

    def take_action(self, parsed_args):
        found = self.call(contract.LIST, contract.ListRooms(all=parsed_args.all))
        return ('Room', 'Flavor', 'Count', 'Used', 'State', 'Hosts', 'Until', 'Aggregate',
                'Requested By'), [
            (each.uuid, each.flavor, each.count, len(each.used), each.state,
             ', '.join(each.hosts), columns.Time(each.expires_at), each.aggregate,
             each.requested_by) for each in found.rooms]


class _OneRoom(command.ShowOne):
    """The base of commands about one room."""

    operation = contract.SHOW

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('room', metavar='<uuid>', help='Uuid of room that was asked for.')
        return parser

    def take_action(self, parsed_args):
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
    """Show a room for new servers, and the progress of making it."""


class RoomApprove(_OneRoom):
    """Approve the moves that make a room, so that they begin.

    The moves are planned again from the present cloud. If they are more, or copy more memory, than
    those that were shown, the room waits for approval again.
    """

    operation = contract.APPROVE


class RoomRelease(_OneRoom):
    """Release a room, so that other servers may use it. Moves for it that have not begun are
    abandoned."""

    operation = contract.RELEASE
