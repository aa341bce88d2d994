"""Output that is shown again at intervals (``--watch``), and tables in such output."""

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
"""Characters that move the cursor of a terminal to the top left, and clear the screen."""

WIDE = argparse.Namespace(max_width=0, fit_width=False, print_empty=True)
"""Arguments of cliff for a table of any width."""


def watch(stdout: TextIO, look: Callable[[], tuple[str, bool]], interval: float,
          problems: TextIO | None = None) -> None:
    """Call ``look`` and print its text at intervals, until ``look`` returns false or Ctrl-C is
    pressed. On a terminal, each text replaces the previous text. In other output, the texts follow
    each other. If ``look`` raises Unreachable, print the error and continue.

    :param look: function that returns (text, whether to call ``look`` again)
    :param interval: seconds between two calls of ``look``
    :param problems: text stream for the error of a service that does not answer; None to show the
        error in place of the text
    """
    begin = CLEAR if stdout.isatty() else ''
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            try:
                page, goes_on = look()
            except errors.Unreachable as error:
                page, goes_on = f'{error} The command asks again.', True
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
    """Return a table for people, as text, with some of the columns of the rows.

    :param shown: names of the columns of the table
    :param names: names of all cells of a row, in order
    :param options: parsed arguments of cliff about tables, such as the width
    """
    cells, out = [names.index(name) for name in shown], io.StringIO()
    cliff_table.TableFormatter().emit_list(
        shown, [[row[cell] for cell in cells] for row in rows], out, options)
    return out.getvalue().rstrip('\n')
