"""Commands on levels, pauses and stops."""

import argparse
import time
from collections.abc import Mapping

from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.contract import automation as contract
from kronos_client.contract import errors
from kronos_client.contract import moves

COLUMNS = ('Aggregate', 'Level', 'Set by', 'Since', 'Reason', 'Paused', 'Rule repairs',
           'Repairs set by')
EVENTS = ('At', 'Aggregate', 'What', 'By', 'Reason')
PAUSES = ('Aggregate', 'What', 'By', 'Since', 'Reason', 'Ended')

QUIET, NOT_QUIET, STILL_PAUSED = 0, 3, 3
"""Exit codes of the commands that stop and resume moves. ``QUIET``: no move is in progress after a
stop, or no pause is left. ``NOT_QUIET``: moves may still be in progress after a stop.
``STILL_PAUSED``: another pause or stop is still in force after ``resume``. The codes are documented
in operating.rst. Fixed: scripts depend on the codes."""

LOOK_SECONDS = 0.5
"""Seconds between two queries of a command that waits for the end of moves. Raised, the command
shows the end later; lowered, the control database has more queries. Not measured."""


def _levels(found: contract.Automation) -> command.Table:
    return COLUMNS, [
        (each.aggregate, each.level, each.set_by or 'nova.conf', columns.Time(each.set_at),
         each.reason, columns.Optional(each.paused), each.repairs,
         each.repairs_set_by or 'nova.conf') for each in found.levels]


class _OfAggregates(command.Command):
    """The base of commands with the arguments ``--aggregate`` and ``--reason``."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--aggregate', default=contract.EVERY, metavar='<name>',
                            help='Name of the aggregate that the command is for; default: every '
                                 'aggregate.')
        parser.add_argument('--reason', type=arguments.remark, default='', metavar='<text>',
                            help='Reason for the change, which is recorded and shown to other '
                                 'operators with your name.')
        return parser


class Show(command.Lister):
    """Show the level of every aggregate, and who set it, when and why."""

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        return _levels(self.call(contract.SHOW, contract.SHOW.request()))


class Set(_OfAggregates, command.Lister):
    """Set the level of one aggregate, or of every aggregate, and show the levels.

    Every worker and daemon uses the new level at once, and keeps it after a restart. Migrations in
    progress continue. If the new level does not permit a plan that is waiting or running, the moves
    of the plan that have not begun are abandoned. A level for every aggregate replaces the levels
    that were set for single aggregates.

    With --repairs, the command sets the level of repairs (moves that repair violated rules) and
    leaves the level of other moves unchanged. An aggregate whose level of repairs was never set
    uses [kronos] repair_automation, or its own level where that option is not set.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('level', choices=contract.LEVELS,
                            help='New level: with "off" nothing is planned; with "observe" plans '
                                 'are made and shown, and nothing is moved; with '
                                 '"approve" a plan starts after "plan approve"; with "auto" plans '
                                 'start without approval.')
        parser.add_argument('--repairs', action='store_true',
                            help='Set the level of repairs (moves that repair violated rules) '
                                 'instead of the level of other moves.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        before = {each.aggregate: each.repairs if parsed_args.repairs else each.level
                  for each in self.call(contract.SHOW, contract.SHOW.request()).levels}
        found = self.call(contract.SET, contract.SetLevel(
            aggregate=parsed_args.aggregate, level=parsed_args.level, reason=parsed_args.reason,
            repairs=parsed_args.repairs))
        names, rows = _levels(found)
        return (*names, 'Before'), [(*row, before.get(row[0])) for row in rows]


class History(command.Lister):
    """List changes of levels, pauses and stops, each with its author, time and reason, the newest
    first."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--limit', type=arguments.at_least(1, command.PAGE), default=50,
                            metavar='<n>', help='Maximum number of changes to list, from 1 to '
                                                '1000; default: 50.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.HISTORY, contract.ListEvents(limit=parsed_args.limit))
        return EVENTS, [(columns.Time(each.set_at), each.aggregate, _what(each), each.set_by,
                         each.reason) for each in found.events]


def _what(event: contract.SwitchEvent) -> str:
    if not event.value:
        return 'resume' if event.kind == 'pause' else 'level of nova.conf'
    return {'level': 'level {}', 'repair_level': 'level of rule repairs {}'}.get(
        event.kind, '{}').format(event.value)


class Pause(_OfAggregates, command.Lister):
    """Start no further move until "resume". Moves in progress continue to their end.

    A pause survives restarts. Aggregates are still evaluated and reported, as at the level
    "observe". Each pause is recorded with its author and reason. Your pause does not replace the
    pause of a colleague: moves start again once both have ended.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        return _levels(self.call(contract.PAUSE, contract.Scope(
            aggregate=parsed_args.aggregate, reason=parsed_args.reason)))


