"""Handling of errors in work that a service repeats, for example every second. A problem is logged
once, not at each repetition."""

from collections.abc import Callable
from typing import TypeVar

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.db import engine as db_engine

LOG = logging.getLogger(__name__)

_Result = TypeVar('_Result')


class Guard:
    """A handler of errors in the parts of a service. Exceptions of Kronos, of oslo.config and of
    the database are logged and suppressed, so that the service still runs its other parts. Other
    exceptions are raised."""

    def __init__(self) -> None:
        self._said: dict[str, str | None] = {}
        self._without_database: set[str] = set()

    def run(self, part: str, work: Callable[[], _Result]) -> _Result | None:
        """Call ``work``, which is one part of the service. A problem of the part is logged when the
        problem begins and when it ends, but not at each call.

        An outage of the database is logged as one problem, even if several parts raise different
        errors.

        :param part: name of the part, for the log
        :returns: the result of ``work``; None if the part has a problem
        """
        try:
            result = work()
        except (db_exc.DBError, *db_engine.NO_ANSWER) as e:
            self._miss_database(part, e)
        except (exception.KronosException, cfg.Error) as e:  # oslo.config checks values late
            self._say(part, str(e))
        else:
            self._find_database(part)
            self._say(part, None)
            return result
        return None

    def _miss_database(self, part: str, error: Exception) -> None:
        if not self._without_database:
            LOG.error('Kronos waits, because a database does not answer: %s',
                      db_engine.first_line(error))
        self._without_database.add(part)

    def _find_database(self, part: str) -> None:
        if self._without_database == {part}:
            LOG.info('Kronos continues, because the database answers again.')
        self._without_database.discard(part)

    def _say(self, part: str, problem: str | None) -> None:
        if problem == self._said.get(part):
            return
        if problem:
            LOG.error('The %s of Kronos waits until this is corrected: %s', part, problem)
        elif self._said.get(part):
            LOG.info('The %s of Kronos works again.', part)
        self._said[part] = problem
