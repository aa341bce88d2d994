"""Reports of nova-scheduler's worker processes. Each report says whether KronosFilter is
enabled."""

import datetime

from kronos_nova.db.engine import Database
from kronos_nova.db.journal import Journal

FILTERING, NOT_FILTERING = 'room-filter', 'scheduler'
"""Roles of worker processes of nova-scheduler: with KronosFilter enabled, and without."""
HEARD_WITHIN = datetime.timedelta(seconds=60)
"""Time (60 seconds) for which the report of a worker process of nova-scheduler counts. Raised, a
nova-scheduler that was stopped counts for longer; lowered, a nova-scheduler whose report is late
counts as stopped. Chosen as several times the 10 seconds between two reports of a worker."""


class Schedulers:
    """Reports of nova-scheduler's worker processes."""

    def __init__(self, database: Database):
        self._database = database

    def report(self, name: str, is_filtering: bool) -> None:
        """Record that a worker process is alive, and whether KronosFilter is enabled in it."""
        Journal(self._database, name).heartbeat(self._database.utcnow(),
                                                FILTERING if is_filtering else NOT_FILTERING)

    def withdraw(self, name: str) -> None:
        """Delete the report of a worker process that ends."""
        Journal(self._database, name).retire(self._database.utcnow())

    def all_filter(self) -> bool:
        """Return whether KronosFilter is enabled in every worker process of nova-scheduler that has
        called :meth:`report` in the last 60 seconds. The result is False if there is no such
        process. A nova-scheduler in which Kronos is not installed never calls it."""
        roles = {role for _name, role, _heard_at in Journal(self._database, '').workers(
            self._database.utcnow() - HEARD_WITHIN) if role in (FILTERING, NOT_FILTERING)}
        return roles == {FILTERING}
