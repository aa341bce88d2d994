"""Operations that change something. Each is what a command does, by the same function."""

import datetime
from typing import Annotated

import msgspec

from kronos_nova import exception
from kronos_nova.api import reading
from kronos_nova.api import views as v
from kronos_nova.api.call import Call
from kronos_nova.api.call import Operation
from kronos_nova.contract.operation import OPERATOR
from kronos_nova.db import drains as db_drains
from kronos_nova.operations import draining


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of what stands in the body of a request."""


class DrainWish(Given):
    """Hosts to empty, all or none. With ``check`` nothing is changed. ``force`` drains hosts that
    nothing can leave, and the last hosts of an aggregate."""

    hosts: Annotated[list[v.Name], msgspec.Meta(min_length=1, max_length=100)]
    check: bool = False
    force: bool = False
    reason: v.Reason = ''
    with_stopped: bool = False
    parallel: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    deadline: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = None
    keep_spare: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0


class CheckedHost(v.View):
    """What can leave a host, where to, and what cannot and why."""

    host: str
    servers: int
    leaving: int
    memory_mb: int
    destinations: dict[str, int]
    blocked: dict[str, str]


class DrainsBegun(v.View):
    """``drains`` is empty where it was only checked; ``expected_seconds`` is null where
    nothing can leave."""

    checked: list[CheckedHost]
    expected_seconds: float | None
    drains: list[v.Drain]


def drain_hosts(call: Call) -> DrainsBegun:
    services, body = call.services, call.body
    wish = draining.Wish(
        who=call.who, reason=body.reason, with_stopped=body.with_stopped, parallel=body.parallel,
        deadline=_later(body.deadline, services.utcnow()), keep_spare=body.keep_spare)
    checker = draining.Checker(services.conf, services.database, services.read_cloud,
                               services.planner_ports)
    snapshot, checked = checker.check([wish.of(host) for host in dict.fromkeys(body.hosts)])
    moves = [move for _name, _found, plan in checked for move in plan.report.moves]
    begun = [] if body.check else draining.begin(
        services.database, snapshot, checked, body.force)
    return DrainsBegun(
        checked=[_checked(each, plan) for _name, found, plan in checked for each in found],
        expected_seconds=checker.seconds(moves, body.parallel),
        drains=[reading.drain_view(each) for each in begun])


def _later(deadline, now):
    """The deadline in UTC.

    :raises RequestRefused: it is over
    """
    if deadline is None:
        return None
    try:
        found = deadline.astimezone(datetime.UTC)
    except OverflowError:
        found = now     # It is of the first or the last day of all calendars.
    if found <= now:
        raise exception.RequestRefused(what='deadline', problem='is over already, or never',
                                       remedy='Give a time to come.')
    return found


def _checked(drain, plan):
    leaving = draining.leaving(plan, drain.host)
    return CheckedHost(
        host=drain.host, servers=plan.left[drain.host], leaving=len(leaving),
        memory_mb=sum(move.memory_mb for move in leaving),
        destinations=draining.destinations(leaving), blocked=dict(plan.blocked.get(drain.host, {})))


def release_host(call: Call) -> v.Drain:
    known = db_drains.Drains(call.services.database)
    drain = draining.releasable(known.database, call.path['host'])
    draining.release(known, drain, call.who)
    return reading.drain_view(known.get(drain.uuid))


OPERATIONS = (
    Operation(method='POST', path='/v1/drains', name='drains:begin', run=drain_hosts,
              gives=DrainsBegun, body=DrainWish, audience=OPERATOR, status=202, is_slow=True,
              refusals=(404, 409),
              summary='Empty hosts, or only say whether and where everything fits.'),
    Operation(method='POST', path='/v1/hosts/{host}/release', name='drains:release',
              run=release_host, gives=v.Drain, audience=OPERATOR, status=202, refusals=(404, 409),
              summary='Enable a host that a drain disabled; a drain that is under way ends.'),
)
