"""The loads and numbers of servers of an aggregate's hosts in an evaluation."""

import collections
import dataclasses
import json
from collections.abc import Mapping

from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.snapshot import Service
from kronos_nova.objects.snapshot import Snapshot

UP, DISABLED, DOWN, FORCED_DOWN = 'up', 'disabled', 'down', 'forced down'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """The state, number of servers and scores of a host in an evaluation.

    ``state`` is ``up``, ``disabled``, ``down`` or ``forced down``. ``servers_after`` is the number
    of servers after the plan of the evaluation. ``scores`` maps each policy that has data of the
    host to (score before the plan, score after the plan). ``domains`` maps each level to the
    failure domain of the host, the largest domain first.
    """

    name: str
    state: str
    servers: int
    servers_after: int
    scores: Mapping[str, tuple[float, float]]
    domains: Mapping[str, str] = dataclasses.field(default_factory=dict)


class HostLoads:
    """The loads of the hosts of all aggregates in one evaluation. The servers of each host are
    counted once, when the object is made."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._hosts = {host.name: host for host in snapshot.hosts}
        self._servers = collections.Counter(instance.host for instance in snapshot.instances)

    def of_aggregate(self, report: AggregateReport) -> list[HostLoad]:
        """Return the loads of all hosts of an aggregate, sorted by name."""
        gained: collections.Counter[str] = collections.Counter()
        scores: dict[str, dict[str, tuple[float, float]]] = collections.defaultdict(dict)
        for move in report.moves:
            gained[move.source] -= 1
            gained[move.destination] += 1
        for score in report.host_scores:
            scores[score.host][score.policy] = (score.value, score.after)
        return [HostLoad(
            name=name, state=state(self._hosts[name].service), servers=self._servers[name],
            servers_after=self._servers[name] + gained[name], scores=scores.get(name, {}),
            domains=self._hosts[name].domains)
            for name in self._snapshot.hosts_of(report.name)]


def state(service: Service) -> str:
    if service.is_available:
        return UP
    if service.forced_down:
        return FORCED_DOWN
    return DISABLED if service.state == 'up' else DOWN


def to_json(loads: list[HostLoad]) -> str:
    """Return the loads of hosts as JSON. Each host is a list: [name, state, number of servers,
    number of servers after the plan, scores], followed by the failure domains if the host has any.
    Lists keep the JSON short, because there may be thousands of hosts."""
    return json.dumps([[load.name, load.state, load.servers, load.servers_after, {
        policy: [round(value, 4), round(after, 4)]
        for policy, (value, after) in load.scores.items()},
        *([dict(load.domains)] if load.domains else [])] for load in loads])


def name_in_json(name: str) -> str:
    """Return the name of a host as :func:`to_json` writes it, for searches in the JSON of loads."""
    return json.dumps(name)


def from_json(text: str) -> list[HostLoad]:
    return [HostLoad(name=name, state=state, servers=servers, servers_after=after, scores={
        policy: tuple(pair) for policy, pair in scores.items()}, domains=dict(*domains))
        for name, state, servers, after, scores, *domains in json.loads(text)]
