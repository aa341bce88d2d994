"""The state of Kronos: conditions, aggregates and hosts."""

import msgspec

from kronos_client.contract import status as contract
from kronos_client.contract.base import Request
from kronos_nova.operations import health
from kronos_nova.operations import overview
from kronos_nova.operations import switching
from kronos_nova.services.context import Context


def show(context: Context, _request: Request) -> contract.Status:
    return contract.Status.made_from(_observer(context).read(), cloud=_cloud(context.conf))


def list_aggregates(context: Context, _request: Request) -> contract.Aggregates:
    observer = _observer(context)
    last, now = observer.cycles.last(), context.utcnow()
    hosts, drained = overview.hosts_measured(last), observer.drains(now)
    return contract.Aggregates(aggregates=[
        _measured(each, hosts.get(each.name, {}), drained)
        for each in observer.aggregates(last, now)])


def show_aggregate(context: Context, request: contract.OneAggregate) -> contract.Aggregate:
    """
    :raises NotInScope: Kronos does not look after such an aggregate
    """
    switching.refuse_unknown(context.conf, request.aggregate, is_single=True)
    return next(each for each in list_aggregates(context, Request()).aggregates
                if each.name == request.aggregate)


def _cloud(conf):
    """The name of the cloud, None where nova.conf has none."""
    return conf.kronos_api.cloud_name or conf.kronos_nova.region_name


def _observer(context):
    return overview.Observer(context.conf, context.database, context.utcnow)


def _measured(aggregate, hosts, drained):
    return msgspec.structs.replace(
        aggregate, hosts=hosts.get('hosts', 0), hot_hosts=hosts.get('hot_hosts', 0),
        immovable=hosts.get('immovable', 0),
        health=health.score(aggregate, hosts, drained))


FUNCTIONS = {contract.SHOW.name: show, contract.LIST_AGGREGATES.name: list_aggregates,
             contract.SHOW_AGGREGATE.name: show_aggregate}
