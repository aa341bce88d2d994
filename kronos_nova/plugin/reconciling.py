"""The reconciler in conductor workers: one of all of them looks, a little at a time."""

import datetime
import time

from oslo_utils import timeutils

from kronos_nova.db import leases as db_leases
from kronos_nova.placement import audit
from kronos_nova.placement import reconcile
from kronos_nova.plugin import nova_records

BEAT_SECONDS = 5
# Longer than a tick may be late.
SILENCE_SECONDS = 20
# For how long the others leave the looking to a worker that says nothing.
LEASE_SECONDS = 60
# A tenth of the time between two ticks: the rest is for RPC, and a worker that does not beat in
# time counts as dead.
BUDGET_SECONDS = 0.5
# Between two instances, in which other threads get the interpreter.
PAUSE_SECONDS = 0.005
# How much further back than the last look began the next one goes.
OVERLAP_SECONDS = 300


class Reconciling:
    """:meth:`tick` is called every BEAT_SECONDS."""

    def __init__(self, conf, client, journal, tasks, leases):
        """:raises PlacementError: it cannot be reached, or is too old"""
        client.negotiate()
        self._options = conf.kronos_allocations
        self._tasks = tasks
        self._leases = leases
        self._reconciler = reconcile.Reconciler(
            client=client, nova=nova_records.CellRecords(client), journal=journal, tasks=tasks,
            limits=audit.AuditLimits(grace=self._options.grace),
            task_timeout=self._options.task_timeout, clock=leases.clock)
        self._next = 0.0
        self._work = self._begun_at = None
        self._beaten = timeutils.now()

    def tick(self):
        """Say that this worker lives, and look at recent migrations where that is due and no other
        worker does.

        Where this worker could not say so for a while, neither could the others: none of them is
        taken for dead before it had the time to say it again.

        :raises PlacementError, InventoryError, DBError: it is tried again, as far back
        """
        self._tasks.beat()
        now = timeutils.now()
        if now - self._beaten > SILENCE_SECONDS:
            self._next = max(self._next, now + self._options.task_timeout)
        self._beaten = now
        if self._work is None and (not self._options.reconcile_interval or now < self._next):
            return
        if not self._leases.hold(db_leases.RECONCILER, LEASE_SECONDS):
            self._work = None
            self._next = now + BEAT_SECONDS
            return
        if self._work is None:
            self._next = now + self._options.reconcile_interval
            self._begun_at = self._leases.clock()
            self._work = self._reconciler.run(self._window())
        self._go_on(now)

    def _go_on(self, now):
        """Examine some instances. When all were examined, the next run begins here, unless there is
        one that has to be examined again."""
        work, self._work = self._work, None
        for _outcome in work:
            if timeutils.now() - now > BUDGET_SECONDS:
                self._work = work
                return
            time.sleep(PAUSE_SECONDS)
        if not self._reconciler.unsettled:
            self._leases.advance(db_leases.RECONCILER, self._begun_at)

    def _window(self):
        """Seconds to look back: to where the last run of any worker began."""
        last = self._leases.progress(db_leases.RECONCILER)
        if last is None:
            return self._options.reconcile_window
        since = self._leases.clock() - last + datetime.timedelta(
            seconds=self._options.grace + OVERLAP_SECONDS)
        return min(since.total_seconds(), self._options.reconcile_window)
