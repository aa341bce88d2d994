"""``GET /v1/events``: a stream of changes as they happen."""

import dataclasses
import datetime
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import msgspec
from oslo_config import cfg

from kronos_client.contract import automation
from kronos_client.contract import drains as drain_contract
from kronos_client.contract import moves
from kronos_client.contract import plans
from kronos_client.contract.base import Response
from kronos_client.contract.base import Time
from kronos_nova.api.event_feed import RESET
from kronos_nova.api.event_feed import STALE
from kronos_nova.api.event_feed import SYNCED
from kronos_nova.api.event_feed import Key
from kronos_nova.api.event_feed import Stream
from kronos_nova.api.operation import Call
from kronos_nova.api.operation import Operation
from kronos_nova.db import drains as db_drains
from kronos_nova.db import event_queries
from kronos_nova.db import switches as db_switches
from kronos_nova.db.engine import Database
from kronos_nova.drain import states as drains
from kronos_nova.objects.move import MoveRecord
from kronos_nova.operations import approving
from kronos_nova.services import automation as automation_service
from kronos_nova.services import drains as drain_service
from kronos_nova.services import moves as move_service
from kronos_nova.services import plans as plan_service


class Evaluated(Response):
    """The end of an evaluation of an aggregate. ``outcome`` is the result of the evaluation, as one
    word."""

    aggregate: str
    evaluated_at: Time
    outcome: str


class Moment(Response):
    """The time at which the control database was last read."""

    at: Time


PLAN, MOVE, DRAIN, LEVEL, EVALUATION = 'plan', 'move', 'drain', 'automation', 'evaluation'

EVENTS = {PLAN: plans.Plan, MOVE: moves.Move, DRAIN: drain_contract.Drain, LEVEL: automation.Level,
          EVALUATION: Evaluated, SYNCED: Moment, RESET: Moment,
          STALE: Moment}
"""Types of the data of events: {type of an event: type of its data}."""


class EventSource:
    """The source of all events. It reads the control database; see
    :class:`kronos_nova.api.event_feed.Source`."""

    def __init__(self, conf: cfg.ConfigOpts, database: Database):
        self._conf = conf
        self._database = database

    def read(self, since: datetime.datetime) -> dict[Key, object]:
        switches = db_switches.SwitchBoard(self._database).read()
        found: dict[Key, object] = {(LEVEL, each.aggregate): each for each in
                 automation_service.levels_of(self._conf, switches)}
        found |= {(EVALUATION, row.aggregate): tuple(row)
                  for row in event_queries.evaluations(self._database)}
        found |= {(PLAN, each.uuid): approving.with_pause(each, switches)
                  for each in event_queries.plan_records(self._database, since)}
        found |= {(DRAIN, each.uuid): each for each in self._drains(since)}
        return found | {(MOVE, each.uuid): _steady(each)
                        for each in event_queries.move_records(self._database, since)}

    def _drains(self, since: datetime.datetime) -> list[drains.Drain]:
        return [each for each in db_drains.Drains(self._database).in_states(
                    (*drains.ACTIVE, *drains.OVER, *drains.OPENED))
                if each.state != drains.RELEASED or (each.finished_at or since) >= since]

    def tell(self, changed: Mapping[Key, Any]) -> dict[Key, msgspec.Struct]:
        moved = [value for (kind, _name), value in changed.items() if kind == MOVE]
        shown = {(MOVE, each.uuid): each for each in move_service.views(
            self._database, moved, moves.Move)} if moved else {}
        return {key: shown[key] if key[0] == MOVE else VIEWS[key[0]](value)
                for key, value in changed.items()}


def _steady(move: MoveRecord) -> MoveRecord:
    """Return a copy of a move for the detection of changes. The fields ``checked_at``, ``owner``
    and ``not_before`` change often while a move waits. These fields have constant values in the
    copy, so that their changes cause no events."""
    return dataclasses.replace(move, checked_at=None, owner=None, not_before=move.created_at)


def _evaluated(row: tuple[str, datetime.datetime, str]) -> Evaluated:
    name, at, outcome = row
    return Evaluated(aggregate=name, evaluated_at=at, outcome=outcome)


VIEWS: dict[str, Callable[[Any], msgspec.Struct]] = {
    PLAN: lambda plan: plan_service.view(plans.Plan, plan), DRAIN: drain_service.view,
         LEVEL: lambda level: level, EVALUATION: _evaluated}


def listen(call: Call) -> Stream:
    services, expires_at = call.services, call.expires_at
    left = (expires_at - services.utcnow()).total_seconds()
    return services.feed.listen(call.last_event_id, left, call.who)


OPERATIONS = (
    Operation(method='GET', path='/v1/events', name='events:listen', run=listen, events=EVENTS,
              refusals=(429,),
              summary='Plans, moves, drains, levels and evaluations as they change: first all '
                      'there is, then what changes.'),
)
