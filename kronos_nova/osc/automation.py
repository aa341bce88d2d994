"""``openstack kronos automation``, ``pause``, ``resume`` and ``stop``."""

from osc_lib.command import command

from kronos_nova.api import acting
from kronos_nova.api import views as v
from kronos_nova.cli import arguments
from kronos_nova.cmd import automation as shared
from kronos_nova.cmd import pausing
from kronos_nova.cmd import tables
from kronos_nova.objects import automation
from kronos_nova.osc.client import at


def _table(found: v.Automation):
    return tables.LEVELS, [
        tables.level(each.aggregate, each.level, each if each.set_by else None, each.paused)
        for each in found.levels]


class Show(command.Lister):
    """Show the level of every aggregate, and who set it, when and why."""

    def take_action(self, parsed_args):
        return _table(self.app.client_manager.rebalancing.get('/v1/automation', v.Automation))


class Set(command.Lister):
    """Set the level of an aggregate, or of all of them, and show the levels then.

    Heeded at once by every worker and daemon, kept over restarts. What Nova was asked for goes on;
    moves of a plan that the new level does not permit are abandoned before they begin. A level for
    all replaces those that were set for single aggregates.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('level', choices=automation.LEVELS)
        shared.add_arguments(parser)
        return parser

    def take_action(self, parsed_args):
        return _table(self.app.client_manager.rebalancing.ask(
            'PUT', at('/v1/aggregates/{}/automation', parsed_args.aggregate), v.Automation,
            json={'level': parsed_args.level, 'reason': parsed_args.reason}))


class History(command.Lister):
    """List who set levels, pauses and stops, and took them away, the newest first."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--limit', type=arguments.POSITIVE, default=50, metavar='<n>',
                            help='How many, at most 1000; default: 50')
        return parser

    def take_action(self, parsed_args):
        found = self.app.client_manager.rebalancing.get(
            '/v1/automation/history', v.SwitchEvents, limit=parsed_args.limit)
        return tables.SWITCHES, [tables.switch(each) for each in found.events]


class _OfAggregates(command.Lister):
    """A command for one aggregate or all of them that shows the levels and pauses then."""

    path = ''

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        shared.add_arguments(parser)
        return parser

    def take_action(self, parsed_args):
        return _table(self.app.client_manager.rebalancing.ask(
            'POST', self.path, v.Automation, json=_scope(parsed_args)))


def _scope(parsed_args):
    return {'aggregate': parsed_args.aggregate, 'reason': parsed_args.reason}


class Pause(_OfAggregates):
    """Let no move be started until "resume"; those under way go on to their end.

    Survives restarts. Aggregates are still evaluated and reported, as at the level "observe".
    """

    path = '/v1/pause'


class Resume(_OfAggregates):
    """End a pause or a stop. Without --aggregate: all of them."""

    path = '/v1/resume'


class Stop(command.Command):
    """Stop at once: no move is started, what waits is abandoned, what runs is aborted.

    Survives restarts; "resume" ends it. Does not wait for what is under way: "kronos move list"
    shows it.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        shared.add_arguments(parser)
        parser.add_argument('--let-finish', action='store_true',
                            help='Do not abort what Nova was asked for already')
        return parser

    def take_action(self, parsed_args):
        done = self.app.client_manager.rebalancing.ask(
            'POST', '/v1/stop', acting.Stopped,
            json=_scope(parsed_args) | {'let_finish': parsed_args.let_finish})
        self.app.stdout.write(
            'Stopped: no move is started before "openstack kronos resume". '
            f'{pausing.stopped(done)}\n')
