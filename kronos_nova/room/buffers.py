"""Buffers, which keep room free for a number of new servers. This module chooses the hosts that
keep the room. If a buffer has lost room, the module plans moves that make the room again."""

import collections
import dataclasses
import heapq
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from types import MappingProxyType

from kronos_nova.constraints.base import ConstraintRules
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
    """A buffer, with the room that a cloud has for it.

    wanted : number of new servers that should fit
    hosts : {host: number of new servers for which the host keeps room}; the sum is below ``wanted``
        if room is lost
    """

    buffer: Buffer
    shape: Shape
    wanted: int
    hosts: Mapping[str, int]

    @property
    def found(self) -> int:
        """The number of wanted servers that fit."""
        return sum(self.hosts.values())

    @property
    def is_lost(self) -> bool:
        return self.found < self.wanted


def reserve(snapshot: Snapshot, rules: ConstraintRules, buffers: Iterable[tuple[Buffer, Shape]],
            packs: bool = False, packs_load: bool = False) -> tuple[Snapshot, list[BufferState]]:
    """Return the cloud in which the room of buffers counts as used, and the states of the buffers.

    Moves that balance load cannot use the room that buffers keep. So a buffer takes its room from
    many hosts, an equal fraction of each. Each of these hosts then still has free room for such
    moves. If load is packed, a buffer keeps room on the hosts with most free room instead, because
    packing empties these hosts.

    The room is judged as it is once the moves in progress have completed. A move counts on two
    hosts while it is in progress, which is no reason to make room by further moves.

    :param buffers: buffers of aggregates in the snapshot, in the order in which they get their room
    :param packs: True if Nova fills the NUMA cells of a host one after the other
    :param packs_load: True if the policies pack load on few hosts
    :returns: (snapshot in which the room of the buffers counts as used, states of the buffers in
        the given order)
    """
    states, settled = [], snapshot.after_moves()
    for buffer, shape in buffers:
        inside = making.within(settled, buffer.aggregate)
        counter = SlotCounter(inside, rules, [shape])
        found, empty = counter.slots(0), counter.of_empty_hosts().slots(0)
        wanted = buffer.wanted(empty.total)
        count = min(wanted, found.total)
        places = (_roomiest_first(found.by_host, count) if packs_load
                  else _evenly(found.by_host, empty.by_host, count))
        states.append(BufferState(buffer=buffer, shape=shape, wanted=wanted, hosts=places))
        snapshot, settled = (holding.with_taken(each, shape, places, packs)
                             for each in (snapshot, settled))
    return snapshot, states


def plan(snapshot: Snapshot, rules: ConstraintRules, state: BufferState, limits: Limits,
         pinned: Collection[str],
         loads: Mapping[str, float] = MappingProxyType({})) -> RoomPlan | None:
    """Return moves after which more of a buffer's wanted servers fit than now; None if no such
    moves are found. If the budget of moves is too small for all wanted servers, the moves make room
    for fewer servers.

    :param snapshot: the cloud, in which the room of other buffers counts as used
    :param loads: as for :func:`~kronos_nova.room.making.plan`
    """
    inside = making.within(snapshot, state.buffer.aggregate)
    # The policies file may want any number, but moves make room for no more servers than fit on
    # empty hosts.
    counter = SlotCounter(inside, rules, [state.shape])
    count = min(state.wanted, counter.of_empty_hosts().slots(0).total)
    while count > state.found:
        found = making.plan(inside, rules, state.shape, count, limits, pinned,
                            loads=loads)
        made = len(found.hosts)
        if found.moves and made > state.found and len(found.moves) <= limits.budget:
            return found
        if limits.is_past:
            return None
        # The plan was too long for the budget; room for fewer servers needs fewer moves.
        count = min(made, count - 1, state.found + max(1, (count - state.found) // 2))
    return None


def _roomiest_first(by_host: Mapping[str, int], count: int) -> dict[str, int]:
    """Return {host: number of servers whose room is kept there}. The hosts with most room are used
    first.

    :param by_host: {host: number of servers for which it has room}
    :param count: total number of servers; ``by_host`` must have room for all of them
    """
    places = {}
    for host, slots in sorted(by_host.items(), key=lambda each: (-each[1], each[0])):
        if count and slots:
            places[host] = min(slots, count)
            count -= places[host]
    return places


def _evenly(by_host: Mapping[str, int], empty: Mapping[str, int], count: int) -> dict[str, int]:
    """Return {host: number of servers whose room is kept there}.

    The servers are placed one after the other. Each server is placed on the host that then keeps
    free the smallest fraction of its total room. This fraction is the number of servers whose room
    the host keeps, divided by the number that would fit if the host were empty. Of hosts with equal
    fractions, the one with the least free room is used, because balancing can move little load to
    this host anyway.

    :param by_host: {host: number of servers for which it has room}
    :param empty: {host: number of servers that would fit if the host were empty}
    :param count: total number of servers; ``by_host`` must have room for all of them
    """
    places = collections.Counter[str]()
    heap = [(1 / empty[host], slots, host) for host, slots in by_host.items() if slots]
    heapq.heapify(heap)
    for _number in range(count):
        _part, slots, host = heap[0]
        places[host] += 1
        if places[host] < slots:
            heapq.heapreplace(heap, ((places[host] + 1) / empty[host], slots, host))
        else:
            heapq.heappop(heap)
    return dict(places)
