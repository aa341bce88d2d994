"""``kronos-manage db``: the schemas of the two databases."""

from cliff import lister

from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate


def open_engine(conf, name):
    """An engine of the database ``name``, 'control' or 'claims', as ``conf`` has it."""
    if name == migrate.CONTROL.name:
        return db_engine.control_engine(conf)
    return db_engine.create_engine(db_engine.claims_url(conf))


class _PerDatabase(lister.Lister):
    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument('databases', nargs='*', metavar='DATABASE',
                            choices=[*migrate.HISTORIES, []],
                            help='control, claims or both; default: both')
        return parser

    def selected(self, parsed_args):
        """``[(engine, history), ...]``"""
        names = parsed_args.databases or list(migrate.HISTORIES)
        return [(open_engine(self.app.conf, name), migrate.HISTORIES[name]) for name in names]


class Sync(_PerDatabase):
    """Create a database or upgrade it to the schema that this code needs.

    The claims database is a file of one compute host: run it there. nova-compute does the same when
    it starts.
    """

    def take_action(self, parsed_args):
        rows = [(history.name, *migrate.sync(engine, history))
                for engine, history in self.selected(parsed_args)]
        return ('Database', 'From', 'To'), rows


class Version(_PerDatabase):
    """Show the schema revision of a database and the one that this code needs."""

    def take_action(self, parsed_args):
        rows = [(history.name, migrate.current(engine, history), migrate.head(history))
                for engine, history in self.selected(parsed_args)]
        return ('Database', 'Revision', 'Needed'), rows
