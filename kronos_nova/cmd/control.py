"""The control database, for commands."""

import getpass
import os

from kronos_nova.db import engine as db_engine
from kronos_nova.db import journal as db_journal
from kronos_nova.db import memory
from kronos_nova.db import migrate


def database(conf):
    """:raises DatabaseVersionError: it is not what this code needs"""
    engine = db_engine.control_engine(conf)
    migrate.check(engine, migrate.CONTROL)
    return db_engine.Database(engine)


def journal(conf):
    return db_journal.Journal(database(conf), f'{getpass.getuser()}:{os.getpid()}')


def cooldowns(conf):
    return memory.Cooldowns(database(conf))
