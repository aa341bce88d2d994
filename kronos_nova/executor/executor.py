"""A worker that accepts moves and carries out their steps."""

import datetime
import threading
from collections.abc import Callable
from concurrent import futures

from oslo_context import context as oslo_context
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova.db import engine as db_engine
from kronos_nova.executor import liveness
from kronos_nova.executor.options import ExecutorOptions
from kronos_nova.executor.ports import ExecutorPorts
from kronos_nova.executor.runner import Runner
from kronos_nova.objects.move import IN_FLIGHT
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.move import request_id

LOG = logging.getLogger(__name__)

FORGOTTEN_AFTER = datetime.timedelta(hours=1)
"""Time (1 hour) for which a dead process stays in the list of workers that commands show. Raised,
the list has more dead processes; lowered, an operator may not notice that a process died. Not
measured."""


class Executor:
    """The executor of one worker, which accepts moves and carries out their steps.

    :param executor_ports: ExecutorPorts
    :param runner: Runner
    :param pool: concurrent.futures.Executor that runs the steps, so that a slow answer of Nova
        delays one move and not all
    """

    def __init__(self, executor_ports: ExecutorPorts, runner: Runner, pool: futures.Executor,
                 options: ExecutorOptions):
        self.executor_ports = executor_ports
        self.journal = executor_ports.journal
        self.runner = runner
        self.pool = pool
        self.options = options
        self._busy: set[str] = set()
        self._is_retired = False
        self._said_at: datetime.datetime | None = None
        self._lock = threading.Lock()
        self._liveness = liveness.Liveness(executor_ports.seconds)

    def accept(self, move_uuid: str) -> None:
        """Accept a dispatched move, unless another worker has accepted it. A repeated call changes
        nothing. After :meth:`retire`, no move is accepted; the dispatcher sends the move again."""
        if self._is_retired or not self._reserve(move_uuid):
            return
        move = None
        try:
            move = self.journal.claim(move_uuid, self.executor_ports.utcnow())
        except db_exc.DBError as e:
            LOG.warning('Move %s is not accepted now, because the control database does not '
                        'answer; the move is sent again later: %s', move_uuid,
                        db_engine.first_line(e))
        if move is not None:
            try:
                self.pool.submit(self._step, move_uuid, lambda _uuid: move)
                return
            except RuntimeError:  # the pool was shut down after the check above
                self.journal.retire(self.executor_ports.utcnow())
        LOG.debug('Move %s is not accepted: another worker has the move, or the move may '
                  'not start now', move_uuid)
        self._release(move_uuid)

    def tick(self, adopts: bool = True) -> int:
        """Take the next step of every move of this worker.

        :param adopts: whether to take over moves of workers that died
        :returns: number of moves of this worker
        :raises DBError: the journal cannot be reached; no step was begun
        """
        now = self._said_at = self.executor_ports.utcnow()
        self.journal.heartbeat(now)
        if adopts and self.executor_ports.is_clock_right():
            self._adopt(now)
        mine = self.journal.mine()
        for move in mine:
            if self._reserve(move.uuid):
                self.pool.submit(self._step, move.uuid, self.journal.move)
        return len(mine)

    def _adopt(self, now: datetime.datetime) -> None:
        """Take over the moves in progress of workers that died. This includes moves of other
        aggregates, because an aggregate may have been removed from the scope of all workers."""
        owners = self.journal.owners()
        signs = {name: sign for name, sign in owners.items() if name is not None}
        silent: dict[str | None, datetime.datetime | None] = {
            name: sign for name, sign in self._liveness.silent(
                signs, self.options.worker_timeout).items()}
        if None in owners:
            silent[None] = None
        if silent:
            for move in self.journal.adopt(now, silent):
                LOG.warning('This worker continues move %s of instance %s: the worker that had the '
                            'move has shown no sign of life for %.0f s, or has ended', move.uuid,
                            move.instance_uuid, self.options.worker_timeout)
                self.runner.forget(move.uuid)

    def idle(self) -> None:
        """Record a sign of life of this worker, and delete the records of processes that died long
        ago. Nothing is recorded or deleted if the last sign of life is younger than a third of
        ``worker_timeout``.

        This method is called while no plan is open. During that time, signs of life may be rare,
        because only commands that list workers read them.

        :raises DBError: the journal cannot be reached
        """
        now = self.executor_ports.utcnow()
        if self._said_at is None or now - self._said_at >= datetime.timedelta(
                seconds=self.options.worker_timeout / 3):
            self.journal.heartbeat(now)
            self.journal.forget_workers(now - FORGOTTEN_AFTER)
            self._said_at = now

    def retire(self) -> None:
        """Stop this worker, and leave its moves to other workers."""
        self._is_retired = True
        self.pool.shutdown(wait=True)
        self.journal.retire(self.executor_ports.utcnow())

    def _reserve(self, move_uuid: str) -> bool:
        """Reserve a move for one thread of this process, until the move is released. Return True if
        the move is reserved, False if another thread has reserved the move."""
        with self._lock:
            if move_uuid in self._busy:
                return False
            self._busy.add(move_uuid)
            return True

    def _release(self, move_uuid: str) -> None:
        with self._lock:
            self._busy.discard(move_uuid)

    def _step(self, move_uuid: str, read: Callable[[str], MoveRecord]) -> None:
        """Carry out the next step of a move. The step depends on the state of the move in the
        journal.

        :param read: called with ``move_uuid``; returns the MoveRecord
        """
        # Until the next step in this thread, log lines, including Nova's, are about this move.
        oslo_context.RequestContext(request_id=request_id(move_uuid),
                                    global_request_id=request_id(move_uuid))
        try:
            move = read(move_uuid)
            if move.owner == self.journal.worker and move.state in IN_FLIGHT:
                self.runner.step(move)
        except db_exc.DBError as e:
            LOG.warning('Move %s waits, because the control database does not answer: %s',
                        move_uuid, db_engine.first_line(e))
        except Exception:
            LOG.exception('A step of move %s failed because of an unexpected error; the step is '
                          'repeated soon', move_uuid)
        finally:
            self._release(move_uuid)
