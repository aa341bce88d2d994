"""``kronos-manage plan``: what was planned, why, and whether it may run."""

import getpass
import json

from cliff import command
from cliff import lister
from cliff import show
from oslo_utils import timeutils

from kronos_nova import exception
from kronos_nova.cmd import control
from kronos_nova.objects import plan as plans

NOT_KEPT = {'policies': [], 'moves': [], 'not_moved': [], 'warnings': [
    'The report of this plan is no longer kept; [kronos_database] reports_retention_days says for '
    'how long reports are. "kronos-manage move list --plan" lists the moves that were made of it.']}


class List(lister.Lister):
    """List plans, the newest first."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--aggregate', help='Only the plans of this aggregate.')
        parser.add_argument('--limit', type=int, default=50, help='How many; default: 50.')
        return parser

    def take_action(self, parsed_args):
        found = control.journal(self.app.conf).plans(parsed_args.aggregate, parsed_args.limit)
        return ('UUID', 'Aggregate', 'State', 'Planner', 'Moves', 'Imbalance before',
                'Imbalance after', 'Created at', 'Times made', 'Last made at'), [
            (p.uuid, p.aggregate, p.state, p.planner, p.move_count,
             _rounded(p.combined_before), _rounded(p.combined_after), p.created_at.isoformat(' '),
             p.times_seen, (p.last_seen_at or p.created_at).isoformat(' '))
            for p in found]


class Show(show.ShowOne):
    """Show a plan: figures before and after, every move and why, and what stayed and why."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='UUID')
        return parser

    def take_action(self, parsed_args):
        plan = control.journal(self.app.conf).plan(parsed_args.plan)
        report = json.loads(plan.report) if plan.report else NOT_KEPT
        return zip(*{
            'uuid': plan.uuid, 'aggregate': plan.aggregate, 'state': plan.state,
            'mode': plan.mode, 'planner': plan.planner,
            'created_at': plan.created_at.isoformat(' '),
            'expires_at': plan.expires_at.isoformat(' '),
            'approved_by': plan.approved_by,
            'times_made': plan.times_seen,
            'policies': self._lines(report['policies'], _policy_line),
            'moves': self._lines(report['moves'], _move_line),
            'not_moved': self._lines(report['not_moved'], _skip_line),
            'warnings': self._lines(report['warnings'], str),
        }.items(), strict=True)

    def _lines(self, values, line):
        """Text for a table, the values themselves for a program."""
        if self.parsed_args_formatter != 'table':
            return values
        return '\n'.join(map(line, values))

    def run(self, parsed_args):
        self.parsed_args_formatter = parsed_args.formatter
        return super().run(parsed_args)


class Approve(command.Command):
    """Let a proposed plan run, wholly or without some of its moves.

    The plan is checked against the cloud as it is now; what does not hold any more is left out. A
    move that depends on one that is left out is left out too.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='UUID')
        parser.add_argument('--skip', type=int, action='append', default=[], metavar='N',
                            help='Leave out move N, as "plan show" numbers them; may be repeated.')
        return parser

    def take_action(self, parsed_args):
        journal = control.journal(self.app.conf)
        report = json.loads(journal.plan(parsed_args.plan).report)
        chosen = without(plans.moves_from_json(report), parsed_args.skip)
        journal.approve_plan(parsed_args.plan, chosen, getpass.getuser(), timeutils.utcnow())
        self.app.stdout.write(f'{len(chosen)} of {len(report["moves"])} moves may run.\n')


class Reject(command.Command):
    """Put a proposed plan aside; its aggregate is planned afresh when it is due."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='UUID')
        return parser

    def take_action(self, parsed_args):
        control.journal(self.app.conf).reject_plan(parsed_args.plan, timeutils.utcnow())


def without(moves, skipped):
    """The moves that are left when some are skipped, and with them those that depend on them.

    :raises ConfigurationError: there is no move of such a number
    """
    unknown = sorted(set(skipped) - {move.order for move in moves})
    if unknown:
        raise exception.ConfigurationError(
            what=f'--skip {unknown[0]}', problem='the plan has no such move',
            remedy='"kronos-manage plan show" numbers its moves.')
    left_out = set(skipped)
    for move in sorted(moves, key=lambda move: move.order):
        if left_out.intersection(move.depends_on):
            left_out.add(move.order)
    return [move for move in moves if move.order not in left_out]


def _rounded(value):
    return None if value is None else round(value, 4)


def _policy_line(policy):
    if policy['state'] != 'ok':
        return f'{policy["name"]}: no data: {policy["detail"]}'
    return (f'{policy["name"]}: {policy["imbalance_before"]:.3f} -> '
            f'{policy["imbalance_after"]:.3f} (threshold {policy["threshold"]:.3f})')


def _move_line(move):
    return (f'{move["order"]}. {move["instance_uuid"]} {move["source"]} -> '
            f'{move["destination"]}: {move["reason"]}')


def _skip_line(skip):
    return f'{skip["reason"]}: {skip["count"]}'
