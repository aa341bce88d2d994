"""Work that is repeated until it succeeds, and whose trouble is told once and not every second."""

from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception

LOG = logging.getLogger(__name__)


class Guard:
    """Runs parts of a service; what an operator has to mend, and a database that does not answer,
    keep none of the others from running."""

    def __init__(self):
        self._said = {}

    def run(self, part, work):
        """Call ``work``; a problem is logged when it appears and when it is gone."""
        try:
            work()
        except (exception.KronosException, db_exc.DBError) as e:
            self._say(part, str(e))
        else:
            self._say(part, None)

    def _say(self, part, problem):
        if problem == self._said.get(part):
            return
        if problem:
            LOG.error('The %s of Kronos waits until this is mended: %s', part, problem)
        elif self._said.get(part):
            LOG.info('The %s of Kronos goes on.', part)
        self._said[part] = problem
