"""Levels, pauses and stops that operators set by a command or over the API.

The recorded times are from the clock of the control database, not from the host on which an
operator runs a command.
"""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from kronos_nova import exception
from kronos_nova.cycle import aggregates
from kronos_nova.cycle import levels
from kronos_nova.db import stopping
from kronos_nova.db import switches
from kronos_nova.db.engine import Database
from kronos_nova.db.journal import Journal
from kronos_nova.executor import pending_stops
from kronos_nova.objects import automation
from kronos_nova.objects import plan as plans


def refuse_unknown(conf: cfg.ConfigOpts, aggregate: str, is_single: bool = False) -> None:
    """Raise an error if Kronos does not plan for an aggregate.

    :param is_single: whether the name of one aggregate is required; otherwise ``*`` for all
        aggregates is accepted
    :raises NotInScope: Kronos does not plan for this aggregate
    """
    known = aggregates.aggregates_in_scope(conf)
    is_every = aggregate == automation.EVERY and not is_single
    if not is_every and aggregate not in known:
        raise exception.NotInScope(
            what=f'Aggregate {aggregate}', problem='is not in scope',
            remedy='The options [kronos] aggregates and include_unassigned_hosts select: '
                   f'{", ".join(known) or "none"}.')


def set_level(conf: cfg.ConfigOpts, database: Database, switch: automation.Switch) -> None:
    """Set the automation level of one aggregate or of all aggregates. If the new level permits no
    plan to start, end the plans that wait for approval or for their start.

    :param switch: a Switch of kind LEVEL or REPAIR_LEVEL
    :raises NotInScope: Kronos does not plan for this aggregate
    :raises RequestRefused: nova.conf does not permit this level
    """
    refuse_unknown(conf, switch.aggregate)
    ceiling = levels.defaults(conf).ceiling
    if automation.lower(switch.value, ceiling) != switch.value:
        raise exception.RequestRefused(
            what=f'Level {switch.value}',
            problem=f'[kronos] max_automation permits no level above {ceiling}',
            remedy='Raise max_automation in the nova.conf of every controller, or set a lower '
                   'level.')
    dated = _dated(database, switch)
    switches.SwitchBoard(database).set(dated)
    if switch.value in automation.WITHOUT_APPROVAL:
        _void_waiting(conf, database, dated)


def _void_waiting(conf: cfg.ConfigOpts, database: Database, switch: automation.Switch) -> None:
    """End the plans that wait for approval or for their start, in aggregates whose new level
    permits no plan to start."""
    levels_in_force, defaults = switches.SwitchBoard(database).read(), levels.defaults(conf)
    journal = Journal(database, switch.set_by)
    for aggregate, purpose in {(plan.aggregate, plan.purpose) for plan in (
            *journal.proposed_plans(), *journal.approved_plans())}:
        level = levels_in_force.level(aggregate, defaults, purpose)
        if level in automation.WITHOUT_APPROVAL and switch.aggregate in (
                automation.EVERY, aggregate):
            journal.end_waiting(aggregate, plans.VOID,
                                f'the level is {level}: {switch.set_by}{switch.why}',
                                switch.set_at)


def pause(conf: cfg.ConfigOpts, database: Database, switch: automation.Switch) -> None:
    """Set a pause of one aggregate or of all aggregates.

    :param switch: a Switch of kind PAUSE
    :raises NotInScope: Kronos does not plan for this aggregate
    """
    refuse_unknown(conf, switch.aggregate)
    switches.SwitchBoard(database).set(_dated(database, switch))


def resume(conf: cfg.ConfigOpts, database: Database, who: automation.Switch, everyone: bool,
           is_done: bool = False) -> list[automation.Switch]:
    """End pauses and stops of one aggregate or of all aggregates.

    :param who: a Switch of kind PAUSE that only names the aggregate and the operator who resumes;
        its ``value`` is ''
    :param everyone: whether to end the pauses and stops of all operators; otherwise only those of
        the operator in ``who``
    :param is_done: True if the caller has already ended a stop that was not in the database yet.
        NotInScope is then never raised
    :returns: the Switches in the database that ended
    :raises NotInScope: the database has no pause or stop to end, and Kronos does not plan for this
        aggregate
    """
    gone = switches.SwitchBoard(database).resume(_dated(database, who), everyone)
    if not gone and not is_done:
        refuse_unknown(conf, who.aggregate)
    return gone


