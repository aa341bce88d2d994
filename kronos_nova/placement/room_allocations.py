"""Allocations in placement that keep room for future servers, so that no other server gets the
room."""

import itertools
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from urllib import parse

from kronos_nova.objects.shape import Shape
from kronos_nova.placement import errors
from kronos_nova.placement import sharing
from kronos_nova.placement.allocations import Allocations
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.client import PlacementClient

OWNER = 'kronos-room'
"""Project and user of the consumers that keep room. The consumers have a project of their own, so
their allocations do not count in the quota of a user's project. ``openstack resource usage show
kronos-room`` shows them. Fixed by design."""
ROOM = 'KRONOS_ROOM'
"""Consumer type of the consumers that keep room. The type is set only if placement has consumer
types."""
CANDIDATES = 100
"""Maximum number of allocation candidates that placement returns for a new server on one host.
Raised, room is more often found on a host with very many resource providers; lowered, the response
of placement is shorter. Chosen above the number of resource providers that a host usually has for
one resource class; not measured."""


class NoCandidate(errors.InsufficientInventory):
    """Error raised if a host has no allocation candidate for a server."""


class RoomAllocations:
    """Access to the allocations of consumers that keep room for future servers."""

    def __init__(self, client: PlacementClient):
        self._client = client

    def allocate(self, shape: Shape, consumers: Mapping[str, str]) -> None:
        """Allocate room for one server of a shape to each consumer. One request makes all
        allocations.

        :param consumers: {uuid of a consumer: root provider of its host}
        :raises InsufficientInventory: there is no room for all of the servers; nothing was changed
        :raises ConcurrentUpdate: each attempt conflicted with another change; nothing was changed
        :raises PlacementUnavailable: it is unknown whether room was allocated
        """
        self._client.replace(sorted(consumers), lambda held: self._taken(shape, consumers, held))

    def _taken(self, shape: Shape, consumers: Mapping[str, str],
               held: Mapping[str, Consumer]) -> AllocationSet:
        rooms: dict[str, _HostRoom] = {}
        wanted: list[Consumer] = []
        left: dict[str, dict[str, float]] = {}
        for uuid, root in sorted(consumers.items()):
            if held[uuid].allocations:  # by a request whose answer was lost
                continue
            if root not in rooms:
                rooms[root] = _HostRoom(self._client, shape, root, left)
            wanted.append(Consumer(
                uuid=uuid, allocations=rooms[root].next(), generation=held[uuid].generation,
                project_id=OWNER, user_id=OWNER, consumer_type=ROOM))
        return AllocationSet(tuple(wanted))

    def give_back(self, uuids: Collection[str]) -> list[Consumer]:
        """Remove all allocations of consumers that keep room. A second call does no harm.

        :returns: the consumers that had allocations, for :meth:`restore`
        :raises PlacementError: it is unknown whether the allocations were removed
        """
        had: dict[str, Consumer] = {}

        def emptied(held: Mapping[str, Consumer]) -> AllocationSet:
            had.update((uuid, each) for uuid, each in held.items() if each.allocations)
            return AllocationSet(tuple(
                each.holding({}) for each in held.values() if each.allocations))

        if uuids:
            self._client.replace(sorted(uuids), emptied)
        return [*had.values()]

    def restore(self, consumers: Iterable[Consumer]) -> None:
        """Allocate again what :meth:`give_back` has removed.

        :raises PlacementError: the room was allocated otherwise in the meantime, and nothing was
            changed; or it is unknown whether the room was allocated
        """
        # Placement has removed the consumers, so they have no generation any more.
        self._client.post(AllocationSet(tuple(
            each.holding(each.allocations, generation=None) for each in consumers)))

    def first_held(self, uuids: Iterable[str], most: int) -> list[str]:
        """Return the uuids of the first ``most`` of the given consumers that have allocations."""
        return list(itertools.islice(
            (uuid for uuid in uuids if self._client.consumer(uuid).allocations), most))

    def without(self, uuids: Iterable[str]) -> set[str]:
        """Return the uuids of the given consumers that have no allocations."""
        return {uuid for uuid in uuids if not self._client.consumer(uuid).allocations}

    def is_ours(self, uuid: str) -> bool:
        """Return True if a consumer has allocations that keep room, else False. Such a consumer is
        recognised by its project in placement."""
        return self._client.consumer(uuid).project_id == OWNER


