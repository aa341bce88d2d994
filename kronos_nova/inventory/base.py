"""The interface through which the cloud is read."""

from collections.abc import Collection
from typing import Protocol

from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import Snapshot


class InventorySource(Protocol):
    """The protocol of a source of hosts, instances, aggregates, server groups and services of a
    cloud, all projects, all cells."""

    def read(self, scopes: Collection[str] | None = None,
             moves: Collection[MoveUnderWay] = ()) -> Snapshot:
        """Return the hosts of some aggregates, or of the whole cloud, and the instances there, at
        one moment.

        If an instance moves between one of these hosts and another host, the snapshot has the other
        host too. It has all aggregates of the cloud, each with only those of its hosts that are in
        the snapshot.

        :param scopes: names of aggregates, and UNASSIGNED for the hosts in none; None for the whole
            cloud
        :param moves: moves that Nova may not have recorded yet
        :raises InventoryError: Nova or placement could not be read; nothing partial is ever
        returned
        """

    def read_flavors(self) -> tuple[Shape, ...]:
        """Return all flavors, including private ones.

        :raises InventoryError: Nova could not be read
        """

    def names_elsewhere(self, attribute: str, names: Collection[str]) -> set[str]:
        """Return those of ``names`` that are also names of instances outside of the last snapshot.

        :param attribute: attribute of an Instance, ``name`` or ``display_name``
        :raises InventoryError: Nova could not be read
        """
