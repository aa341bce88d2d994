"""``kronos-manage plan``: what was planned, why, and whether it may run."""

import dataclasses

from cliff import command
from cliff import lister
from cliff import show
from oslo_utils import timeutils

from kronos_nova.cmd import arguments
from kronos_nova.cmd import columns
from kronos_nova.cmd import control
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
        found = control.journal(self.app.conf).plans(parsed_args.aggregate, parsed_args.limit)
        if parsed_args.aggregate and not found:
            switching.refuse_unknown(self.app.conf, parsed_args.aggregate)
        return ('UUID', 'Aggregate', 'State', 'Planner', 'Moves', 'Imbalance before',
                'Imbalance after', 'Created at', 'Times made', 'Last made at'), [
            (p.uuid, p.aggregate, p.state, p.planner, p.move_count,
             _rounded(p.combined_before), _rounded(p.combined_after),
             columns.Time(p.created_at), p.times_seen,
             columns.Time(p.last_seen_at or p.created_at))
            for p in found]


class Show(show.ShowOne):
    """Show a plan: figures before and after, every move and why, and what stayed and why."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='UUID')
        return parser

    def take_action(self, parsed_args):
        plan = control.journal(self.app.conf).plan(parsed_args.plan)
        kept = plan.report and plans.AggregateReport.from_json(plan.report)
        report = dataclasses.asdict(kept) if kept else NOT_KEPT
        names = control.names(self.app.conf).of(plans.servers_of(kept.moves if kept else ()))
        return zip(*{
            'uuid': plan.uuid, 'aggregate': plan.aggregate, 'state': plan.state,
            'mode': plan.mode, 'planner': plan.planner,
            'purpose': plan.purpose,
            'created_at': columns.Time(plan.created_at),
            'expires_at': columns.Time(plan.expires_at),
            'approved_by': columns.Optional(plan.approved_by),
            'approved_at': columns.Time(plan.approved_at),
            'finished_at': columns.Time(plan.finished_at),
            'waits_for': columns.Optional(plan.detail),
            'left_out': columns.Optional(plan.ended_because),
            'times_made': plan.times_seen,
            'policies': self._lines(report['policies'], _policy_line),
            'moves': self._lines([_named(move, names) for move in report['moves']], _move_line),
            'not_moved': self._lines(report['not_moved'], _skip_line),
            'refusals': self._lines(report['refusals'], _refusal_line),
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
        which = parser.add_mutually_exclusive_group()
        which.add_argument('--skip', type=arguments.POSITIVE, action='append', default=[],
                           metavar='N', help='Leave out move N, as "plan show" numbers them; may '
                                             'be repeated.')
        which.add_argument('--only', type=arguments.POSITIVE, action='append', default=[],
                           metavar='N', help='Make move N and those that it depends on; may be '
                                             'repeated.')
        return parser

    def take_action(self, parsed_args):
        journal = control.journal(self.app.conf)
        done = approving.approve(journal, parsed_args.plan, control.operator(),
                                 timeutils.utcnow(), skip=parsed_args.skip, only=parsed_args.only)
        self.app.stdout.write(
            f'{done.chosen} of {done.moves} moves may run. They are checked against the '
            'cloud once more; "plan show" tells which were left out then, and why.\n')


class Reject(command.Command):
    """Put a proposed plan aside; its aggregate is planned afresh when it is due."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='UUID')
        return parser

    def take_action(self, parsed_args):
        control.journal(self.app.conf).reject_plan(parsed_args.plan, control.operator(),
                                                   timeutils.utcnow())


def _rounded(value):
    return None if value is None else round(value, 4)


def _policy_line(policy):
    if policy['state'] != 'ok':
        return f'{policy["name"]}: no data: {policy["detail"]}'
    after = policy['imbalance_after']
    return (f'{policy["name"]}: {policy["imbalance_before"]:.3f} -> '
            f'{"not known, as moves are left out" if after is None else f"{after:.3f}"} '
            f'(threshold {policy["threshold"]:.3f})')


def _named(move, names):
    """A move, and what could have been moved instead, with the names of the servers."""
    other = move['next_best']
    return {**move, 'instance_name': names.get(move['instance_uuid']), 'next_best': other and {
        **other, 'instance_name': names.get(other['instance_uuid'])}}


def _move_line(move):
    waits = ', '.join(map(str, move['depends_on']))
    after = f'; waits for {waits}' if waits else ''
    return (f'{move["order"]}. {_server(move)} {move["source"]} -> {move["destination"]}: '
            f'{move["reason"]}{after}\n     next best: {_next_best(move)}')


def _next_best(move):
    """Why this move and not another."""
    other = move['next_best']
    if not other:
        return 'none that is permitted'
    found = (f'{_server(other)} to {other["destination"]}, combined imbalance '
             f'{other["combined_after"]:.3f} instead of {move["combined_after"]:.3f}, '
             f'{other["memory_mb"]} MiB')
    if other['combined_after'] < move['combined_after']:
        return f'{found}: better alone, and not with the rest of the plan or for what it copies'
    return found


def _server(each):
    return columns.server(each['instance_uuid'], {each['instance_uuid']: each['instance_name']})


def _skip_line(skip):
    return f'{skip["reason"]}: {skip["count"]}'


def _refusal_line(refusal):
    return f'{refusal["instance_uuid"]} to {", ".join(refusal["hosts"])}: {refusal["reason"]}'
