"""``kronos-manage plan``: what was planned, why, and whether it may run."""

import dataclasses

from cliff import command
from cliff import lister
from cliff import show

from kronos_nova.cli import columns
from kronos_nova.cmd import arguments
from kronos_nova.cmd import database
from kronos_nova.cmd import tables
from kronos_nova.objects import plan as plans
from kronos_nova.operations import approving
from kronos_nova.operations import switching

NOT_KEPT = {'policies': [], 'moves': [], 'not_moved': [], 'refusals': [], 'warnings': [
    'The report of this plan is no longer kept; [kronos_database] reports_retention_days says for '
    'how long reports are. "kronos-manage move list --plan" lists the moves that were made of it.']}


class List(lister.Lister):
    """List plans, the newest first."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--aggregate', help='Only the plans of this aggregate.')
        parser.add_argument('--limit', type=arguments.POSITIVE, default=50, metavar='N',
                            help='How many; default: 50.')
        return parser

    def take_action(self, parsed_args):
        found = database.journal(self.app.conf).plans(parsed_args.aggregate, parsed_args.limit)
        if parsed_args.aggregate and not found:
            switching.refuse_unknown(self.app.conf, parsed_args.aggregate)
        return tables.PLANS, [tables.plan(each) for each in found]


class Show(show.ShowOne):
    """Show a plan: figures before and after, every move and why, and what stayed and why."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='UUID')
        return parser

    def take_action(self, parsed_args):
        plan = database.journal(self.app.conf).plan(parsed_args.plan)
        kept = plan.report and plans.AggregateReport.from_json(plan.report)
        report = dataclasses.asdict(kept) if kept else NOT_KEPT
        names = database.names(self.app.conf).read(plans.servers_of(kept.moves if kept else ()))
        named = {**report, 'moves': [_named(move, names) for move in report['moves']]}
        return tables.plan_details(plan, named, plan.detail, plan.ended_because,
                                   self.parsed_args_formatter == 'table')

    def run(self, parsed_args):
        self.parsed_args_formatter = parsed_args.formatter
        return super().run(parsed_args)


def add_choice(parser):
    """``--skip`` and ``--only``."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument('--skip', type=arguments.POSITIVE, action='append', default=[],
                       metavar='N', help='Leave out move N, as "plan show" numbers them; may '
                                         'be repeated.')
    which.add_argument('--only', type=arguments.POSITIVE, action='append', default=[],
                       metavar='N', help='Make move N and those that it depends on; may be '
                                         'repeated.')


class Approve(command.Command):
    """Let a proposed plan run, wholly or without some of its moves.

    The plan is checked against the cloud as it is now; what does not hold any more is left out. A
    move that depends on one that is left out is left out too.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='UUID')
        add_choice(parser)
        return parser

    def take_action(self, parsed_args):
        journal = database.journal(self.app.conf)
        done = approving.approve(journal, parsed_args.plan, database.operator(),
                                 journal.database.utcnow(), skip=parsed_args.skip,
                                 only=parsed_args.only)
        self.app.stdout.write(approved(done))


def approved(done):
    """What is said of an approval."""
    return (f'{done.chosen} of {columns.count(done.moves, "move")} may run. The plan is checked '
            'against the cloud once more; "plan show" tells which were left out then, and why.\n')


class Reject(command.Command):
    """Put a proposed plan aside; its aggregate is planned afresh when it is due."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='UUID')
        return parser

    def take_action(self, parsed_args):
        journal = database.journal(self.app.conf)
        journal.reject_plan(parsed_args.plan, database.operator(), journal.database.utcnow())


def _named(move, names):
    """A move, and what could have been moved instead, with the names of the servers."""
    other = move['next_best']
    return {**move, 'instance_name': names.get(move['instance_uuid']), 'next_best': other and {
        **other, 'instance_name': names.get(other['instance_uuid'])}}
