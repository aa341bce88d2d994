"""The interface through which hosts are disabled and enabled, and their servers are listed, stopped
and started."""

import dataclasses
from typing import Protocol

from kronos_nova.objects.snapshot import Service


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerOnHost:
    """A server on a host. ``is_unsettled`` is true for a server that has left the host by a cold
    migration or resize, as long as this is neither confirmed nor reverted. The host then still has
    the server's disk."""

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
        """Return the servers on a host, of all projects, and the unsettled ones that have left
        it."""

    def server(self, uuid: str) -> ServerOnHost | None:
        """Return a server on any host; None where no server has that uuid."""

    def disable(self, host: str, reason: str) -> None:
        """Disable nova-compute on a host, so that the scheduler puts no server there. Harmless when
        repeated."""

    def enable(self, host: str) -> None:
        """Enable nova-compute on a host. Harmless when repeated."""

    def stop(self, server: str) -> None:
        """Ask Nova to stop a server. No error is raised where Nova refuses, because the server
        cannot be stopped now."""

    def start(self, server: str) -> None:
        """Ask Nova to start a server. No error is raised where Nova refuses, because the server
        cannot be started now."""
