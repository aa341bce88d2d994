"""Servers: why one was moved, or stays."""

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Name
from kronos_client.contract.base import Page
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.moves import Move
from kronos_client.contract.operation import Operation
from kronos_client.contract.plans import NextBest
from kronos_client.contract.plans import PlannedMove


class ExplainedMove(Move):
    """A move with what its plan had to gain: the combined imbalance before and after the plan, and
    the best alternative; null where the report of the plan is no longer kept."""

    plan_imbalance_before: float | None
    plan_imbalance_after: float | None
    next_best: NextBest | None


class Explanation(Response):
    """The reasons for which a server is moved or stays.

    ``stays_because`` is the reason for which the last evaluation left it, or the outcome of an
    evaluation that moves nothing, as where the aggregate is balanced. ``planned`` is its move
    in a plan that waits or runs. ``moves`` are the latest, the newest first; of a request with
    ``at`` those that had begun by then. ``movable`` is ``live``, ``cold`` or ``no``, whatever its
    status; ``immovable_because`` is Nova's reason against a live migration, empty for none.
    """

    instance_uuid: str
    instance_name: str | None
    stays_because: str | None
    stays_in: str | None
    stays_means: str | None
    planned: PlannedMove | None
    planned_in: str | None
    quarantined_until: Maybe
    quarantined_because: str | None
    cooling_seconds: float | None
    refused_because: str | None
    refused_hosts: list[str]
    moves: list[ExplainedMove]
    movable: str = 'live'
    immovable_because: str = ''


class ExplainServer(Request):
    """``server`` is a name or a uuid."""

    server: str
    at: Maybe = None


class Server(Response):
    """A server that Kronos knows. ``seen_at`` is when its name was last read."""

    uuid: str
    name: str
    seen_at: Time


class Servers(Response):
    """``next`` is the marker of the next page, or null."""

    servers: list[Server]
    next: str | None


class ListServers(Page):
    """``name`` is a part of the names, without regard to case. ``marker`` is a uuid."""

    name: Name | None = None


LIST = Operation(
    name='servers:list', method='GET', path='/v1/servers', request=ListServers, response=Servers,
    refusals=(404,), summary='The servers of the aggregates that were evaluated, by name.')
EXPLAIN = Operation(
    name='servers:explain', command='explain', method='GET',
    path='/v1/servers/{server}/explanation', request=ExplainServer, response=Explanation,
    refusals=(404, 409), summary='Why a server was moved, or why it stays.')

OPERATIONS = (LIST, EXPLAIN)
