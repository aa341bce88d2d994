"""The dependencies that the classes of the executor share."""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Collection

from kronos_nova.db.cooldowns import Cooldowns
from kronos_nova.db.journal import Journal
from kronos_nova.executor.pending_stops import PendingStops
from kronos_nova.executor.permits import Permits


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorPorts:
    """The databases, clocks and rules that the parts of an executor use.

    journal : Journal of this worker
    utcnow : returns the time of the control database
    monotonic : returns seconds of this process's monotonic clock
    is_clock_right : returns whether this host's clock agrees with the clock of the control
        database. Only if it does, this worker takes over moves of dead workers
    permits : decides which moves may be started
    aggregates : names of the aggregates whose moves this process carries out, including the pool of
        unassigned hosts
    stops : PendingStops, the stops that are not in the control database yet
    """

    journal: Journal
    cooldowns: Cooldowns
    utcnow: Callable[[], datetime.datetime]
    permits: Permits
    aggregates: Collection[str]
    monotonic: Callable[[], float] | None = None
    is_clock_right: Callable[[], bool] = lambda: True
    stops: PendingStops = dataclasses.field(default_factory=PendingStops)

    def seconds(self) -> float:
        """Return the current time in seconds, for measuring intervals in this process. The clock is
        ``monotonic``, or ``utcnow`` if ``monotonic`` is None."""
        return self.monotonic() if self.monotonic else self.utcnow().timestamp()
