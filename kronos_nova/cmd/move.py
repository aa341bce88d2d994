"""``kronos-manage move``: where the moves of plans stand."""


from cliff import columns as formattable
from cliff import command
from cliff import lister
from cliff import show
from rich import table
from rich import text

from kronos_nova import exception
from kronos_nova.cli import columns
from kronos_nova.cmd import arguments
from kronos_nova.cmd import database
from kronos_nova.cmd import tables
from kronos_nova.cmd import watching
from kronos_nova.executor import progress
from kronos_nova.objects import move as moves

LIVE = tuple(set(moves.TRANSITIONS) - moves.TERMINAL)

WATCHED = ('Name', 'Instance', 'Source', 'Destination', 'State', 'Retries', 'Progress',
           'Estimated end', 'Error')


class List(lister.Lister):
    """List moves: those that have not ended, or all of a plan.

    Progress is the share of memory that is copied, in percent, where the hypervisor's driver says.
    The estimated end goes by how long moves of about the same memory took.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--plan', metavar='UUID', help='All moves of this plan.')
        parser.add_argument('--all', action='store_true', help='Ended ones too.')
        parser.add_argument('--limit', type=arguments.POSITIVE, default=200, metavar='N',
                            help='How many; default: 200.')
        parser.add_argument('--watch', action='store_true',
                            help='Show them until all have ended or Ctrl-C is pressed; with '
                                 'another format than a table, on stderr meanwhile.')
        parser.add_argument('--interval', type=arguments.pause, default=2.0, metavar='SECONDS',
                            help='Between two looks of --watch; default: 2.')
        return parser

    def take_action(self, parsed_args):
        journal = database.journal(self.app.conf)
        if parsed_args.watch:
            self._watch(journal, parsed_args)
        return tables.MOVES, self._seen(journal, parsed_args)[1]

    def _seen(self, journal, parsed_args):
        """(MoveRecords, a row for each)"""
        states = None if parsed_args.all or parsed_args.plan else LIVE
        observed, now = journal.durations(), journal.database.utcnow()
        found = journal.moves(parsed_args.plan, states, parsed_args.limit)
        names = database.names(self.app.conf).read(move.instance_uuid for move in found)
        return found, [_row(move, observed, names, now) for move in found]

    def _watch(self, journal, parsed_args):
        def look():
            found, rows = self._seen(journal, parsed_args)
            return _screen(rows), any(move.state in LIVE for move in found)

        is_for_people = parsed_args.formatter == 'table'
        watching.watch(self.app.stdout if is_for_people else self.app.stderr, look,
                       parsed_args.interval)


def _screen(rows):
    shown = table.Table(*WATCHED)
    for row in rows:
        cells = dict(zip(tables.MOVES, row, strict=True))
        shown.add_row(*map(_cell, (cells[name] for name in WATCHED)))
    return shown


def _cell(value):
    if isinstance(value, formattable.FormattableColumn):
        return text.Text(value.human_readable())
    return text.Text('' if value is None else str(value))


def _row(move, observed, names, now):
    share, end = progress.percent(move), progress.estimated_end(move, observed)
    # One that takes longer than expected may end at any time; a time in the past tells nothing.
    end = end if end is None or end > now else None
    return tables.move(move, names.get(move.instance_uuid), share, end)


class Show(show.ShowOne):
    """Show a move and everything that happened to it."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('move', metavar='UUID')
        return parser

    def take_action(self, parsed_args):
        journal = database.journal(self.app.conf)
        found = journal.move(parsed_args.move)
        names = database.names(self.app.conf).read([found.instance_uuid])
        return tables.move_details(found, names.get(found.instance_uuid), found.owner,
                                   journal.events(found.uuid))


class Abort(command.Command):
    """End a move: it is not begun, or Nova is asked to abort its migration.

    Returns at once; "move show" tells what came of it. A move ended like this is neither tried
    again nor does it put its instance into quarantine.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument('move', nargs='?', metavar='UUID')
        group.add_argument('--plan', metavar='UUID', help='Every move of this plan.')
        return parser

    def take_action(self, parsed_args):
        journal, who = database.journal(self.app.conf), database.operator()
        if not parsed_args.plan:
            journal.request_abort(parsed_args.move, who, journal.database.utcnow())
            self.app.stdout.write('Asked to end; "kronos-manage move show" tells what came of '
                                  'it.\n')
            return
        journal.plan(parsed_args.plan)  # There has to be one.
        asked, ended = 0, 0
        for found in journal.moves(parsed_args.plan):
            try:
                journal.request_abort(found.uuid, who, journal.database.utcnow())
                asked += 1
            except exception.MoveEnded:
                ended += 1
        self.app.stdout.write(
            f'{columns.count(asked, "move")} asked to end, {ended} had ended.\n')
