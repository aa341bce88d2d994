"""Commands on plans."""

import argparse
import collections
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from kronos_client import plural
from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.cli import watching
from kronos_client.contract import plans as contract

COLUMNS = ('UUID', 'Aggregate', 'State', 'Planner', 'Moves', 'Imbalance before', 'Imbalance after',
           'Created at', 'Times made', 'Last made at', 'Purpose')
MOVES = ('Order', 'Name', 'Instance', 'Source', 'Destination', 'MiB', 'Imbalance after',
         'Depends on', 'Group', 'Phase', 'Project', 'Expected seconds', 'Reason')
SHORT = ('Order', 'Name', 'Instance', 'Source', 'Destination', 'MiB', 'Imbalance after',
         'Depends on')
NOT_KEPT = contract.PlanReport(policies=[], moves=[], not_moved=[], refusals=[], warnings=[
    'The report of this plan is no longer kept; [kronos_database] reports_retention_days sets for '
    'how long reports are. "move list --plan" lists the moves that were made of it.'])


class Projects(columns.Lines):
    """A cell with the projects that have servers in a plan. In a table for people, the cell is
    empty if there is only one project."""

    def human_readable(self) -> str:
        return super().human_readable() if len(self._value) > 1 else ''


class List(command.Lister):
    """List plans, the newest first."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='List only plans for this aggregate.')
        parser.add_argument('--state', metavar='<state>', choices=contract.STATES,
                            help='List only plans in this state.')
        parser.add_argument('--limit', type=arguments.POSITIVE, default=50, metavar='<n>',
                            help='Maximum number of plans to list, the newest first; default: 50.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.collect(contract.LIST, contract.ListPlans(
            aggregate=parsed_args.aggregate, state=parsed_args.state), 'plans', parsed_args.limit)
        return COLUMNS, [
            (each.uuid, each.aggregate, each.state, each.planner, each.move_count,
             columns.Figure(each.combined_before), columns.Figure(each.combined_after),
             columns.Time(each.created_at), each.times_seen,
             columns.Time(each.last_seen_at or each.created_at), each.purpose) for each in found]


class _OfPlan(command.Command):
    """The base of commands on one plan."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('plan', metavar='<uuid>', help='Uuid of the plan.')
        return parser


class Show(_OfPlan, command.ShowOne):
    """Show a plan: the imbalance before and after the plan, its moves, and the reasons why other
    servers are not moved. Each reason has the number of these servers.

    With --verbose, each move is shown with its reason, its expected duration, the projects that
    benefit, and the best alternative. "plan move list" lists the same moves with a choice of
    format, order and columns.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.SHOW, contract.OnePlan(plan=parsed_args.plan))
        self._report = report = found.report or NOT_KEPT
        return command.fields({
            'uuid': found.uuid, 'aggregate': found.aggregate, 'state': found.state,
            'mode': found.mode, 'planner': found.planner, 'purpose': found.purpose,
            'created_at': columns.Time(found.created_at),
            'expires_at': columns.Time(found.expires_at),
            'approved_by': columns.Optional(found.approved_by),
            'approved_at': columns.Time(found.approved_at),
            'finished_at': columns.Time(found.finished_at),
            'waits_for': columns.Optional(found.waits_for),
            'ends_at_now': columns.Figure(found.combined_now),
            'left_out': columns.Optional(found.reason), 'times_made': found.times_seen,
            'policies': columns.Lines(report.policies, _policy_text),
            'moves': columns.Lines(report.moves, _move_text),
            'projects': Projects(_projects(report.moves), _project_text),
            'not_moved': columns.Lines(report.not_moved, _stayed_text),
            'refusals': columns.Lines(report.refusals, _refusal_text),
            'warnings': columns.Lines(report.warnings), 'notes': columns.Lines(report.notes),
        })

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str],
                       data: Sequence[Any]) -> int:
        """Print the plan without its moves, then a table of the moves."""
        is_table = parsed_args.formatter == 'table' and not parsed_args.columns
        if not is_table or self.is_verbose:
            return super().produce_output(parsed_args, column_names, data)
        kept = [(name, value) for name, value in zip(column_names, data, strict=True)
                if name != 'moves']
        status = super().produce_output(parsed_args, *zip(*kept, strict=True))
        if self._report.moves:
            moves = watching.table(SHORT, MOVES, _rows(self._report.moves), parsed_args)
            self.say(f'\n{moves}')
        return status


class Moves(_OfPlan, command.Lister):
    """List the moves of a plan as they were planned."""

    short = SHORT

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.SHOW, contract.OnePlan(plan=parsed_args.plan))
        return MOVES, list(_rows((found.report or NOT_KEPT).moves))


def _rows(moves: Iterable[contract.PlannedMove]) -> Iterator[tuple]:
    """Yield a row for each planned move: the tuple of its cells, in the order of :data:`MOVES`."""
    for move in moves:
        yield (move.order, columns.Optional(move.instance_name), move.instance_uuid, move.source,
               move.destination, move.memory_mb, columns.Figure(move.combined_after),
               columns.Lines(move.depends_on, separator=', '), columns.Optional(move.group),
               move.phase, columns.Optional(move.project_id or None),
               columns.Optional(move.expected_seconds), move.reason)


class Approve(_OfPlan):
    """Approve a proposed plan, so that it starts with all of its moves or without some of them.

    Before the plan starts, Kronos checks it against the present cloud, and leaves out moves that no
    longer help or are no longer possible. A move is left out too if it depends on a move that is
    left out. Moves of the same group ("plan move list" shows the groups) help only together: either
    all of them are made or none.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group()
        which.add_argument('--skip', type=arguments.POSITIVE, action='append', default=[],
                           metavar='<n>', help='Leave out the move with the number <n> in "plan '
                                               'show", and the moves that depend on it; may be '
                                               'repeated.')
        which.add_argument('--only', type=arguments.POSITIVE, action='append', default=[],
                           metavar='<n>', help='Make only the move with the number <n> in "plan '
                                               'show", and the moves that it depends on; may be '
                                               'repeated.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        done = self.call(contract.APPROVE, contract.ApprovePlan(
            plan=parsed_args.plan, skip=parsed_args.skip, only=parsed_args.only))
        if None not in (done.combined_before, done.combined_after, done.combined_now):
            self.say(f'The plan was to bring the combined imbalance from '
                     f'{done.combined_before:.3f} to {done.combined_after:.3f}; by the last '
                     f'evaluation it ends at {done.combined_now:.3f}.')
        if done.chosen < done.moves:
            self.say('These figures are for all moves of the plan. Before the chosen moves start, '
                     'Kronos checks how much they gain alone, and leaves out those that gain too '
                     'little.')
        self.say(f'{done.chosen} of {plural.count(done.moves, "move")} may run. Before the plan '
                 'starts, Kronos checks it against the present cloud; "plan show" then reports '
                 'which moves were left out, and why.')
        if done.waits_for:
            self.say(f'It waits: {done.waits_for}')


