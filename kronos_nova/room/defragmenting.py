"""Plans that join fragments of free room. After such a plan, more new servers of a shape fit. A
shape is the resources of one server."""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable

import numpy as np

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import State
from kronos_nova.model import numa
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits
from kronos_nova.planners.defragment import Defragmenter
from kronos_nova.room import shapes
from kronos_nova.room import whole
from kronos_nova.room.making import RoomMove
from kronos_nova.room.making import moves_of
from kronos_nova.room.slots import SlotCounter
from kronos_nova.room.slots import Slots

PER_MOVE = 2
"""Number of additional new servers for which a plan tries to make room, for each permitted move.
The plan joins fragments of free room. With 10 permitted moves, it tries to make room for 20 servers
more than fit now. Raised, plans take longer; lowered, moves that each make room for several servers
are missed. Chosen because few moves make room for more than two servers; not measured."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defragmented:
    """A plan that joins fragments of free room.

    moves : the moves, in an order in which they are possible
    before, after : slots (how many more servers fit) before and after the moves
    """

    moves: tuple[RoomMove, ...]
    before: Slots
    after: Slots


def plan(snapshot: Snapshot, rules: ConstraintRules, shape: Shape, limits: Limits,
         pinned: Collection[str] = (), project_id: str = '') -> Defragmented:
    """Return a plan of at most ``limits.budget`` moves after which more servers of a shape fit. The
    plan is empty if no moves are found that make room for more servers.

    :param pinned: uuids of servers that do not move
    """
    before = _slots(snapshot, rules, shape, project_id)
    cloud, emptied, _new = shapes.with_new(
        snapshot, [shape], before.total + PER_MOVE * limits.budget, project_id)
    state = State(whole.model_of(cloud, rules, emptied, tuple(pinned)))
    moves = moves_of(state.problem, Defragmenter().plan(state, limits))
    then = _slots(after(snapshot, moves, rules), rules, shape, project_id)
    if then.total <= before.total:
        return Defragmented(moves=(), before=before, after=before)
    return Defragmented(moves=moves, before=before, after=then)


def _slots(snapshot: Snapshot, rules: ConstraintRules, shape: Shape, project_id: str) -> Slots:
    return SlotCounter(snapshot, rules, [shape], project_id=project_id).slots(0)


def after(snapshot: Snapshot, moves: Iterable[RoomMove | PlannedMove],
          rules: ConstraintRules) -> Snapshot:
    """Return the cloud after ``moves``, which have at most one move of each server. The moved
    servers are in the NUMA cells that Nova would choose."""
    at = {host.name: number for number, host in enumerate(snapshot.hosts)}
    here = [each for each in snapshot.instances if each.host in at]
    vms = {each.uuid: number for number, each in enumerate(here)}
    pairs = [(vms[move.instance_uuid], at[move.destination]) for move in moves]
    hosts, instances = numa.moved(
        snapshot.hosts, here, np.array([at[each.host] for each in here], dtype=np.intp), pairs,
        rules.packs_numa_cells)
    for vm, host in pairs:
        for number, sign in ((at[here[vm].host], -1), (host, 1)):
            hosts[number] = whole.with_used(hosts[number], here[vm].resources, sign)
    moved = dict(pairs)
    return dataclasses.replace(snapshot, hosts=tuple(hosts), instances=tuple(
        dataclasses.replace(each, host=snapshot.hosts[moved[vm]].name) if vm in moved else each
        for vm, each in enumerate(instances)))
