"""Counts of a test from outside: live migrations, atomic ones, and requests that
write allocations."""

import collections
import functools

from keystoneauth1 import session
from nova.conductor.tasks import live_migrate

LIVE = 'live'
ATOMIC = 'atomic'
WRITES = 'writes'

counted = collections.Counter()


def start():
    """Count from now on, in :data:`counted`."""
    _wrap(live_migrate.LiveMigrationTask, '_execute', lambda task, *_: LIVE)
    _wrap(session.Session, 'request', _written)


def start_atomic():
    """Count atomic live migrations too: those whose source got a request of Kronos."""
    from kronos_nova.plugin import live_migration

    _wrap(live_migration.AtomicLiveMigrationTask, '_execute', lambda task, *_: ATOMIC)


def _written(_session, url, method, *_):
    return WRITES if method != 'GET' and '/allocations' in url else None


def _wrap(owner, name, key_of):
    real = getattr(owner, name)

    @functools.wraps(real)
    def wrapped(*args, **kwargs):
        result = real(*args, **kwargs)
        counted[key_of(*args)] += 1
        return result

    setattr(owner, name, wrapped)