class Reject(_OfPlan):
    """Reject a plan that is proposed, or that is approved and has not started, so that none of its
    moves is made. The next evaluation plans the aggregate again."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.call(contract.REJECT, contract.OnePlan(plan=parsed_args.plan))
        self.say(f'Plan {parsed_args.plan} is rejected.')


def _projects(moves: Sequence[contract.PlannedMove]) -> list[dict[str, Any]]:
    """Return a list of dicts with the effects of a plan on each project. The projects with the most
    moved servers come first.

    ``moved`` is the number of the project's servers that move. ``relieved`` is the number of moves
    of other projects' servers from which the project benefits: such a move takes load off a host on
    which the project has servers that stay."""
    moved = collections.Counter(move.project_id for move in moves if move.project_id)
    relieved = collections.Counter(itertools.chain.from_iterable(
        {*move.benefits} - {move.project_id} for move in moves))
    return [{'project_id': name, 'moved': moved[name], 'relieved': relieved[name]}
            for name in sorted({*moved, *relieved}, key=lambda name: (-moved[name], name))]


def _project_text(project: Mapping[str, Any]) -> str:
    return (f'{project["project_id"]}: {plural.count(project["moved"], "server")} moved, relieved '
            f'by {plural.count(project["relieved"], "move")} of others')


def _policy_text(policy: contract.PlannedPolicy) -> str:
    if policy.state != 'ok':
        return f'{policy.name}: no data: {policy.detail}'
    after = policy.imbalance_after
    return (f'{policy.name}: {policy.imbalance_before:.3f} -> '
            f'{"not known, as moves are left out" if after is None else f"{after:.3f}"} '
            f'(threshold {policy.threshold:.3f})')


def _stayed_text(stayed: contract.Stayed) -> str:
    return f'{stayed.reason}: {stayed.count}'


def _refusal_text(refusal: contract.Refusal) -> str:
    return f'{refusal.instance_uuid} to {", ".join(refusal.hosts)}: {refusal.reason}'


def _move_text(move: contract.PlannedMove) -> str:
    waits = ', '.join(map(str, move.depends_on))
    after = f'; waits for {waits}' if waits else ''
    return (f'{move.order}. {_server(move)} {move.source} -> {move.destination}: '
            f'{move.reason}{after}{_expected(move)}{_whose(move)}\n'
            f'     next best: {_next_best(move)}')


def _expected(move: contract.PlannedMove) -> str:
    """Return a line with the predicted duration and downtime of a move; an empty text if there is
    no prediction."""
    if move.expected_seconds is None or move.expected_downtime is None:
        return ''
    begins = ('' if move.begins_after is None
              else f'begins after {columns.duration(move.begins_after)}, ')
    stopped = round(1000 * move.expected_downtime)
    return (f'\n     expected: {begins}takes {columns.duration(move.expected_seconds)}, of which '
            f'the server is stopped for {stopped or "less than 1"} ms')


def _whose(move: contract.PlannedMove) -> str:
    """Return a line with the projects that benefit from a move; an empty text if the move relieves
    no host."""
    if not move.benefits and not move.caused_by:
        return ''
    largest = (f'server {move.caused_by} has the largest load there' if move.caused_by
               else 'it has the largest load there itself')
    others = ', '.join(move.benefits) or 'no other project'
    return (f'\n     a server of project {move.project_id} moves, and {move.source} is '
            f'relieved for {others}; {largest}')


def _next_best(move: contract.PlannedMove) -> str:
    other = move.next_best
    if not other:
        return 'none that is permitted'
    now = move.combined_after
    instead = '' if now is None else f' instead of {now:.3f}'
    found = (f'{_server(other)} to {other.destination}, combined imbalance '
             f'{other.combined_after:.3f}{instead}, {other.memory_mb} MiB')
    if now is not None and other.combined_after < now:
        return f'{found}: better alone, and not with the rest of the plan or for what it copies'
    return found


def _server(each: contract.PlannedMove | contract.NextBest) -> str:
    return columns.server(each.instance_uuid, each.instance_name)
