"""Room for new servers that is to be there at any time: where it is, and the moves that make it."""

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
    """A buffer in a cloud.

    wanted : new servers that are to fit
    hosts : host to how many of them it has room for; fewer than wanted in all where it is lost
    """

    buffer: Buffer
    shape: Shape
    wanted: int
    hosts: Mapping[str, int]

    @property
    def found(self) -> int:
        """Return how many of the wanted servers fit."""
        return sum(self.hosts.values())

    @property
    def is_lost(self) -> bool:
        return self.found < self.wanted


def reserve(snapshot: Snapshot, rules: ConstraintRules, buffers: Iterable[tuple[Buffer, Shape]],
            packs: bool = False) -> tuple[Snapshot, list[BufferState]]:
    """Look for the room of buffers, each on the hosts that have most of it, and count it as in use.

    :param buffers: of aggregates that the snapshot has, in the order in which they are served
    :param packs: whether Nova fills NUMA cells that are in use first
    :returns: (the snapshot with their room in use, the states in the same order)
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
    """Plan moves after which more of the wanted servers of a buffer fit: all of them, or as many as
    the budget of moves makes room for. None where there are no such moves.

    :param snapshot: with the room of other buffers in use, and not that of this one
    """
    inside = making.within(snapshot, state.buffer.aggregate)
    # A file may ask for any number. Moves make room for no more servers than empty hosts take.
    count = min(state.wanted, _most(inside, rules, state.shape))
    while count > state.found:
        found = making.plan(inside, rules, state.shape, count, limits, pinned)
        made = len(found.hosts)
        if found.moves and made > state.found and len(found.moves) <= limits.budget:
            return found
        if limits.is_past:
            return None
        # Fewer servers need fewer moves.
        count = min(made, count - 1, state.found + max(1, (count - state.found) // 2))
    return None


def _most(snapshot: Snapshot, rules: ConstraintRules, shape: Shape) -> int:
    """Return how many servers of a shape fit on the hosts if these have none."""
    empty = dataclasses.replace(snapshot, instances=(), moves_under_way=(), hosts=tuple(
        dataclasses.replace(host, used=None if host.used is None else {},
                            cells=host.cells and tuple(map(numa.emptied, host.cells)))
        for host in snapshot.hosts))
    return SlotCounter(empty, rules, [shape]).slots(0).total


def _fullest_first(by_host: Mapping[str, int], count: int) -> Iterable[tuple[str, int]]:
    """Yield (host, servers whose room is kept there). The hosts with the most room come first, then
    by name, so that few hosts are closed to other servers."""
    for host, slots in sorted(by_host.items(), key=lambda each: (-each[1], each[0])):
        if count and slots:
            yield host, min(slots, count)
            count -= min(slots, count)
