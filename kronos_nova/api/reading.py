"""Operations that change nothing."""


from kronos_nova.api import views as v
from kronos_nova.api.call import Call
from kronos_nova.api.call import Operation
from kronos_nova.db import drains as db_drains
from kronos_nova.db import maintenances as db_maintenances
from kronos_nova.db import switches as db_switches
from kronos_nova.engine import levels
from kronos_nova.engine import scope
from kronos_nova.objects import drain as drains
from kronos_nova.operations import switching


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


def show_automation(call: Call) -> v.Automation:
    return automation_view(call.services.conf, call.services.database)


def automation_view(conf, database) -> v.Automation:
    found = db_switches.SwitchBoard(database).read()
    defaults = levels.defaults(conf)
    return v.Automation(ceiling=defaults.ceiling, levels=[
        _level(name, found, defaults) for name in scope.aggregates_in_scope(conf)])


def _level(name, found, defaults):
    level, pause = found.level(name, defaults), found.pause(name)
    own = switching.own_level(found, name, level)
    return v.Level(aggregate=name, level=level, set_by=own and own.set_by,
                   set_at=own and own.set_at, reason=own.reason if own else '',
                   paused=pause and str(pause))


def list_switches(call: Call) -> v.SwitchEvents:
    found = db_switches.SwitchBoard(call.services.database).history(call.query.limit)
    return v.SwitchEvents(events=[v.view(v.SwitchEvent, each) for each in found])


def _next(found, query):
    """The marker of the next page, if there may be one."""
    last = list(found)[-1:]
    return last[0] if len(found) == query.limit else None


OPERATIONS = (
    Operation(method='GET', path='/v1/drains', name='drains:list', run=list_drains, gives=v.Drains,
              query=v.DrainQuery, summary='Hosts that are emptied, or wait for release.'),
    Operation(method='GET', path='/v1/drains/{drain}', name='drains:show', run=show_drain,
              gives=v.Drain, refusals=(404,), summary='How far one is, and what stays and why.'),
    Operation(method='GET', path='/v1/maintenance', name='maintenance:show', run=show_maintenance,
              gives=v.Maintenance, refusals=(404,), summary='The maintenance that is under way.'),
    Operation(method='GET', path='/v1/automation', name='automation:show', run=show_automation,
              gives=v.Automation, summary='Levels and pauses, and who set them.'),
    Operation(method='GET', path='/v1/automation/history', name='automation:history',
              run=list_switches, gives=v.SwitchEvents, query=v.HistoryQuery,
              summary='Who set which level or pause, the newest first.'),
)
