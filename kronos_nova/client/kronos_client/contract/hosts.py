"""Operations on hosts: their states and loads in the last evaluations."""

from kronos_client.contract.base import Name
from kronos_client.contract.base import OneHost
from kronos_client.contract.base import Page
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_client.contract.operation import Operation


class HostScore(Response):
    """The last score of a host in a policy: its load as a fraction of its capacity."""

    policy: str
    value: float
    measured_at: Time


class Host(Response):
    """A host, as of the last evaluation of its aggregate.

    aggregates : names of the aggregates in scope to which the host belongs
    state : ``up``, ``disabled``, ``down`` or ``forced down``; null before the first evaluation
    servers : number of servers on the host; null before the first evaluation
    domains : {level of failure domains: domain of the host}, the largest level first
    """

    name: str
    aggregates: list[str]
    state: str | None
    servers: int | None
    scores: list[HostScore]
    domains: dict[str, str]


class Hosts(Response):
    """A page of hosts. ``next`` is the marker of the next page; null on the last page."""

    hosts: list[Host]
    next: str | None


class ListHosts(Page):
    """A request to list hosts whose names contain ``name``. Upper and lower case are not
    distinguished."""

    name: Name | None = None


LIST = Operation(
    name='hosts:list', method='GET', path='/v1/hosts', request=ListHosts, response=Hosts,
    summary='Every host with its aggregates, its state and its last scores, by name.')
SHOW = Operation(
    name='hosts:show', method='GET', path='/v1/hosts/{host}', request=OneHost, response=Host,
    refusals=(404,), summary='One host: its aggregates, its state and its last scores.')

OPERATIONS = (LIST, SHOW)
