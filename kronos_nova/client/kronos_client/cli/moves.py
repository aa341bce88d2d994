"""Commands on moves."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator

from kronos_client import plural
from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.cli import watching
from kronos_client.contract import errors
from kronos_client.contract import moves as contract
from kronos_client.contract import plans

COLUMNS = ('UUID', 'Plan', 'Order', 'Name', 'Instance', 'Source', 'Destination', 'Phase', 'State',
           'Retries', 'Migration', 'Progress', 'Estimated end', 'Error', 'Aggregate', 'Project',
           'MiB', 'Planned at', 'Started at', 'Ended at', 'Seconds', 'Reason')
SHORT = ('Name', 'Instance', 'Source', 'Destination', 'State', 'Started at', 'Seconds', 'Progress',
         'Error')
WITHOUT_MOVES = ('proposed', 'approved')
"""States of plans that may still begin, and whose moves are not recorded yet."""
HAS_ENDED = 'kronos.move_ended'
"""Code of the error for a request to end a move that has ended."""


class List(command.Lister):
    """List moves, those of the newest plan first. Without arguments, only moves that have not ended
    are listed.

    The arguments that begin with "List only" are conditions; a move is listed if it meets all of
    them. With any condition, or with --all, moves that have ended are listed too.

    The column Progress is the share of memory that is copied, in percent, where the hypervisor's
    driver reports it. The column "Estimated end" is computed from the durations of earlier moves of
    about the same memory.
    """

    short = SHORT

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--plan', metavar='<uuid>', type=arguments.name,
                            help='List only moves of this plan.')
        parser.add_argument('--server', metavar='<server>', type=arguments.name,
                            help='List only moves of this server, given by its name or uuid.')
        parser.add_argument('--host', metavar='<host>', type=arguments.name,
                            help='List only moves that leave this host or arrive at it.')
        parser.add_argument('--project', metavar='<id>', type=arguments.name,
                            help='List only moves of servers of this project.')
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='List only moves of plans for this aggregate.')
        parser.add_argument('--state', metavar='<state>', action='append', default=[],
                            choices=(*contract.LIVE, *contract.ENDED),
                            help='List only moves in this state; may be repeated.')
        parser.add_argument('--since', metavar='<time>', type=arguments.past,
                            help='List only moves that ended after this time, or have not ended: '
                                 f'{arguments.PAST}.')
        parser.add_argument('--until', metavar='<time>', type=arguments.past,
                            help='List only moves that were planned before this time: '
                                 f'{arguments.PAST}.')
        parser.add_argument('--all', action='store_true', help='List moves that have ended too.')
        parser.add_argument('--limit', type=arguments.POSITIVE, default=200, metavar='<n>',
                            help='Maximum number of moves to list, the newest first; default: '
                                 '200.')
        parser.add_argument('--watch', action='store_true',
                            help='Refresh the list until all moves have ended or Ctrl-C is '
                                 'pressed. With a format other than a table, the list is on '
                                 'stderr, and the result in that format follows on stdout.')
        parser.add_argument('--interval', type=arguments.pause, default=2.0, metavar='<seconds>',
                            help='Seconds between two refreshes of --watch; default: 2.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        if parsed_args.watch:
            self._watch(parsed_args)
        found = [row(each) for each in self._found(parsed_args)]
        if not found and parsed_args.formatter == 'table':
            self.say('No recorded move meets the conditions.' if _is_conditional(parsed_args)
                     else 'No move waits or runs; --all lists the moves that have ended.')
        return COLUMNS, found

    def _found(self, parsed_args: argparse.Namespace) -> list[contract.Move]:
        return self.collect(contract.LIST, _request(parsed_args), 'moves', parsed_args.limit)

    def _watch(self, parsed_args: argparse.Namespace) -> None:
        def read_moves() -> tuple[str, bool]:
            found = self._found(parsed_args)
            return (watching.table(SHORT, COLUMNS, map(row, found)),
                    any(move.state in contract.LIVE for move in found))

        is_for_people = parsed_args.formatter == 'table'
        watching.watch(self.app.stdout if is_for_people else self.app.stderr, read_moves,
                       parsed_args.interval)


CONDITIONS = ('plan', 'server', 'host', 'project', 'aggregate', 'state', 'since', 'until')
"""Names of the arguments that are conditions of the list of moves. A move has to meet all that are
given."""


def _is_conditional(parsed_args: argparse.Namespace) -> bool:
    """Return whether the arguments have ``--all`` or a condition. If so, moves that have ended are
    listed too."""
    return parsed_args.all or any(getattr(parsed_args, name) for name in CONDITIONS)


def _request(parsed_args: argparse.Namespace) -> contract.ListMoves:
    asked = {name: getattr(parsed_args, name) for name in CONDITIONS}
    return contract.ListMoves(**asked if _is_conditional(parsed_args)
                              else asked | {'state': list(contract.LIVE)})


def row(move: contract.Move) -> tuple:
    """Return the row of a move: the tuple of its cells, in the order of :data:`COLUMNS`."""
    took = (move.finished_at - move.requested_at).total_seconds() if (
        move.finished_at and move.requested_at and move.finished_at > move.requested_at) else None
    return (move.uuid, move.plan_uuid, move.ordinal, columns.Optional(move.instance_name),
            move.instance_uuid, move.source, move.destination, move.phase, move.state,
            move.retry_count, columns.Optional(move.migration_uuid),
            columns.Optional(None if move.progress is None else round(move.progress)),
            columns.Time(move.estimated_end), columns.Optional(move.error_type), move.aggregate,
            columns.Optional(move.project_id), move.memory_mb, columns.Time(move.created_at),
            columns.Time(move.requested_at), columns.Time(move.finished_at),
            columns.Optional(None if took is None else round(took)), move.reason)


class Show(command.ShowOne):
    """Show a move and every change of its state."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('move', metavar='<uuid>', help='Uuid of the move to show.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.SHOW, contract.OneMove(move=parsed_args.move))
        return command.fields({
            'uuid': found.uuid, 'plan': found.plan_uuid, 'aggregate': found.aggregate,
            'instance': found.instance_uuid, 'name': columns.Optional(found.instance_name),
            'project': columns.Optional(found.project_id), 'kind': found.kind,
            'source': found.source, 'destination': found.destination,
            'memory_mb': found.memory_mb, 'phase': found.phase, 'reason': found.reason,
            'state': found.state, 'worker': columns.Optional(found.worker),
            'retries': found.retry_count, 'migration': columns.Optional(found.migration_uuid),
            'expected_seconds': columns.Optional(found.expected_seconds),
            'error_type': columns.Optional(found.error_type),
            'error': columns.Optional(found.error),
            'planned_at': columns.Time(found.created_at),
            'requested_at': columns.Time(found.requested_at),
            'finished_at': columns.Time(found.finished_at),
            'events': '\n'.join(map(_step, found.events)),
        })


