"""``[kronos_allocations]``: repair of allocations that moves leave behind in placement."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_allocations', title='Allocations', help="""
Repair of allocations that crashed moves leave behind in placement. From time to time a
nova-conductor checks the migrations that changed lately, and corrects the allocations of each so
that they are on the host where the instance runs. "kronos-manage allocations" finds and repairs all
other wrong allocations.
""")

OPTS = [
    cfg.IntOpt('reconcile_interval', default=60, min=0, help="""
Seconds between two checks of recent migrations. One worker of all nova-conductors makes the checks,
and another takes over when it dies. Nothing is checked where ``[kronos] atomic_moves`` is ``off``.

By default, a minute. 0 turns the checks off.

Raise it where the database is busy. Lower it where the room that a broken migration occupies is
needed sooner.

Related options: ``reconcile_window``, ``grace``, ``[kronos] atomic_moves``.
"""),
    cfg.IntOpt('reconcile_window', default=86400, min=60, help="""
Maximum age, in seconds, of the last change of the migrations that a check covers. Usually a check
covers only the changes since shortly before the last check of any worker. The first check, and a
check after a long outage, go back as far as this option says.

By default, a day.

Set it longer than any outage of your control plane after which migrations should be repaired
without an operator. With a larger value, checks that go back so far take longer.

Related options: ``reconcile_interval``.
"""),
    cfg.FloatOpt('grace', default=60.0, min=0.0, help="""
Seconds that must have passed since the last change of a migration and of its instance before their
allocations are repaired.

By default, a minute.

Raise it where Nova takes longer for a step at the end of a migration. Lower it in tests only: the
allocations of a migration that is still in progress would be repaired.

Related options: ``reconcile_interval``.
"""),
    cfg.FloatOpt('task_timeout', default=60.0, min=5.0, help="""
Seconds without a sign of life after which the conductor worker that prepares a live migration
counts as dead. Its claims are then released, and the instance can be moved again. A worker that was
wrongly counted as dead stops before it starts the migration.

By default, a minute.

Raise it where conductors are delayed for longer, or where their clocks differ by more. Lower it
where instances should be movable again sooner after a crash.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
