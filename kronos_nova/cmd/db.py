"""``kronos-manage db``: the schemas of the two databases."""

import collections
import dataclasses

from cliff import lister

from kronos_nova.cli import arguments
from kronos_nova.cmd import database
from kronos_nova.conf import bounds
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.db import retention

ANSWER_SECONDS = 5
"""For a database to tell its version."""


def open_engine(conf, name, control_engine=db_engine.control_engine):
    """An engine of the database ``name``, 'control' or 'claims', as ``conf`` has it."""
    if name == migrate.CONTROL.name:
        return control_engine(conf)
    return db_engine.create_engine(db_engine.claims_url(conf))


def _impatient(conf):
    """Whoever asks for a version wants to know whether it answers."""
    return db_engine.impatient_control_engine(conf, ANSWER_SECONDS)


class _PerDatabase(lister.Lister):
    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('databases', nargs='*', metavar='DATABASE',
                            choices=[*migrate.HISTORIES, []],
                            help='control, claims or both; default: both')
        return parser

    def selected(self, parsed_args, *how):
        """``[(engine, history), ...]``"""
        names = parsed_args.databases or list(migrate.HISTORIES)
        return [(open_engine(self.app.conf, name, *how), migrate.HISTORIES[name])
                for name in names]


class Sync(_PerDatabase):
    """Create a database or upgrade it to the schema that this code needs.

    The claims database is a file of one compute host: run it there. nova-compute does the same when
    it starts.
    """

    def take_action(self, parsed_args):
        rows = [(history.name, *migrate.sync(engine, history))
                for engine, history in self.selected(
                    parsed_args, db_engine.patient_control_engine)]
        return ('Database', 'From', 'To'), rows


class Version(_PerDatabase):
    """Show the schema revision of a database and the one that this code needs."""

    def take_action(self, parsed_args):
        rows = [(history.name, migrate.current(engine, history), migrate.head(history))
                for engine, history in self.selected(parsed_args, _impatient)]
        return ('Database', 'Revision', 'Needed'), rows


class Purge(lister.Lister):
    """Drop what is older than it is to be kept, all of it at once.

    The services do the same a little at a time; this is for a database that grew before they did.
    What still runs or waits is kept, whatever its age.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--days', type=arguments.at_least(1, bounds.MOST_DAYS), metavar='N',
            help='Keep N days of everything; default: what the options *_retention_days of '
                 '[kronos_database] say for each table.')
        return parser

    def take_action(self, parsed_args):
        days = retention.Days.from_conf(self.app.conf)
        if parsed_args.days is not None:
            days = retention.Days(**dict.fromkeys(dataclasses.asdict(days), parsed_args.days))
        pruned = retention.Retention(database.control_database(self.app.conf), days)
        dropped, now = collections.Counter(), pruned.database.utcnow()
        while any((step := pruned.step(now)).values()):
            dropped.update(step)
        return ('Table', 'Dropped'), [(name, dropped[name]) for name in retention.SELECTS]
