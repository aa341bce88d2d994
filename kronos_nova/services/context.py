"""The context in which a service function runs: the caller, the configuration, and access to the
control database and the cloud."""

import dataclasses
import datetime
import typing
from collections.abc import Callable
from collections.abc import Iterable

from oslo_config import cfg

from kronos_nova.db import journal
from kronos_nova.db import server_names
from kronos_nova.db.engine import Database
from kronos_nova.executor.hosts import HostApi
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Snapshot

if typing.TYPE_CHECKING:    # importing numpy takes most of the time of a command
    from kronos_nova.cycle.inputs import PlannerPorts
    from kronos_nova.placement.room_allocations import RoomAllocations


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The caller of a service function, and access to the data that the function needs.

    who : name of the caller, which is stored with each change
    read_cloud : function that reads the present cloud; used only for drains and for room for new
        servers
    read_flavors : function that reads Nova's flavors; used only for room for new servers
    host_api : function that makes the HostApi, which reads single hosts from Nova; used only for
        the list of servers on a host
    planner_ports : function that makes the PlannerPorts, which are the sources of data for planning
    room_allocations : function that makes the RoomAllocations, which keep room in placement; used
        only to release room
    """

    conf: cfg.ConfigOpts
    database: Database
    who: str
    read_cloud: Callable[[], Snapshot]
    read_flavors: Callable[[], tuple[Shape, ...]]
    host_api: Callable[[], HostApi]
    planner_ports: Callable[[], 'PlannerPorts']
    room_allocations: Callable[[], 'RoomAllocations']

    def utcnow(self) -> datetime.datetime:
        """Return the time of the control database."""
        return self.database.utcnow()

    def journal(self) -> journal.Journal:
        return journal.Journal(self.database, self.who)

    def names_of(self, uuids: Iterable[str]) -> dict[str, str]:
        """Return {uuid: name} of servers. Servers whose names are not known are left out."""
        return server_names.ServerNames(self.database).read(uuids)
