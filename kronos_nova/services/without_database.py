"""Operations that work without the control database: to set a stop, and to end a stop that is not
in the database yet."""

from typing import NoReturn
from typing import cast

from oslo_config import cfg
from oslo_db import exception as db_exc

from kronos_client.contract import automation as contract
from kronos_client.contract import errors
from kronos_client.contract.base import Request
from kronos_client.contract.operation import Operation
from kronos_nova import boundary
from kronos_nova import clock
from kronos_nova.db.error_text import error_text
from kronos_nova.executor import pending_stops
from kronos_nova.objects import automation
from kronos_nova.operations import switching


class WithoutDatabase:
    """A client that is used while the control database does not answer. It has the interface of
    :class:`kronos_nova.services.in_process.InProcessClient`.

    :param who: the caller
    :param error: the error of the database
    """

    def __init__(self, conf: cfg.ConfigOpts, who: str, error: db_exc.DBError):
        self._conf = conf
        self._who = who
        self._error = error

    def call(self, operation: Operation, request: Request) -> NoReturn:
        """Run an operation without the control database, if this is possible. The method never
        returns: it always raises an exception, whose text is the result.

        :raises StopPending: the operation was a stop; the stop is in force, but is not in the
            database yet
        :raises Unreachable: the operation needs the control database. A request to end stops is
            carried out in part: stops that are not in the database yet are ended, and the text of
            the error lists these stops
        :raises KronosException: the operation is refused
        """
        # A request that the database would refuse in any case is refused here, too.
        if operation is contract.STOP and not isinstance(self._error, db_exc.DBDataError):
            self._stop(cast(contract.Stop, request))
        said = [error_text(self._error)]
        if operation is contract.RESUME:
            said = [*self._take_back(cast(contract.Resume, request)), *said]
        stops = pending_stops.for_conf(self._conf).read().values()
        raise errors.Unreachable(' '.join(
            said + [f'{stop.sentence}; the control database does not have it yet.'
                    for stop in stops])) from self._error

    def _stop(self, request: contract.Stop) -> NoReturn:
        problems = switching.stop_without_database(self._conf, automation.Switch(
            kind=automation.PAUSE, value='stop', aggregate=request.aggregate, set_by=self._who,
            set_at=clock.utcnow(), reason=boundary.remark(request.reason)), request.let_finish)
        raise errors.StopPending(' '.join([
            error_text(self._error), 'The stop is in force all the same: no move is started, and '
            'moves in progress are aborted as soon as the database answers.', *problems]))

    def _take_back(self, request: contract.Resume) -> list[str]:
        gone, problems = switching.resume_without_database(
            self._conf, request.aggregate, None if request.everyone else self._who)
        return [*(f'Taken back: {stop.sentence}.' for stop in gone), *problems]
