"""``kronos-test-config``: whether what is configured works, before Kronos is let loose."""

import dataclasses

from oslo_config import cfg
from rich.table import Table
from rich.text import Text

from kronos_nova.cmd import checks
from kronos_nova.cmd import manage
from kronos_nova.cmd import program
from kronos_nova.cmd import roles

NAME = 'kronos-test-config'
FORMAT = 1
STATUS = {checks.OK: 0, checks.FAILED: 1, checks.WARNING: 3}
COLOURS = {checks.OK: 'green', checks.NOT_CHECKED: 'dim', checks.WARNING: 'yellow',
           checks.FAILED: 'bold red'}


class TestConfig(program.Report):
    """Check options and policies, reach what Kronos needs, ask every query. Changes nothing.

    Exit codes: 0 everything works; 1 something must be mended; 2 wrong arguments, or the
    configuration files cannot be read; 3 everything works, but something deserves a look.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        manage.add_config_arguments(parser)
        parser.add_argument('--role', choices=roles.ROLES,
                            help='What this host is: one with nova-conductor and nova-scheduler, '
                                 'with nova-compute, or with the daemons of Kronos. Default: what '
                                 'its configuration says.')
        return parser

    def take_action(self, parsed_args):
        try:
            conf = manage.load_config(parsed_args)
        except cfg.Error as error:
            raise program.Refused(program.USAGE, f'{NAME}: {error}') from error
        name = parsed_args.role or roles.guess(conf)
        report = checks.examine(conf, roles.role(name, conf, parsed_args))
        self.code = STATUS[report.state]
        self.report = report
        return self.dict2columns({
            'format': FORMAT, 'state': report.state, 'role': report.role,
            'checks': [dataclasses.asdict(row) for row in report.findings],
            'queries': [dataclasses.asdict(row) for row in report.queries],
            'policies': [dataclasses.asdict(row) for row in report.policies]})

    def print_tables(self, console, data):
        """Print three tables: the checks, the queries, and the policies."""
        console.print(f'A {self.report.role} host')
        table = _table('Check', 'State', 'Detail')
        for row in self.report.findings:
            table.add_row(row.check, _coloured(row.state), Text(row.detail))
        console.print(table)
        if not self.report.queries:
            return
        table = _table('Policy', 'Query', 'State', 'Matched', 'Missing', 'Out of range', 'Detail')
        for row in self.report.queries:
            table.add_row(row.policy, row.kind, _coloured(row.state),
                          '' if row.expected is None else f'{row.matched} of {row.expected}',
                          str(len(row.missing)), str(len(row.out_of_range)), Text(_detail(row)))
        console.print(table)
        if not self.report.policies:
            return
        table = _table('Policy', 'Hosts', 'Servers', 'Load', 'Of servers', 'Farthest', 'Age',
                       'Duplicates')
        for row in self.report.policies:
            table.add_row(*_policy_cells(row))
        console.print(table)


def main(argv=None):
    """:returns: the exit code"""
    return program.run(TestConfig, NAME, argv)


def _policy_cells(row):
    """Return the cells of a policy: loads in percent, the age in seconds."""
    farthest = '' if row.farthest_host is None else (
        f'{row.farthest_host}: {row.farthest_load:.0%}, of servers '
        f'{row.farthest_instances_load:.0%}')
    return (row.policy, f'{row.hosts[0]} of {row.hosts[1]}',
            '' if row.instances is None else f'{row.instances[0]} of {row.instances[1]}',
            '' if row.load is None else f'{row.load:.0%}',
            '' if row.instances_load is None else f'{row.instances_load:.0%}',
            Text(farthest), '' if row.age is None else f'{row.age:.0f} s', str(row.duplicates))


def _detail(row):
    named = f'out of range: {", ".join(row.out_of_range[:3])}' if row.out_of_range else ''
    return '; '.join(filter(None, (row.detail, named)))


def _table(*columns):
    table = Table()
    for column in columns:
        table.add_column(column, overflow='fold')
    return table


def _coloured(state):
    return Text(state, style=COLOURS[state])
