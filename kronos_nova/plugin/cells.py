"""Request contexts for work that no user requested, and queries to the databases of cells."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import TypeVar

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova.db.engine import first_line
from kronos_nova.plugin import outages
from kronos_nova.plugin.nova_types import CellMapping
from kronos_nova.plugin.nova_types import RequestContext

LOG = logging.getLogger(__name__)

R = TypeVar('R')

PATIENCE = 5
"""Maximum seconds to wait for the databases of cells to answer a query. The query is sent to all
cells at the same time. Cells that have not answered by then are left out of the result. Raised, a
worker waits longer for a cell that is down, and other workers may regard the worker as dead;
lowered, a slow cell is left out. Chosen well below the time limit of Nova itself for a connection,
which is more than a minute."""

USER_ID = 'kronos'
"""User id (no unit) in Nova's records of the migrations that Kronos requests. It must not be empty:
a migration record without a user and a project makes ``GET /os-migrations`` fail for all users."""


def admin_context() -> RequestContext:
    return nova_context.get_admin_context()


def request_context(global_request_id: str | None = None) -> RequestContext:
    """Return an admin's context for a request to Nova.

    Each context has a new request id, because Nova finds the instance action of a request by the
    request id. If a migration and the request to abort it had the same id, Nova would look for the
    migration's events in the action of the abort, and set the instance to ERROR.

    :param global_request_id: ``req-`` and the uuid of a move, which Nova passes from service to
        service; None if the request is not for a move
    """
    return nova_context.RequestContext(
        user_id=USER_ID, is_admin=True, roles=['admin'], global_request_id=global_request_id,
        # The context of log lines stays that of the thread, as in get_admin_context.
        overwrite=False)


def mappings(context: RequestContext) -> list[CellMapping]:
    """Return the CellMappings of all cells except cell0, whose instances are on no host."""
    return [cell for cell in objects.CellMappingList.get_all(context) if not cell.is_cell0()]


def name(mapping: CellMapping) -> str:
    return mapping.name or mapping.uuid


def answering(context: RequestContext, wanted: Sequence[CellMapping],
              patience: float = PATIENCE) -> tuple[list[CellMapping], list[CellMapping]]:
    """Divide cells into cells whose databases answer and cells whose databases do not answer.

    :returns: (cells that answer, cells that do not answer)
    """
    answers, silent = ask(context, wanted, _first_service, patience)
    return [cell for cell in wanted if cell.uuid in answers], silent


def ask(context: RequestContext, wanted: Sequence[CellMapping], read: Callable[[RequestContext], R],
        patience: float = PATIENCE) -> tuple[dict[str, R], list[CellMapping]]:
    """Read several cells in parallel. Cells that cannot be read are left out and named in the log,
    with the reason.

    :param wanted: CellMappings
    :param read: called with a context that is targeted at the cell
    :param patience: seconds for all cells together
    :returns: ({uuid of a cell that answered: result of ``read``}, the cells that could not be read)
    """
    answers = nova_context.scatter_gather_cells(context, wanted, patience, read)
    silent = [cell for cell in wanted
              if nova_context.is_cell_failure_sentinel(answers[cell.uuid])]
    for cell in silent:
        _log_unread(cell, answers[cell.uuid])
    return {cell.uuid: answers[cell.uuid] for cell in wanted if cell not in silent}, silent


def read_each(context: RequestContext, read: Callable[[RequestContext, CellMapping], R],
              patience: float = PATIENCE) -> Iterator[R]:
    """Read all cells one after the other, except cell0, and yield the result of each. Cells that
    cannot be read are left out and named in the log, with the reason. In contrast to :func:`ask`,
    only the first answer of a cell is limited in time.

    :param read: called with a context that is targeted at the cell, and the CellMapping
    :raises DBError, NovaException: the cells are not known, because the API database cannot be read
    """
    alive, _silent = answering(context, mappings(context), patience)
    for cell in alive:
        try:
            with nova_context.target_cell(context, cell) as cell_context:
                found = read(cell_context, cell)
        except (db_exc.DBError, nova_exception.NovaException) as error:
            _log_unread(cell, error)
        else:
            yield found


def _log_unread(cell: CellMapping, failure: object) -> None:
    """Log why a cell could not be read.

    :param failure: an exception; or Nova's sentinel for a cell that did not answer in time
    """
    if isinstance(failure, Exception) and not outages.is_outage(failure):
        LOG.warning('Cell %s could not be read: %s: %s. Until this is corrected, Kronos ignores '
                    'the hosts and instances there.', name(cell), type(failure).__name__,
                    first_line(failure))
    else:
        LOG.warning('The database of cell %s does not answer. Until the database answers, Kronos '
                    'ignores the hosts and instances there.', name(cell))


def _first_service(context: RequestContext) -> None:
    with main_db.get_context_manager(context).reader.using(context) as session:
        session.query(models.Service.id).limit(1).all()


def target_instance(context: RequestContext, uuid: str) -> bool:
    """Target the context at the instance's cell.

    :returns: True if the context was targeted; False if the instance has no cell, because it was
        never scheduled or is deleted
    """
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(context, uuid)
    except nova_exception.InstanceMappingNotFound:
        return False
    if mapping.cell_mapping is None:
        return False
    nova_context.set_target_cell(context, mapping.cell_mapping)
    return True


def target_host(context: RequestContext, host: str) -> bool:
    """Target the context at the cell of a compute host.

    :returns: True if the context was targeted; False if the host is mapped to no cell
    """
    try:
        mapping = objects.HostMapping.get_by_host(context, host)
    except nova_exception.HostMappingNotFound:
        return False
    if mapping.host != host:
        return False  # The database compares without case: COMPUTE1 is compute1.
    nova_context.set_target_cell(context, mapping.cell_mapping)
    return True
