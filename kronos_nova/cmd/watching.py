"""Pages that are shown again and again."""

import contextlib
import functools
import time
from collections.abc import Callable

from rich import console
from rich import live


def watch(stdout, look: Callable[[], tuple[object, bool]], interval: float) -> None:
    """Show what ``look`` gives until it says that this was the last, or Ctrl-C is pressed: in one
    place on a terminal, one after the other elsewhere.

    :param look: gives (something that rich can show, whether to look again)
    :param interval: seconds between two looks
    """
    screen = console.Console(file=stdout)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        show = screen.print
        if screen.is_terminal:
            display = stack.enter_context(live.Live(console=screen))
            show = functools.partial(display.update, refresh=True)
        while True:
            page, goes_on = look()
            show(page)
            stdout.flush()
            if not goes_on:
                return
            time.sleep(interval)
