"""Starts an unmodified Nova service that dies by SIGKILL where a test says.

    python -m tests.e2e.box.mortal compute|conductor ARGUMENTS...

``KRONOS_BOX_DEATH`` names a file. When it says ``dotted.path.of.Class.method before`` (or
``after``), the process that gets there next takes the file away and is gone.
"""

import functools
import importlib
import os
import pathlib
import signal
import sys

from oslo_utils import importutils

from tests import boundaries

# The driver's own work is not Nova's: it is the box's, whose duration a test sets.
POINTS = {
    'conductor': boundaries.CONDUCTOR,
    'compute': tuple(path for path in (*boundaries.ARRIVAL, *boundaries.RETURN)
                     if not path.startswith('nova.virt.')),
}


PATCHED = {**POINTS, 'conductor': (*POINTS['conductor'], *boundaries.EXECUTOR)}
"""The points of a live migration, and those of a planned move around it."""


def make_mortal(path, order):
    owner_path, name = path.rsplit('.', 1)
    owner = importutils.import_class(owner_path)
    real = getattr(owner, name)

    @functools.wraps(real)
    def method(*args, **kwargs):
        _die_if_told(order, f'{path} before')
        result = real(*args, **kwargs)
        _die_if_told(order, f'{path} after')
        return result

    setattr(owner, name, method)


def _die_if_told(order, here):
    try:
        if order.read_text() != here:
            return
        order.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    service = sys.argv.pop(1)
    sys.argv[0] = f'nova-{service}'
    if service == 'compute':
        importlib.import_module('tests.e2e.box.compute')
    command = importlib.import_module(f'nova.cmd.{service}')
    for path in PATCHED[service]:
        make_mortal(path, pathlib.Path(os.environ['KRONOS_BOX_DEATH']))
    return command.main()


if __name__ == '__main__':
    sys.exit(main())
