"""What all parts of the executor work on."""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Collection

from kronos_nova.db.cooldowns import Cooldowns
from kronos_nova.db.journal import Journal
from kronos_nova.executor.permits import Permits


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorPorts:
    """
    journal : of this worker
    utcnow : gives the time
    permits : tells which moves may be started
    aggregates : whose moves this process is for, the pool of unassigned hosts among them
    """

    journal: Journal
    cooldowns: Cooldowns
    utcnow: Callable[[], datetime.datetime]
    permits: Permits
    aggregates: Collection[str]
