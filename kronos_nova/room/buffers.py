"""Buffers, which always keep room for a number of new servers: the hosts with this room, and moves
that make it again where it was lost."""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.objects import numa
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.planners.base import Limits
from kronos_nova.policies.buffers import Buffer
from kronos_nova.room import holding
from kronos_nova.room import making
from kronos_nova.room.making import RoomPlan
from kronos_nova.room.slots import SlotCounter


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BufferState:
    """A buffer and the room found for it in a cloud.

    wanted : number of new servers that should fit
    hosts : host to the number of these servers for which it has room; fewer in all than wanted
        where room is lost
    """

    buffer: Buffer
    shape: Shape
    wanted: int
    hosts: Mapping[str, int]

    @property
    def found(self) -> int:
        """The number of the wanted servers that fit."""
        return sum(self.hosts.values())

    @property
    def is_lost(self) -> bool:
        return self.found < self.wanted


def reserve(snapshot: Snapshot, rules: ConstraintRules, buffers: Iterable[tuple[Buffer, Shape]],
            packs: bool = False) -> tuple[Snapshot, list[BufferState]]:
    """Find the room of buffers, on the hosts with most room for each, and count it as used.

    :param buffers: buffers of aggregates in the snapshot, in the order in which they get their room
    :param packs: whether Nova fills NUMA cells in use first
    :returns: (the snapshot, in which this room counts as used; the states of the buffers in the
        same order)
    """
    states = []
    for buffer, shape in buffers:
        inside = making.within(snapshot, buffer.aggregate)
        counter = SlotCounter(inside, rules, [shape])
        wanted = buffer.wanted(_most(inside, rules, shape) if buffer.is_part else 0)
        found = counter.slots(0)
        places = dict(_fullest_first(found.by_host, min(wanted, found.total)))
        states.append(BufferState(buffer=buffer, shape=shape, wanted=wanted, hosts=places))
        snapshot = holding.with_taken(snapshot, shape, places, packs)
    return snapshot, states


def plan(snapshot: Snapshot, rules: ConstraintRules, state: BufferState, limits: Limits,
         pinned: Collection[str]) -> RoomPlan | None:
    """Plan moves after which more of the wanted servers of a buffer fit, all of them if the budget
    of moves suffices. None where no such moves are found.

    :param snapshot: the cloud, in which the room of other buffers counts as used
    """
    inside = making.within(snapshot, state.buffer.aggregate)
    # The policies file may want any number, but moves make room for no more servers than fit on
    # empty hosts.
    count = min(state.wanted, _most(inside, rules, state.shape))
    while count > state.found:
        found = making.plan(inside, rules, state.shape, count, limits, pinned)
        made = len(found.hosts)
        if found.moves and made > state.found and len(found.moves) <= limits.budget:
            return found
        if limits.is_past:
            return None
        # The plan was too long for the budget; room for fewer servers needs fewer moves.
        count = min(made, count - 1, state.found + max(1, (count - state.found) // 2))
    return None


def _most(snapshot: Snapshot, rules: ConstraintRules, shape: Shape) -> int:
    """Return the number of servers of a shape that would fit on the hosts if these were empty."""
    empty = dataclasses.replace(snapshot, instances=(), moves_under_way=(), hosts=tuple(
        dataclasses.replace(host, used=None if host.used is None else {},
                            cells=host.cells and tuple(map(numa.emptied, host.cells)))
        for host in snapshot.hosts))
    return SlotCounter(empty, rules, [shape]).slots(0).total


def _fullest_first(by_host: Mapping[str, int], count: int) -> Iterable[tuple[str, int]]:
    """Yield (host, number of the ``count`` servers whose room is kept there). Hosts with most room
    are used first, so that few hosts are closed to other servers."""
    for host, slots in sorted(by_host.items(), key=lambda each: (-each[1], each[0])):
        if count and slots:
            yield host, min(slots, count)
            count -= min(slots, count)
