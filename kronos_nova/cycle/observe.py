"""Reading of the cloud, and of the past evaluations and moves on which the next plan depends."""

import dataclasses
import datetime
from collections.abc import Iterable
from collections.abc import Mapping

from kronos_nova.clock import DAY
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.cycle import aggregates
from kronos_nova.cycle import without_moves
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.ports import CyclePorts
from kronos_nova.cycle.ports import CycleRules
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.objects import automation
from kronos_nova.objects import plan as plans
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import PlanRecord
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import PolicySet

UNDER_WAY = {plans.APPROVED: 'is approved and has not started yet',
             plans.EXECUTING: 'is being carried out'}
"""{state of a plan: text about it}, for plans that are approved or in progress. Until such a plan
has ended, its aggregate is not planned again."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The cloud and the records that an evaluation reads.

    read : the cloud as Nova and placement report it, without the moves of the journal
    moves : the moves of the journal that were open when the cloud was read
    scopes : names of the aggregates that are read; None for the whole cloud
    last : {aggregate: outcome of its last evaluation}
    proposed : {aggregate: PlanRecord of its plan that waits for approval}
    units : {planned aggregate: the aggregates that share hosts with it, and the aggregate itself}
    """

    snapshot: Snapshot
    read: Snapshot
    moves: tuple[MoveUnderWay, ...]
    scopes: tuple[str, ...] | None
    last: Mapping[str, str | None]
    proposed: Mapping[str, PlanRecord]
    units: Mapping[str, frozenset[str]]

    @property
    def names(self) -> dict[str, str]:
        """{uuid of a server: its name}."""
        return {server.uuid: server.display_name for server in self.snapshot.instances}

    def with_moves(self, cycle_ports: CyclePorts) -> 'Observation':
        """Return a copy of the Observation with the moves that are in progress now."""
        return dataclasses.replace(self, snapshot=self.snapshot.with_moves_under_way(
            cycle_ports.journal.moves_under_way()))

    def without(self, moves: Iterable[MoveUnderWay]) -> 'Observation':
        """Return a copy of the Observation without some moves of the journal. They were open when
        the cloud was read, and have been given up since."""
        gone = {*moves}
        kept = tuple(move for move in self.moves if move not in gone)
        return dataclasses.replace(self, moves=kept, snapshot=self.read.with_moves_under_way(kept))


def observe(cycle_ports: CyclePorts, options: EngineOptions, rules: CycleRules) -> Observation:
    """Read the cloud, with the moves of all open plans of all workers.

    :raises InventoryError: Nova or placement could not be read
    """
    pool = (UNASSIGNED,) if options.include_unassigned_hosts else ()
    scopes = None if options.aggregates is None else (*options.aggregates, *pool)
    # Moves are read first: if one ends meanwhile, the host of its instance shows it.
    moves = tuple(cycle_ports.journal.moves_under_way())
    read = cycle_ports.inventory.read(scopes, moves)
    snapshot = read.with_moves_under_way(moves)
    return Observation(
        snapshot=snapshot, read=read, moves=moves, scopes=scopes,
        units=_units(cycle_ports, options, rules, snapshot),
        last={row.aggregate: row.outcome for row in cycle_ports.cycles.last()},
        proposed={record.aggregate: record
                  for record in cycle_ports.journal.proposed_plans()})


