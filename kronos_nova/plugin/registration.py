"""The record in the control database of a migration that this conductor worker prepares."""

import contextvars
from collections.abc import Callable
from types import TracebackType
from typing import Self

import oslo_messaging as messaging
from nova import exception as nova_exception
from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import uuidutils

from kronos_nova import exception
from kronos_nova.db.engine import first_line
from kronos_nova.db.tasks import Tasks
from kronos_nova.plugin import outages

LOG = logging.getLogger(__name__)


class Receipt:
    """A context manager around the handling of a request for a migration. Nova uses its databases
    before it calls the code that makes an :class:`Announcement`. If a database does not answer,
    Nova drops the request, and the task_state of the instance remains.

    If an outage ends the ``with`` block and :func:`close_receipt` was not called, the request is
    remembered. Once the control database answers, the request is recorded as a task of a dead
    worker. The reconciler, a periodic task of nova-conductor, then clears the task_state.

    :param make_tasks: callable that returns the Tasks in which the request is recorded
    """

    def __init__(self, make_tasks: Callable[[], Tasks], instance_uuid: str):
        self._make_tasks = make_tasks
        self._instance_uuid = instance_uuid
        self.is_closed = False

    def __enter__(self) -> Self:
        self._token = _receipt.set(self)
        return self

    def __exit__(self, _type: type[BaseException] | None, error: BaseException | None,
                 _traceback: TracebackType | None) -> None:
        _receipt.reset(self._token)
        # Nova has handled an ExpectedException, and has cleared the task_state.
        if (self.is_closed or not isinstance(error, Exception)
                or isinstance(error, messaging.ExpectedException)
                or not outages.is_outage(error)):
            return
        try:
            self._make_tasks().record_later(self._instance_uuid)
        except Exception as problem:  # Nova has to report the first error
            LOG.warning('The lost request for a migration of instance %s cannot be recorded: %s',
                        self._instance_uuid, first_line(problem))
            return
        LOG.warning('The request for a migration of instance %s is lost, because a service did not '
                    'answer: %s. Kronos clears the task_state of the instance after the outage.',
                    self._instance_uuid, first_line(error))


# The Receipt of the request that this thread handles.
_receipt: contextvars.ContextVar[Receipt | None] = contextvars.ContextVar('receipt', default=None)


def close_receipt() -> None:
    """Note that a later error does not lose the request that this thread handles. This is so if
    nova-compute may have the request, or if Nova or a task has the outcome."""
    receipt = _receipt.get()
    if receipt is not None:
        receipt.is_closed = True


class Announcement:
    """A context manager that records, while its ``with`` block runs, that this worker prepares the
    migration of an instance. The record is called a task. Other workers see from the task that they
    must not end the migration.

    If the control database does not answer when the block begins, the migration continues without a
    record. If this worker then dies, the reconcilers end the migration later.

    :param make_tasks: callable that returns the Tasks in which the migration is recorded
    :param kind: kind of migration, for the log
    """

    def __init__(self, make_tasks: Callable[[], Tasks], kind: str, instance_uuid: str):
        self._make_tasks = make_tasks
        self._kind = kind
        self._instance_uuid = instance_uuid
        self._uuids = [uuidutils.generate_uuid()]
        self._tasks: Tasks | None = None

    def __enter__(self) -> Self:
        try:
            tasks = self._make_tasks()
            tasks.announce(self._uuids[0], self._instance_uuid)
        except Exception as error:  # no error of the record is a reason not to migrate
            LOG.warning('The %s of instance %s cannot be recorded in the control database: %s. If '
                        'this conductor worker dies before it has sent the request to '
                        'nova-compute, Kronos ends the migration only after an hour.', self._kind,
                        self._instance_uuid, first_line(error))
        else:
            self._tasks = tasks
        return self

    def __exit__(self, _type: type[BaseException] | None, error: BaseException | None,
                 _traceback: TracebackType | None) -> None:
        if self._tasks is not None:
            self._end(self._tasks)

    def _end(self, tasks: Tasks) -> None:
        try:
            tasks.end(*self._uuids)
        except db_exc.DBError as e:
            LOG.warning('The record of the %s of instance %s in the control database could not be '
                        'deleted, and is deleted later: %s', self._kind, self._instance_uuid,
                        first_line(e))
            tasks.leave(*self._uuids)


