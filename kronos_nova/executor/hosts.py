"""The port through which hosts are disabled and enabled, and their servers are listed."""

import dataclasses
from typing import Protocol

from kronos_nova.objects.snapshot import Service


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerOnHost:
    """A server that Nova has on a host, or ``is_unsettled``: that was migrated cold or resized off
    it, which is neither confirmed nor reverted, so that the host keeps its disk."""

    uuid: str
    name: str
    status: str
    task_state: str | None = None
    is_unsettled: bool = False
    is_locked: bool = False


class HostApi(Protocol):
    """Nova, in-process or by its public API. Every method raises NovaClientError when Nova does not
    answer."""

    def service(self, host: str) -> Service | None:
        """Return the nova-compute service of a host, or None when there is none."""

    def servers_on(self, host: str) -> list[ServerOnHost]:
        """Return the servers on a host, of all projects, and those with an unsettled migration."""

    def server(self, uuid: str) -> ServerOnHost | None:
        """Return a server, whatever its host; None where no server has that uuid."""

    def disable(self, host: str, reason: str) -> None:
        """Let no server be put on a host any more; harmless when repeated."""

    def enable(self, host: str) -> None:
        """Let servers be put on a host again; harmless when repeated."""

    def stop(self, server: str) -> None:
        """Ask Nova to stop a server. One that cannot be stopped now is left as it is."""

    def start(self, server: str) -> None:
        """Ask Nova to start a server. One that cannot be started now is left as it is."""
