"""The state of Kronos: aggregates, workers, drains, and conditions that an operator should know
of."""

from kronos_client.contract.automation import Pause
from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import Operation

NOTICE, WARNING, CRITICAL = 'notice', 'warning', 'critical'
"""Severities of conditions, in this order: intended by an operator, to be looked into, to be
repaired."""

SEVERITIES = (CRITICAL, WARNING, NOTICE)
"""All severities, the worst first."""


class Problem(Response):
    """A condition that an operator should know of, and its remedy. ``since`` is the time at which
    it began, null where that is not known."""

    severity: str
    what: str
    remedy: str
    since: Maybe = None


class Policy(Response):
    """A policy at the last evaluation of an aggregate. ``imbalance`` is null where there was no
    data. ``forecast`` describes how its forecast was used, and is empty where it has none."""

    name: str
    imbalance: float | None
    threshold: float
    detail: str = ''
    forecast: str = ''


class OpenPlan(Response):
    """The plan of an aggregate that waits or runs. ``states`` maps each state to the number of its
    moves in it. ``remaining_seconds`` is null where it cannot be predicted from past moves."""

    uuid: str
    state: str
    purpose: str
    created_at: Time
    expires_at: Time
    approved_by: str | None
    moves: int
    states: dict[str, int]
    remaining_seconds: float | None


class Losses(Response):
    """Counts of the hosts of an aggregate, or of the failure domains that its hosts are in. Each
    host or domain is judged as if it alone were lost. ``fits`` counts the losses after which all
    servers can restart elsewhere, ``does_not_fit`` those after which some servers cannot,
    ``not_found`` those for which neither was found, and ``not_judged`` those that were not judged.
    ``fits`` only says that the servers have places. Nova's scheduler chooses a host for one server
    after the other, and may use up such a place: ``in_order`` counts the losses of ``fits`` after
    which all servers restart in this way too, ``not_in_order`` those after which some do not.
    ``level`` is the level of the failure domains, null for hosts. ``worst`` names the loss after
    which the most servers do not restart, and ``why`` explains it; both are empty where all servers
    restart after every loss."""

    level: str | None
    fits: int
    does_not_fit: int
    not_found: int
    not_judged: int
    in_order: int
    not_in_order: int
    worst: str
    why: str
    judged_at: Time


class Aggregate(Response):
    """An aggregate in scope, with its last evaluation. ``reason`` explains the outcome of that
    evaluation. ``window_opens_at`` is the time at which its maintenance window opens; null while
    moves may be started. ``health`` is from 0 to 100, or null where it is not known. ``immovable``
    counts the servers that Nova does not migrate live. ``repairs`` is the level of repairs of
    violated rules. ``domains`` maps each level of failure domains, the largest first, to the number
    of domains that its hosts are in. ``losses`` has the results for losses of its hosts, then for
    each level of failure domains; it is empty where no loss was judged."""

    name: str
    level: str
    set_by: str | None
    paused: str | None
    evaluated_at: Maybe
    outcome: str | None
    reason: str
    next_at: Maybe
    window_opens_at: Maybe
    policies: list[Policy]
    warnings: list[str]
    plan: OpenPlan | None
    health: float | None = None
    hosts: int = 0
    hot_hosts: int = 0
    immovable: int = 0
    repairs: str = ''
    domains: dict[str, int] = {}
    losses: list[Losses] = []


class Aggregates(Response):
    aggregates: list[Aggregate]


class Worker(Response):
    """A process of Kronos or nova-scheduler that reports to the control database. ``role`` is
    ``executor`` (in a conductor or by itself), ``engine``, ``room-filter`` (nova-scheduler with
    KronosFilter) or ``scheduler`` (nova-scheduler without)."""

    name: str
    role: str
    heard_at: Time
    is_alive: bool


class DrainState(Response):
    """A host that is being emptied, or is empty and waits to be released. ``blocked`` counts the
    servers that have to stay. ``remaining_seconds`` is null where no move off the host is
    planned."""

    host: str
    aggregate: str
    state: str
    requested_by: str
    left: int | None
    blocked: int
    remaining_seconds: float | None = None


class MaintainedHost(Response):
    host: str
    state: str


class MaintenanceState(Response):
    """The maintenance in progress, with its hosts in order."""

    state: str
    requested_by: str
    hosts: list[MaintainedHost]


class Status(Response):
    """The state of Kronos. ``problems`` has the conditions, the worst first; ``severity`` is that
    of the first, null for none. ``cloud`` is the name of the cloud, null where nova.conf has none.
    ``pauses`` has the pauses and stops in force, the oldest first. ``aggregates`` is null unless
    the request asked for them."""

    at: Time
    cloud: str | None
    severity: str | None
    problems: list[Problem]
    pauses: list[Pause]
    workers: list[Worker]
    drains: list[DrainState]
    maintenance: MaintenanceState | None
    quarantined: int
    duration_error: float | None
    database_revision: str
    aggregates: list[Aggregate] | None = None


class ShowStatus(Request):
    """A request for the state of Kronos. With ``aggregates``, the response has the aggregates in
    scope too, read at the same time."""

    aggregates: bool = False


class OneAggregate(Request):
    """A request about one aggregate in scope. ``aggregate`` is its name."""

    aggregate: str


SHOW = Operation(
    name='status:show', command='status', method='GET', path='/v1/status',
    request=ShowStatus, response=Status,
    summary='The conditions that an operator should know of, workers, drains and maintenance.')
LIST_AGGREGATES = Operation(
    name='aggregates:list', method='GET', path='/v1/aggregates', response=Aggregates,
    summary='The aggregates in scope, with levels, last evaluations and open plans.')
SHOW_AGGREGATE = Operation(
    name='aggregates:show', method='GET', path='/v1/aggregates/{aggregate}',
    request=OneAggregate, response=Aggregate, refusals=(404,), summary='One aggregate in scope.')
OPERATIONS = (SHOW, LIST_AGGREGATES, SHOW_AGGREGATE)
