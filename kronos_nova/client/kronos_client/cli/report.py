"""The command that shows sums of moves and of loads."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator

import msgspec

from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.contract import report as contract

SUMS = ('Completed', 'Failed', 'Abandoned', 'Servers', 'GiB', 'Minutes', 'Observed minutes',
        'Hot minutes', 'Contended minutes', 'Hot without moves', 'Contended without moves')


class Report(command.Lister):
    """Show totals of the moves that have ended and of the loads of hosts, by month (UTC), project
    or aggregate.

    Servers, GiB and Minutes are totals of completed moves. "Observed minutes" is the time for which
    evaluations of an aggregate had data. "Hot minutes" adds up, over all hosts, the time with a
    score above 0.9 in a policy. "Contended minutes" adds up, over all servers, the time on a full
    host. A host is full if its score in a policy is 1 or more. The columns "without moves" estimate
    Hot minutes and Contended minutes as if Kronos had not balanced load. Each evaluation makes this
    estimate: it computes the scores of hosts as if its servers were on the hosts where they would
    be without the balancing moves of the previous four weeks. An empty cell means that the figure
    is not known. Totals are kept for [kronos_database] sums_retention_days.

    With the default format, lines above the table compare the load before the first completed move,
    the load after it, and the estimated load without moves.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--by', choices=contract.BY, action='append',
                            help='Show a total for each month, project or aggregate; may be '
                                 'repeated; default: month.')
        parser.add_argument('--since', metavar='<time>', type=arguments.past,
                            help='Count only moves that ended after this time: '
                                 f'{arguments.PAST}; default: a year ago.')
        parser.add_argument('--until', metavar='<time>', type=arguments.past,
                            help='Count only moves that ended before this time: '
                                 f'{arguments.PAST}; default: now.')
        parser.add_argument('--project', metavar='<uuid>', type=arguments.name,
                            help='Count only moves of servers of this project.')
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Count only moves in this aggregate.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        by = [name for name in contract.BY if name in (parsed_args.by or [contract.MONTH])]
        found = self.call(contract.SHOW, contract.ShowReport(
            by=by, since=parsed_args.since, until=parsed_args.until, project=parsed_args.project,
            aggregate=parsed_args.aggregate))
        if found.oldest and found.oldest > found.since and parsed_args.formatter == 'table':
            self.say(f'Moves are known since {columns.local(found.oldest)}.')
        if parsed_args.formatter == 'table':
            for line in _compared(found.comparison):
                self.say(line)
        return (*map(str.capitalize, by), *SUMS), [
            (*(columns.Optional(value) for value in _names(each, by)), each.completed, each.failed,
             each.abandoned, columns.Optional(each.servers), round(each.memory_mb / 1024, 1),
             round(each.seconds / 60, 1), *map(_minutes, (
                 each.observed_seconds, each.hot_seconds, each.contended_seconds,
                 each.unmoved_hot_seconds, each.unmoved_contended_seconds)))
            for each in found.sums]


def _compared(comparison: contract.Comparison) -> Iterator[str]:
    """Yield lines such as "Before, 2026-05-01 to 2026-05-31: a day has 52 hot minutes, ..."."""
    yield comparison.explanation
    for name, load in (('Before', comparison.before), ('After', comparison.after),
                       ('Without moves', comparison.without_moves)):
        if load is not None:
            yield (f'{name}, {load.since} to {load.until}: a day of an aggregate has '
                   f'{load.hot_minutes:.0f} hot minutes of hosts and {load.contended_minutes:.0f} '
                   f'contended minutes of servers, by {load.observed_days:.1f} days of evaluations')


def _minutes(seconds: float | None) -> columns.Optional:
    return columns.Optional(None if seconds is None else round(seconds / 60, 1))


def _names(sums: contract.Sums, by: Iterable[str]) -> list[str | None]:
    given = msgspec.structs.asdict(sums)
    return [given[name] for name in by]
