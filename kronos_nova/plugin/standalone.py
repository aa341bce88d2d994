"""Preparations to run Nova's code outside of a Nova service, as nova-manage does.

Commands run in native threads, even if the services use eventlet. Some libraries import eventlet
wherever it is installed. This import prints warnings, and Nova 34 then does not work in threads. So
eventlet is hidden from commands. It is not hidden with Nova 33, whose own code imports eventlet
even when it runs in threads.
"""

import functools
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterable

from kronos_nova.engine import gc_tuning

IMPORTS_EVENTLET = 33
"""Last major release of Nova that imports eventlet although it uses native threads (no unit). Fixed
by Nova."""


class _WithoutEventlet:
    """An import finder that hides eventlet. An import of eventlet fails as if eventlet were not
    installed."""

    @staticmethod
    def find_spec(name: str, path: object | None = None, target: object | None = None) -> None:
        if name.partition('.')[0] == 'eventlet':
            raise ModuleNotFoundError('eventlet is not available in the commands of Kronos, which '
                                      'use native threads', name=name)


def hide_eventlet() -> None:
    """Hide eventlet from libraries. The program has to call this function before it imports
    anything else."""
    sys.meta_path.insert(0, _WithoutEventlet)


def load_nova(config_files: Iterable[str] | None, config_dirs: Iterable[str] | None) -> None:
    """Read nova.conf into Nova's own configuration, and register Nova's objects.

    Call this function before anything of Nova is imported, because Nova chooses between threads and
    eventlet at its first import.

    :param config_files: paths, or None for Nova's default files
    """
    gc_tuning.collect_rarely()
    use_threads()
    from nova import config
    from nova import objects

    from kronos_nova import conf as kronos_conf
    from kronos_nova.plugin.fixes import log_filters
    args = [f'--config-file={path}' for path in config_files or ()]
    args += [f'--config-dir={path}' for path in config_dirs or ()]
    config.parse_args(['kronos-manage', *args])
    kronos_conf.register_opts(config.CONF)
    log_filters.install()
    _be_impatient()
    objects.register_all()


def _be_impatient() -> None:
    """Shorten the time for which a command waits for databases. A service may wait for minutes, but
    the user of a command wants an answer."""
    from nova import conf
    from nova.db.api import api as api_database
    from nova.db.main import api as main_database
    for group in ('database', 'api_database'):
        conf.CONF.set_override('max_retries', 0, group=group)
    main_database.configure(conf.CONF)
    api_database.configure(conf.CONF)


@functools.cache
def use_threads() -> None:
    """Make Nova's code use native threads. Call this function before anything of Nova is
    imported."""
    os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = 'true'
    from nova import monkey_patch
    from nova import version
    if int(version.version_info.version_string().partition('.')[0]) <= IMPORTS_EVENTLET:
        if _WithoutEventlet in sys.meta_path:
            sys.meta_path.remove(_WithoutEventlet)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')     # It is deprecated, and Nova imports it.
            importlib.import_module('eventlet')
    # This logger reports how a service of Nova was started, and a command is no service.
    logging.getLogger('nova.monkey_patch').setLevel(logging.ERROR)
    monkey_patch.patch()
