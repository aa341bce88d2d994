"""The steps of one move: to check the instance and both hosts, to request the migration from Nova,
to follow the migration, and to check the result.

No step waits, and the whole state is in the journal. If a process dies between two steps, another
process continues in the state in which the move was left.
"""

import dataclasses
import datetime
import random
from collections.abc import Callable
from typing import Any
from typing import NoReturn

from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.db import engine as db_engine
from kronos_nova.db import shared_clock
from kronos_nova.drain import states as drains
from kronos_nova.executor import options
from kronos_nova.executor.compute import ComputeApi
from kronos_nova.executor.compute import InstanceState
from kronos_nova.executor.compute import MigrationState
from kronos_nova.executor.ports import ExecutorPorts
from kronos_nova.objects import eligibility
from kronos_nova.objects import migration_status
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.snapshot import Service

LOG = logging.getLogger(__name__)

BACKOFF_CEILING_SECONDS = 600
"""Maximum seconds before a failed move is tried again. The pause before each further try is about
twice the previous pause, up to this maximum. Raised, the move continues later after an outage of
Nova; lowered, an overloaded Nova gets more requests. Not measured."""

ABORT_AGAIN_SECONDS = 10
"""Seconds after which an accepted request to abort a live migration is sent again, because the
message to nova-compute may have been lost. The number is also used if an operator aborts a move for
which Nova has no migration yet. If Nova still has no migration this many seconds after the
beginning of the move, Kronos assumes that the request for the migration was lost. Raised, the
migration may run for longer after a lost message; lowered, nova-compute has to handle more repeated
requests. Not measured."""

CONFIRM_AGAIN_SECONDS = 300
"""Seconds after which a request to confirm a cold migration is sent again, because the message to
nova-compute may have been lost. Raised, the server waits longer for its confirmation after a lost
message; lowered, nova-compute has several requests for the same migration. Chosen above the 180
seconds for which nova-compute itself waits for other services."""

STATUSES = {drains.LIVE: eligibility.LIVE_STATUSES, drains.COLD: ('SHUTOFF',),
            drains.RESTART: ('ACTIVE',)}
"""Statuses (no unit) that an instance may have before a move, by kind of move."""

TO_CONFIRM = 'VERIFY_RESIZE'
"""Status of an instance whose cold migration waits to be confirmed."""

ERROR = 'ERROR'
"""Status (no unit) of an instance that an operator has to look at. Fixed by Nova."""

DELETING = 'deleting', 'soft-deleting'
"""Task states (no unit) of an instance that is being deleted. Fixed by Nova."""


@dataclasses.dataclass
class _Stopwatch:
    """The times of one try of a move, in seconds of this process's clock. ``began_at`` is the
    beginning of the try. ``forced_at`` is the time at which the migration was forced to complete;
    None before this. ``is_unanswered`` is true if Nova did not answer the request for the
    migration. Nova may then not have received the request."""

    began_at: float
    forced_at: float | None = None
    is_unanswered: bool = False


