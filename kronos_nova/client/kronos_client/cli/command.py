"""The base of commands that call one operation of the contract.

A command turns its arguments into a request and the response into rows. The application that runs
the command provides the client that calls the operation. In ``kronos-manage``, the client calls the
operation in the same process; in ``openstack``, over HTTP.
"""

import argparse
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import msgspec
from cliff import columns
from cliff import command
from cliff import lister
from cliff import show

from kronos_client.contract.base import Page
from kronos_client.contract.base import Request
from kronos_client.contract.operation import Answer
from kronos_client.contract.operation import Operation

Table = tuple[Sequence[str], Iterable[Any]]
"""Output of a command for cliff: names of columns, and rows or the cells of one object."""

PAGE = 1000
"""Number of entries of a list that one request of a command asks the API for. Raised, the API
refuses the request; lowered, long lists take more requests. Chosen as the largest limit that the
API accepts."""

WITHOUT_NULL = ('csv', 'value')
"""Output formats of cliff that would print the word None; the commands print an empty text
instead."""


class Command(command.Command):
    """The base of commands that print sentences. ``app`` is ``kronos-manage`` or ``openstack``."""

    app: Any

    def _load_hooks(self) -> None:
        # cliff's method searches every installed distribution for hooks of this command.
        self._hooks = []

    def get_epilog(self) -> str:
        # The epilog of cliff names the distribution of the command. For that it reads the metadata
        # of all installed packages, which takes a fifth of the time of a command.
        return self._epilog or ''

    @property
    def is_verbose(self) -> bool:
        """Return whether --verbose was given, before or after the words of the command."""
        return self.app.options.verbose_level > self.app.DEFAULT_VERBOSE_LEVEL

    def call(self, operation: Operation[Answer], request: Request) -> Answer:
        return self.app.client_manager.rebalancing.call(operation, request)

    def collect(self, operation: Operation, request: Page, field: str, most: int) -> list[Any]:
        """Request a list page by page and return its first entries, up to ``most``.

        :param field: name of the field of the response that has the entries
        """
        found: list[Any] = []
        marker: str | None = None
        while len(found) < most:
            page: Any = self.call(operation, msgspec.structs.replace(
                request, limit=min(PAGE, most - len(found)), marker=marker))
            found += getattr(page, field)
            marker = page.next
            if marker is None:
                break
        return found

    def say(self, line: str) -> None:
        self.app.stdout.write(f'{line}\n')
        self.app.stdout.flush()


def fields(values: Mapping[str, object]) -> Table:
    """Return the output of a command that shows one object.

    :param values: {name of a field: its value}
    """
    return tuple(values), tuple(values.values())


class Lister(Command, lister.Lister):
    """The base of commands that print a table.

    ``short`` has the names of the columns that a table for people shows by default; empty for all
    columns. ``--long`` shows all columns, and ``--column`` selects columns. Output in other formats
    has all columns by default. ``exit_code`` is the exit code of the command.
    """

    short: tuple[str, ...] = ()
    exit_code = 0
    _is_for_people = True

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._is_for_people = parsed_args.formatter == 'table'
        return super().run(parsed_args) or self.exit_code

    def say(self, line: str) -> None:
        """Print a sentence about the table. In an output for programs, the sentence is printed on
        stderr, because a program could not parse the sentence."""
        out = self.app.stdout if self._is_for_people else self.app.stderr
        out.write(f'{line}\n')
        out.flush()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        if self.short:
            parser.add_argument('--long', action='store_true', help='Show every column of the '
                                'table, instead of the most important ones.')
        return parser

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str],
                       data: Iterable[Any]) -> int:
        if self.short and parsed_args.formatter == 'table' and not (
                parsed_args.long or parsed_args.columns):
            parsed_args.columns = list(self.short)
        if parsed_args.formatter in WITHOUT_NULL:
            data = [[_blank(cell) for cell in row] for row in data]
        return super().produce_output(parsed_args, column_names, data)


class ShowOne(Command, show.ShowOne):
    """The base of commands that print the fields of one object. A table for people leaves out empty
    fields."""

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str],
                       data: Sequence[Any]) -> int:
        if parsed_args.formatter == 'table' and not parsed_args.columns:
            pairs = [(name, value) for name, value in zip(column_names, data, strict=True)
                     if not _is_empty(value)]
            column_names, data = zip(*pairs, strict=True)
        if parsed_args.formatter in WITHOUT_NULL:
            data = [_blank(value) for value in data]
        return super().produce_output(parsed_args, column_names, data)


def _blank(cell: object) -> object:
    """Return the cell, or an empty text if its value is None."""
    value = cell.machine_readable() if isinstance(cell, columns.FormattableColumn) else cell
    return '' if value is None else cell


def _is_empty(value: object) -> bool:
    if isinstance(value, columns.FormattableColumn):
        value = value.human_readable()
    return value in (None, '')
