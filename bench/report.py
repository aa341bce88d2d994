"""The result of a bench: tables, the command that made them, versions and the machine.

A subcommand module looks like this, and imports what is slow to import inside ``run``::

    def register(subparsers):
        parser = subparsers.add_parser('overhead', help='what loading the plugin costs')
        parser.add_argument('--repeat', type=int, default=20)
        parser.set_defaults(run=run)

    def run(args) -> report.Report:
        ...
        return report.Report(tables=(report.Table('boot', ('service', 'seconds'), rows),),
                             failures=('p99 is 2.3 times that of idle, target 2',))
"""

import dataclasses
import importlib.metadata
import json
import os
import pathlib
import platform
import sys
import time

import rich.console
import rich.table

PACKAGES = ('kronos-nova', 'numpy', 'scipy', 'highspy', 'nova', 'openstack-placement',
            'python-watcher')


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns. Numbers stay numbers, so that the JSON has them; None prints as a dash.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple, ...] | list[tuple]


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """``failures`` are the targets that were missed, a line each; the exit status is then 1."""

    tables: tuple[Table, ...]
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def to_json(report: Report) -> str:
    tables = {table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
              for table in report.tables}
    return json.dumps({'run': conditions(), 'tables': tables, 'failures': report.failures,
                       'notes': report.notes}, indent=1) + '\n'


def show(report: Report) -> None:
    console = rich.console.Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    for key, value in conditions().items():
        console.print(f'{key}: {value}', markup=False)
    for table in report.tables:
        shown = rich.table.Table(title=table.title, title_justify='left')
        for column in table.columns:
            shown.add_column(column, justify='right')
        for row in table.rows:
            shown.add_row(*(_cell(value) for value in row))
        console.print(shown)
    for line in report.notes:
        console.print(line, markup=False)
    for line in report.failures:
        console.print(f'MISSED: {line}', markup=False)


def progress(row: tuple) -> None:
    """Show a row at once; a bench may take many minutes."""
    print('  '.join(map(_cell, row)), file=sys.stderr)


def conditions() -> dict:
    """Return the conditions of a run, such as versions and machine, by which it can be repeated and
    compared."""
    return {
        'command': ' '.join(['python -m bench', *sys.argv[1:]]),
        'when': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
        'python': platform.python_version(),
        'versions': {name: version for name in PACKAGES if (version := _version(name))},
        'machine': f'{_processor()}, {os.cpu_count()} cores, {platform.system()} '
                   f'{platform.release()}, load {os.getloadavg()[0]:.1f}',
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    cpuinfo = pathlib.Path('/proc/cpuinfo')
    if not cpuinfo.exists():
        return platform.processor() or platform.machine()
    return next((line.split(':', 1)[1].strip() for line in cpuinfo.read_text().splitlines()
                 if line.startswith('model name')), platform.machine())


def _cell(value) -> str:
    if value is None:
        return '–'
    if isinstance(value, float):
        return f'{value:.4g}' if abs(value) < 1000 else f'{value:,.0f}'
    return f'{value:,}' if isinstance(value, int) and not isinstance(value, bool) else str(value)
