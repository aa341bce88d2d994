"""Operations that change nothing."""


from kronos_nova.api import views as v
from kronos_nova.api.call import Call
from kronos_nova.api.call import Operation
from kronos_nova.db import drains as db_drains
from kronos_nova.db import maintenances as db_maintenances
from kronos_nova.objects import drain as drains


def _maintained(hosts):
    return [v.MaintainedHost(host=host, state=state) for host, state in hosts.items()]


def list_drains(call: Call) -> v.Drains:
    states = (*drains.ACTIVE, *drains.OVER, *drains.OPENED) if call.query.all else (
        *drains.ACTIVE, *drains.OVER, drains.RELEASING)
    found = db_drains.Drains(call.services.database).in_states(states)
    return v.Drains(drains=[drain_view(each) for each in found])


def show_drain(call: Call) -> v.Drain:
    return drain_view(db_drains.Drains(call.services.database).get(call.path['drain']))


def drain_view(found) -> v.Drain:
    return v.view(v.Drain, found, blocked=dict(found.blocked))


def show_maintenance(call: Call) -> v.Maintenance:
    found = db_maintenances.Maintenances(call.services.database).under_way()
    return v.view(v.Maintenance, found, hosts=_maintained(found.hosts))


OPERATIONS = (
    Operation(method='GET', path='/v1/drains', name='drains:list', run=list_drains, gives=v.Drains,
              query=v.DrainQuery, summary='Hosts that are emptied, or wait for release.'),
    Operation(method='GET', path='/v1/drains/{drain}', name='drains:show', run=show_drain,
              gives=v.Drain, refusals=(404,), summary='How far one is, and what stays and why.'),
    Operation(method='GET', path='/v1/maintenance', name='maintenance:show', run=show_maintenance,
              gives=v.Maintenance, refusals=(404,), summary='The maintenance that is under way.'),
)
