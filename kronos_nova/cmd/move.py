"""``kronos-manage move``: where the moves of plans stand."""

import contextlib
import time

from cliff import command
from cliff import lister
from cliff import show
from rich import console
from rich import live
from rich import table

from kronos_nova import exception
from kronos_nova.cmd import control
from kronos_nova.executor import progress
from kronos_nova.objects import move as moves

LIVE = tuple(set(moves.TRANSITIONS) - moves.TERMINAL)


COLUMNS = ('UUID', 'Plan', 'Order', 'Instance', 'Source', 'Destination', 'Phase', 'State',
           'Retries', 'Migration', 'Progress', 'Estimated end', 'Error')
WATCHED = ('Instance', 'Source', 'Destination', 'State', 'Retries', 'Progress', 'Estimated end',
           'Error')


class List(lister.Lister):
    """List moves: those that have not ended, or all of a plan.

    Progress is the share of memory that is copied, in percent, where the hypervisor's driver says.
    The estimated end goes by how long moves of about the same memory took.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--plan', metavar='UUID', help='All moves of this plan.')
        parser.add_argument('--all', action='store_true', help='Ended ones too.')
        parser.add_argument('--limit', type=int, default=200, help='How many; default: 200.')
        parser.add_argument('--watch', action='store_true',
                            help='Show them until all have ended or Ctrl-C is pressed.')
        parser.add_argument('--interval', type=float, default=2.0, metavar='SECONDS',
                            help='Between two looks of --watch; default: 2.')
        return parser

    def take_action(self, parsed_args):
        journal = control.journal(self.app.conf)
        if parsed_args.watch:
            self._watch(journal, parsed_args)
        return COLUMNS, [_row(*each) for each in self._seen(journal, parsed_args)]

    @staticmethod
    def _seen(journal, parsed_args):
        """[(MoveRecord, durations of others)]"""
        states = None if parsed_args.all or parsed_args.plan else LIVE
        observed = journal.durations()
        return [(move, observed)
                for move in journal.moves(parsed_args.plan, states, parsed_args.limit)]

    def _watch(self, journal, parsed_args):
        screen = console.Console(file=self.app.stdout)
        with contextlib.suppress(KeyboardInterrupt), live.Live(console=screen) as display:
            while True:
                seen = self._seen(journal, parsed_args)
                display.update(_screen(seen), refresh=True)
                if not any(move.state in LIVE for move, _observed in seen):
                    return
                time.sleep(parsed_args.interval)


def _screen(seen):
    shown = table.Table(*WATCHED)
    for each in seen:
        cells = dict(zip(COLUMNS, _row(*each), strict=True))
        shown.add_row(*('' if cells[name] is None else str(cells[name]) for name in WATCHED))
    return shown


def _row(move, observed):
    share, end = progress.percent(move), progress.estimated_end(move, observed)
    return (move.uuid, move.plan_uuid, move.ordinal, move.instance_uuid, move.source,
            move.destination, move.phase, move.state, move.retry_count, move.migration_uuid,
            None if share is None else round(share), end and end.isoformat(' ', 'seconds'),
            move.error_type)


class Show(show.ShowOne):
    """Show a move and everything that happened to it."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('move', metavar='UUID')
        return parser

    def take_action(self, parsed_args):
        journal = control.journal(self.app.conf)
        found = journal.move(parsed_args.move)
        return zip(*{
            'uuid': found.uuid, 'plan': found.plan_uuid, 'aggregate': found.aggregate,
            'instance': found.instance_uuid, 'source': found.source,
            'destination': found.destination, 'memory_mb': found.memory_mb, 'phase': found.phase,
            'reason': found.reason, 'state': found.state, 'worker': found.owner,
            'retries': found.retry_count, 'migration': found.migration_uuid,
            'error_type': found.error_type, 'error': found.error,
            'requested_at': _text(found.requested_at), 'finished_at': _text(found.finished_at),
            'events': '\n'.join(
                f'{at.isoformat(" ")} {old or "-"} -> {new}{f" by {worker}" if worker else ""}'
                f'{f": {detail}" if detail else ""}'
                for at, old, new, worker, detail in journal.events(found.uuid)),
        }.items(), strict=True)


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
        journal = control.journal(self.app.conf)
        if not parsed_args.plan:
            journal.request_abort(parsed_args.move)
            return
        for found in journal.moves(parsed_args.plan):
            try:
                journal.request_abort(found.uuid)
            except exception.MoveNotFound:
                self.app.LOG.debug('Move %s has ended.', found.uuid)


def _text(time):
    return time and time.isoformat(' ')