class Registration(Announcement):
    """An Announcement of a live migration that also records how far the migration has come. The
    ``with`` block begins before Nova creates the Migration and ends after Nova's last write to the
    Migration.

    If the migration fails and Nova cannot save the failure, the record is kept, as if this worker
    had died. The reconciler, a periodic task of nova-conductor, then finds the record and ends the
    migration. If the migration failed because a service did not answer, and the source compute did
    not have the request yet, this outage is recorded for the executor as well.

    :param note_outage: callable that records for the executor that an outage ended the migration
    :ivar is_handed_over: whether the source compute may have the request
    """

    def __init__(self, make_tasks: Callable[[], Tasks], note_outage: Callable[[], None],
                 instance_uuid: str):
        super().__init__(make_tasks, 'live migration', instance_uuid)
        self._note_outage = note_outage
        self._error: Exception | None = None
        self.is_handed_over = False

    def __exit__(self, _type: type[BaseException] | None, error: BaseException | None,
                 _traceback: TracebackType | None) -> None:
        if self._tasks or self.is_handed_over or self._is_written_down(error):
            close_receipt()
        if self._tasks is None:
            return
        if not self._is_written_down(error):
            if outages.is_outage(error) and not self.is_handed_over:
                self.note_outage()
            LOG.warning('Nova could not record that the live migration of instance %s failed; '
                        'nova-conductor ends the migration later.', self._instance_uuid)
            self._tasks.leave(*self._uuids)
            return
        self._end(self._tasks)

    def fail(self, error: Exception) -> None:
        """Note the error with which Nova's live migration task ends. If the ``with`` block ends
        with this error or with a MigrationError, Nova has saved the failure itself, and this
        worker's record of the migration is deleted. After any other error, the record is kept, and
        nova-conductor ends the migration later."""
        self._error = error

    def _is_written_down(self, error: BaseException | None) -> bool:
        # Nova turns errors that it does not know into a MigrationError.
        return error is self._error or isinstance(error, nova_exception.MigrationError)

    def begin(self, migration_uuid: str) -> None:
        """Record the uuid of the migration.

        :raises TaskLost, DBError: this worker must not continue the migration
        """
        self._uuids.append(migration_uuid)
        self._go_on(lambda tasks: tasks.begin(self._uuids[0], migration_uuid))

    def hand_over(self) -> None:
        """Record that the request to the source compute is about to be sent.

        :raises TaskLost, DBError: this worker must not continue the migration
        """
        self._go_on(lambda tasks: tasks.hand_over(self._uuids[-1]))
        self.is_handed_over = True

    def note_outage(self) -> None:
        """Record for the executor that the migration fails because a service did not answer. If the
        control database does not answer either, this is only logged."""
        note_outage(self._note_outage, 'live migration', self._instance_uuid)

    def _go_on(self, step: Callable[[Tasks], bool]) -> None:
        if self._tasks is not None and not step(self._tasks):
            raise exception.TaskLost(instance=self._instance_uuid)


def note_outage(note: Callable[[], None], what: str, instance_uuid: str) -> None:
    """Record for the executor that an outage ended a migration. If the control database does not
    answer either, this is only logged.

    :param note: function that records the outage
    :param what: kind of migration, for the log
    """
    try:
        note()
    except (db_exc.DBError, exception.KronosException) as error:
        LOG.warning('The %s of instance %s failed because a service did not answer. This cause '
                    'could not be recorded in the control database: %s', what, instance_uuid,
                    first_line(error))
