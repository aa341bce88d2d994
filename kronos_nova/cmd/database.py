"""Access of commands to the control database."""

import socket

from oslo_config import cfg

from kronos_nova.cmd import login
from kronos_nova.db import engine as db_engine
from kronos_nova.db import migrate
from kronos_nova.db import refusals as db_refusals
from kronos_nova.db import server_names as db_names


def operator() -> str:
    """Return the user who runs the command and the name of this host, as ``user@host``."""
    return f'{login.user()}@{socket.gethostname()}'


def control_database(conf: cfg.ConfigOpts) -> db_engine.Database:
    """Open the control database for a command, and check its revision.

    :raises DatabaseVersionError: the database is not at the revision of this code
    """
    found = db_engine.control_database(conf)
    migrate.check(found.engine, migrate.CONTROL)
    return found


def impatient_database(conf: cfg.ConfigOpts, seconds: int = 1,
                       pause: int = 10) -> db_engine.ImpatientDatabase:
    """Return the control database for a service whose clients wait. If the database does not
    answer, a query fails after a short time.

    :param seconds: seconds that the database has to answer
    :param pause: seconds for which no query is sent after the database did not answer
    :raises DatabaseVersionError: the database is not at the revision of this code
    :raises DBError: the database does not answer
    """
    found = db_engine.ImpatientDatabase(
        db_engine.impatient_control_engine(conf, seconds), pause=pause,
        announces=bool(conf.kronos.notification_topics))
    migrate.check(found.engine, migrate.CONTROL)
    return found


def does_not_answer(error: Exception) -> str:
    """Return a line for the operator who has started a service. The line says that the control
    database does not answer, and has the text of the DBError."""
    return f'the control database does not answer: {db_engine.first_line(error)}'


def names(conf: cfg.ConfigOpts) -> db_names.ServerNames:
    return db_names.ServerNames(control_database(conf))


def refusals(conf: cfg.ConfigOpts) -> db_refusals.Refusals:
    return db_refusals.Refusals(control_database(conf))
