"""Transactions that are run again where they lost against another.

oslo.db's own decorator logs a traceback each time it gives up: in an outage, one for every try of
everything that is tried again.
"""

import tenacity
from oslo_db import exception as db_exc


def _retrying(*errors):
    def is_one(error):
        # A deadlock removes savepoints. The error is then only that a savepoint does not exist, and
        # oslo.db has the cause.
        return isinstance(error, errors) or isinstance(getattr(error, 'cause', None), errors)

    return tenacity.retry(
        retry=tenacity.retry_if_exception(is_one),
        wait=tenacity.wait_random_exponential(multiplier=0.1, max=1.6),
        stop=tenacity.stop_after_attempt(6), reraise=True)


retried = _retrying(db_exc.DBDeadlock, db_exc.DBConnectionError)
"""For a method that is one transaction, and has no effects outside the database."""

retried_unless_away = _retrying(db_exc.DBDeadlock)
"""Retry a function whose caller waits and can continue without its result."""

retried_as_update = _retrying(db_exc.DBDeadlock, db_exc.DBConnectionError,
                              db_exc.DBDuplicateEntry)
"""Retry a function that updates a row or, where there is none, inserts it. Another worker may have
inserted it meanwhile."""
