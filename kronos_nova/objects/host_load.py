"""The hosts of an aggregate as an evaluation saw them."""

import collections
import dataclasses
import json
from collections.abc import Iterable
from collections.abc import Mapping

from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Service

UP, DISABLED, DOWN, FORCED_DOWN = 'up', 'disabled', 'down', 'forced down'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """A host, whether it is ``up``, ``disabled``, ``down`` or ``forced down``, and how many servers
    it has.

    ``servers_after`` and the second of each two figures are what the plan of that evaluation leads
    to. ``scores`` : {policy: (before, after)}, fractions; a policy that has no data of the host is
    not there.
    """

    name: str
    state: str
    servers: int
    servers_after: int
    scores: Mapping[str, tuple[float, float]]


def of(report: AggregateReport, hosts: Iterable[Host],
       servers: Mapping[str, int]) -> list[HostLoad]:
    """
    :param hosts: those of the aggregate, in the order that is wanted
    :param servers: {host: servers on it} before any move
    """
    gained, scores = collections.Counter(), collections.defaultdict(dict)
    for move in report.moves:
        gained[move.source] -= 1
        gained[move.destination] += 1
    for score in report.host_scores:
        scores[score.host][score.policy] = (score.value, score.after)
    return [HostLoad(
        name=host.name, state=state(host.service), servers=servers.get(host.name, 0),
        servers_after=servers.get(host.name, 0) + gained[host.name],
        scores=scores.get(host.name, {})) for host in hosts]


def state(service: Service) -> str:
    if service.is_available:
        return UP
    if service.forced_down:
        return FORCED_DOWN
    return DISABLED if service.state == 'up' else DOWN


def to_json(loads: list[HostLoad]) -> str:
    """Short, for there may be thousands: [[name, state, servers, servers after, scores]]."""
    return json.dumps([[load.name, load.state, load.servers, load.servers_after, {
        policy: [round(value, 4), round(after, 4)]
        for policy, (value, after) in load.scores.items()}] for load in loads])


def from_json(text: str) -> list[HostLoad]:
    return [HostLoad(name=name, state=state, servers=servers, servers_after=after, scores={
        policy: tuple(pair) for policy, pair in scores.items()})
        for name, state, servers, after, scores in json.loads(text)]
