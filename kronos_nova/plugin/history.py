"""Recent successful live migrations in Nova's records, including migrations that users
requested."""


from nova import context as nova_context
from nova import exception as nova_exception
from oslo_db import exception as db_exc

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.db.engine import first_line
from kronos_nova.objects import migration_status
from kronos_nova.plugin import cells
from kronos_nova.plugin import nova_tables


def past_moves(since):
    """Yield a PastMove for each live migration that has succeeded since the time ``since``. Cells
    that do not answer are left out.

    :raises InventoryError: a database cannot be read
    """
    context = cells.admin_context()
    try:
        alive, _silent = cells.answering(context, cells.mappings(context))
        for cell in alive:
            with nova_context.target_cell(context, cell) as cell_context:
                for row in nova_tables.live_migrations(cell_context, migration_status.SUCCEEDED,
                                                       since):
                    yield _past_move(row)
    except (db_exc.DBError, nova_exception.NovaException) as e:
        raise exception.InventoryError(problem=first_line(e)) from e


def _past_move(row):
    return PastMove(instance_uuid=row.instance_uuid, source=row.source_compute,
                    destination=row.dest_compute,
                    ended_at=clock.aware(row.updated_at).timestamp())
