"""The end of a planning process whose configuration cannot be read. This module imports nothing of
Nova, so that it can be imported before Nova chooses how its programs run."""

import contextlib
import sys
from collections.abc import Iterator

from oslo_config import cfg


@contextlib.contextmanager
def end_process() -> Iterator[None]:
    """End the process with the status 1 if the configuration cannot be read in the ``with`` block.
    The reason is printed on stderr, which is the log of the parent process."""
    try:
        yield
    except (cfg.Error, UnicodeDecodeError) as error:
        sys.exit(f'The planning process cannot read its configuration: {error}')
