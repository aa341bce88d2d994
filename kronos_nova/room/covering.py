"""Moves after which all servers of lost hosts could restart elsewhere.

The moves are planned like moves that make room for new servers. The planner gets the servers of the
lost hosts in place of new servers, and finds moves of other servers that make room for the lost
servers. Only the moves of the other servers are returned.
"""

import dataclasses
from collections.abc import Collection

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import State
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits
from kronos_nova.planners.make_room import RoomMaker
from kronos_nova.room import making
from kronos_nova.room import whole
from kronos_nova.room.losses import Loss
from kronos_nova.room.making import RoomMove


def plan(snapshot: Snapshot, rules: ConstraintRules, loss: Loss, limits: Limits,
         pinned: Collection[str] = ()) -> tuple[RoomMove, ...]:
    """Return moves after which the servers of lost hosts could restart elsewhere; an empty tuple if
    no such moves are found. The moves copy as little memory as possible. The moves can be made in
    the order of the result.

    Some servers of the lost hosts are ignored: servers that no host can take, and servers that Nova
    does not restart. So the caller has to check whether all servers of the lost hosts could restart
    after the moves.

    :param snapshot: a cloud with the lost hosts, and the hosts whose servers may move to make room
    :param pinned: uuids of servers that do not move
    """
    lost = {*loss.hosts}
    leaving = {each.uuid for each in snapshot.instances if each.host in lost}
    state = State(whole.model_of(snapshot, rules, loss.hosts, tuple({*pinned} - leaving)))
    steps = RoomMaker().plan(state, dataclasses.replace(limits, unplaced={}))
    return making.moves_of(state.problem, steps, leaving)
