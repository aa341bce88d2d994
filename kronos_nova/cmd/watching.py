"""Pages that are shown again and again."""

import contextlib
import functools
import time
from collections.abc import Callable

from oslo_db import exception as db_exc
from rich import console
from rich import live

from kronos_nova.cli import columns
from kronos_nova.cmd.error_text import error_text


def watch(stdout, look: Callable[[], tuple[object, bool]], interval: float) -> None:
    """Show what ``look`` gives until it says that this was the last, or Ctrl-C is pressed: in one
    place on a terminal, one after the other elsewhere. A control database that does not answer is
    asked again.

    :param look: gives (something that rich can show, whether to look again)
    :param interval: seconds between two looks
    """
    is_screen = stdout.isatty()
    screen = console.Console(file=stdout, width=None if is_screen else columns.WIDE)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        show = screen.print
        if is_screen:
            display = stack.enter_context(live.Live(console=screen))
            show = functools.partial(display.update, refresh=True)
        while True:
            try:
                page, goes_on = look()
            except db_exc.DBError as error:
                page, goes_on = f'{error_text(error)} It is asked again.', True
            show(page)
            stdout.flush()
            if not goes_on:
                return
            time.sleep(interval)
