"""``[kronos_allocations]``: repair of allocations that moves leave behind in placement."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_allocations', title='Allocations', help="""
Repair of allocations that interrupted migrations leave behind in placement. Every
``reconcile_interval`` seconds, a nova-conductor worker checks the migrations that changed lately.
The worker corrects the allocations of the migrated instances, so that each allocation is on the
host where the instance runs. "kronos-manage allocations" finds and repairs all other wrong
allocations.
""")

OPTS = [
    cfg.IntOpt('reconcile_interval', default=60, min=0, help="""
Seconds between two checks of the allocations of recent migrations. One nova-conductor worker makes
all checks. If this worker dies, another worker continues.

By default, a minute. 0 turns the checks off. If ``[kronos] atomic_moves`` is ``off``, the option
has no effect: there are no checks.

Raise it where the database is busy. Lower it where the room of a broken migration has to be free
again sooner.

Related options: ``reconcile_window``, ``grace``, ``[kronos] atomic_moves``.
"""),
    cfg.IntOpt('reconcile_window', default=86400, min=60, help="""
Maximum number of seconds that a check of allocations looks back. A check usually considers the
migrations that changed since shortly before the previous check. The first check, and a check after
a long outage, consider all migrations that changed within ``reconcile_window`` seconds.

By default, a day. Older migrations are not checked.

Raise it where an outage of the control plane may last longer than a day. Otherwise an operator has
to repair the allocations of older migrations after the outage. Lower it where a check after an
outage takes too long.

Related options: ``reconcile_interval``.
"""),
    cfg.FloatOpt('grace', default=60.0, min=0.0, help="""
Seconds for which an instance and its migrations must have been unchanged before the allocations of
the instance are repaired.

By default, a minute.

Raise it where a single step at the end of a migration takes Nova longer than a minute. Lower it in
tests only: with a low value, the allocations of a migration in progress may be repaired.

Related options: ``reconcile_interval``.
"""),
    cfg.FloatOpt('task_timeout', default=60.0, min=5.0, help="""
Seconds without a heartbeat after which a nova-conductor worker counts as dead while it prepares a
live migration. The claims that were made for the migration are then released, and the instance can
be moved again. The time is five times as long if the worker may already have sent the request for
the migration to the source host. If a worker that counts as dead is still alive, the worker does
not start the migration.

By default, a minute.

Raise it where busy nova-conductors are delayed for longer than a minute, or where the clocks of
controllers differ by more than a minute. Lower it where instances should be movable again sooner
after a crash.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
