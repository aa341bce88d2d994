"""Why one server is moved, or stays where it is."""

import dataclasses
import datetime

from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import journal as db_journal
from kronos_nova.db import refusals
from kronos_nova.db.engine import Database
from kronos_nova.objects import plan as plans

MOST_MOVES = 20
"""How many moves of the past are told: what they show is whether it is moved too often."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What is known of one server.

    stays_because, stays_in : the word of the last evaluation that left it, and its aggregate
    planned, planned_in : its Move in a plan that waits or runs, and that plan's uuid
    A quarantine without an end has no time.
    """

    stays_because: str | None = None
    stays_in: str | None = None
    planned: plans.PlannedMove | None = None
    planned_in: str | None = None
    quarantined_until: datetime.datetime | None = None
    quarantined_because: str | None = None
    cooling_seconds: float | None = None
    refused_because: str | None = None
    refused_hosts: tuple[str, ...] = ()


def explain(database: Database, uuid: str, now: datetime.datetime) -> Explanation:
    """
    :param uuid: of any server; of one that nobody knows nothing is known
    """
    stays_because, stays_in = _stay(database, uuid)
    planned, planned_in = _planned(database, uuid)
    cooldowns = db_cooldowns.Cooldowns(database)
    until, because = next(((until, reason) for each, until, reason, _since
                           in cooldowns.quarantines(now) if each == uuid), (None, None))
    refusal = next((each for each, _until, _at in refusals.Refusals(database).list(now)
                    if each.instance_uuid == uuid), None)
    return Explanation(
        stays_because=stays_because, stays_in=stays_in, planned=planned, planned_in=planned_in,
        quarantined_until=until, quarantined_because=because,
        cooling_seconds=cooldowns.cooling(db_cooldowns.INSTANCE, now).get(uuid),
        refused_because=refusal and refusal.reason, refused_hosts=refusal.hosts if refusal else ())


def _stay(database, uuid):
    """(word, aggregate) of the last evaluation that left the server, or (None, None)."""
    for row in cycles.Cycles(database).last():
        # Of a large aggregate it names every server that stayed: most need not be read.
        if row.report and uuid in row.report:
            for skip in plans.AggregateReport.from_json(row.report).not_moved:
                if uuid in skip.instances:
                    return skip.reason, row.aggregate
    return None, None


def _planned(database, uuid):
    for plan in db_journal.Journal(database, 'observer').open_plans():
        if plan.report and uuid in plan.report:
            for move in plans.AggregateReport.from_json(plan.report).moves:
                if move.instance_uuid == uuid:
                    return move, plan.uuid
    return None, None
