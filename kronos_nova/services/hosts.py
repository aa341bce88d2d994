"""Operations on hosts: list and show hosts, with the results of the last evaluations."""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from kronos_client.contract import hosts as contract
from kronos_client.contract.base import OneHost
from kronos_nova import exception
from kronos_nova.cycle import aggregates
from kronos_nova.db import evaluations
from kronos_nova.db import scores
from kronos_nova.objects.host_load import HostLoad
from kronos_nova.services import pages
from kronos_nova.services.context import Context


def list_hosts(context: Context, request: contract.ListHosts) -> contract.Hosts:
    found, part = _found(context), (request.name or '').lower()
    names = sorted(name for name in found if part in name.lower()
                   and (request.marker is None or name > request.marker))
    page, following = pages.first_page(names, request, str)
    return contract.Hosts(hosts=_views(context, found, page), next=following)


def show(context: Context, request: OneHost) -> contract.Host:
    """Return a host with its loads and scores in the last evaluations.

    :raises HostNotFound: the host was in no evaluation
    """
    in_scope = {*aggregates.aggregates_in_scope(context.conf)}
    loads = {aggregate: load for aggregate, load in evaluations.Evaluations(
        context.database).host(request.host).items() if aggregate in in_scope}
    scored = scores.Scores(context.database).of_hosts([request.host]).get(request.host, [])
    if not loads and not scored:
        raise exception.HostNotFound(
            what=f'Host {request.host}', problem='was in no aggregate in scope at the last '
            'evaluations',
            remedy='"openstack compute service list" shows the names that Nova knows.')
    return _view(request.host, loads, scored)


def _found(context: Context) -> dict[str, dict[str, HostLoad]]:
    """Return {host: {aggregate: HostLoad}} of the hosts that were evaluated or have a score.
    Aggregates for which Kronos does not plan are left out. A host that only belongs to such
    aggregates has an empty dict."""
    in_scope = {*aggregates.aggregates_in_scope(context.conf)}
    found: dict[str, dict[str, HostLoad]] = collections.defaultdict(dict)
    for aggregate, loads in evaluations.Evaluations(context.database).all_hosts().items():
        for load in loads if aggregate in in_scope else ():
            found[load.name][aggregate] = load
    return {**dict.fromkeys(scores.Scores(context.database).hosts(), {}), **found}


def _views(context: Context, found: dict[str, dict[str, HostLoad]],
           names: Collection[str]) -> list[contract.Host]:
    scored = scores.Scores(context.database).of_hosts(names)
    return [_view(name, found[name], scored.get(name, ())) for name in names]


def _view(name: str, loads: Mapping[str, HostLoad],
          scored: Iterable[Any]) -> contract.Host:
    load = next(iter(loads.values()), None)
    return contract.Host(
        name=name, aggregates=sorted(loads), state=None if load is None else load.state,
        servers=None if load is None else load.servers,
        domains=dict(load.domains) if load else {}, scores=[
            contract.HostScore(policy=row.policy, value=row.value, measured_at=row.at)
            for row in scored])


FUNCTIONS = {contract.LIST.name: list_hosts, contract.SHOW.name: show}
