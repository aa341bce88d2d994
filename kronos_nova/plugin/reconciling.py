"""The reconciler in nova-conductor workers, which repairs allocations that moves left behind. Only
one worker reconciles at a time, in short steps."""

import datetime
import time
from collections.abc import Iterator

from oslo_config import cfg
from oslo_utils import timeutils

from kronos_nova.db import leases as db_leases
from kronos_nova.db.tasks import Tasks
from kronos_nova.placement import audit
from kronos_nova.placement import heal
from kronos_nova.placement import reconcile
from kronos_nova.placement.client import PlacementClient
from kronos_nova.plugin import nova_records

BEAT_SECONDS = 5
"""Seconds between two heartbeats of a nova-conductor worker. After a heartbeat, the worker may
repair allocations that moves left behind. Raised, other workers notice later that this worker has
died; lowered, the database has more writes. Not measured."""
SILENCE_SECONDS = 20
"""Seconds between two heartbeats of a nova-conductor worker above which the worker regards itself
as delayed. The worker then assumes that all workers were delayed, for example by the database. So
it waits before it treats any other worker as dead. Raised, the worker does not notice some delays,
and may treat workers as dead that were only delayed; lowered, the worker waits although its
heartbeat was only a little late. Chosen as several times the interval between heartbeats
(:data:`BEAT_SECONDS`)."""
LEASE_SECONDS = 60
"""Seconds for which a nova-conductor worker has the lease to repair allocations, unless the worker
renews the lease. Only the worker with the lease repairs allocations. Raised, another worker takes
over later after a crash of the worker with the lease; lowered, two workers may repair at the same
time. Not measured."""
BUDGET_SECONDS = 0.5
"""Maximum seconds for which a nova-conductor worker repairs allocations between two heartbeats.
Raised, RPCs wait longer, and the worker may count as dead; lowered, allocations are repaired later.
Chosen as a tenth of the interval between heartbeats (:data:`BEAT_SECONDS`)."""
PAUSE_SECONDS = 0.005
"""Seconds of the pause after each instance whose allocations were compared with Nova's records.
During the pause, nova-conductor handles RPCs. Raised, allocations are repaired later; lowered, RPCs
wait longer. Not measured."""
OVERLAP_SECONDS = 300
"""Seconds by which a search for changed instances overlaps the previous search. A search looks back
to the start of the previous search, less this number of seconds, and less the seconds of the option
``grace``. The seconds of ``grace`` are needed because the previous search ignored changes that were
younger than ``grace``. Raised, more instances are examined twice; lowered, a migration may be
missed if clocks differ. Not measured."""


class Reconciling:
    """The repair of allocations that moves left behind, in one conductor worker. :meth:`tick` is
    called every BEAT_SECONDS."""

    def __init__(self, conf: cfg.ConfigOpts, client: PlacementClient, journal: heal.RepairJournal,
                 tasks: Tasks, leases: db_leases.Leases):
        """Create the reconciler of this worker.

        :raises PlacementError: placement cannot be reached, or is too old
        """
        client.negotiate()
        self._options = conf.kronos_allocations
        self._tasks = tasks
        self._leases = leases
        self._reconciler = reconcile.Reconciler(
            client=client, nova=nova_records.CellRecords(client), journal=journal, tasks=tasks,
            limits=audit.AuditLimits(grace=self._options.grace),
            task_timeout=self._options.task_timeout, clock=leases.clock)
        self._next = 0.0
        self._work: Iterator[heal.Outcome | None] | None = None
        self._begun_at: datetime.datetime    # set when a run begins
        self._beaten = timeutils.now()

    def tick(self) -> None:
        """Record a heartbeat of this worker. Reconcile recent migrations if this is due and no
        other worker reconciles.

        A worker without a recent heartbeat counts as dead. If this worker was delayed for more than
        :data:`SILENCE_SECONDS`, the other workers were probably delayed as well, and would wrongly
        count as dead. So the next run starts only after ``task_timeout``. Until then, the other
        workers can record a heartbeat.

        :raises PlacementError, InventoryError, DBError: the step failed; the next run examines the
            same changes again
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
        self._go_on(self._work, now)

    def _go_on(self, work: Iterator[heal.Outcome | None], now: float) -> None:
        """Reconcile instances until the time of this tick is used up.

        One run may take several ticks. Once all instances are reconciled, the time at which the run
        began is saved, and the next run examines changes since this time. If an instance has to be
        examined again, the time is not saved.
        """
        self._work = None
        for _outcome in work:
            if timeutils.now() - now > BUDGET_SECONDS:
                self._work = work
                return
            time.sleep(PAUSE_SECONDS)
        if not self._reconciler.unsettled:
            self._leases.advance(db_leases.RECONCILER, self._begun_at)

    def _window(self) -> float:
        """Return the age, in seconds, up to which migrations are examined in this run of the
        reconciler. This is the time since the last run of any worker began, plus the seconds of the
        option ``grace`` and of :data:`OVERLAP_SECONDS`, but at most ``reconcile_window``. If there
        was no run before, ``reconcile_window`` is returned."""
        last = self._leases.progress(db_leases.RECONCILER)
        if last is None:
            return self._options.reconcile_window
        since = self._leases.clock() - last + datetime.timedelta(
            seconds=self._options.grace + OVERLAP_SECONDS)
        return min(since.total_seconds(), self._options.reconcile_window)
