"""``kronos-manage db``: commands for the schemas and rows of the control database and of the claims
database."""

import argparse
import collections
import dataclasses
from collections.abc import Callable

from oslo_config import cfg

from kronos_client.cli import arguments
from kronos_client.cli import command
from kronos_nova.cmd import database
from kronos_nova.conf import bounds
from kronos_nova.cycle import aggregates
from kronos_nova.db import check
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.db import retention

CLEAN, FOUND, LEFT = 0, 3, 4
"""Exit codes of ``kronos-manage db``. CLEAN: no problem was found. FOUND: problems were found.
LEFT: problems are left after a repair. The codes are documented in database.rst. Fixed: scripts
depend on the codes."""

ANSWER_SECONDS = 5
"""Maximum seconds to wait for a database when a command reads the version of its schema. Raised, a
database that is down is reported later; lowered, a slow database counts as down. Not measured."""


def open_engine(conf: cfg.ConfigOpts, name: str,
                control_engine: Callable[[cfg.ConfigOpts], db_engine.Engine]
                = db_engine.control_engine) -> db_engine.Engine:
    """Return an SQLAlchemy engine for a database.

    :param name: 'control' or 'claims'
    :param control_engine: function that makes the engine of the control database
    """
    if name == migrate.CONTROL.name:
        return control_engine(conf)
    return db_engine.create_engine(db_engine.claims_url(conf))


def _impatient(conf: cfg.ConfigOpts) -> db_engine.Engine:
    """Return an engine of the control database with a short time limit, for a command that reads
    the revision of the schema."""
    return db_engine.impatient_control_engine(conf, ANSWER_SECONDS)


class _PerDatabase(command.Lister):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('databases', nargs='*', metavar='DATABASE',
                            choices=[*migrate.HISTORIES, []],
                            help='Name of the database: "control" (plans and moves) or "claims" '
                                 '(resource claims of this compute host); may be repeated; '
                                 'default: both.')
        return parser

    def selected(self, parsed_args: argparse.Namespace,
                 *how: Callable[[cfg.ConfigOpts], db_engine.Engine]
                 ) -> list[tuple[db_engine.Engine, migrate.RevisionHistory]]:
        """Return the selected databases as ``[(engine, migrate.History), ...]``.

        :param how: further arguments of :func:`open_engine`, after ``name``
        """
        names = parsed_args.databases or list(migrate.HISTORIES)
        return [(open_engine(self.app.conf, name, *how), migrate.HISTORIES[name])
                for name in names]


class Sync(_PerDatabase):
    """Create a database, or upgrade its schema to the revision that this release needs.

    The claims database is a file on each compute host, so run the command for it on that host.
    nova-compute also creates and upgrades the claims database when it starts.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        rows = [(history.name, *migrate.sync(engine, history))
                for engine, history in self.selected(
                    parsed_args, db_engine.patient_control_engine)]
        return ('Database', 'From', 'To'), rows


class Version(_PerDatabase):
    """Show the revision of a database's schema, and the revision that this release needs."""

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        rows = [(history.name, migrate.current(engine, history), migrate.head(history))
                for engine, history in self.selected(parsed_args, _impatient)]
        return ('Database', 'Revision', 'Needed'), rows


class Check(command.Lister):
    """Find inconsistent rows of the control database. Without --fix, the command changes nothing.

    Exit codes: 0 nothing is wrong, or everything is fixed; 1 the check could not be done; 3 without
    --fix: something is wrong; 4 with --fix: something is wrong that only an operator can correct.
    """

    exit_code = CLEAN

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--fix', action='store_true',
                            help='Make the changes that the column Remedy shows. The services may '
                                 'run meanwhile.')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        super().run(parsed_args)
        return self.exit_code

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        conf = self.app.conf
        found = check.examine(db_engine.control_database(conf),
                              aggregates.aggregates_in_scope(conf),
                              parsed_args.fix)
        if not all(each.is_fixed for each in found):
            self.exit_code = LEFT if parsed_args.fix else FOUND
        return ('Table', 'Problem', 'Rows', 'Remedy', 'Fixed'), [
            (each.table, each.problem, each.rows, each.remedy, each.is_fixed) for each in found]


class Purge(command.Lister):
    """Delete all rows of the control database that are older than their retention time.

    The services delete such rows too, a few at a time. Use this command to shrink a database that
    is already large. Plans and moves that wait or run are kept, whatever their age.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--days', type=arguments.at_least(1, bounds.MOST_DAYS), metavar='N',
            help='Keep the rows of the last N days in every table; default: the options '
                 '*_retention_days of [kronos_database], one for each kind of data.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        days = retention.Days.from_conf(self.app.conf)
        if parsed_args.days is not None:
            days = retention.Days(**dict.fromkeys(dataclasses.asdict(days), parsed_args.days))
        pruned = retention.Retention(database.control_database(self.app.conf), days)
        dropped: collections.Counter[str] = collections.Counter()
        now = pruned.database.utcnow()
        while any((step := pruned.step(now)).values()):
            dropped.update(step)
        return ('Table', 'Dropped'), [(name, dropped[name]) for name in retention.SELECTS]
