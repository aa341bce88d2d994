"""Commands on levels, pauses and stops."""

import time

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
"""Exit codes (no unit) of the commands that stop and resume moves. In this order: nothing is in
progress; moves are still in progress; another pause still applies. They are documented in
operating.rst. Fixed: scripts depend on them."""

LOOK_SECONDS = 0.5
"""Seconds between two queries of a command that waits for moves to end. Raised, the end of a move
is shown later; lowered, the control database has more queries. Not measured."""


def _levels(found):
    return COLUMNS, [
        (each.aggregate, each.level, each.set_by or 'nova.conf', columns.Time(each.set_at),
         each.reason, columns.Optional(each.paused), each.repairs,
         each.repairs_set_by or 'nova.conf') for each in found.levels]


class _OfAggregates(command.Command):
    """The base of commands that take one aggregate or every aggregate, and a reason."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--aggregate', default=contract.EVERY, metavar='<name>',
                            help='Only this aggregate; default: every aggregate.')
        parser.add_argument('--reason', type=arguments.remark, default='', metavar='<text>',
                            help='Kept and shown with your name.')
        return parser


class Show(command.Lister):
    """Show the level of every aggregate, and who set it, when and why."""

    def take_action(self, parsed_args):
        return _levels(self.call(contract.SHOW, contract.SHOW.request()))


class Set(_OfAggregates, command.Lister):
    """Set the level of one aggregate, or of every aggregate, and show the levels.

    Every worker and daemon uses the level at once, also after a restart. Migrations that Nova was
    asked for continue; moves of a plan that the new level does not permit are abandoned before they
    begin. A level for every aggregate replaces those that were set for single aggregates.

    With --repairs only the level of repairs of violated rules is set. Where it is not set, it is
    [kronos] repair_automation, or else the level of the aggregate.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('level', choices=contract.LEVELS, help='The level.')
        parser.add_argument('--repairs', action='store_true',
                            help='Only of moves that repair violated rules.')
        return parser

    def take_action(self, parsed_args):
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

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--limit', type=arguments.at_least(1, command.PAGE), default=50,
                            metavar='<n>', help='List at most so many, up to 1000; default: 50.')
        return parser

    def take_action(self, parsed_args):
        found = self.call(contract.HISTORY, contract.ListEvents(limit=parsed_args.limit))
        return EVENTS, [(columns.Time(each.set_at), each.aggregate, _what(each), each.set_by,
                         each.reason) for each in found.events]


def _what(event):
    if not event.value:
        return 'resume' if event.kind == 'pause' else 'level of nova.conf'
    return {'level': 'level {}', 'repair_level': 'level of rule repairs {}'}.get(
        event.kind, '{}').format(event.value)


class Pause(_OfAggregates, command.Lister):
    """Start no move until "resume". Moves in progress continue to their end.

    Survives restarts. Aggregates are still evaluated and reported, as at the level "observe". Each
    pause is kept with its author and reason, and your pause does not replace that of a colleague.
    """

    def take_action(self, parsed_args):
        return _levels(self.call(contract.PAUSE, contract.Scope(
            aggregate=parsed_args.aggregate, reason=parsed_args.reason)))


class Resume(_OfAggregates, command.Lister):
    """End your pauses and stops, and show which ended and which still hold.

    Pauses and stops that others have set end with --all only. Without --aggregate, those of single
    aggregates end too.

    Exit codes: 0 no pause or stop holds any more; 1 refused; 3 a pause or a stop still holds.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--all', action='store_true',
                            help='End those that others have set too.')
        return parser

    def take_action(self, parsed_args):
        found = self.call(contract.RESUME, contract.Resume(
            aggregate=parsed_args.aggregate, reason=parsed_args.reason, everyone=parsed_args.all))
        asked = parsed_args.aggregate
        left = [each for each in found.pauses
                if asked == contract.EVERY or each.aggregate in (contract.EVERY, asked)]
        self.code = STILL_PAUSED if left else QUIET
        return PAUSES, [
            (each.aggregate, each.value, each.set_by, columns.Time(each.set_at), each.reason,
             each in found.ended) for each in [*found.ended, *left]]

    def run(self, parsed_args):
        return super().run(parsed_args) or self.code


class Stop(_OfAggregates):
    """Stop all moves at once: start none, abandon those that wait, and abort those in progress.

    The stop survives restarts; "resume" ends it. The command shows how the moves in progress end,
    until the last one has ended.

    While the control database does not answer, kronos-manage stops moves by a file on its host and
    a message to every executor. The stop is recorded in the database when it answers again.

    Exit codes: 0 stopped, and no move is in progress; 1 it could not be stopped; 3 stopped, but a
    move was still in progress after --timeout, or the control database does not answer.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--let-finish', action='store_true',
                            help='Do not abort what Nova was asked for already.')
        parser.add_argument('--timeout', type=arguments.seconds, default=120.0,
                            metavar='<seconds>',
                            help='How long to wait for what is in progress; default: 120.')
        return parser

    def take_action(self, parsed_args):
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
            self.say('It is not known whether moves are still in progress; "move list" shows it.')
            return NOT_QUIET
        for move in left:
            self.say(f'Still in progress: {_text(move)}. See "move show {move.uuid}".')
        if not left:
            self.say('All is quiet.')
        return NOT_QUIET if left else QUIET

    def _watch(self, parsed_args):
        """Print how the moves in progress end. Return the moves that have not ended in time; None
        where the control database does not answer."""
        deadline, seen, problem = time.monotonic() + parsed_args.timeout, None, None
        while True:
            try:
                seen, problem = self._look_at(parsed_args.aggregate, seen or {}), None
            except errors.Unreachable as error:
                # The stop is recorded, even if its effect cannot be read now.
                before, problem = problem, str(error)
                if problem != before:
                    self.say(f'{problem} It is asked again.')
            is_quiet = seen is not None and not seen
            if is_quiet or time.monotonic() > deadline:
                return None if seen is None else list(seen.values())
            time.sleep(LOOK_SECONDS)

    def _look_at(self, aggregate, seen):
        """Print each change of the moves in progress. Return {uuid: move} of the moves in
        progress."""
        request = moves.ListMoves(
            state=[each for each in moves.LIVE if each != 'planned'],
            aggregate=None if aggregate == contract.EVERY else aggregate)
        now = {move.uuid: move for move in self.collect(
            moves.LIST, request, 'moves', arguments.LARGEST)}
        for uuid in seen.keys() - now.keys():
            self.say(_text(self.call(moves.SHOW, moves.OneMove(move=uuid))))
        for uuid, move in now.items():
            if uuid not in seen or seen[uuid].state != move.state:
                self.say(_text(move))
        return now


def _text(move):
    name = columns.server(move.instance_uuid, move.instance_name)
    asked = ', asked to abort' if move.abort_requested and move.state in moves.LIVE else ''
    return f'{name}, {move.source} -> {move.destination}: {move.state}{asked}'