class _HostRoom:
    """The allocation candidates of one host for servers of a shape.

    :param left: {uuid of a provider: its free amounts of each resource class}, from which the
        allocations of all servers are deducted, so that several servers get different room. The
        object adds the providers that are missing
    """

    def __init__(self, client: PlacementClient, shape: Shape, root: str,
                 left: dict[str, dict[str, float]]):
        self._shape, self._root, self._left = shape, root, left
        self._ways: list[Allocations] = [
            {uuid: each['resources'] for uuid, each in found['allocations'].items()}
            for found in _candidates(client, shape, root)]
        for uuid in sorted({uuid for way in self._ways for uuid in way} - left.keys()):
            left[uuid] = _left_on(client, uuid)

    def next(self) -> Allocations:
        """Return the allocations for one more server, and deduct them from the free amounts.

        :raises NoCandidate: there is no room left
        """
        for way in self._ways:
            if all(self._left[uuid].get(name, 0) >= amount
                   for uuid, amounts in way.items() for name, amount in amounts.items()):
                for uuid, amounts in way.items():
                    for name, amount in amounts.items():
                        self._left[uuid][name] -= amount
                return way
        raise NoCandidate(problem='there is no allocation candidate for another server of flavor '
                                  f'{self._shape.name} on resource provider {self._root}')


def _candidates(client: PlacementClient, shape: Shape, root: str) -> list[dict]:
    """Return the allocation requests of placement for a server of a shape on one host. Sharing
    providers are used only if the host's own providers have no candidate."""
    found = client.candidates(query(shape, root))
    if not found:
        for own, from_pools in sharing.ways_to_share(client, shape.resources, root):
            if own:
                found += client.candidates(
                    query(shape, root, own, len(from_pools)) + sharing.query(from_pools))
    return found


def _left_on(client: PlacementClient, provider: str) -> dict[str, float]:
    left = {name: (each['total'] - each['reserved']) * each['allocation_ratio']
            for name, each in client.inventories(provider).items()}
    for amounts in client.held_on(provider).values():
        for name, amount in amounts.items():
            left[name] = left.get(name, 0) - amount
    return left


def query(shape: Shape, root: str, own: Mapping[str, int] | None = None, pools: int = 0) -> str:
    """Return the query for allocation candidates for a server of a shape on one host. The query
    equals the query of ``nova.scheduler.utils.ResourceRequest`` for the flavor.

    :param root: root provider of the host
    :param own: {resource class: amount} that the host's own providers supply without a request
        group of their own; None for all of the shape's resources
    :param pools: number of request groups for sharing providers that the caller adds to the query
    """
    parts = {'resources': ','.join(f'{name}:{amount}' for name, amount in sorted(
        (shape.resources if own is None else own).items()))}
    asked: dict[str, list[str]] = {}
    for key, value in sorted(shape.extra_specs.items()):
        kind, _colon, name = key.partition(':')
        if kind.startswith('resources') and kind != 'resources':
            asked.setdefault(kind, []).append(f'{name}:{value}')
        elif kind.startswith('trait') and value in ('required', 'forbidden'):
            mark = '' if value == 'required' else '!'
            asked.setdefault('required' + kind.removeprefix('trait'), []).append(mark + name)
    parts |= {kind: ','.join(values) for kind, values in asked.items()}
    parts |= {'in_tree' + kind.removeprefix('resources'): root
              for kind in parts if kind.startswith('resources')}
    groups = [kind for kind in asked if kind.startswith('resources')]
    if len(groups) + pools > 1:
        parts['group_policy'] = shape.extra_specs.get('group_policy', 'none')
    return parse.urlencode({**parts, 'limit': CANDIDATES}, safe=':,!')
