"""The options of Kronos, one module for each group.

The functions of this package use the ``ConfigOpts`` that is passed to them, never a global
``ConfigOpts``. Only ``plugin/`` and ``cmd/`` choose the ``ConfigOpts``.
"""

import contextlib
import copy
import io
import sys
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log

from kronos_nova.conf import allocations
from kronos_nova.conf import api
from kronos_nova.conf import bounds
from kronos_nova.conf import claims
from kronos_nova.conf import database
from kronos_nova.conf import executor
from kronos_nova.conf import exporter
from kronos_nova.conf import fixes
from kronos_nova.conf import help_text
from kronos_nova.conf import kronos
from kronos_nova.conf import nova
from kronos_nova.conf import paths
from kronos_nova.conf import prometheus
from kronos_nova.conf import scheduler

GROUPS = (kronos, prometheus, database, executor, nova, claims, scheduler, allocations, exporter,
          api, fixes)

for _module in GROUPS:
    bounds.bound(_module.OPTS)
    help_text.unwrap(_module.OPTS)


def register_opts(conf: cfg.ConfigOpts, with_login: bool = True) -> None:
    """Register the options of every group on ``conf``. A repeated call changes nothing.

    :param with_login: true to register the options of keystoneauth in ``[kronos_nova]`` as well;
        false if they are registered later, by the connection to Nova
    """
    paths.register_opts(conf)
    for module in GROUPS:
        # A registered group stores its options and their overrides, so that two ConfigOpts must not
        # share one.
        conf.register_group(copy.deepcopy(module.GROUP))
        module.register_opts(conf)
    if with_login:
        nova.register_login_opts(conf)


def register_program_opts(conf: cfg.ConfigOpts, with_login: bool = True) -> None:
    """Register the options of a program of Kronos on ``conf``: those of :func:`register_opts`, and
    those of oslo.log. In Nova's services, Nova has registered the latter."""
    log.register_options(conf)
    register_opts(conf, with_login)


def read_again(conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Return a new ConfigOpts with the options of a program of Kronos, and with the present content
    of the files from which ``conf`` was read.

    :raises cfg.Error: see :func:`read`
    """
    fresh = cfg.ConfigOpts()
    register_program_opts(fresh)
    read(fresh, [*(f'--config-file={path}' for path in conf.config_file or ()),
                 *(f'--config-dir={path}' for path in conf.config_dir or ())],
         project='nova', default_config_files=[], default_config_dirs=[])
    return fresh


def read(conf: cfg.ConfigOpts, arguments: Sequence[str], **rest: Any) -> None:
    """Make ``conf`` parse a command line and the configuration files.

    :raises cfg.Error: a file cannot be read or is not UTF-8, the command line or a file is
        malformed, or a file has an invalid value of an option of the command line, such as
        ``debug``
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            conf(arguments, **rest)
    except SystemExit as ended:
        # oslo.config ends the process with 1 after such a value, and argparse with 0 or 2.
        if ended.code == 1:
            raise cfg.ConfigFileValueError(
                said.getvalue().strip().removeprefix('argument --')) from None
        sys.stderr.write(said.getvalue())
        raise
    except OSError as error:
        raise cfg.ConfigFileParseError(error.filename, str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise cfg.ConfigFileParseError(
            'a configuration file', f'it is not UTF-8: {error.reason}, in the text that follows '
            f'"{_before(error)}"') from error


def _before(error: UnicodeDecodeError) -> str:
    """Return the text before the first byte that is not UTF-8: at most 40 characters of the same
    line. The error does not say which file it is about. An operator can search all files for the
    text."""
    start = bytes(error.object[:error.start]).decode(errors='replace')
    return ''.join(filter(str.isprintable, start.rpartition('\n')[2]))[-40:]


def list_opts() -> list[tuple[cfg.OptGroup, Sequence[cfg.Opt]]]:
    """Return ``[(group, options), ...]`` for oslo-config-generator."""
    return [(module.GROUP, module.list_opts()) for module in GROUPS]
