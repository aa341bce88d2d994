"""Allocations in placement that keep room for new servers. The record of such room is a hold. Each
evaluation makes, checks and removes these allocations.

An allocation belongs to a consumer. Before an allocation is made, the uuid of its consumer is
recorded in the hold. The uuid stays recorded until the allocation is removed. So the next
evaluation can find the allocation even if a process dies in between.
"""

import collections
import dataclasses
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping

from oslo_log import log as logging
from oslo_utils import uuidutils

from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.cycle.ports import CyclePorts
from kronos_nova.objects import hold as states
from kronos_nova.objects.hold import Hold
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.placement import errors
from kronos_nova.placement.room_allocations import RoomAllocations

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True)
class SettledAllocations:
    """The allocations that placement has for open holds (records of room that is kept for new
    servers).

    held : uuids of consumers with allocations
    problems : {uuid of a hold: reason why placement has no allocations for its room any more}
    """

    held: set[str] = dataclasses.field(default_factory=set)
    problems: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeldAllocations:
    """The allocations in placement that keep room for new servers. :meth:`settle` makes these
    allocations agree with the recorded holds."""

    cycle_ports: CyclePorts
    allocations: RoomAllocations

    def allocate(self, hold: Hold, hosts: Collection[str], snapshot: Snapshot) -> Hold | None:
        """Allocate the room of a new hold. The uuids of its consumers are recorded first.

        :param hosts: the host of each expected server
        :returns: the hold with its consumers; None if the hold has ended in the meantime, or if
            placement has too little room; missing room is recorded in the hold
        :raises PlacementError: it is not known whether the room is allocated
        """
        consumers = {uuidutils.generate_uuid(): host for host in sorted(hosts)}
        if not self.cycle_ports.holds.note(hold, consumers=consumers):
            return None
        try:
            self.allocations.allocate(hold.shape, _with_roots(consumers, snapshot))
        except (errors.InsufficientInventory, errors.ConcurrentUpdate) as error:
            self.cycle_ports.holds.note(hold, consumers={}, problem=(
                f'placement does not hold the room: {error}'))
            return None
        return dataclasses.replace(hold, consumers=consumers)

    def give_back(self, hold: Hold) -> None:
        """Remove all allocations of a hold.

        :raises PlacementError: it is not known whether the allocations are removed; the consumers
            stay recorded
        """
        self.allocations.give_back(hold.consumers)
        self.cycle_ports.holds.note(hold, consumers={})

    def settle(self, snapshot: Snapshot, is_here: Callable[[Hold], bool],
               resume: Callable[[Hold], None]) -> SettledAllocations:
        """Make the allocations in placement agree with the holds (records of room that is kept for
        new servers). Allocations of ended holds and of servers that have arrived are removed.
        Allocations that others have removed are made again.

        An earlier evaluation may have been interrupted while it allocated the room of a new hold.
        If all the room is allocated, ``resume`` is called for the hold. Otherwise the allocations
        that were made are removed.

        :param is_here: returns True if the aggregate of a hold is evaluated now
        :param resume: called with each interrupted hold whose room is all allocated
        """
        found = SettledAllocations()
        for each in self.cycle_ports.holds.with_consumers():
            try:
                if each.state not in states.OPEN:
                    self.give_back(each)
                elif not is_here(each):
                    found.held |= each.consumers.keys()
                else:
                    empty = self.allocations.without(each.consumers)
                    found.held |= each.consumers.keys() - empty
                    if each.state == states.HELD:
                        if problem := self._keep_rest(each, empty, snapshot):
                            found.problems[each.uuid] = problem
                    elif empty:
                        self.give_back(each)
                    else:
                        resume(each)
            except exception.PlacementError as error:
                LOG.warning('Room %s: the allocations that keep the room could not be changed in '
                            'placement; the next evaluation tries again: %s', each.uuid, error)
                found.held |= each.consumers.keys()
        return found

    def _keep_rest(self, hold: Hold, empty: Collection[str], snapshot: Snapshot) -> str:
        """Keep the rest of a hold's room: the room of the expected servers that have not arrived.
        Missing allocations for these servers are made. Surplus allocations, such as those of
        servers that have arrived, are removed.

        :returns: the reason why missing allocations cannot be made; '' if no allocation is missing
            any more. If a host no longer exists, nothing is made and '' is returned, because
            :func:`kronos_nova.room.holding.problem_of` reports that problem
        """
        wanted = hold.left()
        extra = _beyond(hold.consumers, wanted, empty)
        if extra:
            self.allocations.give_back(extra)
            hold = dataclasses.replace(hold, consumers={
                uuid: host for uuid, host in hold.consumers.items() if uuid not in extra})
            self.cycle_ports.holds.note(hold, consumers=hold.consumers)
        lost = {uuid: host for uuid, host in hold.consumers.items() if uuid in empty}
        roots = _with_roots(lost, snapshot)
        if not lost or len(roots) < len(lost):  # a host is gone, which is reported
            return ''
        try:
            self.allocations.allocate(hold.shape, roots)
        except errors.InsufficientInventory as error:
            return (f'the allocations of {len(lost)} of {len(hold.consumers)} servers '
                    f'{plural.agreeing(len(lost), "were")} removed, and placement has no room '
                    f'for them any more: {error}')
        LOG.warning('Room %s: someone had removed %d of the %d allocations that keep the room; '
                    'Kronos has made them again. A possible cause is "nova-manage placement '
                    'audit --delete", which removes such allocations.', hold.uuid, len(lost),
                    len(hold.consumers))
        return ''


def _beyond(consumers: Mapping[str, str], wanted: Mapping[str, int],
            empty: Collection[str]) -> set[str]:
    """Return the uuids of consumers of a hold that are no longer needed. A host needs one consumer
    for each server that is still expected there. If a host has more consumers, consumers with
    allocations are kept first."""
    kept: collections.Counter[str] = collections.Counter()
    extra = set()
    for uuid, host in sorted(consumers.items(), key=lambda each: (each[0] in empty, each)):
        kept[host] += 1
        if kept[host] > wanted.get(host, 0):
            extra.add(uuid)
    return extra


def _with_roots(consumers: Mapping[str, str], snapshot: Snapshot) -> dict[str, str]:
    """Return {uuid of a consumer: root provider of its host}, without hosts that no longer
    exist."""
    roots = {host.name: host.uuid for host in snapshot.hosts}
    return {uuid: roots[host] for uuid, host in consumers.items() if host in roots}
