"""The hosts of an aggregate in an evaluation, with their loads and numbers of servers."""

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
    """A host in an evaluation: its state (``up``, ``disabled``, ``down`` or ``forced down``), its
    number of servers and its scores.

    ``servers_after`` is the number of servers after the plan of the evaluation. ``scores`` maps
    each policy that has data of the host to (score before the plan, score after the plan).
    ``domains`` maps each level to the failure domain of the host, the largest level first.
    """

    name: str
    state: str
    servers: int
    servers_after: int
    scores: Mapping[str, tuple[float, float]]
    domains: Mapping[str, str] = dataclasses.field(default_factory=dict)


class HostLoads:
    """The loads of the hosts of all aggregates of one evaluation. The servers on each host are
    counted once, for all aggregates."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._hosts = {host.name: host for host in snapshot.hosts}
        self._servers = collections.Counter(instance.host for instance in snapshot.instances)

    def of_aggregate(self, report: AggregateReport) -> list[HostLoad]:
        """Return all hosts of the aggregate, in the order of their names."""
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
    """Return JSON in a short form, because there may be thousands of hosts: [[name, state, servers,
    servers after, scores]], with the domains at the end where there are any."""
    return json.dumps([[load.name, load.state, load.servers, load.servers_after, {
        policy: [round(value, 4), round(after, 4)]
        for policy, (value, after) in load.scores.items()},
        *([dict(load.domains)] if load.domains else [])] for load in loads])


def name_in_json(name: str) -> str:
    """Return the name of a host as :func:`to_json` writes it."""
    return json.dumps(name)


def from_json(text: str) -> list[HostLoad]:
    return [HostLoad(name=name, state=state, servers=servers, servers_after=after, scores={
        policy: tuple(pair) for policy, pair in scores.items()}, domains=dict(*domains))
        for name, state, servers, after, scores, *domains in json.loads(text)]
