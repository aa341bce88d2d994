"""Operations on servers: the servers that Kronos knows, and the reasons why a server moves or
stays."""

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
    """A move, with the combined imbalance before and after its plan, and with the best alternative
    to the move. An imbalance is null if it is unknown. The alternative is null if there is none, or
    if the report of the plan is no longer kept."""

    plan_imbalance_before: float | None
    plan_imbalance_after: float | None
    next_best: NextBest | None


class Explanation(Response):
    """The reasons why a server is moved or not moved.

    ``stays_because`` is a word for the reason why the last evaluation did not move the server. If
    the evaluation made no plan and recorded no reason for this server, ``stays_because`` is the
    outcome of the evaluation, such as ``balanced``. ``stays_means`` explains the word. ``planned``
    is the move of the server in a plan that waits or runs. ``moves`` are the latest moves of the
    server, the newest first; if the request has ``at``, only moves that had begun by that time are
    included. ``movable`` is the way in which Nova can migrate the server, regardless of its status:
    ``live``, ``cold`` or ``no``. ``immovable_because`` is Nova's reason against a live migration;
    empty if there is none.
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
    """A request for the reasons why a server is moved or not moved. ``server`` is its name or uuid.
    With ``at``, the response has only moves that had begun by then."""

    server: str
    at: Maybe = None


class Server(Response):
    """A server that Kronos knows. ``seen_at`` is the time at which the server's name was last
    read."""

    uuid: str
    name: str
    seen_at: Time


class Servers(Response):
    """A page of servers. ``next`` is the marker of the next page; null on the last page."""

    servers: list[Server]
    next: str | None


class ListServers(Page):
    """A request to list servers whose names contain ``name``. Upper and lower case are not
    distinguished. ``marker`` is a uuid."""

    name: Name | None = None


LIST = Operation(
    name='servers:list', method='GET', path='/v1/servers', request=ListServers, response=Servers,
    refusals=(404,), summary='The servers of the aggregates that were evaluated, by name.')
EXPLAIN = Operation(
    name='servers:explain', command='explain', method='GET',
    path='/v1/servers/{server}/explanation', request=ExplainServer, response=Explanation,
    refusals=(404, 409), summary='Why a server was moved, or why it stays.')

OPERATIONS = (LIST, EXPLAIN)
