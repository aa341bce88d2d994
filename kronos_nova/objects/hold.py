"""Holds and their states. A hold is an operator's request for room for new servers, together with
the room that is kept for the request."""

import collections
import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import field

from kronos_nova.objects.shape import Shape

PROPOSED = 'proposed'
"""State of a request whose moves were shown to an operator, who has to approve them."""
REQUESTED = 'requested'
MAKING = 'making'
"""State of a request while moves make the room. From this state on, the room is kept free from
other servers."""
HELD = 'held'
USED = 'used'
RELEASED = 'released'
EXPIRED = 'expired'
FAILED = 'failed'
"""State of a request for which no moves can make the room, or whose moves have failed too often."""

WANTED = (REQUESTED, MAKING)
"""States in which evaluations plan moves that make the room."""
KEPT = (MAKING, HELD)
"""States in which the room is kept free from other servers."""
OPEN = (PROPOSED, REQUESTED, MAKING, HELD)

FILTER, ALLOCATIONS = KEEPERS = ('filter', 'allocations')
"""Mechanisms that keep room free from other servers. ``filter`` is KronosFilter in nova-scheduler.
``allocations`` are allocations in placement whose consumers stand for the expected servers."""

HOLD_TRANSITIONS: Mapping[str, frozenset[str]] = {
    PROPOSED: frozenset((REQUESTED, RELEASED, EXPIRED)),
    # Back to proposed: the cloud has changed, and more moves are needed than were approved.
    REQUESTED: frozenset((PROPOSED, MAKING, HELD, FAILED, RELEASED, EXPIRED)),
    # Back to making: a move has failed, and others make the room.
    MAKING: frozenset((PROPOSED, MAKING, HELD, USED, FAILED, RELEASED, EXPIRED)),
    HELD: frozenset((USED, RELEASED, EXPIRED)),
    USED: frozenset(), RELEASED: frozenset(), EXPIRED: frozenset(), FAILED: frozenset()}
"""{state of a hold: states that may follow it}. Only ``Holds``, which stores holds in the control
database, changes a state."""

KRONOS = 'kronos'
"""Value of ``requested_by`` if Kronos requested the room, because servers found no host."""
ANY = ''
"""Value of ``aggregate`` while no aggregate is chosen for the request."""

CHOICE_SECONDS = 3_600
"""Seconds for which Kronos searches for an aggregate in which moves can make room for new servers.
The search begins when Nova finds no host for these servers. Each aggregate is searched when it is
evaluated, every few minutes. Raised, a request that no aggregate can fulfil costs more searches;
lowered, the request ends before every aggregate was searched. Not measured."""
WAIT_SECONDS = 86_400
"""Seconds after which a request to make room for new servers expires if it was not approved, or if
its moves have not ended. Raised, a request that operators have forgotten may still move servers
much later; lowered, requests expire while an aggregate is paused or busy. Chosen as a day, like the
limit for plans that empty hosts."""

TRIES = 3
"""Maximum number of plans for one request to make room for new servers. If the moves of a plan do
not make the room, another plan is made. Raised, a move that always fails is repeated more often;
lowered, one failed migration makes the whole request fail. Chosen as the default number of times
that a move is tried."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A request for room for new servers of one shape (flavor, or size without a flavor), and the
    progress of the request.

    aggregate : aggregate in which the room is made; :data:`ANY` while none is chosen
    project_id : project whose servers may use the room; '' for any project
    availability_zone : zone in which the room has to be; '' for any
    moves, memory_mb : maximum number of moves, and maximum MiB of memory to copy, that an operator
        has approved
    is_forced : whether moves may use up room that servers need to restart elsewhere after the loss
        of their host
    hold_seconds : seconds for which the room is kept once the moves have made it
    hosts : {host: number of servers for which room is kept on the host}
    known : uuids of the servers of the same flavor that were on ``hosts`` before the room was kept;
        these servers do not use the room
    used : {uuid of a server that uses the room: its host}
    plan_uuid : uuid of the newest plan of moves that make the room; '' for none
    plans : number of plans made so far
    keeper : mechanism that keeps the room free from other servers, one of :data:`KEEPERS`; '' while
        no room is kept
    consumers : {uuid of a consumer in placement that stands for an expected server: host of the
        consumer}. A consumer is added before its allocation is made, and removed after its
        allocation is removed
    problem : text that says why the room does not exist or cannot be used; '' for none
    expires_at : time at which the request ends if its state does not change before
    """

    uuid: str
    aggregate: str
    shape: Shape
    count: int
    state: str
    requested_by: str
    requested_at: datetime.datetime
    expires_at: datetime.datetime
    hold_seconds: int
    project_id: str = ''
    availability_zone: str = ''
    reason: str = ''
    is_forced: bool = False
    moves: int = 0
    memory_mb: int = 0
    hosts: Mapping[str, int] = field(default_factory=dict)
    known: tuple[str, ...] = ()
    used: Mapping[str, str] = field(default_factory=dict)
    plan_uuid: str = ''
    plans: int = 0
    keeper: str = ''
    consumers: Mapping[str, str] = field(default_factory=dict)
    problem: str = ''
    finished_at: datetime.datetime | None = None

    def left(self) -> dict[str, int]:
        """Return {host: number of servers that may still use the room on the host}. Hosts whose
        room is used up are left out."""
        used = collections.Counter(self.used.values())
        return {host: count - used[host] for host, count in self.hosts.items()
                if count > used[host]}

    def is_for(self, flavor: str, project_id: str) -> bool:
        """Return True if a server of a flavor and project may use the room; False if the room is
        for another flavor or project."""
        return flavor == self.shape.name and self.project_id in ('', project_id)
