"""``kronos-manage move``: where the moves of plans stand."""

from cliff import command
from cliff import lister
from cliff import show

from kronos_nova import exception
from kronos_nova.cmd import control
from kronos_nova.objects import move as moves


class List(lister.Lister):
    """List moves: those that have not ended, or all of a plan."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--plan', metavar='UUID', help='All moves of this plan.')
        parser.add_argument('--all', action='store_true', help='Ended ones too.')
        parser.add_argument('--limit', type=int, default=200, help='How many; default: 200.')
        return parser

    def take_action(self, parsed_args):
        live = tuple(set(moves.TRANSITIONS) - moves.TERMINAL)
        states = None if parsed_args.all or parsed_args.plan else live
        found = control.journal(self.app.conf).moves(parsed_args.plan, states, parsed_args.limit)
        return ('UUID', 'Plan', 'Order', 'Instance', 'Source', 'Destination', 'Phase', 'State',
                'Retries', 'Migration', 'Error'), [
            (m.uuid, m.plan_uuid, m.ordinal, m.instance_uuid, m.source, m.destination, m.phase,
             m.state, m.retry_count, m.migration_uuid, m.error_type) for m in found]


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