def stop(conf: cfg.ConfigOpts, database: Database, switch: automation.Switch,
         let_finish: bool) -> stopping.Stopped:
    """Set a stop of one aggregate or of all aggregates. Planned moves are abandoned. Moves in
    progress are aborted, unless ``let_finish`` is true.

    :param let_finish: whether moves in progress may continue to their end
    :raises NotInScope: Kronos does not plan for this aggregate
    """
    refuse_unknown(conf, switch.aggregate)
    return stopping.Stopping(database, switch.set_by).stop(
        _dated(database, switch), let_finish)


def _dated(database: Database, switch: automation.Switch) -> automation.Switch:
    return dataclasses.replace(switch, set_at=database.utcnow())


def stop_without_database(conf: cfg.ConfigOpts, switch: automation.Switch,
                          let_finish: bool) -> list[str]:
    """Set a stop without the control database: by a file on this host, and by a message to all
    executors. The executors record the stop in the control database as soon as the database
    answers.

    :returns: sentences about problems: one if the file could not be written, and one if the broker
        did not take the message
    :raises NotInScope: Kronos does not plan for this aggregate
    :raises ConfigurationError: the file could not be written, and the message could not be sent
    """
    refuse_unknown(conf, switch.aggregate)
    stop, stops = pending_stops.PendingStop(switch, let_finish), pending_stops.for_conf(conf)
    problems = [*_try(stops.add, stop), *_fan_out(conf, 'stop_moves', stop=stop.to_json())]
    if len(problems) > 1 or (problems and stops.path is None):
        raise exception.ConfigurationError(
            what='the stop', problem=f'reached no executor: {" ".join(problems)}',
            remedy='To stop moves, stop nova-conductor (or kronos-executor) on every controller.')
    return problems


def resume_pending(conf: cfg.ConfigOpts, aggregate: str,
                   set_by: str | None) -> list[automation.Switch]:
    """End stops that are not in the control database yet. The stops in the file of this host are
    removed, and a message asks all executors to remove their stops. If the file of this host has no
    stop, nothing is changed and no message is sent.

    :param set_by: operator whose stops are ended; None for all operators
    :returns: the Switches of the stops of this host that ended
    """
    if not pending_stops.for_conf(conf).read():
        return []
    return [stop.switch for stop in resume_without_database(conf, aggregate, set_by)[0]]


def resume_without_database(conf: cfg.ConfigOpts, aggregate: str, set_by: str | None) -> tuple[
        list[pending_stops.PendingStop], list[str]]:
    """End stops that are not in the control database yet. The stops in the file of this host are
    removed, and a message asks all executors to remove their stops.

    :param set_by: operator whose stops are ended; None for all operators
    :returns: (stops of this host that ended, sentences about problems). There is a sentence if the
        file could not be changed, and one if the broker did not take the message
    """
    stops = pending_stops.for_conf(conf)
    gone: list[pending_stops.PendingStop] = []
    problems = [*_try(lambda: gone.extend(stops.remove(aggregate, set_by))),
                *_fan_out(conf, 'resume_moves', aggregate=aggregate, set_by=set_by)]
    return gone, problems


def _try(change: Callable[..., object], *arguments: object) -> list[str]:
    try:
        change(*arguments)
    except OSError as error:
        return [f'The file of this host cannot be changed: {error}.']
    return []


def _fan_out(conf: cfg.ConfigOpts, method: str, **arguments: Any) -> list[str]:
    # Imported late: oslo.messaging takes as long to load as the rest of a command.
    _choose_threads()
    import oslo_messaging as messaging

    from kronos_nova.executor import broker
    messaging.set_transport_defaults(broker.CONTROL_EXCHANGE)
    try:
        transports = broker.Transports(conf)
        try:
            broker.fan_out(transports, aggregates.aggregates_in_scope(conf), method, **arguments)
        finally:
            transports.close()
    except (messaging.MessagingException, messaging.DriverLoadFailure,
            messaging.InvalidTransportURL) as error:
        return [f'The broker was not reached: {error}. Other controllers do not know of it.']
    return []


def _choose_threads() -> None:
    """Make oslo.messaging use threads instead of its default eventlet, because commands do not load
    eventlet."""
    from oslo_service import backend
    with contextlib.suppress(backend.exceptions.BackendAlreadySelected):
        backend.init_backend(backend.BackendType.THREADING)


def own_level(found: automation.Switches, aggregate: str, level: str,
              kind: str = automation.LEVEL) -> automation.Switch | None:
    """Return the Switch by which an operator has set the present level of an aggregate; None if the
    present level is from nova.conf.

    :param level: the present level
    :param kind: LEVEL or REPAIR_LEVEL
    """
    of_kind = found.levels if kind == automation.LEVEL else found.repair_levels
    own = of_kind.get(aggregate) or of_kind.get(automation.EVERY)
    return own if own is not None and own.value == level else None
