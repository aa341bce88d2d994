"""The command that shows sums of moves."""

import msgspec

from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.contract import report as contract

SUMS = ('Completed', 'Failed', 'Abandoned', 'Servers', 'GiB', 'Minutes')


class Report(command.Lister):
    """Show sums of moves that have ended, by month (UTC), project or aggregate.

    Servers, GiB and minutes are those of completed moves. The journal has moves for
    [kronos_database] moves_retention_days.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('--by', choices=contract.BY, action='append',
                            help='Make a sum for each; may be repeated; default: month.')
        parser.add_argument('--since', metavar='<time>', type=arguments.past,
                            help=f'Count moves that ended from then on: {arguments.PAST}; default: '
                                 'a year ago.')
        parser.add_argument('--until', metavar='<time>', type=arguments.past,
                            help='Count moves that ended by then; default: now.')
        parser.add_argument('--project', metavar='<uuid>', type=arguments.name,
                            help='Count moves of servers of this project.')
        parser.add_argument('--aggregate', metavar='<name>', type=arguments.name,
                            help='Count moves in this aggregate.')
        return parser

    def take_action(self, parsed_args):
        by = [name for name in contract.BY if name in (parsed_args.by or [contract.MONTH])]
        found = self.call(contract.SHOW, contract.ShowReport(
            by=by, since=parsed_args.since, until=parsed_args.until, project=parsed_args.project,
            aggregate=parsed_args.aggregate))
        if found.oldest and found.oldest > found.since and parsed_args.formatter == 'table':
            self.say(f'The journal has moves since {columns.local(found.oldest)}.')
        return (*map(str.capitalize, by), *SUMS), [
            (*(columns.Optional(value) for value in _names(each, by)), each.completed, each.failed,
             each.abandoned, each.servers, round(each.memory_mb / 1024, 1),
             round(each.seconds / 60, 1)) for each in found.sums]


def _names(sums, by):
    given = msgspec.structs.asdict(sums)
    return [given[name] for name in by]
