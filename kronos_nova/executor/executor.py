"""Carries out moves: takes them from the journal, asks Nova, watches, verifies.

One :meth:`Executor.tick` does what can be done now and returns; nothing waits inside, and all that
is known is in the journal. So a process that dies between two ticks loses nothing: another adopts
its moves in the states they were left in.
"""

import dataclasses
import datetime
import random

from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.executor import compute as nova
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans

LOG = logging.getLogger(__name__)

BACKOFF_CEILING_SECONDS = 600


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``[kronos_executor]`` and what it needs of ``[kronos]``; durations in seconds."""

    caps: moves.Caps
    migration_timeout: float
    max_retries: int
    retry_interval: float
    request_grace: float
    worker_timeout: float
    stale_plan_age: float
    cooldown: float
    quarantine: float

    @classmethod
    def from_conf(cls, conf):
        group = conf.kronos_executor
        return cls(
            caps=moves.Caps(total=group.max_concurrent_migrations,
                            per_source=group.max_concurrent_per_source,
                            per_destination=group.max_concurrent_per_destination),
            migration_timeout=group.migration_timeout, max_retries=group.max_retries,
            retry_interval=group.retry_interval, request_grace=group.request_grace,
            worker_timeout=group.worker_timeout, stale_plan_age=group.stale_plan_age,
            cooldown=conf.kronos.cooldown, quarantine=conf.kronos.instance_quarantine_seconds)


class Executor:
    """One worker's share of the moves.

    :param journal: kronos_nova.db.journal.Journal of this worker
    :param compute: ComputeApi
    :param cooldowns: kronos_nova.db.memory.Cooldowns
    :param utcnow: callable that gives the time, UTC without a zone
    """

    def __init__(self, journal, compute, cooldowns, options, utcnow):
        self.journal = journal
        self.compute = compute
        self.cooldowns = cooldowns
        self.options = options
        self.utcnow = utcnow
        self._steps = {
            moves.DISPATCHED: self._check, moves.CHECKING: self._check, moves.CLAIMING: self._check,
            moves.MIGRATING: self._watch, moves.VERIFYING: self._verify,
        }

    def tick(self):
        """Do what can be done now.

        :returns: how many moves this worker has under way
        :raises DBError: the journal cannot be reached; nothing was begun
        """
        if not self.journal.aggregates_with_open_plans():
            return 0
        now = self.utcnow()
        self.journal.heartbeat(now)
        self.journal.adopt(now, now - _seconds(self.options.worker_timeout))
        self.journal.abandon(now, now - _seconds(self.options.stale_plan_age))
        for move in self.journal.mine():
            self._step(move)
        for move in self.journal.take(self.options.caps, self.utcnow()):
            self._step(move)
        for aggregate in self.journal.close_plans(self.utcnow()):
            self.cooldowns.cool('aggregate', [aggregate], self._in(self.options.cooldown))
        return len(self.journal.mine())

    def _step(self, move):
        try:
            self._steps[move.state](move)
        except exception.MoveLost as e:
            LOG.warning('%s Another worker thought that this one had died.', e)
        except exception.MoveError as e:
            self._fail(move, e.__class__.__name__, str(e))
        except db_exc.DBError:
            raise
        except Exception as e:
            LOG.exception('Move %s of instance %s failed in a way not foreseen', move.uuid,
                          move.instance_uuid)
            self._fail(move, e.__class__.__name__, str(e))

    def _check(self, move):
        """Pre-flight, then the request. The journal says MIGRATING before Nova is asked."""
        if move.abort_requested:
            self._end(move, moves.ABANDONED, detail='aborted by an operator before it began')
            return
        if move.state == moves.DISPATCHED:
            move = self.journal.advance(move.uuid, moves.CHECKING, self.utcnow())
        self._check_instance(move)
        self._check_services(move)
        now = self.utcnow()
        move = self.journal.advance(move.uuid, moves.MIGRATING, now, requested_at=now,
                                    migration_uuid=None)
        try:
            self.compute.live_migrate(move)
        except exception.NovaClientError as e:
            # Nova may have taken the request before the answer was lost: only watching can tell.
            LOG.warning('No answer to the request to move instance %s: %s', move.instance_uuid, e)

    def _check_instance(self, move):
        instance = self.compute.instance(move.instance_uuid)
        if instance is None:
            self._refuse(move, 'it does not exist any more')
        if instance.host != move.source:
            self._refuse(move, f'it is on {instance.host}, not on {move.source} any more')
        if instance.status != 'ACTIVE':
            self._refuse(move, f'it is {instance.status}, not ACTIVE')
        if instance.task_state:
            self._refuse(move, f'it is busy: {instance.task_state}')
        if instance.locked:
            self._refuse(move, 'it is locked')

    def _check_services(self, move):
        source, destination = self.compute.service(move.source), self.compute.service(
            move.destination)
        if destination is None or not destination.is_available:
            self._refuse(move, f'destination {move.destination} is not up and enabled')
        evacuates = move.phase == plans.EVACUATE and source is not None and source.is_evacuable
        if source is None or not (source.is_available or evacuates):
            self._refuse(move, f'source {move.source} is not up and enabled')

    def _refuse(self, move, reason):
        raise exception.PreFlightError(instance=move.instance_uuid, reason=reason)

    def _watch(self, move):
        """Follow the migration until Nova says how it ended."""
        try:
            migration = self.compute.migration(move)
            lost = migration is None and self._is_lost(move)
        except exception.NovaClientError as e:
            # Nova being silent says nothing about the migration: it is still under way.
            LOG.warning('Cannot see how instance %s fares: %s', move.instance_uuid, e)
            return
        if lost:
            raise exception.NovaClientError(
                instance=move.instance_uuid, reason='Nova took no notice of the request to move it')
        if migration is None:
            return
        if move.migration_uuid != migration.uuid:
            move = self.journal.advance(move.uuid, moves.MIGRATING, self.utcnow(),
                                        migration_uuid=migration.uuid)
        if migration.status in nova.SUCCEEDED:
            self._verify(self.journal.advance(move.uuid, moves.VERIFYING, self.utcnow()))
        elif migration.status in nova.FAILED:
            self._tell_failure(move, migration)
        elif move.abort_requested or self._is_overdue(move):
            self.compute.abort(move)

    def _is_lost(self, move):
        if self._age(move) < self.options.request_grace:
            return False
        instance = self.compute.instance(move.instance_uuid)
        return instance is None or not instance.task_state

    def _tell_failure(self, move, migration):
        if move.abort_requested:
            self._end(move, moves.ABANDONED, detail='aborted by an operator')
            return
        if self._is_overdue(move):
            raise exception.MigrationTimeout(
                instance=move.instance_uuid,
                reason=f'not done after {self.options.migration_timeout:.0f} s and aborted')
        fault = f': {migration.fault}' if migration.fault else ''
        if not migration.was_started:
            self._refuse(move, f'Nova refused to begin{fault}')
        raise exception.MigrationFailed(
            instance=move.instance_uuid, reason=f'its migration ended as {migration.status}{fault}')

    def _verify(self, move):
        """Believe neither status nor silence: the instance has to be there, and well."""
        try:
            instance = self.compute.instance(move.instance_uuid)
        except exception.NovaClientError as e:
            LOG.warning('Cannot see where instance %s is: %s', move.instance_uuid, e)
            return
        if instance is None:
            self._end(move, moves.COMPLETED, detail='moved, and deleted since')
        elif instance.task_state == 'migrating' and not self._is_overdue(move):
            return
        elif instance.host != move.destination:
            raise exception.MigrationFailed(
                instance=move.instance_uuid,
                reason=f'Nova says completed but it is on {instance.host}')
        elif instance.status != 'ACTIVE':
            raise exception.MigrationFailed(instance=move.instance_uuid,
                                            reason=f'it arrived but is {instance.status}')
        else:
            self._end(move, moves.COMPLETED)

    def _fail(self, move, error_type, error):
        if move.retry_count < self.options.max_retries and not move.abort_requested:
            wait = self.options.retry_interval * 2 ** move.retry_count * random.uniform(1, 1.5)
            self.journal.advance(
                move.uuid, moves.PLANNED, self.utcnow(), detail=f'{error_type}: {error}',
                owner=None, retry_count=move.retry_count + 1, error_type=error_type, error=error,
                not_before=self._in(min(wait, BACKOFF_CEILING_SECONDS)))
            return
        LOG.error('Moving instance %s from %s to %s failed for good: %s', move.instance_uuid,
                  move.source, move.destination, error)
        self._end(move, moves.FAILED, detail=f'{error_type}: {error}', error_type=error_type,
                  error=error)
        if error_type != exception.NovaClientError.__name__:
            self.cooldowns.quarantine(move.instance_uuid, self.options.quarantine,
                                      f'{error_type}: {error}', self.utcnow())

    def _end(self, move, state, detail='', **values):
        now = self.utcnow()
        self.journal.advance(move.uuid, state, now, detail=detail, finished_at=now, **values)

    def _age(self, move):
        return (self.utcnow() - move.requested_at).total_seconds()

    def _is_overdue(self, move):
        return self._age(move) > self.options.migration_timeout

    def _in(self, seconds):
        return self.utcnow() + _seconds(seconds)


def _seconds(value):
    return datetime.timedelta(seconds=value)
