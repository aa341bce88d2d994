"""The estimate of the contention as if Kronos had not balanced load. Contention is the number of
hot hosts, and the number of servers on full hosts.

The estimate leaves out the moves that relieve, spread or pack hosts (moves by load). It computes
the scores of hosts as if each server were still on the host where it was before such moves. Servers
have their present loads, because the demand of a server does not depend on the moves.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kronos_nova.objects import plan as plans

if TYPE_CHECKING:
    from kronos_nova.cycle.aggregates import Scope
    from kronos_nova.cycle.metrics import Load

Homes = Mapping[str, tuple[str, str]]
"""{uuid of a moved server: (its present host, its host without the moves)}"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CompletedMove:
    """A completed move, with the phase in which it was planned."""

    instance_uuid: str
    source: str
    destination: str
    phase: str


def homes(past: Iterable[CompletedMove], hosts: Mapping[str, str]) -> Homes:
    """Return {uuid of a server: (its present host, the host on which it would be without Kronos'
    moves by load)}, for servers whose two hosts differ. Moves by load are moves that relieve,
    spread or pack hosts.

    Moves that empty a host or repair a group are assumed to be made in any case. A server is left
    out if its last move was of this kind, or if another party has moved the server since.

    :param past: moves in the order of their ends
    :param hosts: {uuid of a server: its host}
    """
    found: dict[str, tuple[str, str]] = {}
    for move in past:
        at, home = found.pop(move.instance_uuid, (None, None))
        if move.phase in plans.BY_LOAD:
            found[move.instance_uuid] = (
                move.destination, home if home and at == move.source else move.source)
    return {uuid: (at, home) for uuid, (at, home) in found.items()
            if hosts.get(uuid) == at != home}


def contention(scope: 'Scope', load: 'Load', places: Homes) -> plans.Contention | None:
    """Return the estimated contention without Kronos' moves by load; None if no host is measured.
    Contention is the number of hot hosts, and the number of servers on full hosts.

    The scores are computed as if each server in ``places`` were on the host where it would be
    without these moves. If that host is not available or has no score, the server is counted on its
    present host.

    :param places: the result of :func:`homes`
    """
    if not load.policies or load.weights is None:
        return None
    scores, servers = load.scores.copy(), scope.vm_host.copy()
    index = {name: position for position, name in enumerate(scope.host_names)}
    scale = np.where(np.isnan(load.host_scale), 1.0, load.host_scale)
    weights = np.nan_to_num(load.weights)
    is_open = scope.available & load.measured
    for vm, instance in enumerate(scope.instances):
        if instance.uuid not in places:
            continue
        at, home = places[instance.uuid]
        here, there = servers[vm], index.get(home)
        # Moves of this evaluation may have placed it elsewhere; its load is not there yet.
        if there is None or instance.host != at or not is_open[there]:
            continue
        scores[here] -= weights[vm] * scale[here]
        scores[there] += weights[vm] * scale[there]
        servers[vm] = there
    known = ~np.isnan(scores).all(axis=1)
    if not known.any():
        return None
    highest = np.nanmax(np.where(known[:, None], scores, 0.0), axis=1)
    return plans.Contention.of_hosts(zip(
        np.bincount(servers, minlength=len(index)).tolist(), highest.tolist(), strict=True))
