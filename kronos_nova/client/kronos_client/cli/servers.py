"""The command that explains why a server was moved, or why it stays."""

import argparse
import datetime
from collections.abc import Iterator

from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.contract import servers as contract


class Explain(command.ShowOne):
    """Explain why a server was moved or is not moved: its moves with their reasons, the reason why
    it stays on its host, and each restriction that prevents a move, with the end of the
    restriction.

    Moves are shown with the newest first. With --at, only moves that had begun by that time are
    shown.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('server', metavar='<server>', help='Name or uuid of a server.')
        parser.add_argument('--at', metavar='<time>', type=arguments.past,
                            help='Show only moves that had begun by this time: '
                                 f'{arguments.PAST}.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        found = self.call(contract.EXPLAIN, contract.ExplainServer(
            server=parsed_args.server, at=parsed_args.at))
        if parsed_args.formatter == 'table':
            for line in _missing(found, parsed_args.at):
                self.say(line)
        return command.fields({
            'uuid': found.instance_uuid, 'name': columns.Optional(found.instance_name),
            'moves': columns.Lines(found.moves, _move_text),
            'planned': columns.Optional(found.planned, _planned_text),
            'planned_in': columns.Optional(found.planned_in),
            'stays_because': columns.Optional(found.stays_because),
            'stays_means': columns.Optional(found.stays_means),
            'stays_in': columns.Optional(found.stays_in),
            'quarantined_because': columns.Optional(found.quarantined_because),
            'quarantined_until': columns.Time(found.quarantined_until),
            'cooling_seconds': columns.Optional(found.cooling_seconds, columns.duration),
            'refused_because': columns.Optional(found.refused_because),
            'refused_hosts': columns.Lines(found.refused_hosts, separator=', '),
            'movable': found.movable,
            'immovable_because': columns.Optional(found.immovable_because or None),
        })


def _missing(found: contract.Explanation, at: datetime.datetime | None) -> Iterator[str]:
    """Yield sentences about results that are missing: one if there is no move of the server to
    show, and one if nothing explains why the server stays. The sentences are needed because a table
    leaves out empty columns."""
    if not found.moves:
        yield ('No move of the server had begun by that time.' if at
               else 'No move of the server is recorded.')
    if not any((found.planned, found.stays_because, found.quarantined_because,
                found.cooling_seconds, found.refused_because, found.immovable_because)):
        yield ('The server is in no plan and under no restriction, and the last evaluation gives '
               'no reason why it stays.')


def _move_text(move: contract.ExplainedMove) -> str:
    begun = move.requested_at or move.created_at
    error = f': {move.error}' if move.error else ''
    return (f'{columns.local(begun)} {move.source} -> {move.destination}, '
            f'{move.state}{error}\n    {move.reason}{_gain(move)}{_next_best(move)}')


def _gain(move: contract.ExplainedMove) -> str:
    before, after = move.plan_imbalance_before, move.plan_imbalance_after
    if before is None:
        return ''
    reached = 'not known, as moves were left out' if after is None else f'{after:.3f}'
    return f'\n    its plan: combined imbalance {before:.3f} -> {reached}'


def _next_best(move: contract.ExplainedMove) -> str:
    other = move.next_best
    if other is None:
        return ''
    return (f'\n    next best: {columns.server(other.instance_uuid, other.instance_name)} to '
            f'{other.destination}, combined imbalance {other.combined_after:.3f}')


def _planned_text(move: contract.PlannedMove) -> str:
    return f'{move.source} -> {move.destination}: {move.reason}'
