"""The interface by which the executor disables and enables compute hosts, and lists, stops and
starts the servers on a host."""

import dataclasses
from typing import Protocol

from kronos_nova.objects.snapshot import Service


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerOnHost:
    """A server that is on a host, or whose disk is still on this host. ``is_unsettled`` is true in
    the second case: the server has left the host by a cold migration or resize, and this migration
    or resize is neither confirmed nor reverted."""

    uuid: str
    name: str
    status: str
    task_state: str | None = None
    is_unsettled: bool = False
    is_locked: bool = False


class HostApi(Protocol):
    """The protocol by which Kronos reads and changes compute hosts in Nova, in-process or by the
    public API. Every method raises NovaClientError if Nova does not answer."""

    def service(self, host: str) -> Service | None:
        """Return the nova-compute service of a host; None if the host has no such service."""

    def servers_on(self, host: str) -> list[ServerOnHost]:
        """Return the servers of all projects on a host. Servers that have left the host and are
        unsettled (see :class:`ServerOnHost`) are included."""

    def server(self, uuid: str) -> ServerOnHost | None:
        """Return the server with a uuid, on whichever host it is; None if there is no such
        server."""

    def disable(self, host: str, reason: str) -> None:
        """Disable nova-compute on a host, so that the scheduler puts no server there. A repeated
        call changes nothing. Do nothing if the host has no such service any more."""

    def enable(self, host: str) -> None:
        """Enable nova-compute on a host. A repeated call changes nothing. Do nothing if the host
        has no such service any more."""

    def stop(self, server: str) -> None:
        """Ask Nova to stop a server. If Nova refuses because the server cannot be stopped now, or
        was deleted, no error is raised."""

    def start(self, server: str) -> None:
        """Ask Nova to start a server. If Nova refuses because the server cannot be started now, or
        was deleted, no error is raised."""
