"""Operations that show the status of Kronos: its problems, and the state of each aggregate."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

import msgspec
from oslo_config import cfg

from kronos_client.contract import status as contract
from kronos_client.contract.base import Request
from kronos_nova.db import models
from kronos_nova.operations import health
from kronos_nova.operations import overview
from kronos_nova.operations import switching
from kronos_nova.services.context import Context


def show(context: Context, request: contract.ShowStatus) -> contract.Status:
    observer = _observer(context)
    last = observer.cycles.last()
    found = observer.read(last)
    return contract.Status.made_from(
        found, cloud=_cloud(context.conf), aggregates=_all_measured(
            found.aggregates, last, found.drains) if request.aggregates else None)


def list_aggregates(context: Context, _request: Request) -> contract.Aggregates:
    observer = _observer(context)
    last, now = observer.cycles.last(), context.utcnow()
    drained = observer.drains(now)
    return contract.Aggregates(aggregates=_all_measured(
        observer.aggregates(last, drained, now), last, drained))


def show_aggregate(context: Context, request: contract.OneAggregate) -> contract.Aggregate:
    """Return the status of an aggregate.

    :raises NotInScope: Kronos does not plan for this aggregate
    """
    switching.refuse_unknown(context.conf, request.aggregate, is_single=True)
    return next(each for each in list_aggregates(context, Request()).aggregates
                if each.name == request.aggregate)


def _cloud(conf: cfg.ConfigOpts) -> str | None:
    """Return the name of the cloud; None if nova.conf does not name the cloud."""
    return conf.kronos_api.cloud_name or conf.kronos_nova.region_name


def _observer(context: Context) -> overview.Observer:
    return overview.Observer(context.conf, context.database, context.utcnow)


def _all_measured(aggregates: Iterable[contract.Aggregate], last: Collection[models.CycleRow],
                  drained: Collection[contract.DrainState]) -> list[contract.Aggregate]:
    hosts = overview.hosts_measured(last)
    return [_measured(each, hosts.get(each.name, {}), drained) for each in aggregates]


def _measured(aggregate: contract.Aggregate, hosts: Mapping[str, int],
              drained: Collection[contract.DrainState]) -> contract.Aggregate:
    return msgspec.structs.replace(
        aggregate, hosts=hosts.get('hosts'), hot_hosts=hosts.get('hot_hosts'),
        immovable=hosts.get('immovable'),
        health=health.score(aggregate, hosts, drained))


FUNCTIONS = {contract.SHOW.name: show, contract.LIST_AGGREGATES.name: list_aggregates,
             contract.SHOW_AGGREGATE.name: show_aggregate}
