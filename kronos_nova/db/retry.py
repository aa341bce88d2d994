"""Transactions that are run again where they lost against another."""

from oslo_db import api as db_api
from oslo_db import exception as db_exc

_POLICY = {'max_retries': 5, 'retry_interval': 0.1, 'inc_retry_interval': True,
           'retry_on_deadlock': True, 'retry_on_disconnect': True}

retried = db_api.wrap_db_retry(**_POLICY)
"""For a method that is one transaction, and has no effects outside the database."""

retried_as_update = db_api.wrap_db_retry(
    **_POLICY, exception_checker=lambda e: isinstance(e, db_exc.DBDuplicateEntry))
"""The same for one that updates a row or, where there is none, inserts it: somebody else may have
inserted it meanwhile."""
