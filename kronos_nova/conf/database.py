"""``[kronos_database]``: the control database, with plans, moves, cooldowns and quarantines."""

import copy
from collections.abc import Sequence

from oslo_config import cfg
from oslo_db import options

GROUP = cfg.OptGroup('kronos_database', title='Control database', help="""
The control database of Kronos, which stores plans, moves, cooldowns and quarantines. Without
``connection``, the database is an SQLite file in ``[DEFAULT] state_path``, which is sufficient for
one controller. With several controllers, use MySQL/MariaDB or PostgreSQL. The options
``max_retries`` and ``retry_interval`` of oslo.db affect only ``kronos-manage db sync``. All other
requests fail immediately while the database does not answer. The services of Kronos repeat these
requests later.
""")

OPTS = [
    cfg.IntOpt('plans_retention_days', mutable=True, default=90, min=0, help="""
Days for which a plan is kept in the control database after its end. A plan at level ``observe`` is
never carried out, so its days count from the last evaluation that found the same plan. A plan is
never deleted before its moves.

By default, 90 days. 0 keeps plans for ever.

Raise it to look further back. Lower it to save space in the control database.

Related options: ``moves_retention_days``, ``reports_retention_days``.
"""),
    cfg.IntOpt('moves_retention_days', mutable=True, default=90, min=0, help="""
Days for which a move is kept in the control database after its end, with its result, reason and
duration. The names of servers in plans are kept for the same time.

By default, 90 days. 0 keeps moves for ever.

Raise it to look further back. Lower it to save space in the control database, but not below
``[kronos] experience_window``: the costs of new moves are estimated from the moves within that
window.

Related options: ``plans_retention_days``, ``events_retention_days``, ``[kronos]
experience_window``.
"""),
    cfg.IntOpt('events_retention_days', mutable=True, default=30, min=0, help="""
Days for which an event of a move is kept in the control database, counted from the time of the
event. An event is a change of the move's state, with its time and reason ("kronos-manage move
show"). A move has about nine events.

By default, 30 days. 0 keeps the events as long as the move.

Raise it to look further back. Lower it to save space in the control database.

Related options: ``moves_retention_days``.
"""),
    cfg.IntOpt('reports_retention_days', mutable=True, default=7, min=0, help="""
Days for which the report of a plan is kept in the control database, counted from the last
evaluation that made the plan. The report of a plan that waits or runs is not deleted. A report
contains the moves of its plan with their reasons. It also contains the reasons for which instances
are not moved, each with the number of these instances. Reports are by far the largest rows: twenty
aggregates at level ``observe`` may write 20 MB a day.

By default, 7 days. 0 keeps reports as long as their plans.

Raise it to look further back. Lower it to save space in the control database.

Related options: ``plans_retention_days``.
"""),
    cfg.IntOpt('repairs_retention_days', mutable=True, default=365, min=0, help="""
Days for which the record of a repair of allocations is kept in the control database. A repair can
be undone only while its record is kept.

By default, 365 days. 0 keeps the records for ever.

Raise it where repairs may be questioned later. Lower it to save space in the control database.
"""),
    cfg.IntOpt('quarantines_retention_days', mutable=True, default=7, min=0, help="""
Days for which a quarantine is kept in the control database after its end. A quarantine without an
end (``instance_quarantine_seconds`` of -1) is kept until an operator ends it.

By default, 7 days. 0 keeps quarantines for ever.

Raise it to look further back. Lower it to save space in the control database.

Related options: ``[kronos] instance_quarantine_seconds``.
"""),
    cfg.IntOpt('tasks_retention_days', mutable=True, default=7, min=0, help="""
Days for which the record of a stuck live migration is kept in the control database. A live
migration is stuck if the nova-conductor worker that prepared the migration has died, and
nova-compute on the source host is down. Kronos can end the migration only once nova-compute answers
again, and needs the record for this.

By default, 7 days. 0 keeps the record until nova-compute answers again.

Raise it where compute hosts may be down for longer. Lower it where compute hosts that fail are not
repaired.
"""),
    cfg.IntOpt('operations_retention_days', mutable=True, default=365, min=0, help="""
Days for which the actions of operators are kept in the control database. The actions are drains,
maintenances, requests for room, changes of automation levels, and pauses of the automation. Changes
of levels and pauses are kept with author, time and reason ("kronos-manage automation history"). A
drain is kept at least until its host is released, and a maintenance at least until it is done.

By default, 365 days. 0 keeps the actions for ever.

Raise it where an audit looks further back. Lower it to save space in the control database.
"""),
    cfg.IntOpt('notifications_retention_days', mutable=True, default=7, min=0, help="""
Days for which a notification is kept in the control database, whether it was sent or not. A
notification that no broker has accepted in this time is lost.

By default, 7 days. 0 keeps sent notifications for ever; ``[kronos] notification_backlog`` limits
the number of unsent notifications.

Raise it where a broker may be down for longer. Lower it to save space in the control database.

Related options: ``[kronos] notification_topics``, ``[kronos] notification_backlog``.
"""),
    cfg.IntOpt('evaluations_retention_days', mutable=True, default=14, min=0, help="""
Days for which the result of each evaluation is kept in the control database: the imbalance of each
policy, and the numbers of servers that would still fit (``[kronos] slot_flavors``). The page of
``kronos-api`` shows charts of these figures. Each evaluation of an aggregate adds a row of a few
hundred bytes. Twenty aggregates with an ``evaluation_interval`` of 300 add one MB a day.

By default, 14 days. 0 keeps the results for ever.

Raise it for longer charts. Lower it to save space in the control database.

Related options: ``[kronos] evaluation_interval``, ``[kronos] slot_flavors``.
"""),
    cfg.IntOpt('sums_retention_days', mutable=True, default=731, min=0, help="""
Days for which daily sums for "kronos-manage report" are kept in the control database. The sums are
the number of moves, the minutes for which hosts had a load above 0.9, and the minutes that servers
spent on full hosts (with a load of 1 or more). A row has a few hundred bytes. There is one row for
each aggregate and day, and one row for each aggregate, project and day with moves. 20 aggregates
with together 300 moves a day add some 30 MB in two years.

By default, 731 days, which is two years. 0 keeps the sums for ever.

Raise it to compare longer times. Lower it to save space in the control database.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(list_opts(), group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return [*copy.deepcopy(options.database_opts), *OPTS]
