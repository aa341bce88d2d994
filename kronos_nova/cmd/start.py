"""Where the commands begin, as programs."""

import gc
import importlib
import importlib.util

from kronos_nova.plugin import standalone

OBJECTS = 50_000
"""New objects after which garbage is collected. Raised, a command that reads a large cloud takes
more memory; lowered, commands take longer to start. Chosen: importing makes some 300,000."""


def _main(module):
    standalone.hide_eventlet()
    return importlib.import_module(f'kronos_nova.cmd.{module}').main()


def _main_in_threads(module):
    """The same for what uses oslo.messaging, which looks for eventlet."""
    standalone.hide_eventlet()
    # Only now: it looks for eventlet too.
    from oslo_service import backend
    backend.init_backend(backend.BackendType.THREADING)
    return importlib.import_module(f'kronos_nova.cmd.{module}').main()


def _main_beside_nova(module):
    """The same for what looks at Nova's code, where that is installed."""
    if importlib.util.find_spec('nova') is None:
        return _main_in_threads(module)
    standalone.hide_eventlet()
    standalone.use_threads()
    return importlib.import_module(f'kronos_nova.cmd.{module}').main()


def api():
    return _main('api')


def engine():
    return _main_in_threads('engine')


def executor():
    return _main_in_threads('executor')


def exporter():
    return _main('exporter')


def manage():
    # To import makes objects that stay. Python looks through them each time some more were made,
    # which is a tenth of the time that a command takes.
    gc.set_threshold(OBJECTS)
    return _main('manage')


def record():
    return _main('record')


def replay():
    return _main('replay')


def status():
    return _main_beside_nova('status')


def test_config():
    return _main_beside_nova('test_config')