def _units(cycle_ports: CyclePorts, options: EngineOptions, rules: CycleRules,
           snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Return {planned aggregate: the aggregates that share hosts with it, and the aggregate
    itself}."""
    switches, levels = cycle_ports.switches.read(), rules.automation
    names = {name for name in rules.in_scope
             if switches.planning_level(name, levels) != automation.OFF}
    return aggregates.planning_units(
        sorted(names.union(options.aggregates or (a.name for a in snapshot.aggregates))),
        {aggregate.name: aggregate.hosts for aggregate in snapshot.aggregates})


def planning_history(cycle_ports: CyclePorts, options: EngineOptions, rules: CycleRules,
                     now: datetime.datetime, names: tuple[str, ...] | None,
                     units: Mapping[str, frozenset[str]],
                     proposals: Mapping[str, AggregateReport],
                     policies: PolicySet) -> PlanningHistory:
    """Read the history on which a plan depends.

    :param names: aggregates whose load statistics are read; None for all
    :param units: {aggregate: the aggregates with which it shares hosts}; an aggregate waits for the
        plans and cooldowns of these aggregates as well
    :param proposals: {aggregate: report with its plan that waits for approval}
    :param policies: the content of the policies file, whose rules of operators may limit the number
        of moves
    """
    counts_moves = any(rule.max_moves for rule in policies.rules)
    cooldowns, journal, limits = cycle_ports.cooldowns, cycle_ports.journal, options.move_limits
    # The load of an aggregate changes while its plan is in progress.
    busy = {aggregate: f'plan {uuid} {UNDER_WAY[state]}'
            for aggregate, uuid, state in journal.plans_under_way() if state in UNDER_WAY}
    waiting = {name: busy[other] for name, unit in units.items()
               for other in sorted(unit) if other in busy}
    cooling = cooldowns.cooling(now)
    projects_moved, caused = journal.moved_since(now - DAY) if limits.look_back else ({}, {})
    return PlanningHistory(
        under_way=waiting | busy, proposals=proposals,
        aggregates=_of_units(cooling[db_cooldowns.AGGREGATE], units),
        spread=_of_units(cooling[db_cooldowns.SPREAD], units),
        instances=cooling[db_cooldowns.INSTANCE],
        quarantines=cooldowns.quarantined(now), refused=cycle_ports.refusals.resting(now),
        refused_hosts=journal.refused_since(
            now - datetime.timedelta(seconds=rules.rejection_backoff)),
        imbalanced=cycle_ports.cycles.imbalanced(), doubted=cycle_ports.cycles.doubted(),
        projects_moved=projects_moved, caused=caused,
        instances_moved=(journal.instances_moved_since(now - 7 * DAY)
                         if limits.per_instance_and_week else {}),
        instances_moved_today=(journal.instances_moved_since(now - DAY)
                               if limits.per_instance_and_day or counts_moves else {}),
        load_stats=cycle_ports.load_stats.read(names) if options.restraint else {},
        moves=_past_moves(cycle_ports, now - datetime.timedelta(
            seconds=max(rules.no_return_window, options.server_grace))),
        tries=tuple(journal.tries(now - datetime.timedelta(seconds=rules.experience_window))))


def homes(cycle_ports: CyclePorts, seen: Observation,
          now: datetime.datetime) -> without_moves.Homes:
    """Return the servers that would be on another host if Kronos had not balanced load by moves in
    the last weeks, as {uuid of a server: (its present host, the other host)}."""
    past = cycle_ports.journal.completed_since(now - plans.REPLAYED, seen.scopes)
    return without_moves.homes(
        (without_moves.CompletedMove(**row._mapping) for row in past),
        {server.uuid: server.host for server in seen.snapshot.instances})


def _past_moves(cycle_ports: CyclePorts, since: datetime.datetime) -> tuple[PastMove, ...]:
    """Return the live migrations that ended successfully since a time. ``is_own`` of a migration is
    True if Kronos requested it. ``has_emptied`` is True if the migration was made to empty a
    host."""
    emptied = cycle_ports.journal.emptied_since(since)
    own = cycle_ports.journal.requested_since(since - DAY)    # no move takes a day
    return tuple(
        dataclasses.replace(
            each, has_emptied=(each.instance_uuid, each.source) in emptied,
            is_own=(each.instance_uuid, each.source, each.destination) in own)
        for each in cycle_ports.history(since))


def _of_units(seconds: Mapping[str, float],
              units: Mapping[str, frozenset[str]]) -> dict[str, float]:
    """Return {aggregate: seconds of its remaining cooldown}. Aggregates that share hosts form a
    unit. All aggregates of a unit have the longest cooldown in the unit."""
    return {**seconds} | {name: max(seconds.get(other, 0.0) for other in unit)
                          for name, unit in units.items()}
