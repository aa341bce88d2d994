"""The part of an evaluation that starts the plans of drains and records the progress of the
drains."""

import collections
import dataclasses
import datetime
import itertools
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.cycle import explain
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.metrics import Measurements
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.ports import CyclePorts
from kronos_nova.cycle.ports import CycleRules
from kronos_nova.db.drains import Drains
from kronos_nova.drain import planning
from kronos_nova.drain import states as drains
from kronos_nova.drain.states import Drain
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects.move import MoveRecord
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import PolicySet
from kronos_nova.room import holding

LOG = logging.getLogger(__name__)


class HostDrains:
    """The part of an evaluation that plans drains, starts the plans, and records the progress. This
    class implements :class:`~kronos_nova.cycle.requests.Requester`, the protocol of all parts of an
    evaluation that plan requests of operators.

    :param cycle_ports: CyclePorts
    :param policies: PolicySet
    :param rules: CycleRules
    """

    def __init__(self, cycle_ports: CyclePorts, policies: PolicySet, options: EngineOptions,
                 rules: CycleRules, utcnow: Callable[[], datetime.datetime]) -> None:
        self.experience_window = rules.experience_window
        self.rejection_backoff = rules.rejection_backoff
        self.cycle_ports = cycle_ports
        self.drains = Drains(cycle_ports.journal.database)
        self.policies = policies
        self.options = options
        self.utcnow = utcnow

    def wanted(self, aggregates: Iterable[str]) -> dict[str, list[Drain]]:
        """Return {aggregate: its active Drains}, without aggregates that have none."""
        found = collections.defaultdict(list)
        for each in self.drains.in_states(drains.ACTIVE):
            if each.aggregate in aggregates:
                found[each.aggregate].append(each)
        return found

    def note_missing(self, aggregates: Collection[str]) -> None:
        for each in itertools.chain(*self.wanted(aggregates).values()):
            self.drains.note_unevaluated(each, 'Nova does not have any more')

    def plan(self, snapshot: Snapshot, planner_ports: PlannerPorts, measurements: Measurements,
             aggregate: str, wanted: Sequence[Drain]) -> planning.DrainPlan:
        """Return one plan for all drains of an aggregate.

        :param wanted: the drains, from :meth:`wanted`
        """
        journal, since = self.cycle_ports.journal, min(each.requested_at for each in wanted)
        now = self.utcnow()
        held = holding.with_held(snapshot, self.cycle_ports.holds.in_force(),
                                 self.options.packs_numa_cells)
        return planning.plan(
            held, self.policies, self.options, planner_ports, aggregate, wanted,
            journal.failures_of_drains(since), journal.tries(
                now - datetime.timedelta(seconds=self.experience_window)),
            measurements, self.cycle_ports.cooldowns.quarantined(now),
            journal.refused_since(now - datetime.timedelta(seconds=self.rejection_backoff)))

    def persist(self, snapshot: Snapshot, aggregate: str, wanted: Sequence[Drain],
                outcome: planning.DrainPlan) -> None:
        """Start the plan, and record the progress of each drain.

        The plan is not started if an earlier plan of the aggregate is in progress, if moves are
        paused, or if a drained host is not disabled yet. The next evaluation then plans the drains
        again. For a host that could not be read, see :meth:`_note_unread`.
        """
        now, hold = self.utcnow(), self.cycle_ports.switches.read().hold(aggregate)
        running = [plan.uuid for plan in self.cycle_ports.journal.running_plans()
                   if plan.aggregate == aggregate]
        may_start = not (running or hold
                         or any(each.state == drains.REQUESTED for each in wanted))
        if outcome.report.moves and may_start:
            self._record(snapshot, aggregate, outcome, now)
        own = self.cycle_ports.journal.moves(states=moves.IN_FLIGHT)
        unconfirmed = _unconfirmed(snapshot, own)
        ours = {move.instance_uuid for move in self.cycle_ports.journal.moves_under_way()}
        left = collections.Counter(outcome.left) + collections.Counter(
            move.source for move in unconfirmed)
        for each in wanted:
            if each.host not in outcome.left:
                self._note_unread(snapshot, each)
                continue
            self._note(each, left[each.host], outcome.blocked.get(each.host, {}),
                       outcome.to_stop.get(each.host, {}), waits_for(each, Waiting(
                           hold=hold or '', running=running, own=own, unconfirmed=unconfirmed,
                           of_others=[move for move in snapshot.moves_under_way
                                      if move.instance_uuid not in ours])),
                       bool(running or outcome.report.moves), now)
        self._end(snapshot, wanted, left, outcome, aggregate, now)

    def _record(self, snapshot: Snapshot, aggregate: str, outcome: planning.DrainPlan,
                now: datetime.datetime) -> None:
        hosts = ', '.join(sorted(outcome.left))
        self.cycle_ports.journal.end_waiting(
            aggregate, plans.SUPERSEDED, f'{hosts} is being drained, which goes first', now)
        named = plans.servers_of(outcome.report.moves)
        self.cycle_ports.names.save(
            {server.uuid: server.display_name for server in snapshot.instances
             if server.uuid in named}, now)
        try:
            uuid = self.cycle_ports.journal.record_plan(
                outcome.report, plans.EXECUTING, now, now + datetime.timedelta(days=1),
                purpose=automation.DRAIN, kinds=outcome.kinds)
        except exception.PlanPending as error:
            LOG.info('The drain of %s waits, and its moves are planned again in the next cycle: %s',
                     hosts, error)
            return
        moving = outcome.report.moves
        LOG.info('Plan %s starts, to empty %s: %s, %.1f GiB of memory', uuid, hosts,
                 plural.count(len(moving), 'move'), sum(move.memory_mb for move in moving) / 1024)

    def _note_unread(self, snapshot: Snapshot, each: Drain) -> None:
        """Record that a drain waits for an evaluation that finds its host. If the host has left its
        aggregate, the drain waits in vain, and no server is blocked or stopped by the drain any
        more. If the host could not be read, the rest stays as it was recorded before."""
        has_left = each.aggregate not in snapshot.unread
        values: dict[str, Any] = {'wait': drains.Wait(why=_unread(snapshot, each),
                                                      is_in_vain=has_left)}
        if has_left:
            values |= {'blocked': {}, 'to_stop': []}
            if each.state == drains.BLOCKED:
                self.drains.enter(each, (each.state,), drains.DRAINING, **values)
                return
        self.drains.note(each, (each.state,), **values)

    def _note(self, each: Drain, left: int, blocked: Mapping[str, str], to_stop: Mapping[str, str],
              waits: str, is_at_work: bool, now: datetime.datetime) -> None:
        # Servers are stopped last, when no others are left, so that they are off for the shortest
        # time.
        is_time = bool(to_stop) and left == len(to_stop) and not is_at_work
        blocked = {**blocked, **{uuid: f'it is stopped once no others are left: {why}'
                                 for uuid, why in to_stop.items()}}
        values = {'left': left, 'looked_at': now, 'blocked': blocked,
                  'to_stop': sorted(to_stop) if is_time else [],
                  'wait': drains.Wait(why=waits if left else ''),
                  'servers': left if each.servers is None else each.servers}
        state = each.state
        if not left and each.state != drains.REQUESTED:
            state = drains.EMPTY
            values['finished_at'] = now
        elif each.state != drains.REQUESTED:
            state = drains.BLOCKED if blocked and not is_at_work else drains.DRAINING
        if state == each.state:
            self.drains.note(each, (state,), **values)
        elif self.drains.enter(each, (each.state,), state, **values):
            LOG.info('The drain of host %s is %s: %s left, %d of them blocked', each.host,
                     state, plural.count(left, 'server'), len(blocked))

    def _end(self, snapshot: Snapshot, wanted: Sequence[Drain], left: Mapping[str, int],
             outcome: planning.DrainPlan, aggregate: str, now: datetime.datetime) -> None:
        said = tuple(f'{each.host} is being drained: {plural.count(left[each.host], "server")} '
                     'left, '
                     f'{len(outcome.blocked.get(each.host, ()))} of them blocked'
                     if each.host in outcome.left else
                     f'{each.host} is being drained, which waits for {_unread(snapshot, each)}'
                     for each in wanted)
        hosts = {*snapshot.hosts_of(aggregate)}
        report = plans.AggregateReport(
            name=aggregate, outcome=plans.DRAINING, mode=outcome.report.mode,
            planner=outcome.report.planner,
            warnings=(*said, *explain.stranded(
                (host for host in snapshot.hosts if host.name in hosts), snapshot.instances)),
            intended=len(said))
        self.cycle_ports.cycles.end(aggregate, now, report.outcome, False, report.to_json())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The facts from which it follows whether the drains of an aggregate have to wait.

    hold : reason why no move may be started; '' if moves may be started
    running : uuids of the aggregate's plans in progress
    own : moves of Kronos in progress
    unconfirmed : the moves in ``own`` whose server has already left its source
    of_others : migrations in progress that Kronos did not request
    """

    hold: str
    running: Sequence[str]
    own: Sequence[MoveRecord]
    unconfirmed: Sequence[MoveRecord]
    of_others: Sequence[MoveUnderWay]


def waits_for(drain: Drain, waiting: Waiting) -> str:
    """Return a text that lists everything for which a drain waits; '' if the drain waits for
    nothing. Servers that cannot leave the host are not listed."""
    return '; '.join(_reasons(drain, waiting))


def _reasons(drain: Drain, waiting: Waiting) -> Iterator[str]:
    if drain.state == drains.REQUESTED:
        yield 'a conductor or kronos-executor that disables the host'
    if waiting.hold:
        yield waiting.hold
    for move in waiting.of_others:
        if drain.host in (move.source, move.destination):
            yield (f'the end of Nova\'s migration of server {move.instance_uuid} from '
                   f'{move.source} to {move.destination}')
    late = [move for move in waiting.unconfirmed if move.source == drain.host]
    for own in late:
        yield (f'the end of move {own.uuid}: server {own.instance_uuid} is on '
               f'{own.destination}, and Nova has not ended its migration yet')
    leaving = [move for move in waiting.own if move.source == drain.host and move not in late]
    if leaving:
        yield f'moves in progress: {", ".join(move.uuid for move in leaving)}'
    elif waiting.running and not late:
        yield f'the end of plan {waiting.running[0]}'


def _unread(snapshot: Snapshot, drain: Drain) -> str:
    """Return a text about the evaluation for which a drain waits, because the host of the drain is
    not in the snapshot, or has left its aggregate."""
    why = snapshot.unread.get(drain.aggregate)
    if why is not None:
        return f'an evaluation that can read {drain.host} (aggregate {drain.aggregate}: {why})'
    is_known = drain.host in {host.name for host in snapshot.hosts}
    return (f'an evaluation that finds {drain.host}: it is not in aggregate {drain.aggregate} any '
            f'more{"" if is_known else ", or placement does not know it"}; '
            f'{drains.released_by(drain.host)}')


def _unconfirmed(snapshot: Snapshot, own: Iterable[MoveRecord]) -> list[MoveRecord]:
    """Return the moves in ``own`` whose server has already left its source. The source keeps room
    for the server until the migration is confirmed, because the server may return until then.

    :param own: moves of Kronos in progress
    """
    hosts = {server.uuid: server.host for server in snapshot.instances}
    return [move for move in own
            if hosts.get(move.instance_uuid, move.source) != move.source]
