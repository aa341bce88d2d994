"""The hosts of an aggregate as an evaluation saw them."""

import dataclasses
import json
from collections.abc import Mapping

from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.snapshot import Service
from kronos_nova.objects.snapshot import Snapshot

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


def of(report: AggregateReport, snapshot: Snapshot, servers: Mapping[str, int]) -> list[HostLoad]:
    """All hosts of the aggregate, in the order of their names.

    :param servers: {host: servers on it} before any move
    """
    gained, scores = dict.fromkeys(snapshot.hosts_of(report.name), 0), {}
    for move in report.moves:
        gained[move.source] = gained.get(move.source, 0) - 1
        gained[move.destination] = gained.get(move.destination, 0) + 1
    for score in report.host_scores:
        scores.setdefault(score.host, {})[score.policy] = (score.value, score.after)
    inside = {*snapshot.hosts_of(report.name)}
    return [HostLoad(
        name=host.name, state=state(host.service), servers=servers.get(host.name, 0),
        servers_after=servers.get(host.name, 0) + gained[host.name],
        scores=scores.get(host.name, {}))
        for host in sorted(snapshot.hosts, key=lambda host: host.name) if host.name in inside]


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
