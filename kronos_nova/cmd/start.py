"""Entry points of the programs."""

import importlib
import importlib.util
import os
import sys

from kronos_nova.engine import gc_tuning
from kronos_nova.plugin import standalone

INTERRUPTED = 130
"""Exit code of a program that the user has ended with Ctrl-C (no unit). Fixed by shells: 128 plus
the number of the signal SIGINT, which is 2."""
UNREAD = 141
"""Exit code of a program whose output is not read to its end, as by ``head`` (no unit). Fixed by
shells: 128 plus the number of the signal SIGPIPE, which is 13."""


def _run(module: str) -> int:
    """Import a program and run it.

    :returns: exit code of the program
    """
    try:
        return importlib.import_module(f'kronos_nova.cmd.{module}').main()
    except BrokenPipeError:
        # Otherwise Python would report the same error again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        return INTERRUPTED
    finally:
        # Otherwise Python collects garbage at its end, which takes a fifth of the time of a short
        # command.
        gc_tuning.exempt_loaded_objects()


def _main(module: str) -> int:
    standalone.hide_eventlet()
    return _run(module)


def _main_in_threads(module: str) -> int:
    """Run a program after setting up oslo.messaging to use threads. Without this setup,
    oslo.messaging would use eventlet if eventlet is installed."""
    standalone.hide_eventlet()
    # Imported late: it looks for eventlet too.
    from oslo_service import backend
    backend.init_backend(backend.BackendType.THREADING)
    return _run(module)


def _main_beside_nova(module: str) -> int:
    """Run a program that works with and without Nova. The program uses Nova's code if Nova is
    installed."""
    if importlib.util.find_spec('nova') is None:
        return _main_in_threads(module)
    standalone.hide_eventlet()
    standalone.use_threads()
    return _run(module)


def api() -> int:
    return _main('api')


def engine() -> int:
    return _main_in_threads('engine')


def executor() -> int:
    return _main_in_threads('executor')


def exporter() -> int:
    return _main('exporter')


def manage() -> int:
    gc_tuning.collect_rarely()
    return _main('manage')


def record() -> int:
    return _main('record')


def replay() -> int:
    return _main('replay')


def status() -> int:
    return _main_beside_nova('status')


def test_config() -> int:
    return _main_beside_nova('test_config')
