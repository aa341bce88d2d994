"""The choice of an aggregate in which Kronos makes room for new servers for which Nova found no
host."""

import dataclasses
import datetime
from collections.abc import Iterable
from collections.abc import Sequence

from oslo_log import log as logging

from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.room_requests import RoomRequests
from kronos_nova.objects import automation
from kronos_nova.objects import hold as states
from kronos_nova.objects.hold import Hold
from kronos_nova.objects.snapshot import Snapshot

LOG = logging.getLogger(__name__)

TRIED = 3
"""Maximum number of requests for room that one evaluation tries to fulfil, the newest first. Kronos
makes a request for room when Nova finds no host for a new server. Raised, evaluations take longer
if Nova finds no host for many flavors; lowered, fewer requests are fulfilled in one evaluation.
Chosen because one search for room on 1,000 hosts takes 2.4 seconds (``python -m bench
making_room``)."""


def choose_aggregates(requests: RoomRequests, wanted: Sequence[Hold],
                      defaults: automation.Defaults, names: Iterable[str], snapshot: Snapshot,
                      planner_ports: PlannerPorts) -> None:
    """Choose an aggregate for each of the newest :data:`TRIED` requests for room: the first
    aggregate in which moves make the room. A request for room is recorded when Nova finds no host
    for new servers. At the level ``auto``, the moves begin in the next evaluation. At other levels,
    an operator has to approve the moves.

    Aggregates that already have the room are skipped. Nova found no host there for another reason
    than missing room, so moves would not help.

    :param wanted: the requests, the oldest first
    :param names: names of the evaluated aggregates
    """
    switches = requests.cycle_ports.switches.read()
    levels = {name: switches.planning_level(name, defaults) for name in names}
    for each in reversed(wanted[-TRIED:]):
        for name, level in sorted(levels.items()):
            if level != automation.OFF and _is_chosen(requests, each, name, level, snapshot,
                                                      planner_ports):
                break


def _is_chosen(requests: RoomRequests, hold: Hold, name: str, level: str, snapshot: Snapshot,
               planner_ports: PlannerPorts) -> bool:
    chosen = dataclasses.replace(hold, aggregate=name)
    found = requests.planned_room(chosen, snapshot, planner_ports)
    if found.missing or not found.moves:
        return False
    now = requests.utcnow()
    values = {'aggregate': name, 'moves': len(found.moves), 'memory_mb': found.memory_mb,
              'expires_at': now + datetime.timedelta(seconds=states.WAIT_SECONDS)}
    holds = requests.cycle_ports.holds
    if level == automation.AUTO:
        is_written = holds.note(hold, **values)
    else:
        is_written = holds.enter(hold, states.PROPOSED, **values)
    if is_written:
        LOG.info('Room %s for %d servers of flavor %s, for which Nova found no host: %d moves in '
                 'aggregate %s would make the room; %s', hold.uuid, hold.count, hold.shape.name,
                 len(found.moves), name,
                 'the moves begin' if level == automation.AUTO else
                 'they begin after "kronos-manage room approve"')
    return is_written