class Runner:
    """A runner that carries out the steps of moves.

    :param executor_ports: ExecutorPorts
    :param compute: ComputeApi
    :param announce: function that is called with the MoveRecord of every try that ended
    """

    def __init__(self, executor_ports: ExecutorPorts, compute: ComputeApi,
                 announce: Callable[[MoveRecord], None], options: options.ExecutorOptions):
        self.journal = executor_ports.journal
        self.utcnow = executor_ports.utcnow
        self.permits = executor_ports.permits
        self.aggregates = executor_ports.aggregates
        self.compute = compute
        self.announce = announce
        self.options = options
        self._seconds = executor_ports.seconds
        # {uuid of a move: when Nova accepted its abort}
        self._aborted_at: dict[str, float] = {}
        # {uuid of a move: when Nova was asked to confirm it}
        self._confirmed_at: dict[str, float] = {}
        # {uuid of a move: _Stopwatch of its try}
        self._clocks: dict[str, _Stopwatch] = {}
        self._steps = {
            moves.CHECKING: self._check, moves.CLAIMING: self._check,
            moves.MIGRATING: self._watch, moves.VERIFYING: self._verify,
        }

    def step(self, move: MoveRecord) -> None:
        """Take the next step of a move of this worker.

        :raises DBError: the journal cannot be reached; the next call continues from the state that
            Nova and the journal have
        """
        try:
            self._try(move)
        except exception.MoveLost as e:
            LOG.warning('%s Another worker regarded this worker as dead, and continues the move.',
                        e)

    def forget(self, move_uuid: str) -> None:
        """Delete the times that this worker has recorded for a move, such as the beginning of its
        try. Called when this worker adopts the move from another worker. Recorded times are then of
        an earlier try, which this worker made before the other worker had the move."""
        self._forget_requests(move_uuid)
        self._clocks.pop(move_uuid, None)

    def _try(self, move: MoveRecord) -> None:
        try:
            self._steps[move.state](move)
        except exception.PlanOutdated as e:
            self._drop(move.uuid, e)
        except exception.NovaUnavailable as e:
            self._postpone(move.uuid, e)
        except exception.MoveError as e:
            self._fail(move.uuid, e.error_type, str(e))
        except (db_exc.DBError, exception.JournalError):
            raise
        except Exception as e:
            LOG.exception('Move %s of instance %s failed because of an unexpected error',
                          move.uuid, move.instance_uuid)
            self._fail(move.uuid, e.__class__.__name__, db_engine.first_line(e))

    def _check(self, move: MoveRecord) -> None:
        """Check a move, and then request its migration from Nova. Before the request, the state of
        the move in the journal is set to MIGRATING."""
        if move.abort_requested:
            self._end(move, moves.ABANDONED, detail='aborted by an operator before it began')
            return
        if move.aggregate not in self.aggregates:
            self._give_back(move, 'its worker died, and this one carries out no moves of its '
                                  'aggregate')
            return
        instance = self.compute.instance(move.instance_uuid)
        if move.requested_at and instance and instance.host == move.destination:
            # Nova was slow: it has carried out the migration of an earlier try, which counted as
            # failed.
            self._verify(self.journal.advance(move, moves.VERIFYING, self.utcnow()))
            return
        self._check_instance(move, instance)
        self._check_services(move)
        if move.state == moves.CHECKING:
            move = self.journal.advance(move, moves.CLAIMING, self.utcnow())
        if move.kind == drains.LIVE:
            self.compute.hold_room(move)
        try:
            move = self._begin(move)
        except exception.MoveHeld as e:
            self._give_back(move, str(e))
            return
        LOG.info('Move %s is begun: instance %s from %s to %s (%s, %s, %d MiB)', move.uuid,
                 move.instance_uuid, move.source, move.destination, move.phase, move.kind,
                 move.memory_mb)
        try:
            if move.kind in drains.COLD_KINDS:
                self.compute.cold_migrate(move)
            else:
                self.compute.live_migrate(move)
        except exception.NovaClientError as e:
            # Nova may have accepted the request although its answer was lost: watching shows it.
            self._clock(move).is_unanswered = isinstance(e, exception.NovaUnavailable)
            LOG.warning('Nova did not answer the request to move instance %s, and may have begun '
                        'the migration nevertheless. Kronos looks for the migration: %s',
                        move.instance_uuid, e)

    def _begin(self, move: MoveRecord) -> MoveRecord:
        """Record that a move begins, if it is permitted to start now.

        :raises MoveHeld: the move is not permitted to start now
        """
        now, emptied = self.utcnow(), None if move.only_makes_room else move.source
        begun = self.journal.begin(
            move, now, lambda session, plan: self.permits.why_not(session, plan, emptied, now),
            requested_at=now, migration_uuid=None, forced_at=None, memory_total=None,
            memory_remaining=None, memory_processed=None, outage=False, adopted=False)
        # Seconds are taken from a monotonic clock here already, because utcnow may step.
        self._clocks[move.uuid] = _Stopwatch(began_at=self._seconds())
        return begun

    def _give_back(self, move: MoveRecord, why: str) -> None:
        """Put an accepted move back into the queue, because it is not permitted to start now."""
        LOG.info('Move %s of instance %s waits: %s', move.uuid, move.instance_uuid, why)
        self.compute.release_room(move, has_moved=False)
        self.journal.advance(move, moves.PLANNED, self.utcnow(), detail=why, owner=None)

    def _check_instance(self, move: MoveRecord, instance: InstanceState | None) -> None:
        if instance is None:
            self._outdate(move, 'it does not exist any more')
        if instance.host != move.source:
            self._outdate(move, f'it is on {instance.host}, not on {move.source} any more')
        if instance.status not in STATUSES[move.kind]:
            self._outdate(move, f'it is {instance.status}, not {" or ".join(STATUSES[move.kind])}')
        if instance.task_state:
            self._outdate(move, f'it is busy: {instance.task_state}')
        # A tenant's lock does not keep a server on a host that is emptied, unless the move
        # interrupts the server. A locked server of another host makes no room for it.
        if instance.locked and (move.phase != plans.EVACUATE or move.only_makes_room
                                or move.kind == drains.RESTART):
            self._outdate(move, 'it is locked')

    def _check_services(self, move: MoveRecord) -> None:
        source = self._service(move, move.source)
        destination = self._service(move, move.destination)
        if destination is None or not destination.is_available:
            self._outdate(move, f'destination {move.destination} is not up and enabled')
        evacuates = move.phase == plans.EVACUATE and source is not None and source.is_evacuable
        if source is None or not (source.is_available or evacuates):
            self._outdate(move, f'source {move.source} is not up and enabled')

    def _service(self, move: MoveRecord, host: str) -> Service | None:
        """Return the nova-compute service of a host.

        :raises NovaUnavailable: the nova-compute of the host does not report; the instance is not
            the cause
        """
        service = self.compute.service(host)
        # is_silent does not cover disabled hosts, but a host that is emptied has to report too.
        is_emptied = move.phase == plans.EVACUATE and host == move.source
        if service is not None and (
                service.is_silent or is_emptied and service.has_stopped_reporting):
            raise exception.NovaUnavailable(instance=move.instance_uuid,
                                            reason=f'nova-compute on {host} does not report')
        return service

    def _outdate(self, move: MoveRecord, reason: str) -> NoReturn:
        raise exception.PlanOutdated(instance=move.instance_uuid, reason=reason)

    def _refuse(self, move: MoveRecord, reason: str) -> NoReturn:
        raise exception.PreFlightError(instance=move.instance_uuid, reason=reason)

    def _watch(self, move: MoveRecord) -> None:
        """Read the state of a move's migration, and record its progress. If the migration has
        ended, check its result. If an operator has requested an abort, abort the migration. If the
        migration takes too long, abort it or force it to complete."""
        try:
            migration = self.compute.migration(move)
            lost = migration is None and self._is_lost(move)
        except exception.NovaClientError as e:
            # A Nova that does not answer says nothing about the migration, which still runs.
            LOG.warning('The state of the migration of instance %s cannot be read now, and is read '
                        'again soon: %s', move.instance_uuid, e)
            return
        if migration is None:
            self._wait_for_it(move, lost)
            return
        if _has_succeeded(move, migration):
            copied: dict[str, Any] = {} if migration.memory_processed is None else {
                'memory_processed': migration.memory_processed}
            self._verify(self.journal.advance(move, moves.VERIFYING, self.utcnow(),
                                              migration_uuid=migration.uuid, **copied))
            return
        if migration.status == migration_status.EVACUATED:
            self._outdate(move, 'it was evacuated while it was moved')
        move = self._record_progress(move, migration)
        if move.kind in drains.COLD_KINDS:
            self._watch_cold(move, migration)
            return
        if migration.status in migration_status.FAILED:
            self._tell_failure(move, migration)
        elif self._is_hopeless(move):
            self._give_up(move, 'Nova neither ends nor aborts it')
        elif move.abort_requested:
            self._abort(move, migration)
        elif self._is_overdue(move):
            self._hurry(move, migration)

    def _watch_cold(self, move: MoveRecord, migration: MigrationState) -> None:
        """Follow a cold migration. A cold migration can be neither aborted nor forced, and ends
        when it is confirmed."""
        if migration.status in migration_status.FAILED:
            self._tell_failure(move, migration)
        elif migration.status == migration_status.REVERTED:
            self._end(move, moves.ABANDONED,
                      detail='its cold migration was reverted through Nova, which was a decision')
        elif migration.status == migration_status.FINISHED:
            self._ask(self._confirm, move)
        elif self._is_hopeless(move):
            self._give_up(move, 'Nova does not end its cold migration')
        elif migration.status == migration_status.CONFIRMING:
            asked_at = self._confirmed_at.setdefault(move.uuid, self._seconds())
            if self._seconds() - asked_at >= CONFIRM_AGAIN_SECONDS:
                self._ask(self._confirm, move)

    def _confirm(self, move: MoveRecord) -> None:
        """Ask Nova to confirm a cold migration, and note the time. The request is repeated after
        :data:`CONFIRM_AGAIN_SECONDS` if the migration is still not confirmed."""
        self._confirmed_at[move.uuid] = self._seconds()
        self.compute.confirm(move)

    def _give_up(self, move: MoveRecord, why: str) -> None:
        """End a move as failed, because Nova does not end its migration. The error in the journal
        is MigrationTimeout. There is one exception: if nova-compute on the source or the
        destination does not report, the instance is not the cause, and the error is
        NovaClientError.

        :param why: text about the reason, for the journal
        """
        try:
            silent = [host for host in (move.source, move.destination)
                      if (service := self.compute.service(host)) and service.has_stopped_reporting]
        except exception.NovaClientError as e:
            LOG.warning('The hosts of move %s of instance %s cannot be read now, and are read '
                        'again soon: %s', move.uuid, move.instance_uuid, e)
            return
        error_type = exception.MigrationTimeout.__name__
        if silent:
            error_type = exception.NovaClientError.__name__
            why = f'{why}: nova-compute on {" and ".join(silent)} does not report'
        self._fail(move.uuid, error_type, why, may_be_tried_again=False)

    def _wait_for_it(self, move: MoveRecord, lost: bool) -> None:
        """Handle a move for which Nova has no record of a migration. Leave the move unchanged, to
        wait for the record. End the try of the move if the wait takes too long, or if Nova has lost
        the request.

        :param lost: whether Nova has lost the request for the migration
        """
        if lost and move.abort_requested:
            self._end(move, moves.ABANDONED, detail='aborted by an operator; Nova had no migration')
            return
        if lost and self._clock(move).is_unanswered:
            raise exception.NovaUnavailable(
                instance=move.instance_uuid,
                reason='Nova did not answer the request, and did not begin the migration')
        if lost:
            raise exception.NovaClientError(
                instance=move.instance_uuid, reason='Nova did not begin the requested migration')
        if self._is_hopeless(move):
            self._give_up(move, 'Nova marked it as migrating and never began')

    def _record_progress(self, move: MoveRecord, migration: MigrationState) -> MoveRecord:
        """Save the uuid and the progress of the migration in the journal, and return the move."""
        seen: dict[str, Any] = {
                'migration_uuid': migration.uuid, 'memory_total': migration.memory_total,
                'memory_remaining': migration.memory_remaining,
                'memory_processed': migration.memory_processed}
        if all(getattr(move, name) == value for name, value in seen.items()):
            return move
        return self.journal.advance(move, moves.MIGRATING, self.utcnow(), **seen)

    def _hurry(self, move: MoveRecord, migration: MigrationState) -> None:
        """Abort a migration that takes too long, or force it to complete. The option
        ``timeout_action`` decides which. A forced migration that still takes too long is
        aborted."""
        if self.options.timeout_action == options.ABORT or self._was_forced_in_vain(move):
            self._abort(move, migration)
        elif move.forced_at is None:
            self._ask(self._force, move)

    def _force(self, move: MoveRecord) -> None:
        """Ask Nova to force a migration to complete. If Nova accepts, record the time. Nova refuses
        before the copy of the guest's memory has begun, and is asked again later.

        The time is recorded only after the request. If it were recorded first, and this process
        died before the request, the request would never be made. A repeated request is harmless.
        """
        if self.compute.force_complete(move):
            now = self.utcnow()
            self.journal.advance(move, moves.MIGRATING, now, forced_at=now)
            self._clock(move).forced_at = self._seconds()

    def _was_forced_in_vain(self, move: MoveRecord) -> bool:
        """Return True if forcing the migration to complete has not helped: more than
        ``migration_timeout`` seconds have passed since Nova accepted the request to force. If Nova
        has refused every such request, the seconds are counted from the first request."""
        times = self._clock(move)
        since = times.forced_at or times.began_at + self.options.migration_timeout
        return self._seconds() - since > self.options.migration_timeout

    def _abort(self, move: MoveRecord, migration: MigrationState) -> None:
        """Ask Nova to abort a migration. An accepted request is repeated after
        :data:`ABORT_AGAIN_SECONDS`, because it may have been lost. While nova-compute prepares the
        migration, the request is not repeated: nova-compute would refuse it, and carries out the
        first one after the preparation."""
        asked_at = self._aborted_at.get(move.uuid)
        if asked_at is None or (self._seconds() - asked_at >= ABORT_AGAIN_SECONDS
                                and migration.status != migration_status.PREPARING):
            self._ask(self._request_abort, move)

    def _request_abort(self, move: MoveRecord) -> None:
        if self.compute.abort(move):
            self._aborted_at[move.uuid] = self._seconds()

    @staticmethod
    def _ask(act: Callable[[MoveRecord], None], move: MoveRecord) -> None:
        """Send Nova a request about a move, by calling ``act``. If Nova does not answer, only log
        this, because the request is sent again later."""
        try:
            act(move)
        except exception.NovaClientError as e:
            LOG.warning('Nova did not answer a request about the migration of instance %s, which '
                        'is sent again: %s', move.instance_uuid, e)

    def _is_lost(self, move: MoveRecord) -> bool:
        instance = self._left(move)
        grace = ABORT_AGAIN_SECONDS if move.abort_requested else self.options.request_grace
        if self._lasted(move) < min(grace, self.options.request_grace):
            return False
        if not instance.task_state:
            return True
        return instance.task_state in migration_status.MARKED and self.compute.set_free(move)

    def _left(self, move: MoveRecord) -> InstanceState:
        """Return the instance of a move. Called when Nova reports no migration of the instance in
        progress.

        :raises PlanOutdated: the instance was deleted or is being deleted; Nova may have deleted
            the records of its migrations as well
        """
        instance = self.compute.instance(move.instance_uuid)
        if instance is None or instance.task_state in DELETING:
            self._outdate(move, 'it was deleted while it was moved')
        return instance

    def _tell_failure(self, move: MoveRecord, migration: MigrationState) -> None:
        if move.abort_requested:
            self._end(move, moves.ABANDONED, detail='aborted by an operator')
            return
        if migration.status == migration_status.CANCELLED and not self._has_aborted(move):
            self._end(move, moves.ABANDONED,
                      detail='its migration was aborted through Nova, which was a decision')
            return
        self._left(move)
        if migration.is_outage or self.journal.move(move.uuid).outage:
            raise exception.NovaUnavailable(
                instance=move.instance_uuid,
                reason=f'a service that Nova needs did not answer: {migration.fault}')
        if not migration.was_started:
            self._tell_refusal(move, migration)
        is_cold = move.kind in drains.COLD_KINDS
        if self._is_overdue(move) and not is_cold:
            raise exception.MigrationTimeout(
                instance=move.instance_uuid,
                reason=f'its migration was not done after {self.options.migration_timeout:.0f} s '
                       'and is aborted')
        fault = f': {migration.fault}' if migration.fault else ''
        raise exception.MigrationFailed(
            instance=move.instance_uuid,
            reason=f'its {"cold " if is_cold else ""}migration ended as {migration.status}{fault}')

    def _has_aborted(self, move: MoveRecord) -> bool:
        """Return True if a worker may have asked Nova to abort the migration of a move. This worker
        knows only its own requests. But every worker aborts a migration that exceeds its time
        limit. So the result is also True for every migration that has exceeded its limit."""
        return move.uuid in self._aborted_at or self._is_overdue(move)

    def _tell_refusal(self, move: MoveRecord, migration: MigrationState) -> None:
        for host in (move.source, move.destination):
            self._service(move, host)
        self._check_clocks(move, migration.fault)
        if not migration.fault:
            # The service that prepared the migration has died, which says nothing about the
            # instance.
            raise exception.NovaClientError(
                instance=move.instance_uuid,
                reason='Nova gave up its migration before the start, and reports no reason')
        self._refuse(move, f'Nova refused to begin the migration: {migration.fault}')

    def _check_clocks(self, move: MoveRecord, fault: str) -> None:
        """Raise an error if the clock of a controller is wrong. With a wrong clock, Nova may regard
        running services as down, and refuse a move only for this reason. The refusal then counts as
        an outage.

        :raises NovaUnavailable: a controller has a wrong clock
        """
        since = self.utcnow() - datetime.timedelta(seconds=self.options.worker_timeout)
        wrong = self.journal.skewed_workers(since, shared_clock.MOST_SKEW_SECONDS)
        if wrong:
            name, skew = wrong[0]
            raise exception.NovaUnavailable(
                instance=move.instance_uuid,
                reason='Nova refused to begin the migration, probably because the clock of '
                       f'{name} is {abs(skew):.0f} s {"ahead of" if skew > 0 else "behind"} that '
                       'of the control database, so that running services seem to be down: '
                       f'{fault}')

    def _verify(self, move: MoveRecord) -> None:
        """Check the result of a migration, and end the move. The move has succeeded if the instance
        has left the source and is not in ERROR, or if the instance was deleted. A cold migration
        first has to be confirmed.

        The move has also succeeded if the instance is not on the planned host, or has another
        status than before: a user has changed the instance after the migration. The status of the
        migration does not matter.

        :raises MigrationFailed: the move has not succeeded
        """
        try:
            instance = self.compute.instance(move.instance_uuid)
        except exception.NovaClientError as e:
            LOG.warning('The host of instance %s cannot be read after its migration, and is read '
                        'again soon: %s', move.instance_uuid, e)
            return
        is_unconfirmed = (instance is not None and move.kind in drains.COLD_KINDS
                          and instance.status == TO_CONFIRM)
        if instance is None:
            self._end(move, moves.COMPLETED, detail='moved, and deleted since')
        elif instance.task_state == 'migrating' and not self._is_overdue(move):
            return
        elif is_unconfirmed and not self._is_hopeless(move):
            self._ask(self._confirm, move)
        elif instance.host == move.source:
            raise exception.MigrationFailed(
                instance=move.instance_uuid,
                reason='Nova reports the migration as completed, but the instance is on '
                       f'{instance.host}')
        elif is_unconfirmed or instance.status == ERROR:
            raise exception.MigrationFailed(instance=move.instance_uuid,
                                            reason='it arrived at the destination, but its status '
                                                   f'is {instance.status}')
        elif instance.host != move.destination:
            self._end(move, moves.COMPLETED, detail=f'moved, and on {instance.host} since')
        else:
            self._end(move, moves.COMPLETED)

    def _fail(self, move_uuid: str, error_type: str, error: str,
              may_be_tried_again: bool = True) -> None:
        self._forget_requests(move_uuid)
        move = self.journal.move(move_uuid)
        self.compute.release_room(move, has_moved=False)
        detail = f'{error_type}: {error}'
        if (may_be_tried_again and move.retry_count < self.options.max_retries and
                not move.abort_requested):
            wait = min(self.options.retry_interval * 2 ** move.retry_count
                       * random.uniform(1, 1.5), BACKOFF_CEILING_SECONDS)
            LOG.info('Move %s of instance %s is tried again in %.0f s: %s', move.uuid,
                     move.instance_uuid, wait, error)
            self.announce(self.journal.advance(
                move, moves.PLANNED, self.utcnow(), detail=detail, owner=None,
                retry_count=move.retry_count + 1, error_type=error_type, error=error,
                not_before=self._in(wait)))
            return
        LOG.error('Move %s of instance %s from %s to %s failed for good: %s', move.uuid,
                  move.instance_uuid, move.source, move.destination, error)
        self._end(move, moves.FAILED, detail=detail, error_type=error_type, error=error)

    def _postpone(self, move_uuid: str, outage: exception.NovaUnavailable) -> None:
        """Put a move back into the queue for a while, because a service that the move needs does
        not answer. The interrupted try does not count towards ``max_retries``. A move that waits
        longer than ``stale_plan_age`` is given up."""
        self._forget_requests(move_uuid)
        move = self.journal.move(move_uuid)
        if move.abort_requested:
            self._end(move, moves.ABANDONED, detail='aborted by an operator')
            return
        self.compute.release_room(move, has_moved=False)
        self._clocks.pop(move_uuid, None)
        wait = min(self.options.retry_interval * random.uniform(1, 1.5), BACKOFF_CEILING_SECONDS)
        LOG.info('Move %s of instance %s is tried again in %.0f s, because a service does not '
                 'answer: %s',
                 move.uuid, move.instance_uuid, wait, outage)
        self.announce(self.journal.advance(
            move, moves.PLANNED, self.utcnow(), detail=f'waits: {outage}', owner=None,
            error_type=outage.error_type, error=str(outage), not_before=self._in(wait)))

    def _drop(self, move_uuid: str, outdated: exception.PlanOutdated) -> None:
        """Give up a move that is no longer needed. The move is recorded as abandoned. If an
        earlier try failed or was interrupted by an outage, the move is recorded as failed instead,
        unless its instance was deleted.
        """
        move = self.journal.move(move_uuid)
        if move.error_type is None or self._is_deleted(move):
            self._end(move, moves.ABANDONED, detail=str(outdated),
                      error_type=outdated.__class__.__name__, error=str(outdated))
        else:
            self._end(move, moves.FAILED, detail=f'not tried again: {outdated}')

    def _is_deleted(self, move: MoveRecord) -> bool:
        """Return whether the instance of a move was deleted. Return False if this is not known,
        because Nova does not answer."""
        try:
            return self.compute.instance(move.instance_uuid) is None
        except exception.NovaClientError:
            return False

    def _end(self, move: MoveRecord, state: str, detail: str = '', **values: Any) -> None:
        self._forget_requests(move.uuid)
        self.compute.release_room(move, has_moved=state == moves.COMPLETED)
        now = self.utcnow()
        ended = self.journal.advance(move, state, now, detail=detail, finished_at=now, **values)
        took = f' after {self._lasted(move):.0f} s' if move.requested_at else ''
        self._clocks.pop(move.uuid, None)
        why = f': {detail}' if detail else ''
        tries = f', at try {move.retry_count + 1}' if move.retry_count else ''
        LOG.info('Move %(move)s of instance %(instance)s from %(source)s to %(destination)s is '
                 '%(state)s%(after_seconds)s%(at_try)s%(because)s',
                 {'move': move.uuid, 'instance': move.instance_uuid, 'source': move.source,
                  'destination': move.destination, 'state': state, 'after_seconds': took,
                  'at_try': tries, 'because': why})
        self.announce(ended)

    def _forget_requests(self, move_uuid: str) -> None:
        """Forget the times of the requests to abort or confirm a migration, because the try of the
        move has ended."""
        self._aborted_at.pop(move_uuid, None)
        self._confirmed_at.pop(move_uuid, None)

    def _is_overdue(self, move: MoveRecord) -> bool:
        return self._lasted(move) > self.options.migration_timeout

    def _is_hopeless(self, move: MoveRecord) -> bool:
        """Return True if a try of a move has lasted so long that the executor gives it up. The
        limit includes the time that aborting the migration, or forcing it to complete, may take.
        Without the limit, a move would never end if nova-compute died during its migration or a
        message was lost."""
        tries = 2 if self.options.timeout_action == options.FORCE_COMPLETE else 1
        allowed = tries * self.options.migration_timeout + self.options.request_grace
        return self._lasted(move) > allowed

    def _lasted(self, move: MoveRecord) -> float:
        """Return the seconds since a try of the move began, by the clock of this process."""
        return self._seconds() - self._clock(move).began_at

    def _clock(self, move: MoveRecord) -> _Stopwatch:
        known = self._clocks.get(move.uuid)
        if known is None:
            known = self._clocks[move.uuid] = self._start_clock(move)
        if move.forced_at and known.forced_at is None:
            known.forced_at = self._seconds()
        return known

    def _start_clock(self, move: MoveRecord) -> _Stopwatch:
        """Return a _Stopwatch for a try that another worker began. The duration of the try so far
        is computed from the beginning of the try in the journal.

        The computed duration may be longer than any worker lets a try last. Then a clock is wrong,
        or no worker has run for a while, and the try gets its full time again.
        """
        passed = clock.seconds_between(move.requested_at, self.utcnow()) or 0.0
        allowed = (2 * self.options.migration_timeout + self.options.request_grace
                   + self.options.worker_timeout)
        if passed > allowed:
            passed = 0.0
        return _Stopwatch(began_at=self._seconds() - passed)

    def _in(self, seconds: float) -> datetime.datetime:
        return self.utcnow() + datetime.timedelta(seconds=seconds)


def _has_succeeded(move: MoveRecord, migration: MigrationState) -> bool:
    if move.kind in drains.COLD_KINDS:
        return migration.status == migration_status.CONFIRMED
    return migration.status == migration_status.COMPLETED
