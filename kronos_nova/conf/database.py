"""``[kronos_database]``: the control database, with plans, moves, cooldowns and quarantines."""

import copy
from collections.abc import Sequence

from oslo_config import cfg
from oslo_db import options

GROUP = cfg.OptGroup('kronos_database', title='Control database', help="""
The control database, which has plans, moves, cooldowns and quarantines. Where ``connection`` is not
set, the database is an SQLite file in ``[DEFAULT] state_path``, which serves one controller; with
several controllers, use MySQL/MariaDB or PostgreSQL. oslo.db's options ``max_retries`` and
``retry_interval`` have an effect on ``kronos-manage db sync`` only: all other requests fail at once
while the database does not answer, and the services try again.
""")

OPTS = [
    cfg.IntOpt('plans_retention_days', mutable=True, default=90, min=0, help="""
Days for which the row of a plan is kept, from the end of the plan. A plan at level ``observe`` has
no end: its days count from the last evaluation that planned the same moves. A plan is kept at least
as long as its moves.

By default, 90 days. 0 keeps plans for ever.

Raise it to look further back. Lower it to save room in the control database.

Related options: ``moves_retention_days``, ``reports_retention_days``.
"""),
    cfg.IntOpt('moves_retention_days', mutable=True, default=90, min=0, help="""
Days for which a move is kept after it has ended: its result, reason and duration, with the names of
the servers of plans.

By default, 90 days. 0 keeps moves for ever.

Raise it to look further back. Lower it to save room in the control database, but not below
``[kronos] experience_window``, which learns from these moves.

Related options: ``plans_retention_days``, ``events_retention_days``, ``[kronos]
experience_window``.
"""),
    cfg.IntOpt('events_retention_days', mutable=True, default=30, min=0, help="""
Days for which every step of a move is kept, with its time and reason ("kronos-manage move show"). A
move has about nine steps.

By default, 30 days. 0 keeps them as long as the move.

Raise it to look further back. Lower it to save room in the control database.

Related options: ``moves_retention_days``.
"""),
    cfg.IntOpt('reports_retention_days', mutable=True, default=7, min=0, help="""
Days for which the report of a plan that has ended or was only observed is kept: its moves with
their reasons, and the number of instances that stayed for each reason. These are the largest rows
by far: a cloud of twenty aggregates in ``observe`` may write 20 MB a day.

By default, 7 days. 0 keeps reports as long as their plans.

Raise it to look further back. Lower it to save room in the control database.

Related options: ``plans_retention_days``.
"""),
    cfg.IntOpt('repairs_retention_days', mutable=True, default=365, min=0, help="""
Days for which a repair of allocations is kept. It can be undone only while it is kept.

By default, 365 days. 0 keeps repairs for ever.

Raise it where repairs may be questioned later. Lower it to save room in the control database.
"""),
    cfg.IntOpt('quarantines_retention_days', mutable=True, default=7, min=0, help="""
Days for which a quarantine is kept after its end. A quarantine without an end
(``instance_quarantine_seconds`` of -1) is kept until an operator ends it.

By default, 7 days. 0 keeps them for ever.

Raise it to look further back. Lower it to save room in the control database.

Related options: ``[kronos] instance_quarantine_seconds``.
"""),
    cfg.IntOpt('tasks_retention_days', mutable=True, default=7, min=0, help="""
Days for which the live migration task of a dead conductor worker is kept when it cannot be ended
because its source compute is down.

By default, 7 days. 0 keeps it until that compute answers again.

Raise it where compute hosts may be down for longer. Lower it where such hosts never come back.
"""),
    cfg.IntOpt('operations_retention_days', mutable=True, default=365, min=0, help="""
Days for which actions of operators are kept: levels and pauses with their author, time and reason
("kronos-manage automation history"), drains whose hosts were released, and maintenances that are
done. A drain is kept until its host is released, whatever its age.

By default, 365 days. 0 keeps them for ever.

Raise it where an audit looks further back. Lower it to save room in the control database.
"""),
    cfg.IntOpt('notifications_retention_days', mutable=True, default=7, min=0, help="""
Days for which a notification is kept, sent or not. One that no broker accepted in that time is
dropped.

By default, 7 days. 0 keeps sent notifications for ever; the number of unsent notifications is
limited by ``[kronos] notification_backlog``.

Raise it where a broker may be down for longer. Lower it to save room in the control database.

Related options: ``[kronos] notification_topics``, ``[kronos] notification_backlog``.
"""),
    cfg.IntOpt('evaluations_retention_days', mutable=True, default=14, min=0, help="""
Days for which the imbalance of each evaluation is kept. The page of ``kronos-api`` draws it. An
evaluation of an aggregate is a row of some hundred bytes: twenty aggregates with an
``evaluation_interval`` of 300 make one MB a day.

By default, 14 days. 0 keeps it for ever.

Raise it for longer charts. Lower it to save room in the control database.

Related options: ``[kronos] evaluation_interval``, ``[kronos] slot_flavors``.
"""),
    cfg.IntOpt('sums_retention_days', mutable=True, default=731, min=0, help="""
Days for which daily sums are kept for "kronos-manage report": moves, minutes of hot hosts and of
contention. There is a row of some hundred bytes for each aggregate and day, and one for each
aggregate, project and day with moves: 20 aggregates and 300 moves a day make some 30 MB in two
years.

By default, two years. 0 keeps them for ever.

Raise it to compare longer times. Lower it to save room in the control database.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(list_opts(), group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return [*copy.deepcopy(options.database_opts), *OPTS]
