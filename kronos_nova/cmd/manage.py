"""``kronos-manage``: the commands of operators.

Every command is a cliff command in the entry point namespace ``kronos_nova.manage``; its
``app.conf`` is the configuration. Commands that ``openstack kronos`` shares are in
:mod:`kronos_client.cli`.
"""

import argparse
import difflib
import functools
import logging
import sys
import types
from importlib import metadata
from typing import TYPE_CHECKING
from typing import Any

from cliff import app
from cliff import commandmanager
from cliff import help as cliff_help
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log
from pbr import version as pbr_version

from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import command_list
from kronos_nova.db.error_text import error_text

if TYPE_CHECKING:
    from kronos_nova.cmd.cloud import Cloud
    from kronos_nova.services.in_process import InProcessClient
    from kronos_nova.services.without_database import WithoutDatabase

DISTRIBUTION = 'kronos-nova'
NAMESPACE = 'kronos_nova.manage'
DESCRIPTION = ('Operate Kronos: plans and moves, levels of automation, drains and maintenance of '
               'hosts, claims, allocations, and the databases.')

CHATTY = ('alembic', 'nova', 'oslo_service')
"""Loggers of libraries that report their own setup with every command. Without --verbose, only
their warnings and errors are logged."""


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--config-file`` and ``--config-dir``."""
    parser.add_argument('--config-file', action='append', metavar='PATH',
                        help='Read this configuration file instead of nova.conf; may be repeated.')
    parser.add_argument('--config-dir', action='append', metavar='DIR',
                        help='Read the configuration files of this directory too; may be '
                             'repeated.')


def load_service_config(conf: cfg.ConfigOpts, prog: str, arguments: list[str]) -> cfg.ConfigOpts:
    """Read Nova's configuration into ``conf``, and set up logging by its options.

    :param arguments: the command line
    :returns: ``conf``
    :raises cfg.Error: the configuration cannot be read, or has an invalid option of logging
    """
    kronos_conf.register_program_opts(conf)
    kronos_conf.read(conf, arguments, project='nova', prog=prog,
                     version=f'{prog} {version_string()}')
    try:
        log.setup(conf, 'kronos')
    except (ValueError, log.LogConfigError) as error:
        raise cfg.ConfigFileValueError(f'an option of logging is invalid: {error}') from error
    return conf


def load_config(options: argparse.Namespace) -> cfg.ConfigOpts:
    """Return Nova's configuration, from the files that Nova's own commands read.

    :param options: parsed arguments; their attributes ``config_file`` and ``config_dir`` are lists
        or None
    """
    conf = cfg.ConfigOpts()
    kronos_conf.register_program_opts(conf, with_login=False)
    args = [f'--config-file={path}' for path in options.config_file or ()]
    args += [f'--config-dir={path}' for path in options.config_dir or ()]
    kronos_conf.read(conf, args, project='nova', prog='kronos-manage')
    return conf


class ClientManager:
    """A manager that gives the commands of kronos-manage their client. The program ``openstack``
    uses the client manager of osc-lib instead."""

    def __init__(self, app: 'Manage'):
        self._app = app
        self._client: InProcessClient | None = None

    @property
    def rebalancing(self) -> 'InProcessClient | WithoutDatabase':
        """Return a client that uses the control database. If the database does not answer, return a
        client with two abilities only: it can stop moves (``kronos-manage stop``), and it can end
        stops that are not in the database yet (``kronos-manage resume``). The next access then
        tries the database again.

        :raises DatabaseVersionError: the database is not at the revision of this code
        """
        if self._client is not None:
            return self._client
        # Imported late: importing is most of the time that a command takes.
        from kronos_nova.cmd import database
        from kronos_nova.services.context import Context
        from kronos_nova.services.in_process import InProcessClient
        conf = self._app.conf
        try:
            found = database.control_database(conf)
        except db_exc.DBError as error:
            from kronos_nova.services.without_database import WithoutDatabase
            return WithoutDatabase(conf, database.operator(), error)
        self._client = InProcessClient(Context(
            conf=conf, database=found, who=database.operator(),
            read_cloud=lambda: self._cloud.read(),
            read_flavors=lambda: self._cloud.read_flavors(), host_api=lambda: self._cloud.hosts,
            planner_ports=lambda: self._module.planner_ports(conf, self._cloud.dry_run),
            room_allocations=lambda: self._cloud.room_allocations()))
        return self._client

    @functools.cached_property
    def _cloud(self) -> 'Cloud':
        return self._module.open_cloud(self._app)

    @property
    def _module(self) -> types.ModuleType:
        from kronos_nova.cmd import cloud
        return cloud


class Commands(commandmanager.CommandManager):
    """A command manager that imports only the command that is run. cliff's own manager would import
    all commands, and most of the time of a command would be spent on imports. Only commands of this
    distribution are found, because a search for other commands would read the metadata of every
    installed package."""

    def load_commands(self, namespace: str) -> None:
        self.group_list.append(namespace)
        self.commands |= {point.name.replace('_', ' '): point
                          for point in metadata.distribution(
                              DISTRIBUTION).entry_points.select(group=namespace)}


def _say_what_a_database_says(record: logging.LogRecord) -> bool:
    """Replace a database error in a log record by the cause of the error. The text of the error
    itself would show the SQL statement with its values. Return True always, so that the record is
    logged."""
    if isinstance(record.msg, db_exc.DBError):
        record.msg = error_text(record.msg)
    return True


class Manage(app.App):
    """The application ``kronos-manage``. ``conf`` is set before any command runs."""

    conf: cfg.ConfigOpts

    def __init__(self) -> None:
        super().__init__(description=DESCRIPTION, version=version_string(), deferred_help=True,
                         command_manager=Commands(NAMESPACE))
        self.command_manager.add_command('help', command_list.Help)
        self.client_manager = ClientManager(self)

    def build_option_parser(self, description: str | None, version: str | None,
                            argparse_kwargs: dict[str, Any] | None = None
                            ) -> argparse.ArgumentParser:
        parser = super().build_option_parser(description, version, argparse_kwargs)
        add_config_arguments(parser)
        return parser

    def configure_logging(self) -> None:
        super().configure_logging()
        self.LOG.addFilter(_say_what_a_database_says)
        for name in CHATTY:
            logging.getLogger(name).setLevel(
                logging.NOTSET if self.options.verbose_level > self.DEFAULT_VERBOSE_LEVEL
                else logging.WARNING)
        # "plan show --verbose" asks for details of a plan, not of the plugins that a command loads
        # or of the mode of a database.
        for name in ('oslo_db', 'stevedore'):
            logging.getLogger(name).setLevel(
                logging.NOTSET if self.options.debug else logging.WARNING)

    def get_fuzzy_matches(self, cmd: str) -> list[str]:
        """Return the commands that begin with ``cmd``, or whose first word is spelt nearly like
        ``cmd``. cliff's own method is not used, because it suggests a command even if no command is
        similar, such as ``stop`` for ``foo``."""
        names = sorted(self.command_manager.commands)
        near = difflib.get_close_matches(cmd, {name.partition(' ')[0] for name in names})
        return [name for name in names
                if name.startswith(cmd) or name.partition(' ')[0] in near]

    def initialize_app(self, argv: list[str]) -> None:
        self.conf = load_config(self.options)

    def print_help_if_requested(self) -> None:
        """Print the help and end, if ``--help`` was given. cliff's own method would import all
        commands."""
        if self.options.deferred_help:
            self.print_commands()
            raise cliff_help.HelpExit

    def print_commands(self) -> None:
        """Write the options and a line for each command."""
        self.parser.print_help(self.stdout)
        print('\ncommands:', *command_list.lines(self.command_manager), sep='\n',
              file=self.stdout)


def version_string() -> str:
    return pbr_version.VersionInfo(DISTRIBUTION).version_string()


def main(argv: list[str] | None = None) -> int:
    """Run kronos-manage.

    :returns: the exit code of the command; 1 if the command raised an error; 2 if an argument is
        wrong
    """
    return Manage().run(sys.argv[1:] if argv is None else argv)
