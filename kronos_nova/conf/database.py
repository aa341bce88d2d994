"""``[kronos_database]``: where plans, moves, cooldowns and quarantines are kept."""

import copy
from collections.abc import Sequence

from oslo_config import cfg
from oslo_db import options

GROUP = cfg.OptGroup('kronos_database', title='Control database', help="""
Where plans, moves, cooldowns and quarantines are kept. Unset, ``connection`` is an SQLite file
under ``[DEFAULT] state_path``, which serves one controller; with several controllers use
MySQL/MariaDB or PostgreSQL. Of oslo.db's options ``max_retries`` and ``retry_interval`` are for
``kronos-manage db sync`` alone: all other requests fail at once where the database does not
answer, and the services ask again.
""")

OPTS = [
    cfg.IntOpt('plans_retention_days', mutable=True, default=90, min=0, help="""
Days for which a plan is kept after it has ended or was last seen, as a row of figures. It is kept
for as long as its moves in any case (``moves_retention_days``). 0 keeps plans for ever.
"""),
    cfg.IntOpt('moves_retention_days', mutable=True, default=90, min=0, help="""
Days for which a move is kept after it has ended: what became of it, why, and how long it took, with
the names of the servers that plans spoke of. Not less than ``[kronos] experience_window``, which
learns from them. 0 keeps moves for ever.
"""),
    cfg.IntOpt('events_retention_days', mutable=True, default=30, min=0, help="""
Days for which every step of a move is kept, with its time and reason ("kronos-manage move show").
There are about nine for each move. 0 keeps them for as long as the move.
"""),
    cfg.IntOpt('reports_retention_days', mutable=True, default=7, min=0, help="""
Days for which the report of a plan that has ended or was only observed is kept: its moves with
their reasons, and how many instances stayed and why. These are the largest rows by far: a cloud of
twenty aggregates in ``observe`` may write 20 MB a day. 0 keeps reports for as long as their plans.
"""),
    cfg.IntOpt('repairs_retention_days', mutable=True, default=365, min=0, help="""
Days for which a repair of allocations is kept. It can be undone for as long. 0 keeps repairs for
ever.
"""),
    cfg.IntOpt('quarantines_retention_days', mutable=True, default=7, min=0, help="""
Days for which a quarantine is kept after its end. One that only an operator ends is kept until
then. 0 keeps them for ever.
"""),
    cfg.IntOpt('tasks_retention_days', mutable=True, default=7, min=0, help="""
Days for which a live migration task whose conductor worker died is kept when it could not be ended,
as its source compute is down. 0 keeps it until that answers again.
"""),
    cfg.IntOpt('operations_retention_days', mutable=True, default=365, min=0, help="""
Days for which it is kept what operators did: who set which level or pause, when and why
("kronos-manage automation history"), drains whose hosts were released and maintenances that are
done. A drain is kept until its host is released, whatever its age. 0 keeps them for ever.
"""),
    cfg.IntOpt('notifications_retention_days', mutable=True, default=7, min=0, help="""
Days for which a notification is kept, sent or not: one that no broker took for so long is dropped.
0 keeps those that were sent for ever, and of the others ``[kronos] notification_backlog``.
"""),
    cfg.IntOpt('evaluations_retention_days', mutable=True, default=14, min=0, help="""
Days for which the imbalance that each evaluation found is kept; the page of ``kronos-api`` draws
it. A row of some hundred bytes for each aggregate and evaluation: twenty aggregates with an
``evaluation_interval`` of 300 make one MB a day. 0 keeps it for ever.
"""),
    cfg.IntOpt('sums_retention_days', mutable=True, default=731, min=0, help="""
Days for which sums of days are kept, for "kronos-manage report": moves that were dropped, and
minutes of hot hosts and of contention.

A row of some hundred bytes for each aggregate and day, and one for each aggregate, project and day
with moves: 20 aggregates and 300 moves a day make some 30 MB in two years. Raise it to compare
longer times. 0 keeps them for ever.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(list_opts(), group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return [*copy.deepcopy(options.database_opts), *OPTS]