class Resume(_OfAggregates, command.Lister):
    """End your pauses and stops, and show which ones ended and which ones are still in force.

    The pauses and stops of other users end with --all only. With --aggregate, only the pauses and
    stops of that aggregate end. Without --aggregate, the pauses and stops of every aggregate end.

    Exit codes: 0 no pause or stop is in force any more; 1 the request was refused; 3 a pause or a
    stop is still in force.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--all', action='store_true',
                            help='End the pauses and stops of all users, instead of only yours.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.RESUME, contract.Resume(
            aggregate=parsed_args.aggregate, reason=parsed_args.reason, everyone=parsed_args.all))
        asked = parsed_args.aggregate
        left = [each for each in found.pauses
                if asked == contract.EVERY or each.aggregate in (contract.EVERY, asked)]
        self.code = STILL_PAUSED if left else QUIET
        return PAUSES, [
            (each.aggregate, each.value, each.set_by, columns.Time(each.set_at), each.reason,
             each in found.ended) for each in [*found.ended, *left]]

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self.code


class Stop(_OfAggregates):
    """Stop all moves at once: start no move, abandon the moves that wait, and abort the moves in
    progress.

    The stop survives restarts; "resume" ends it. The command shows how the moves in progress end,
    and returns when the last one has ended, or after --timeout.

    The stop also works while the control database does not answer. kronos-manage then writes the
    stop into a file on its own host, and sends the stop to every executor. No further move is
    started. Moves in progress are aborted when the database answers again; the stop is then
    recorded in the database.

    Exit codes: 0 moves are stopped, and no move is in progress; 1 moves could not be stopped; 3
    moves are stopped, but a move was still in progress after --timeout, the moves in progress could
    not be read, or the control database does not answer.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--let-finish', action='store_true',
                            help='Let the migrations that Nova has begun continue to their end, '
                                 'instead of aborting them.')
        parser.add_argument('--timeout', type=arguments.seconds, default=120.0,
                            metavar='<seconds>',
                            help='Maximum time in seconds to wait for the moves in progress to '
                                 'end; default: 120.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        try:
            done = self.call(contract.STOP, contract.Stop(
                aggregate=parsed_args.aggregate, reason=parsed_args.reason,
                let_finish=parsed_args.let_finish))
        except errors.StopPending as pending:
            self.say(str(pending))
            return NOT_QUIET
        whose = ('Everything' if parsed_args.aggregate == contract.EVERY
                 else f'Aggregate {parsed_args.aggregate}')
        self.say(f'{whose} is stopped: no move is started before "resume". Waiting moves given up: '
                 f'{done.abandoned}; in progress: {done.under_way}.')
        left = self._watch(parsed_args)
        if left is None:
            self.say('Whether moves are still in progress could not be read; "move list" shows '
                     'the moves in progress.')
            return NOT_QUIET
        for move in left:
            self.say(f'Still in progress: {_text(move)}. See "move show {move.uuid}".')
        if not left:
            self.say('No move is in progress.')
        return NOT_QUIET if left else QUIET

    def _watch(self, parsed_args: argparse.Namespace) -> list[moves.Move] | None:
        """Print the end of each move in progress, until all have ended or the timeout has passed.
        Return the moves that have not ended; None if the moves could not be read."""
        deadline = time.monotonic() + parsed_args.timeout
        seen: dict[str, moves.Move] | None = None
        problem: str | None = None
        while True:
            try:
                seen, problem = self._look_at(parsed_args.aggregate, seen or {}), None
            except errors.Unreachable as error:
                # The stop is recorded, even if its effect cannot be read now.
                before, problem = problem, str(error)
                if problem != before:
                    self.say(f'{problem} The command asks again.')
            except errors.Refused as refused:
                # The user may be permitted to stop moves, but not to list moves.
                self.say(str(refused))
                return None
            is_quiet = seen is not None and not seen
            if is_quiet or time.monotonic() > deadline:
                return None if seen is None else list(seen.values())
            time.sleep(LOOK_SECONDS)

    def _look_at(self, aggregate: str, seen: Mapping[str, moves.Move]) -> dict[str, moves.Move]:
        """Print each change of the moves in progress. Return {uuid: move} of the moves in
        progress."""
        request = moves.ListMoves(
            state=[each for each in moves.LIVE if each != 'planned'],
            aggregate=None if aggregate == contract.EVERY else aggregate)
        now = {move.uuid: move for move in self.collect(
            moves.LIST, request, 'moves', arguments.LARGEST)}
        for uuid in seen.keys() - now.keys():
            try:
                self.say(_text(self.call(moves.SHOW, moves.OneMove(move=uuid))))
            except errors.Refused as refused:
                self.say(f'{_route(seen[uuid])}: has ended; its result could not be read: '
                         f'{refused}')
        for uuid, move in now.items():
            if uuid not in seen or seen[uuid].state != move.state:
                self.say(_text(move))
        return now


def _text(move: moves.Move) -> str:
    asked = ', asked to abort' if move.abort_requested and move.state in moves.LIVE else ''
    return f'{_route(move)}: {move.state}{asked}'


def _route(move: moves.Move) -> str:
    name = columns.server(move.instance_uuid, move.instance_name)
    return f'{name}, {move.source} -> {move.destination}'
