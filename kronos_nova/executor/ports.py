"""What all parts of the executor work on."""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Collection

from kronos_nova.db.journal import Journal
from kronos_nova.db.memory import Cooldowns


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorPorts:
    """
    journal : of this worker
    utcnow : gives the time, UTC without a zone
    may_start : tells of an aggregate whether its moves may be started at a time
    aggregates : whose moves this process is for, the pool of unassigned hosts among them
    """

    journal: Journal
    cooldowns: Cooldowns
    utcnow: Callable[[], datetime.datetime]
    may_start: Callable[[str, datetime.datetime], bool]
    aggregates: Collection[str]
