"""Operations on drains: check, begin, list and release drains."""

import dataclasses
import datetime
import typing
from collections.abc import Collection
from collections.abc import Mapping

from kronos_client.contract import drains as contract
from kronos_client.contract.base import OneHost
from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.db import drains as db_drains
from kronos_nova.drain import states as drains
from kronos_nova.executor.hosts import ServerOnHost
from kronos_nova.objects.snapshot import Service
from kronos_nova.services import names as known_names
from kronos_nova.services.context import Context

if typing.TYPE_CHECKING:    # importing numpy takes most of the time of a command
    from kronos_nova.drain import planning


def list_drains(context: Context, request: contract.ListDrains) -> contract.Drains:
    states = (*drains.ACTIVE, *drains.OVER, *drains.OPENED) if request.all else (
        *drains.ACTIVE, *drains.OVER, drains.RELEASING)
    found = db_drains.Drains(context.database).in_states(states)
    return contract.Drains(drains=[view(each) for each in found])


def show(context: Context, request: contract.OneDrain) -> contract.Drain:
    """Return a drain by its uuid.

    :raises DrainNotFound: there is no such drain
    """
    return view(db_drains.Drains(context.database).get(request.drain))


def begin(context: Context, request: contract.BeginDrains) -> contract.DrainsBegun:
    """Begin to drain hosts, or only check whether they can be drained.

    :raises NotInScope: a host is in no aggregate for which Kronos plans
    :raises HostDown: nova-compute of a host is down; no server can be migrated off such a host
    :raises DrainPending: a host is being drained, or waits to be released
    :raises DrainRefused: no server can leave its host; or an aggregate would have no host left that
        takes servers; or some servers could no longer restart elsewhere after the loss of another
        host or of a failure domain
    :raises RequestRefused: the deadline has passed, no host is named, or the policies file cannot
        be read
    :raises InventoryError: one of the hosts, or of the hosts in the cloud that may be in the
        failure domain, could not be read
    """
    # Imported late: planning takes half a second to load, which the other operations do not need.
    from kronos_nova.drain import orders
    from kronos_nova.objects import domains
    wish = orders.Wish(
        who=context.who, reason=request.reason, with_stopped=request.with_stopped,
        unmovable=request.unmovable, parallel=request.parallel,
        deadline=_later(request.deadline, context.utcnow()), keep_spare=request.keep_spare)
    checker = orders.Checker(context.conf, context.database, context.read_cloud,
                             context.planner_ports)
    snapshot, hosts = None, list(request.hosts)
    if request.domain is not None:
        snapshot = context.read_cloud()
        snapshot.refuse_unread()
        hosts += domains.needed_hosts_in(snapshot.hosts, request.domain)
    if not hosts:
        raise exception.RequestRefused(what='the request', problem='names no host',
                                       remedy='Name hosts, or a failure domain.')
    snapshot, checked = checker.check([wish.to_drain(host) for host in dict.fromkeys(hosts)],
                                      snapshot)
    names = known_names.of_cloud(snapshot)
    moves = [move for _name, _found, plan in checked for move in plan.report.moves]
    lowered = '' if request.force else checker.lowered_failover(snapshot, checked)
    begun = [] if request.check else orders.begin(
        context.database, snapshot, checked, request.force, lowered)
    refusal = orders.refusal(snapshot, checked, orders.drained(
        context.database)) if request.check and not request.force else ''
    return contract.DrainsBegun(
        refusal=refusal or lowered or None,
        checked=[_checked(each, plan, names) for _name, found, plan in checked for each in found],
        expected_seconds=checker.seconds(moves, request.parallel),
        down=orders.down(snapshot, hosts), drains=[view(each) for each in begun])


