"""``kronos-manage automation``: how far Kronos may go by itself, aggregate by aggregate."""

from cliff import command
from cliff import lister

from kronos_nova import clock
from kronos_nova.cli import arguments
from kronos_nova.cmd import database
from kronos_nova.cmd import tables
from kronos_nova.engine import levels
from kronos_nova.engine import scope
from kronos_nova.objects import automation
from kronos_nova.operations import switching


def switch(parsed_args, kind, value):
    """The Switch that a command sets, by whoever runs it."""
    return automation.Switch(
        kind=kind, value=value, aggregate=parsed_args.aggregate, reason=parsed_args.reason,
        set_at=clock.utcnow(), set_by=database.operator())


def add_arguments(parser):
    """``--aggregate`` and ``--reason``."""
    parser.add_argument('--aggregate', default=automation.EVERY, metavar='NAME',
                        help='Only this aggregate; default: all.')
    parser.add_argument('--reason', type=arguments.remark, default='', metavar='TEXT',
                        help='Kept and shown beside your name.')


class Show(lister.Lister):
    """Show the level of every aggregate, and who set it, when and why.

    Exit codes: 0 shown, 1 not.
    """

    def take_action(self, parsed_args):
        conf = self.app.conf
        found, defaults = database.switches(conf).read(), levels.defaults(conf)
        return tables.LEVELS, [
            self._row(name, found, defaults) for name in scope.aggregates_in_scope(conf)]

    @staticmethod
    def _row(name, found, defaults):
        level, pause = found.level(name, defaults), found.pause(name)
        own = switching.own_level(found, name, level)
        return tables.level(name, level, own, pause and str(pause))


class Set(command.Command):
    """Set the level of an aggregate, or of all of them.

    Heeded at once by every worker and daemon, kept over restarts. What Nova was asked for goes on;
    moves of a plan that the new level does not permit are abandoned before they begin. A level for
    all replaces those that were set for single aggregates. Exit codes: 0 set, 1 not.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('level', choices=automation.LEVELS)
        add_arguments(parser)
        return parser

    def take_action(self, parsed_args):
        conf = self.app.conf
        board = database.switches(conf)
        before = board.read()
        switching.set_level(conf, board.database,
                            switch(parsed_args, automation.LEVEL, parsed_args.level))
        for line in self._said(conf, before, board.read()):
            self.app.stdout.write(f'{line}\n')

    @staticmethod
    def _said(conf, before, after):
        """What has changed, in words."""
        defaults = levels.defaults(conf)
        for name in scope.aggregates_in_scope(conf):
            old, new = before.level(name, defaults), after.level(name, defaults)
            yield f'{name}: {new} (unchanged)' if old == new else f'{name}: {old} -> {new}'


class History(lister.Lister):
    """List who set levels, pauses and stops, and took them away, the newest first."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--limit', type=arguments.POSITIVE, default=50, metavar='N',
                            help='How many; default: 50.')
        return parser

    def take_action(self, parsed_args):
        found = database.switches(self.app.conf).history(parsed_args.limit)
        return tables.SWITCHES, [tables.switch(each) for each in found]
