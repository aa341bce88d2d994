"""The live migrations that ended well of late, by Nova's records: whoever asked for them."""

import datetime

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.cooldown.memory import PastMove
from kronos_nova.objects import migration_status
from kronos_nova.plugin import cells


def past_moves(since):
    """PastMoves of every cell that answers.

    :param since: datetime, UTC without a zone
    :raises InventoryError: a database cannot be read
    """
    filters = {'migration_type': migration_status.LIVE, 'status': list(migration_status.SUCCEEDED),
               'changes-since': since.replace(tzinfo=datetime.UTC)}
    context = cells.admin_context()
    try:
        alive, _silent = cells.answering(context, cells.mappings(context))
        for cell in alive:
            with nova_context.target_cell(context, cell) as cell_context:
                for migration in objects.MigrationList.get_by_filters(cell_context, filters):
                    yield _past_move(migration)
    except (db_exc.DBError, nova_exception.NovaException) as e:
        raise exception.InventoryError(problem=str(e)) from e


def _past_move(migration):
    ended_at = migration.updated_at or migration.created_at
    return PastMove(instance_uuid=migration.instance_uuid, source=migration.source_compute,
                    destination=migration.dest_compute, ended_at=ended_at.timestamp())
