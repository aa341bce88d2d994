"""Ends a box whose owner died: waits at a pipe that only the owner holds open.

The owner writes one byte to let the box live on without it; anything else that closes the
pipe, a crash or kill -9 among them, ends the box.
"""

import os
import pathlib
import signal
import sys

from tests.e2e.box import processes


def main(root, files):
    # It must outlive whatever ended its owner.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.read(0, 1):
        return
    processes.stop_recorded(pathlib.Path(root))
    if files == 'remove':
        processes.remove(root)


if __name__ == '__main__':
    main(*sys.argv[1:])
