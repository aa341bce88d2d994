"""The redirection of a solver's output from standard output to standard error.

The solver HiGHS sometimes writes a line to standard output, even if its output is switched off. A
command that prints JSON, or a process that answers on its standard output, must not print this
line.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator

STDOUT, STDERR = 1, 2
"""Numbers of the file descriptors of standard output and standard error (no unit). Fixed by
POSIX."""

_lock = threading.Lock()
_open: list[int | None] = []
"""One item for each redirection in progress. The first item is a duplicate of the original standard
output; None if standard output or standard error is closed. The other items are None."""


@contextlib.contextmanager
def redirected() -> Iterator[None]:
    """Redirect file descriptor 1 to standard error while the context is open.

    The redirection applies to all threads of the process. If the contexts of several threads
    overlap, the first one redirects, and the last one restores. Nothing is redirected if standard
    output or standard error is closed.
    """
    with _lock:
        _open.append(None if _open else _redirect())
    try:
        yield
    finally:
        with _lock:
            original = _open[0]
            _open.pop()
            if not _open and original is not None:
                _flush()
                os.dup2(original, STDOUT)
                os.close(original)


def _redirect() -> int | None:
    """Redirect standard output to standard error, and return a duplicate of the original standard
    output. Return None, and change nothing, if one of the two is closed."""
    try:
        os.fstat(STDERR)
        original = os.dup(STDOUT)
    except OSError:
        return None
    _flush()
    os.dup2(STDERR, STDOUT)
    return original


def _flush() -> None:
    """Write the buffers of the C library. They are not the buffers of ``sys.stdout``."""
    ctypes.CDLL(None).fflush(None)
