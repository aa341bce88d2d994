"""``kronos-manage pause``, ``resume`` and ``stop``."""

import time

from cliff import command
from oslo_db import exception as db_exc

from kronos_nova.cli import arguments
from kronos_nova.cli import columns
from kronos_nova.cmd import automation as levels
from kronos_nova.cmd import database
from kronos_nova.db.error_text import error_text
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.operations import switching

# Exit codes, documented in operating.rst.
QUIET, NOT_QUIET = 0, 3

LOOK_SECONDS = 0.5


class _OfAggregates(command.Command):
    """A command for one aggregate or all of them, with the reason why."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        levels.add_arguments(parser)
        return parser


class Pause(_OfAggregates):
    """Let no move be started until "resume"; those under way go on to their end.

    Survives restarts. Aggregates are still evaluated and reported, as at the level "observe".
    """

    def take_action(self, parsed_args):
        conf = self.app.conf
        switching.pause(conf, database.control_database(conf),
                        levels.switch(parsed_args, automation.PAUSE, 'pause'))
        self.app.stdout.write(f'{_scope(parsed_args)} paused; no move is started before '
                              '"kronos-manage resume".\n')


class Resume(_OfAggregates):
    """End a pause or a stop. Without --aggregate: all of them."""

    def take_action(self, parsed_args):
        board = database.switches(self.app.conf)
        gone = switching.resume(self.app.conf, board.database,
                                levels.switch(parsed_args, automation.PAUSE, ''))
        for each in gone:
            self.app.stdout.write(f'{_name(each.aggregate)}: was paused since '
                                  f'{columns.local(each.set_at)}: {each}\n')
        if not gone:
            self.app.stdout.write(f'{_scope(parsed_args)} not paused; nothing was changed.\n')
        every = board.read().pauses.get(automation.EVERY)
        if every:
            self.app.stdout.write(f'Still paused as a whole: {every}\n')


class Stop(_OfAggregates):
    """Stop at once: no move is started, what waits is abandoned, what runs is aborted.

    Survives restarts; "resume" ends it. Shows how the moves under way end, until the last has.

    Exit codes: 0 all is quiet, 1 it could not be stopped, 3 stopped, but something was still under
    way after --timeout.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--let-finish', action='store_true',
                            help='Do not abort what Nova was asked for already.')
        parser.add_argument('--timeout', type=arguments.seconds, default=120.0, metavar='SECONDS',
                            help='How long to wait for what is under way; default: 120.')
        return parser

    def take_action(self, parsed_args):
        conf = self.app.conf
        # Before it is stopped: what fails then is no stop.
        self.names, journal = database.names(conf), database.journal(conf)
        done = switching.stop(conf, journal.database,
                              levels.switch(parsed_args, automation.PAUSE, 'stop'),
                              parsed_args.let_finish)
        self._say(f'{_scope(parsed_args)} stopped: no move is started before "kronos-manage '
                  f'resume". {stopped(done)}')
        left = self._watch(journal, parsed_args)
        if left is None:
            self._say('Whether all is quiet could not be told; "kronos-manage move list" will.')
            return NOT_QUIET
        for move in left:
            self._say(f'Still under way: {self._text(move)}. See "kronos-manage move show '
                      f'{move.uuid}".')
        if not left:
            self._say('All is quiet.')
        return NOT_QUIET if left else QUIET

    def _watch(self, journal, parsed_args):
        """Tell how the moves under way end; those that have not in time, None where that could not
        be told."""
        deadline, seen, problem = time.monotonic() + parsed_args.timeout, None, None
        while True:
            try:
                seen, problem = self._look(journal, parsed_args.aggregate, seen or {}), None
            except db_exc.DBError as error:
                # It is stopped, whatever can be seen of it now.
                before, problem = problem, error_text(error)
                if problem != before:
                    self._say(f'{problem} It is asked again.')
            is_quiet = seen is not None and not seen
            if is_quiet or time.monotonic() > deadline:
                return None if seen is None else list(seen.values())
            time.sleep(LOOK_SECONDS)

    def _look(self, journal, aggregate, seen):
        """Tell what has changed; the moves under way, by uuid."""
        now = {move.uuid: move for move in journal.moves(states=moves.IN_FLIGHT)
               if aggregate in (automation.EVERY, move.aggregate)}
        for uuid in seen.keys() - now.keys():
            self._say(self._text(journal.move(uuid)))
        for uuid, move in now.items():
            if uuid not in seen or seen[uuid].state != move.state:
                self._say(self._text(move))
        return now

    def _text(self, move):
        try:
            known = self.names.read([move.instance_uuid])
        except db_exc.DBError:
            known = {}
        name = columns.server(move.instance_uuid, known.get(move.instance_uuid))
        asked = ', asked to abort' if move.abort_requested and move.state in moves.IN_FLIGHT else ''
        return f'{name}, {move.source} -> {move.destination}: {move.state}{asked}'

    def _say(self, line):
        self.app.stdout.write(f'{line}\n')
        self.app.stdout.flush()


def _name(aggregate):
    return 'Everything' if aggregate == automation.EVERY else f'Aggregate {aggregate}'


def _scope(parsed_args):
    return f'{_name(parsed_args.aggregate)} is'


def stopped(done):
    """What is said of a stop."""
    return f'Waiting moves given up: {done.abandoned}; under way: {done.under_way}.'
