"""Output that is repeated at intervals, and tables within it."""

import argparse
import contextlib
import io
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import TextIO

from cliff.formatters import table as cliff_table

from kronos_client.contract import errors

CLEAR = '\x1b[H\x1b[J'
"""Moves the cursor of a terminal to the top left and clears the rest."""

WIDE = argparse.Namespace(max_width=0, fit_width=False, print_empty=True)
"""Arguments of cliff for a table of any width."""


def watch(stdout: TextIO, look: Callable[[], tuple[str, bool]], interval: float,
          problems: TextIO | None = None) -> None:
    """Show the output of ``look`` repeatedly, until it returns the last one or Ctrl-C is pressed:
    in place on a terminal, one after the other elsewhere. A service that does not answer is queried
    again.

    :param look: returns (text, whether to look again)
    :param interval: seconds between two looks
    :param problems: stream for reports that a service does not answer; None for ``stdout``, in
        place of the text
    """
    begin = CLEAR if stdout.isatty() else ''
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            try:
                page, goes_on = look()
            except errors.Unreachable as error:
                page, goes_on = f'{error} It is asked again.', True
                out = problems or stdout
            else:
                out = stdout
            out.write(f'{begin}{page}\n')
            out.flush()
            if not goes_on:
                return
            time.sleep(interval)


def table(shown: Sequence[str], names: Sequence[str], rows: Iterable[tuple],
          options: argparse.Namespace = WIDE) -> str:
    """Return some columns of rows as a table for people.

    :param shown: names of the columns
    :param names: names of the cells of a row
    :param options: arguments of cliff for tables
    """
    cells, out = [names.index(name) for name in shown], io.StringIO()
    cliff_table.TableFormatter().emit_list(
        shown, [[row[cell] for cell in cells] for row in rows], out, options)
    return out.getvalue().rstrip('\n')
