"""The state of Kronos: conditions, aggregates and hosts."""

import msgspec

from kronos_client.contract import status as contract
from kronos_client.contract.base import Page
from kronos_client.contract.base import Request
from kronos_nova.db import pagination
from kronos_nova.operations import health
from kronos_nova.operations import overview
from kronos_nova.operations import switching
from kronos_nova.services import pages
from kronos_nova.services.context import Context


def show(context: Context, _request: Request) -> contract.Status:
    return contract.Status.made_from(_observer(context).read())


def list_aggregates(context: Context, _request: Request) -> contract.Aggregates:
    observer = _observer(context)
    last = observer.cycles.last()
    found, hosts = observer.read_with(last), overview.hosts_measured(last)
    return contract.Aggregates(aggregates=[
        _measured(each, hosts.get(each.name, {}), found.drains) for each in found.aggregates])


def show_aggregate(context: Context, request: contract.OneAggregate) -> contract.Aggregate:
    """
    :raises NotInScope: Kronos does not look after such an aggregate
    """
    switching.refuse_unknown(context.conf, request.aggregate, is_single=True)
    return next(each for each in list_aggregates(context, Request()).aggregates
                if each.name == request.aggregate)


def list_hosts(context: Context, request: Page) -> contract.Hosts:
    found = pagination.scores(context.database, request.limit, request.marker)
    return contract.Hosts(next=pages.marker_of(list(found), request), hosts=[
        contract.Host(name=host, scores=[
            contract.HostScore(policy=row.policy, value=row.value, measured_at=row.at)
            for row in rows]) for host, rows in found.items()])


def _observer(context):
    return overview.Observer(context.conf, context.database, context.utcnow)


def _measured(aggregate, hosts, drained):
    return msgspec.structs.replace(
        aggregate, hosts=hosts.get('hosts', 0), hot_hosts=hosts.get('hot_hosts', 0),
        health=health.score(aggregate, hosts, drained))


FUNCTIONS = {contract.SHOW.name: show, contract.LIST_AGGREGATES.name: list_aggregates,
             contract.SHOW_AGGREGATE.name: show_aggregate, contract.LIST_HOSTS.name: list_hosts}
