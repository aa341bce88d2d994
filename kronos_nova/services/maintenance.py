"""Operations on the maintenance in progress: show, stop or end the maintenance, and record that a
host was serviced."""

import datetime

from kronos_client.contract import maintenance as contract
from kronos_client.contract.base import OneHost
from kronos_client.contract.base import Request
from kronos_nova import exception
from kronos_nova.db.drains import Drains
from kronos_nova.db.maintenances import Maintenances
from kronos_nova.drain import states as drains
from kronos_nova.objects import maintenance as m
from kronos_nova.services.context import Context

SILENT = datetime.timedelta(seconds=30)
"""Time (30 seconds) without a sign of life after which the process that runs a maintenance counts
as dead. Another process may then run the maintenance. Raised, a maintenance whose process died
waits longer; lowered, a process that is alive, but is reading a large cloud, may lose its
maintenance. Chosen as several times the interval between two checks of a running maintenance."""


def show(context: Context, _request: Request) -> contract.Maintenance:
    """Return the maintenance in progress.

    :raises MaintenanceNotFound: no maintenance is in progress
    """
    return _view(context, Maintenances(context.database).open())


def stop(context: Context, _request: Request) -> contract.Maintenance:
    """Stop the maintenance in progress. The maintenance can be continued later.

    :raises MaintenanceNotFound: no maintenance is in progress
    """
    return _to(context, m.STOPPED)


def end(context: Context, _request: Request) -> contract.Maintenance:
    """End the maintenance in progress.

    :raises MaintenanceNotFound: no maintenance is in progress
    """
    return _to(context, m.DONE)


def done(context: Context, request: OneHost) -> contract.Maintenance:
    """Record that a host of the maintenance in progress was serviced.

    :raises MaintenanceNotFound: no maintenance is in progress
    :raises HostInService: the hook (the command that services the host) still runs; or the host is
        not in a state in which it is serviced, for example because it is not empty yet
    """
    maintenances = Maintenances(context.database)
    found, host = maintenances.open(), request.host
    if is_run(context, found) and found.options.hook and found.hosts.get(host) == m.HOOK:
        raise exception.HostInService(
            what=f'Host {host}', problem='is being serviced by a hook that still runs',
            remedy='Wait for the hook: once it ends with 0, the host counts as serviced.')
    if not maintenances.set_host(found.uuid, host, m.RETURNING, (m.HOOK, m.FAILED)):
        raise exception.HostInService(
            what=f'Host {host}',
            problem=f'is {found.hosts.get(host, "no host of this maintenance")}, so it does not '
                    'wait to be serviced',
            remedy='"kronos-manage maintenance show" has the hosts and their states.')
    return _view(context, maintenances.get(found.uuid))


def is_run(context: Context, found: m.Maintenance) -> bool:
    """Return whether a process that is alive runs a maintenance. The result is False if no process
    runs the maintenance, or if the process that ran it counts as dead."""
    return (found.runner is not None and found.runner_at is not None
            and found.runner_at >= context.utcnow() - SILENT)


def _to(context: Context, state: str) -> contract.Maintenance:
    """Set the state of the maintenance in progress, and return the maintenance.

    :raises MaintenanceNotFound: no maintenance is in progress, or it has ended meanwhile
    """
    maintenances = Maintenances(context.database)
    found = maintenances.open()
    if not maintenances.set_state(found.uuid, state):
        raise exception.MaintenanceNotFound
    return _view(context, maintenances.get(found.uuid))


def _view(context: Context, found: m.Maintenance) -> contract.Maintenance:
    drained = Drains(context.database).latest_of(found.hosts)
    return contract.Maintenance.made_from(
        found, serviced=found.serviced, expected_end=found.expected_end(context.utcnow()),
        is_run=is_run(context, found),
        hosts=[_host(host, state, drained.get(host)) for host, state in found.hosts.items()])


def _host(name: str, state: str, drain: drains.Drain | None) -> contract.HostInMaintenance:
    if drain is None or state == m.WAITING:
        return contract.HostInMaintenance(host=name, state=state, left=None, blocked=None,
                                          is_released=False)
    return contract.HostInMaintenance(
        host=name, state=state, left=drain.left, blocked=len(drain.blocked),
        is_released=drain.state in drains.OPENED)


FUNCTIONS = {contract.SHOW.name: show, contract.STOP.name: stop, contract.END.name: end,
             contract.DONE.name: done}
