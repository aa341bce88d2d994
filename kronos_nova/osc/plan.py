"""``openstack kronos plan``: what was planned, why, and whether it may run."""

import msgspec
from osc_lib.command import command

from kronos_nova.api import acting
from kronos_nova.api import views as v
from kronos_nova.cmd import arguments
from kronos_nova.cmd import plan as shared
from kronos_nova.cmd import tables
from kronos_nova.osc.client import at


class List(command.Lister):
    """List plans, the newest first."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--aggregate', metavar='<name>', help='Only those of this aggregate')
        parser.add_argument('--state', metavar='<state>', help='Only those in this state')
        parser.add_argument('--limit', type=arguments.POSITIVE, default=50, metavar='<n>',
                            help='How many; default: 50')
        return parser

    def take_action(self, parsed_args):
        found = self.app.client_manager.rebalancing.pages(
            '/v1/plans', v.Plans, 'plans', parsed_args.limit, aggregate=parsed_args.aggregate,
            state=parsed_args.state)
        return tables.PLANS, [tables.plan(each) for each in found]


class Show(command.ShowOne):
    """Show a plan: figures before and after, every move and why, and what stayed and why."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='<uuid>')
        return parser

    def take_action(self, parsed_args):
        found = self.app.client_manager.rebalancing.get(
            at('/v1/plans/{}', parsed_args.plan), v.PlanDetail)
        report = msgspec.to_builtins(found.report) if found.report else shared.NOT_KEPT
        return tables.plan_details(found, report, found.waits_for, found.reason,
                                   parsed_args.formatter == 'table')


class Approve(command.Command):
    """Let a proposed plan run, wholly or without some of its moves.

    The plan is checked against the cloud as it is now; what does not hold any more is left out. A
    move that depends on one that is left out is left out too.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='<uuid>')
        shared.add_choice(parser)
        return parser

    def take_action(self, parsed_args):
        done = self.app.client_manager.rebalancing.ask(
            'POST', at('/v1/plans/{}/approve', parsed_args.plan), acting.Approved,
            json={'skip': parsed_args.skip, 'only': parsed_args.only})
        self.app.stdout.write(shared.approved(done))


class Reject(command.Command):
    """Put a proposed plan aside; its aggregate is planned afresh when it is due."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='<uuid>')
        return parser

    def take_action(self, parsed_args):
        self.app.client_manager.rebalancing.ask('POST', at('/v1/plans/{}/reject', parsed_args.plan))
