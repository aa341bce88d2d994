"""``kronos-test-config``: check that the configuration works, before Kronos moves anything."""

import argparse
import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kronos_client.cli import command
from kronos_nova.cmd import checks
from kronos_nova.cmd import manage
from kronos_nova.cmd import policy_table
from kronos_nova.cmd import program
from kronos_nova.cmd import proposal
from kronos_nova.cmd import query_checks
from kronos_nova.cmd import roles
from kronos_nova.cmd import rule_table
from kronos_nova.metrics import prometheus

NAME = 'kronos-test-config'
FORMAT = 1
"""Version of the JSON output of ``kronos-test-config`` (no unit). Fixed: the version changes only
when a key of the output changes its meaning."""
STATUS = {checks.OK: 0, checks.FAILED: 1, checks.WARNING: 3}
"""Exit codes of ``kronos-test-config``, by the worst result of all checks. The codes are documented
in test-config.rst. Fixed: scripts depend on the codes."""
COLOURS = {checks.OK: 'green', checks.NOT_CHECKED: 'dim', checks.WARNING: 'yellow',
           checks.FAILED: 'bold red'}


class TestConfig(program.Report):
    """Check the configuration of Kronos: check options and policies, connect to every service that
    Kronos needs, and send every query of the policies. The command changes nothing.

    Exit codes: 0 everything works; 1 something must be corrected; 2 the arguments are wrong, or the
    configuration files cannot be read; 3 everything works, but there are warnings.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        manage.add_config_arguments(parser)
        parser.add_argument('--role', choices=roles.ROLES,
                            help='Role of this host, which decides what is checked: a host with '
                                 'nova-conductor and nova-scheduler, with nova-compute, or with '
                                 'the daemons of Kronos; default: the role that fits nova.conf.')
        parser.add_argument('--propose', metavar='FILE',
                            help='Find out which exporters Prometheus scrapes and how the '
                                 'exporters name hosts. Write a policies file for these exporters '
                                 'to FILE, which must not exist, and check the file.')
        parser.add_argument('--recipe', metavar='NAME',
                            help='Recipe for --propose: the name of a file in '
                                 'share/kronos/policies, without .yaml; default: cpu-memory.')
        parser.add_argument('--match', metavar='LABEL=VALUE', type=_match,
                            help='Use only series with this label for --propose. Needed where one '
                                 'Prometheus has the series of several clouds.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        try:
            conf = manage.load_config(parsed_args)
        except cfg.Error as error:
            raise program.Refused(program.USAGE, f'{NAME}: {error}') from error
        name = parsed_args.role or roles.guess(conf)
        role = roles.role(name, conf, parsed_args)
        # A process can read nova.conf into Nova's own configuration once only.
        reach = checks.Reach(role)
        self.proposal: proposal.Proposal | None = None
        _refuse_without_propose(parsed_args)
        if parsed_args.propose:
            _refuse_without_cloud(role)
            self.proposal = _propose(conf, reach, parsed_args)
        report = checks.examine(conf, role, reach)
        self.code = STATUS[report.state]
        self.report = report
        return self.dict2columns({
            'format': FORMAT, 'state': report.state, 'role': report.role,
            'checks': [dataclasses.asdict(row) for row in report.findings],
            'queries': [dataclasses.asdict(row) for row in report.queries],
            'policies': [dataclasses.asdict(row) for row in report.policies],
            'rules': [dataclasses.asdict(row) for row in report.rules],
            'proposal': self.proposal and _shown(self.proposal, parsed_args.propose)})

    def print_tables(self, console: Console, data: dict[str, Any]) -> None:
        """Print the results as tables of checks, rules, queries and policies. If a policies file
        was proposed, print a table of its hosts first."""
        if self.proposal is not None:
            _print_proposal(console, self.proposal)
        console.print(f'A {self.report.role} host')
        table = _table('Check', 'State', 'Detail')
        for row in self.report.findings:
            table.add_row(row.check, _coloured(row.state), Text(row.detail))
        console.print(table)
        if self.report.rules:
            _print_rules(console, self.report.rules)
        if not self.report.queries:
            return
        table = _table('Policy', 'Query', 'State', 'Matched', 'Missing', 'Out of range', 'Detail')
        for query in self.report.queries:
            table.add_row(query.policy, query.kind, _coloured(query.state),
                          '' if query.expected is None else f'{query.matched} of {query.expected}',
                          str(len(query.missing)), str(len(query.out_of_range)),
                          Text(_detail(query)))
        console.print(table)
        if not self.report.policies:
            return
        table = _table('Policy', 'Hosts', 'Servers', 'Load', 'Of servers', 'Farthest', 'Sizes',
                       'Age', 'Duplicates')
        for policy in self.report.policies:
            table.add_row(*_policy_cells(policy))
        console.print(table)


def main(argv: list[str] | None = None) -> int:
    """Run kronos-test-config.

    :returns: the exit code
    """
    return program.run(TestConfig, NAME, argv)


def _match(text: str) -> str:
    """Return the argument of --match. It is the type of this argument for argparse.

    :raises ArgumentTypeError: the text is not a label and a value
    """
    if not re.fullmatch(r'\s*[a-zA-Z_]\w*\s*=(?!~).*', text):
        raise argparse.ArgumentTypeError(
            f'"{text}" is not LABEL=VALUE, such as region=one; other operators of PromQL are not '
            'supported')
    return text


def _refuse_without_propose(parsed_args: argparse.Namespace) -> None:
    for option in () if parsed_args.propose else ('recipe', 'match'):
        if getattr(parsed_args, option) is not None:
            raise program.Refused(
                program.USAGE, f'{NAME}: --{option} has an effect only with --propose FILE, which '
                'writes a policies file.')


def _refuse_without_cloud(role: roles.Role) -> None:
    if role.connect is None:
        raise program.Refused(
            program.USAGE, f'{NAME}: --propose reads the cloud, and a {role.name} host has no '
            'access to it. Run the command on a host that plans, or give the nova.conf of such a '
            'host with --config-file.')


def _propose(conf: cfg.ConfigOpts, reach: checks.Reach,
             parsed_args: argparse.Namespace) -> proposal.Proposal:
    """Write the proposed policies file, and make the checks use this file. Return the Proposal."""
    recipe = proposal.DEFAULT_RECIPE if parsed_args.recipe is None else parsed_args.recipe
    if recipe not in proposal.recipes():
        raise program.Refused(program.USAGE, f'{NAME}: there is no recipe {recipe}; '
                              f'the recipes are {", ".join(proposal.recipes())}')
    try:
        made = proposal.make(conf, prometheus.from_conf(conf), reach.read(),
                             recipe, parsed_args.match or '')
        proposal.write(parsed_args.propose, made.text)
    except Exception as error:  # libraries raise many kinds of errors for a wrong configuration
        raise program.Refused(
            program.FAILED,
            f'{NAME} did not write the policies file: {checks.sentence(error)}') from error
    conf.set_override('policies_file', parsed_args.propose, group='kronos')
    return made


def _shown(made: proposal.Proposal, path: str) -> dict[str, Any]:
    return {'file': path, 'recipe': made.recipe, 'namings': made.namings,
            'selector': made.selector, 'problems': list(made.problems),
            'hosts': [dataclasses.asdict(row) for row in made.hosts]}


def _print_rules(console: Console, rules: Iterable[rule_table.RuleRow]) -> None:
    table = _table('Rule', 'Relation', 'Servers', 'Of owners', 'Hosts', 'Violated by', 'Such as',
                   'Conflicts')
    for row in rules:
        table.add_row(row.rule, row.relation, str(row.servers),
                      'yes' if row.yields else '', _count(row.hosts),
                      str(row.violated), Text(row.example or ''), Text('; '.join(row.conflicts)))
    console.print(table)


def _print_proposal(console: Console, made: proposal.Proposal) -> None:
    for problem in made.problems:
        console.print(Text(problem, style=COLOURS[checks.WARNING]))
    table = _table('Host', 'State', 'Found as', 'CPUs, Nova', 'found', 'GiB, Nova', 'found',
                   'Servers, Nova', 'found')
    for row in made.hosts:
        table.add_row(row.host, _coloured(row.state), Text(', '.join(row.found_as)),
                      *map(_count, row.cpus),
                      *(_count(value and value / 1024) for value in row.memory_mb),
                      *map(_count, row.servers))
    console.print(table)


def _count(value: float | None) -> str:
    return '' if value is None else f'{value:.1f}'.removesuffix('.0')


def _policy_cells(row: policy_table.PolicyRow) -> tuple[str | Text, ...]:
    """Return the cells of a PolicyRow, with loads in percent and the age in seconds."""
    farthest = '' if row.farthest_host is None else (
        f'{row.farthest_host}: {row.farthest_load:.0%}, of servers '
        f'{row.farthest_instances_load:.0%}')
    return (row.policy, f'{row.hosts[0]} of {row.hosts[1]}',
            '' if row.instances is None else f'{row.instances[0]} of {row.instances[1]}',
            '' if row.load is None else f'{row.load:.0%}',
            '' if row.instances_load is None else f'{row.instances_load:.0%}',
            Text(farthest), Text(_sizes(row)), '' if row.age is None else f'{row.age:.0f} s',
            str(row.duplicates))


def _sizes(row: policy_table.PolicyRow) -> str:
    """Return the sizes of hosts as a text, such as "16 to 128 (VCPU)"."""
    if row.sizes is None:
        return row.sizes_from
    least, most = (f'{size:.4g}' for size in row.sizes)
    return f'{least if least == most else f"{least} to {most}"} ({row.sizes_from})'


def _detail(row: query_checks.QueryFinding) -> str:
    named = f'out of range: {", ".join(row.out_of_range[:3])}' if row.out_of_range else ''
    return '; '.join(filter(None, (row.detail, named)))


def _table(*columns: str) -> Table:
    table = Table()
    for column in columns:
        table.add_column(column, overflow='fold')
    return table


def _coloured(state: str) -> Text:
    return Text(state, style=COLOURS[state])
