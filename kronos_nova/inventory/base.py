"""The port through which the cloud is read."""

from typing import Protocol

from kronos_nova.objects.snapshot import Snapshot


class InventorySource(Protocol):
    """Reads hosts, instances, aggregates, server groups and services of the whole cloud, all
    projects, all cells."""

    def read(self) -> Snapshot:
        """Everything, at one moment.

        :raises InventoryError: Nova or placement could not be read; nothing partial is ever
        returned
        """
