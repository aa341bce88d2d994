"""Operations on levels, pauses and stops: show and set levels, pause and stop moves, end pauses and
stops, and show the history of changes."""

from typing import Any

from oslo_config import cfg

from kronos_client.contract import automation as contract
from kronos_client.contract.base import Request
from kronos_nova.cycle import aggregates
from kronos_nova.cycle import levels
from kronos_nova.db import switches as db_switches
from kronos_nova.db.engine import Database
from kronos_nova.objects import automation
from kronos_nova.operations import switching
from kronos_nova.services.context import Context


def show(context: Context, _request: Request) -> contract.Automation:
    return contract.Automation(**_facts(context.conf, context.database))


def history(context: Context, request: contract.ListEvents) -> contract.SwitchEvents:
    found = db_switches.SwitchBoard(context.database).history(request.limit)
    return contract.SwitchEvents(events=[contract.SwitchEvent.made_from(each) for each in found])


def set_level(context: Context, request: contract.SetLevel) -> contract.Automation:
    """Set the automation level of an aggregate.

    :raises NotInScope: Kronos does not plan for this aggregate
    :raises RequestRefused: the level is above the highest level that nova.conf permits
    """
    switching.set_level(context.conf, context.database,
                        _switch(context, request, automation.REPAIR_LEVEL if request.repairs
                                else automation.LEVEL, request.level))
    return show(context, Request())


def pause(context: Context, request: contract.Scope) -> contract.Automation:
    """Pause the moves of an aggregate or of all aggregates.

    :raises NotInScope: Kronos does not plan for this aggregate
    """
    switching.pause(context.conf, context.database,
                    _switch(context, request, automation.PAUSE, 'pause'))
    return show(context, Request())


def resume(context: Context, request: contract.Resume) -> contract.Resumed:
    """End the pauses and stops of an aggregate or of all aggregates.

    :raises NotInScope: there was no pause or stop to end, and Kronos does not plan for this
        aggregate
    """
    # Pending stops are removed first, because they would otherwise take effect after the resume.
    pending = switching.resume_pending(context.conf, request.aggregate,
                                       None if request.everyone else context.who)
    ended = switching.resume(context.conf, context.database,
                             _switch(context, request, automation.PAUSE, ''), request.everyone,
                             is_done=bool(pending))
    # The file of a pending stop may still exist after the stop is in the database.
    gone = dict.fromkeys((*pending, *ended))
    return contract.Resumed(**_facts(context.conf, context.database),
                            ended=[contract.Pause.made_from(each) for each in gone])


def stop(context: Context, request: contract.Stop) -> contract.Stopped:
    """Stop the moves of an aggregate or of all aggregates.

    :raises NotInScope: Kronos does not plan for this aggregate
    """
    return contract.Stopped.made_from(switching.stop(
        context.conf, context.database, _switch(context, request, automation.PAUSE, 'stop'),
        request.let_finish))


def _switch(context: Context, request: contract.SetLevel | contract.Scope,
            kind: str, value: str) -> automation.Switch:
    return automation.Switch(kind=kind, value=value, aggregate=request.aggregate,
                             set_by=context.who, set_at=context.utcnow(), reason=request.reason)


def levels_of(conf: cfg.ConfigOpts, found: automation.Switches) -> list[contract.Level]:
    """Return the automation level that is in force for each aggregate that Kronos plans."""
    defaults = levels.defaults(conf)
    return [_level(name, found, defaults) for name in aggregates.aggregates_in_scope(conf)]


def _facts(conf: cfg.ConfigOpts, database: Database) -> dict[str, Any]:
    found = db_switches.SwitchBoard(database).read()
    return {'ceiling': levels.defaults(conf).ceiling, 'levels': levels_of(conf, found),
            'pauses': [contract.Pause.made_from(each) for each in found.all_pauses()]}


def _level(name: str, found: automation.Switches,
           defaults: automation.Defaults) -> contract.Level:
    level = found.level(name, defaults)
    own = switching.own_level(found, name, level)
    repairs = found.level(name, defaults, automation.REPAIR)
    own_repairs = own
    if found.own_repair_level(name, defaults) is not None:
        own_repairs = switching.own_level(found, name, repairs, automation.REPAIR_LEVEL)
    return contract.Level(aggregate=name, level=level, set_by=own.set_by if own else None,
                          set_at=own.set_at if own else None, reason=own.reason if own else '',
                          paused=found.paused_by(name), repairs=repairs,
                          repairs_set_by=own_repairs.set_by if own_repairs else None)


FUNCTIONS = {contract.SHOW.name: show, contract.HISTORY.name: history,
             contract.SET.name: set_level, contract.PAUSE.name: pause,
             contract.RESUME.name: resume, contract.STOP.name: stop}
