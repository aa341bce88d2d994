"""Where the commands begin, as programs.

They run in plain threads. Some libraries import eventlet wherever it is installed, which prints
warnings and keeps Nova 34 from working in threads; here they find that there is none.
"""

import importlib
import sys


class _WithoutEventlet:
    """A finder by which eventlet is not installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition('.')[0] == 'eventlet':
            raise ModuleNotFoundError('the commands of Kronos run in threads', name=name)


def _main(module):
    sys.meta_path.insert(0, _WithoutEventlet)
    # Only now: it looks for eventlet.
    from oslo_service import backend
    backend.init_backend(backend.BackendType.THREADING)
    return importlib.import_module(f'kronos_nova.cmd.{module}').main()


def engine():
    return _main('engine')


def executor():
    return _main('executor')


def manage():
    return _main('manage')


def record():
    return _main('record')


def replay():
    return _main('replay')


def status():
    return _main('status')


def test_config():
    return _main('test_config')
