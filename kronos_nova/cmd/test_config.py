"""``kronos-test-config``: whether what is configured works, before Kronos is let loose."""

import argparse
import dataclasses
import json
import sys

from oslo_config import cfg
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kronos_nova.cmd import checks
from kronos_nova.cmd.manage import load_config

FORMAT = 1
STATUS = {checks.OK: 0, checks.FAILED: 1, checks.WARNING: 3}
EPILOG = """Exit status: 0 everything works; 1 something must be mended; 2 wrong usage, or the
configuration files cannot be read; 3 everything works, but something deserves a look."""


def make_parser():
    parser = argparse.ArgumentParser(
        prog='kronos-test-config', epilog=EPILOG,
        description='Check options and policies, reach everything that Kronos needs, and ask every '
                    'query of every policy. Changes nothing.')
    parser.add_argument('--config-file', action='append', metavar='PATH',
                        help='read this file instead of nova.conf; may be repeated')
    parser.add_argument('--config-dir', action='append', metavar='DIR',
                        help='read the files of this directory too; may be repeated')
    parser.add_argument('-f', '--format', choices=('table', 'json'), default='table',
                        help='tables for people (default) or one JSON object for programs')
    return parser


def main(argv=None):
    """:returns: the exit status, see :data:`EPILOG`"""
    args = make_parser().parse_args(argv)
    try:
        conf = load_config(args)
    except cfg.Error as error:
        print(f'kronos-test-config: {error}', file=sys.stderr)
        return 2
    report = checks.examine(conf)
    if args.format == 'json':
        print(json.dumps(as_json(report), indent=1))
    else:
        print_tables(report, Console())
    return STATUS[report.state]


def as_json(report: checks.Report) -> dict:
    return {'format': FORMAT, 'state': report.state,
            'checks': [dataclasses.asdict(row) for row in report.findings],
            'queries': [dataclasses.asdict(row) for row in report.queries]}


def print_tables(report: checks.Report, console: Console):
    """Two tables: the checks, and the queries."""
    table = _table('Check', 'State', 'Detail')
    for row in report.findings:
        table.add_row(row.check, _coloured(row.state), Text(row.detail))
    console.print(table)
    if not report.queries:
        return
    table = _table('Policy', 'Query', 'State', 'Matched', 'Missing', 'Out of range', 'Detail')
    for row in report.queries:
        table.add_row(row.policy, row.kind, _coloured(row.state),
                      f'{row.matched} of {row.expected}', str(len(row.missing)),
                      str(len(row.out_of_range)), Text(_detail(row)))
    console.print(table)


def _detail(row):
    named = f'out of range: {", ".join(row.out_of_range[:3])}' if row.out_of_range else ''
    return '; '.join(filter(None, (row.detail, named)))


def _table(*columns):
    table = Table()
    for column in columns:
        table.add_column(column, overflow='fold')
    return table


def _coloured(state):
    colour = {checks.OK: 'green', checks.WARNING: 'yellow', checks.FAILED: 'bold red'}[state]
    return Text(state, style=colour)
