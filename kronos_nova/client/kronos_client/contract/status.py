"""The state of Kronos: aggregates, workers, drains, and what an operator should know."""

from kronos_client.contract.automation import Pause
from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import Operation

NOTICE, WARNING, CRITICAL = 'notice', 'warning', 'critical'
"""Severities of conditions: intended by an operator, worth a look, to be repaired."""

SEVERITIES = (CRITICAL, WARNING, NOTICE)
"""The worst first."""


class Problem(Response):
    """A condition that an operator should know of, and what to do about it. ``since`` is when it
    began, null where that is not known."""

    severity: str
    what: str
    remedy: str
    since: Maybe = None


class Policy(Response):
    """A policy at the last evaluation; the imbalance is null where there was no data. ``forecast``
    describes the use of its forecast, and is empty where it has none."""

    name: str
    imbalance: float | None
    threshold: float
    detail: str = ''
    forecast: str = ''


class OpenPlan(Response):
    """The plan of an aggregate that waits or runs; ``states`` counts its moves.
    ``remaining_seconds`` is null where no past move tells how long one takes."""

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
    """The hosts of an aggregate, or the failure domains that they are in, by what would become of
    their servers if each were lost alone: all restart elsewhere (``fits``), do not
    (``does_not_fit``), or it is not known (``not_found``); of ``not_judged`` nothing was asked.
    ``level`` is that of the failure domains, null for hosts. Of those that fit, ``in_order`` also
    do in Nova's own order, and ``not_in_order`` do not. ``worst`` is the loss after which most
    servers restart nowhere, ``why`` says which; both are empty where there is none."""

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
    """An aggregate in scope. ``reason`` explains the outcome of its last evaluation.
    ``window_opens_at`` is null while its moves may be started. ``health`` is from 0 to 100, or null
    where it is not known. ``immovable`` counts the servers that Nova does not migrate live.
    ``repairs`` is the level of repairs of violated rules. ``domains`` maps levels of failure
    domains to how many of them its hosts are in, the largest first. ``losses`` are the verdicts on
    the loss of its hosts, then of failure domains; none where these were not judged."""

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
    """A process that reported. ``role`` is ``executor`` (in a conductor or by itself), ``engine``,
    ``room-filter`` (nova-scheduler with KronosFilter) or ``scheduler`` (nova-scheduler without)."""

    name: str
    role: str
    heard_at: Time
    is_alive: bool


class DrainState(Response):
    """A host that is being emptied, is empty, or waits to be released. ``blocked`` counts the
    servers that stay. ``remaining_seconds`` is null where no move off it is planned."""

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
    """The maintenance that is not done, with its hosts in order."""

    state: str
    requested_by: str
    hosts: list[MaintainedHost]


class Status(Response):
    """The state of Kronos. ``problems`` are the conditions, the worst first; ``severity`` is that
    of the first, or null. ``cloud`` is the name of the cloud, null where nova.conf has none.
    ``pauses`` are the pauses and stops in force, the oldest first. ``aggregates`` are null unless
    they were asked for."""

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
    """``aggregates`` adds those in scope to the answer, as of the same moment."""

    aggregates: bool = False


class OneAggregate(Request):
    """``aggregate`` is the name of an aggregate in scope."""

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
