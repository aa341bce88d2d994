"""``[kronos_allocations]``: mending what moves leave behind in placement."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_allocations', title='Allocations', help="""
Repair of allocations that crashed moves leave behind in placement: every conductor looks, from time
to time, at the migrations that changed lately, and gives allocations back to where their instance
runs. "kronos-manage allocations" does the same for everything else that may be wrong.
""")

OPTS = [
    cfg.IntOpt('reconcile_interval', default=60, min=0, help="""
Seconds between two looks at recent migrations; 0 to never look. One conductor worker of all looks,
and another takes over when it dies. Nothing is done either where
``[kronos] atomic_moves`` is ``off``.
"""),
    cfg.IntOpt('reconcile_window', default=86400, min=60, help="""
How many seconds a conductor looks back at most when it starts: as a rule to where the last look
began, whichever worker made it. Longer than any outage of your control plane after which moves
should be put right without an operator.
"""),
    cfg.FloatOpt('grace', default=60.0, min=0.0, help="""
Seconds that a migration and its instance must not have changed for before anything is concluded
from them. Longer than the slowest of Nova's steps at the end of a migration; lower it in tests
only.
"""),
    cfg.FloatOpt('task_timeout', default=60.0, min=5.0, help="""
Seconds without a sign of life after which the conductor worker that prepares a live migration
counts as dead. What it had claimed is given back and the instance is set free. Longer than your
conductors may be held up and their clocks may differ; a worker that was wrongly taken for dead
stops before it starts the migration.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
