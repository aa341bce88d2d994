"""The reconciler in a conductor worker, a little at a time."""

from oslo_utils import timeutils

from kronos_nova.placement import audit
from kronos_nova.placement import reconcile
from kronos_nova.plugin import nova_records

BEAT_SECONDS = 5
# Longer than a tick may be late.
SILENCE_SECONDS = 20
# A tick leaves room for the next beat: a worker that does not beat counts as dead.
BUDGET_SECONDS = 3
# After its first look, how much further back than its last one a worker looks.
OVERLAP_SECONDS = 300


class Reconciling:
    """:meth:`tick` is called every BEAT_SECONDS."""

    def __init__(self, conf, client, journal, tasks):
        """:raises PlacementError: it cannot be reached, or is too old"""
        client.negotiate()
        self._options = conf.kronos_allocations
        self._tasks = tasks
        self._reconciler = reconcile.Reconciler(
            client=client, nova=nova_records.CellRecords(client), journal=journal, tasks=tasks,
            limits=audit.AuditLimits(grace=self._options.grace),
            task_timeout=self._options.task_timeout, clock=timeutils.utcnow)
        self._window = self._options.reconcile_window
        self._next = 0.0
        self._work = None
        self._beaten = timeutils.now()

    def tick(self):
        """Say that this worker lives, and look at recent migrations where that is due.

        Where this worker could not say so for a while, neither could the others: none of them is
        taken for dead before it had the time to say it again.

        :raises PlacementError, InventoryError, DBError: it is tried again, as far back
        """
        self._tasks.beat()
        now = timeutils.now()
        if now - self._beaten > SILENCE_SECONDS:
            self._next = max(self._next, now + self._options.task_timeout)
        self._beaten = now
        if self._work is None:
            if not self._options.reconcile_interval or now < self._next:
                return
            self._next = now + self._options.reconcile_interval
            self._work = self._reconciler.run(self._window)
        work, self._work = self._work, None
        for _outcome in work:
            if timeutils.now() - now > BUDGET_SECONDS:
                self._work = work
                return
        self._window = (self._options.reconcile_interval + self._options.grace + OVERLAP_SECONDS)