def release(context: Context, request: OneHost) -> contract.Drain:
    """Release a drained host, so that Nova may use it again.

    :raises DrainNotFound: Kronos has not drained the host
    :raises HostInService: a maintenance is servicing the host
    """
    from kronos_nova.drain import orders  # imported late, as above
    known = db_drains.Drains(context.database)
    drain = orders.releasable(known.database, request.host)
    orders.release(known, drain, context.who)
    return view(dataclasses.replace(drain, state=drains.RELEASING))


def occupied(context: Context, request: OneHost) -> contract.Occupancy:
    """Return the servers that still occupy a host. A server that was migrated or resized to another
    host still counts until the migration is confirmed or reverted.

    :raises HostNotFound: Nova has no such host
    """
    api = context.host_api()
    service = api.service(request.host)
    drain = db_drains.Drains(context.database).latest(request.host)
    if service is None:
        is_drained = drain is not None and drain.state in (*drains.ACTIVE, *drains.OVER)
        raise exception.HostNotFound(
            what=f'Host {request.host}', problem='Nova has no nova-compute of that name',
            remedy=f'"host release {request.host}" ends its drain.' if is_drained else
                   '"openstack compute service list" shows the names.')
    servers = api.servers_on(request.host)
    state = _occupancy(service, servers, drain)
    return contract.Occupancy(
        host=request.host, state=state, drain=None if drain is None else view(drain),
        is_over=state == contract.EMPTY or drain is None or drain.state not in drains.ACTIVE,
        service=contract.ComputeService.made_from(service),
        servers=[contract.ServerOnHost.made_from(each, name=boundary.shown(each.name))
                 for each in servers])


def _occupancy(service: Service, servers: Collection[ServerOnHost],
               drain: drains.Drain | None) -> str:
    if not [each for each in servers
            if drain is None or not drain.has_stopped(each.uuid, each.status)]:
        # The drain may not have disabled the host yet, or a server is still migrating to it.
        return contract.NOT_EMPTY if drain and drain.state in drains.ACTIVE else contract.EMPTY
    if service.state != 'up':
        return contract.DOWN
    if drain and (drain.state == drains.BLOCKED or (
            drain.state == drains.EMPTY and all(each.is_unsettled for each in servers))):
        return contract.BLOCKED
    return contract.NOT_EMPTY


def view(found: drains.Drain) -> contract.Drain:
    return contract.Drain.made_from(found, blocked=dict(found.blocked),
                                    stopped=dict(found.stopped))


def _later(deadline: datetime.datetime | None,
           now: datetime.datetime) -> datetime.datetime | None:
    """Convert the deadline of a drain to UTC, and return it; None if ``deadline`` is None.

    :raises RequestRefused: the deadline has passed
    """
    if deadline is None:
        return None
    found = deadline.astimezone(datetime.UTC)
    if found <= now:
        raise exception.RequestRefused(what='deadline',
                                       problem='has passed already',
                                       remedy='Give a time in the future.')
    return found


def _checked(drain: drains.Drain, plan: 'planning.DrainPlan',
             names: Mapping[str, str]) -> contract.CheckedHost:
    from kronos_nova.drain import orders  # imported late, as above
    leaving = orders.leaving(plan, drain.host)
    blocked, interrupted, stopped = (
        part.get(drain.host, {}) for part in (plan.blocked, plan.interrupted, plan.to_stop))
    return contract.CheckedHost(
        host=drain.host, servers=plan.left[drain.host], leaving=len(leaving),
        cold=sum(move.instance_uuid in plan.cold for move in leaving),
        memory_mb=sum(move.memory_mb for move in leaving),
        destinations=orders.destinations(leaving), blocked=dict(blocked),
        interrupted=dict(interrupted), stopped=dict(stopped),
        names={uuid: names[uuid] for uuid in (*blocked, *interrupted, *stopped)})


FUNCTIONS = {contract.LIST.name: list_drains, contract.SHOW.name: show,
             contract.BEGIN.name: begin, contract.RELEASE.name: release,
             contract.OCCUPIED.name: occupied}
