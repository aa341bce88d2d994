"""Recent successful live migrations in Nova's records, including migrations that users
requested."""

import datetime
from collections.abc import Iterator

from nova import exception as nova_exception
from oslo_db import exception as db_exc

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.db.engine import first_line
from kronos_nova.objects import migration_status
from kronos_nova.plugin import cells
from kronos_nova.plugin import nova_tables
from kronos_nova.plugin.nova_types import Row


def past_moves(since: datetime.datetime) -> Iterator[PastMove]:
    """Yield a PastMove for each live migration that has succeeded since the time ``since``. Cells
    that cannot be read are left out and named in the log.

    :raises InventoryError: the cells are not known, because the API database cannot be read
    """
    try:
        for found in cells.read_each(cells.admin_context(), lambda context, _cell: (
                nova_tables.live_migrations(context, (migration_status.COMPLETED,), since))):
            yield from map(_past_move, found)
    except (db_exc.DBError, nova_exception.NovaException) as e:
        raise exception.InventoryError(problem=first_line(e)) from e


def _past_move(row: Row) -> PastMove:
    return PastMove(instance_uuid=row.instance_uuid, source=row.source_compute,
                    destination=row.dest_compute,
                    ended_at=clock.aware(row.updated_at).timestamp())
