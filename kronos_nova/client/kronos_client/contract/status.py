"""Operations on the state of Kronos: conditions that need an operator, aggregates, workers and
drains."""

from kronos_client.contract.automation import Pause
from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Request
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import Operation

NOTICE, WARNING, CRITICAL = 'notice', 'warning', 'critical'
"""Severities of conditions. ``notice``: an operator has intended the condition. ``warning``: an
operator should examine the condition. ``critical``: an operator has to repair the cause."""

SEVERITIES = (CRITICAL, WARNING, NOTICE)
"""All severities, the highest first."""


class Problem(Response):
    """A condition that an operator should know of, and its remedy. ``since`` is the time at which
    the condition began; null if unknown."""

    severity: str
    what: str
    remedy: str
    since: Maybe = None


class Policy(Response):
    """A policy at the last evaluation of an aggregate. ``imbalance`` is null if there was no data.
    ``forecast`` is a text with the forecast imbalance and the error of past forecasts, or with the
    reason why the forecast was not used; empty if the policy has no forecast."""

    name: str
    imbalance: float | None
    threshold: float
    detail: str = ''
    forecast: str = ''


class OpenPlan(Response):
    """A plan that waits or runs in an aggregate. ``states`` maps each state to the number of the
    plan's moves in this state. ``remaining_seconds`` is null if past moves permit no prediction, or
    if a move takes far longer than predicted. ``waits_for`` is the reason why an approved plan is
    not started yet; null if none is known."""

    uuid: str
    state: str
    purpose: str
    created_at: Time
    expires_at: Time
    approved_by: str | None
    moves: int
    states: dict[str, int]
    remaining_seconds: float | None
    waits_for: str | None


class Losses(Response):
    """The consequences of the loss of each host of an aggregate, or of each failure domain at one
    level. Each loss is examined alone.

    ``fits`` is the number of losses after which all servers can restart elsewhere. ``does_not_fit``
    is the number of losses after which some servers cannot restart. Only hosts of the aggregates
    that were evaluated at the same time are considered. ``not_found`` is the number of losses for
    which it could not be proven whether all servers can restart. ``not_judged`` is the number of
    losses that were not examined.

    ``fits`` only means that there is a host for each server if the hosts are chosen well. Nova's
    scheduler chooses a host for one server after the other, and may use up the room that another
    server needs. ``in_order`` is the number of losses in ``fits`` after which all servers restart
    even if Nova chooses their hosts. ``not_in_order`` is the number of losses in ``fits`` after
    which some servers do not restart if Nova chooses their hosts.

    ``level`` is the level of the failure domains; null for hosts. ``worst`` is the host or domain
    after whose loss the largest number of servers cannot restart, and ``why`` is the reason; both
    are empty if all servers restart after every loss.
    """

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
    """An aggregate in scope, and its last evaluation. ``reason`` explains the outcome of the
    evaluation. ``window_opens_at`` is the time at which the maintenance window of the aggregate
    opens; null while moves may be started. ``health`` is from 0 to 100. ``hosts`` is the number of
    hosts with measured load, ``hot_hosts`` the number of hosts with a score above 0.9, and
    ``immovable`` the number of servers that Nova cannot migrate live. These four are null if they
    are unknown, such as before the first evaluation. ``repairs`` is the level of repairs of
    violated rules. ``domains`` maps each level of failure domains, the largest first,
    to the number of domains of the aggregate's hosts. ``losses`` are the consequences of losses of
    hosts, and then of failure domains at each level; empty if no loss was examined."""

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
    hosts: int | None = None
    hot_hosts: int | None = None
    immovable: int | None = None
    repairs: str = ''
    domains: dict[str, int] = {}
    losses: list[Losses] = []


class Aggregates(Response):
    aggregates: list[Aggregate]


class Worker(Response):
    """A process that reports to the control database: a process of Kronos, or a nova-scheduler.
    ``role`` is one of four words:

    * ``engine``: a service kronos-engine, which makes plans
    * ``executor``: a process that carries out moves, in nova-conductor or as a service of its own
    * ``room-filter``: a nova-scheduler with KronosFilter
    * ``scheduler``: a nova-scheduler without KronosFilter"""

    name: str
    role: str
    heard_at: Time
    is_alive: bool


class DrainState(Response):
    """A host that is being emptied, or that is empty and waits for its release. ``blocked`` is the
    number of servers that cannot leave. ``remaining_seconds`` is null if no move off the host is
    planned, or if a move takes far longer than predicted. ``waits_for`` is a text about other
    reasons why the drain waits. ``waits_in_vain`` is true if no evaluation plans the drain until an
    operator does something."""

    host: str
    aggregate: str
    state: str
    requested_by: str
    left: int | None
    blocked: int
    remaining_seconds: float | None = None
    waits_for: str = ''
    waits_in_vain: bool = False


class MaintainedHost(Response):
    host: str
    state: str


class MaintenanceState(Response):
    """The maintenance in progress, and its hosts in the order in which they are serviced."""

    state: str
    requested_by: str
    hosts: list[MaintainedHost]


class Status(Response):
    """The state of Kronos. ``problems`` are conditions that an operator should know of, the most
    severe first; ``severity`` is the highest of their severities, null for none. ``cloud`` is the
    name of the cloud; null if nova.conf has none. ``pauses`` are the pauses and stops in force, the
    oldest first. ``aggregates`` is null unless the request asks for them."""

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
    scope as well, read at the same time."""

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