def _step(event: contract.MoveEvent) -> str:
    who = f' by {event.worker}' if event.worker else ''
    detail = f': {event.detail}' if event.detail else ''
    return (f'{columns.local(event.at)} {event.old_state or "-"} -> {event.new_state}{who}'
            f'{detail}')


class Abort(command.Command):
    """End a move, or every move of a plan. A move that has not begun is abandoned. For a move in
    progress, Nova is asked to abort the migration.

    The command does not wait for the end of the moves; "move show" reports the result. A move that
    was aborted is not retried, and its server is not put into quarantine.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument('move', nargs='?', metavar='<uuid>', help='Uuid of the move to end.')
        group.add_argument('--plan', metavar='<uuid>',
                           help='Uuid of a plan, to end every move of the plan.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        if not parsed_args.plan:
            self.call(contract.ABORT, contract.OneMove(move=parsed_args.move))
            self.say(f'The end of move {parsed_args.move} is requested; "move show" reports the '
                     'result.')
            return 0
        plan = self.call(plans.SHOW, plans.OnePlan(plan=parsed_args.plan))
        if plan.state in WITHOUT_MOVES:
            self.say(f'Plan {plan.uuid} has no moves to end yet: its state is {plan.state}. '
                     '"plan reject" ends the plan.')
            return 1
        found = self.collect(contract.LIST, contract.ListMoves(plan=plan.uuid), 'moves',
                             plan.move_count)
        asked = list(self._aborted(found))
        self.say(f'The end of {plural.count(len(asked), "move")} is requested; '
                 f'{len(found) - len(asked)} had ended before.')
        return 0

    def _aborted(self, found: Iterable[contract.Move]) -> Iterator[contract.Move]:
        """Request the end of each move that has not ended, and yield these moves. A move may end
        after the list was read; it is left out."""
        for move in found:
            if move.state not in contract.LIVE:
                continue
            try:
                self.call(contract.ABORT, contract.OneMove(move=move.uuid))
            except errors.Refused as error:
                if error.code != HAS_ENDED:
                    raise
            else:
                yield move
