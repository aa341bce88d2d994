"""Decorators that repeat a transaction after a deadlock or a lost connection.

oslo.db's own decorator is not used, because it logs a traceback each time that it gives up. During
an outage of the database, the log would fill with tracebacks.
"""

from collections.abc import Callable
from typing import Any
from typing import TypeVar

import tenacity
from oslo_db import exception as db_exc

_Function = TypeVar('_Function', bound=Callable[..., Any])


def _retrying(*errors: type[Exception]) -> Callable[[_Function], _Function]:
    def is_one(error: BaseException) -> bool:
        # A deadlock removes savepoints. SQLAlchemy then reports only that a savepoint does not
        # exist, and oslo.db keeps the deadlock as the cause.
        return isinstance(error, errors) or isinstance(getattr(error, 'cause', None), errors)

    return tenacity.retry(  # type: ignore[return-value]
        retry=tenacity.retry_if_exception(is_one),
        wait=tenacity.wait_random_exponential(multiplier=0.1, max=1.6),
        stop=tenacity.stop_after_attempt(6), reraise=True)


retried = _retrying(db_exc.DBDeadlock, db_exc.DBConnectionError)
"""Decorator that repeats a function after a deadlock or a lost connection. The function has to be
one transaction, without effects outside the database."""

retried_unless_away = _retrying(db_exc.DBDeadlock)
"""Decorator that repeats a function after a deadlock, but not after a lost connection. It is for
functions whose caller is waiting and can continue without the result."""

retried_as_update = _retrying(db_exc.DBDeadlock, db_exc.DBConnectionError,
                              db_exc.DBDuplicateEntry)
"""Decorator for functions that update a row, or insert the row if it is missing. The decorator
repeats the function after a deadlock, a lost connection or a duplicate key. A duplicate key means
that another worker has inserted the row in the meantime."""
