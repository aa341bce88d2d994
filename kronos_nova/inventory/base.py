"""The interface of sources from which the cloud is read."""

from collections.abc import Collection
from typing import Protocol

from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import Snapshot


class InventorySource(Protocol):
    """The protocol of a source of the hosts, instances, aggregates, server groups and services of a
    cloud. The source covers all projects and all cells."""

    def read(self, scopes: Collection[str] | None = None,
             moves: Collection[MoveUnderWay] = ()) -> Snapshot:
        """Return the state of some aggregates or of the whole cloud at one moment.

        The snapshot has the hosts in scope and the instances on them. If an instance moves between
        one of these hosts and another host, the snapshot has the other host as well. The snapshot
        has all aggregates of the cloud. Each aggregate in the snapshot lists only hosts that are in
        the snapshot.

        :param scopes: names of aggregates, and UNASSIGNED for the hosts in no aggregate; None for
            the whole cloud
        :param moves: moves in progress that Nova may not have recorded yet
        :raises InventoryError: Nova or placement could not be read; no partial snapshot is returned
        """

    def read_flavors(self) -> tuple[Shape, ...]:
        """Return all flavors, including private flavors.

        :raises InventoryError: Nova could not be read
        """

    def names_elsewhere(self, attribute: str, names: Collection[str]) -> set[str]:
        """Return the names in ``names`` that are also used by instances outside of the last
        snapshot.

        :param attribute: attribute of an Instance that is compared, ``name`` or ``display_name``
        :raises InventoryError: Nova could not be read
        """
