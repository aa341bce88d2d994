"""Plans that empty the hosts of drains.

The planners of an evaluation also plan drains; the input is a DrainRequest. Cooldowns are ignored.
Quarantines are respected, and a move that Nova refused is not planned again. A server that would
stay on a disabled host, such as a locked server, also stays on the host of a drain. If a host
cannot be emptied otherwise, servers of other hosts are moved to make room.

An additional policy scores each host by the fraction of its resources that is allocated. So
destinations can be chosen even where load is not known.

Moves respect the room of hosts, hard server groups, zones, isolation and Nova's filters. Moves may
violate soft server groups, because Nova treats these as preferences as well.
"""

import collections
import dataclasses
import math
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import ClassVar

from kronos_nova import exception
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cycle import steps
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.metrics import Measurements
from kronos_nova.cycle.metrics import MetricsReader
from kronos_nova.cycle.metrics import Profile
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.options import PaceOptions
from kronos_nova.cycle.prices import MinGain
from kronos_nova.cycle.requests import SHUTOFF
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.cycle.rule_holds import rule_holds
from kronos_nova.drain import states
from kronos_nova.drain.states import Drain
from kronos_nova.metrics.allocated import AllocatedSource
from kronos_nova.objects import eligibility
from kronos_nova.objects import metrics
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.objects.plan import FAILED
from kronos_nova.objects.plan import NO_DATA
from kronos_nova.objects.plan import AggregateReport
from kronos_nova.objects.plan import Unplaced
from kronos_nova.objects.snapshot import COLD
from kronos_nova.objects.snapshot import IMMOVABLE
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import MoveUnderWay
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from kronos_nova.policies.selection import Selections
from kronos_nova.policies.windows import Windows

ROOM = 'allocated'
ROOM_WEIGHT = 0.2
"""Weight, from 0 to 1, of the allocated resources of hosts when a drain chooses destinations. The
rest of the weight is that of the measured loads in the operator's policies. Raised, measured loads
matter less; lowered, hosts with equal measured loads are filled unevenly. Not measured."""

ANY_IMBALANCE = 1e6
"""Imbalance, as a fraction of a host, that is the threshold of every policy while hosts are
emptied. Fixed: above any possible imbalance, because a drain plans no moves to balance load."""

WITHOUT_END = 100_000
"""Maximum number of moves of a plan that empties hosts. Fixed: a search finds fewer moves within
its time limit, so this maximum limits no plan."""

FAILURES = 2
"""Number of failed moves of a server after which a drain does not move the server again. A move
counts as failed after all of its retries have failed. A server that is not moved again blocks the
drain. Raised, an operator learns later of a server that cannot move; lowered, one failure by chance
blocks a drain. Chosen because a second failure is rarely by chance."""

WORDS = {
    'not_active': 'it is {status}, and only what is ACTIVE, PAUSED or SHUTOFF is moved',
    'busy': 'Nova is at work on it ({task_state})',
    'excluded': 'its flavor (kronos:move) or its project (never_move_projects) is excluded from '
                'moves',
    'group': 'its server group permits no other host',
    'capacity': 'no other host has room for it',
    'zone': 'no other host of its availability zone takes it',
    'isolation': 'no other host is open to its project or flavor',
    'reserve': 'the room that has to stay free would be used',
    'refused': "Nova's scheduler refuses every other host",
    'no_gain': 'no move of it was found within the work of one plan; there may be one',
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest:
    """A request to a planner to empty some hosts.

    sources : names of the hosts to empty, whether enabled or disabled
    include_stopped : names of the hosts in ``sources`` whose stopped servers are moved as well
    avoid : names of hosts outside ``sources`` that take no server
    give_up : uuids of servers that are not moved, because their moves failed too often or because
        the drain has stopped the servers
    restart : uuids of running servers that are migrated cold, which stops and restarts the servers
    """

    planner: ClassVar[str] = EVACUATE

    sources: frozenset[str]
    include_stopped: frozenset[str] = frozenset()
    avoid: frozenset[str] = frozenset()
    give_up: frozenset[str] = frozenset()
    restart: frozenset[str] = frozenset()

    def takes(self, host: Host) -> bool:
        return host.service.is_available and host.name not in self.sources | self.avoid

    def empties(self, host: Host) -> bool:
        return (host.name in self.sources and host.service.state == 'up'
                and not host.service.forced_down)

    def statuses(self, instance: Instance) -> tuple[str, ...]:
        if instance.uuid in self.give_up:
            return ()
        is_cold_too = instance.host in self.include_stopped
        return (*eligibility.LIVE_STATUSES, SHUTOFF) if is_cold_too else eligibility.LIVE_STATUSES

    def may_stop(self, instance: Instance) -> bool:
        return instance.uuid in self.restart


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlan:
    """The present plan for all drains of an aggregate.

    report : result of the planners, with the moves; ``policies`` is empty
    kinds : {uuid of a server that is migrated cold: kind of its move}. The kind is COLD for a
        stopped server, and RESTART for a running server, which Nova stops and starts again
    left : {host: number of its servers}, without servers that the drain has stopped. A host that
        could not be read is missing, because the number of its servers is not known
    blocked : {host: {uuid of a server that stays: reason}}
    to_stop : {host: {uuid of a server that is stopped once no other servers are left: reason}}
    interrupted : {host: {uuid of a running server that is migrated cold: reason}}
    """

    report: AggregateReport
    kinds: Mapping[str, str]
    left: Mapping[str, int]
    blocked: Mapping[str, Mapping[str, str]]
    to_stop: Mapping[str, Mapping[str, str]]
    interrupted: Mapping[str, Mapping[str, str]]

    @property
    def cold(self) -> frozenset[str]:
        """The uuids of the servers that are migrated cold."""
        return frozenset(self.kinds)


def plan(snapshot: Snapshot, policies: PolicySet, options: EngineOptions,
         planner_ports: PlannerPorts, aggregate: str, drains: Sequence[Drain],
         failures: Mapping[str, Sequence[str]] | None = None, tries: Sequence[PastTry] = (),
         measurements: Measurements | None = None,
         quarantines: Mapping[str, float] | None = None,
         refused_hosts: Mapping[str, Mapping[str, str]] | None = None) -> DrainPlan:
    """Return the plan for the drains of one aggregate.

    Hosts in ``Drain.avoid`` are to be emptied later. These hosts take servers only if no other host
    can.

    :param policies: the policies for the load of destinations, and the rules of operators
    :param failures: {server uuid: errors of its moves since the drains began}
    :param tries: past moves, from which durations are learnt
    :param measurements: Measurements of the evaluation; None to measure again
    :param quarantines: {uuid of a server: seconds left of its quarantine}; a server in quarantine
        is not moved to make room
    :param refused_hosts: {server uuid: {host: error}} of moves that Nova refused recently
    """
    history = PlanningHistory(tries=tuple(tries), quarantines=quarantines or {},
                              refused_hosts=refused_hosts or {})
    case = _Case(snapshot, aggregate, drains, failures or {}, history,
                 measurements or planner_ports.measurements(snapshot, options),
                 _Ruled.made(Selections(policies.rules, snapshot), aggregate, planner_ports.now))
    if not case.hosts:
        return DrainPlan(
            report=AggregateReport(name=aggregate, outcome=NO_DATA, mode=policies.mode,
                                   planner=DrainRequest.planner),
            kinds={}, left={}, blocked={}, to_stop={}, interrupted={})
    avoided = {host for drain in drains for host in drain.avoid} - case.hosts
    found = case.plan(policies, options, planner_ports, avoided)
    if avoided and found.blocked and not found.report.moves:
        return case.plan(policies, options, planner_ports, frozenset())
    return found


_WhyByHost = dict[str, dict[str, str]]
"""{host: {server uuid: reason}}"""


class _Case:
    def __init__(self, snapshot: Snapshot, aggregate: str, drains: Iterable[states.Drain],
                 failures: Mapping[str, Sequence[str]], history: PlanningHistory,
                 measurements: Measurements, ruled: '_Ruled') -> None:
        self.measurements, self.history, self.ruled = measurements, history, ruled
        self.snapshot, self.aggregate = snapshot, aggregate
        self.drains = {drain.host: drain for drain in drains}
        self.services = {host.name: host.service for host in snapshot.hosts}
        # A host may have left the aggregate since its drain began.
        self.hosts = self.drains.keys() & self.services.keys() & {*self._members()}
        self.failures = {uuid: errors[-1] for uuid, errors in failures.items()
                         if len(errors) >= FAILURES}
        here = [each for each in snapshot.instances if each.host in self.hosts]
        self.stopped = frozenset(each.uuid for each in here
                                 if self.drains[each.host].has_stopped(each.uuid, each.status))
        self.servers = {each.uuid: each for each in here if each.uuid not in self.stopped}

    def plan(self, policies: PolicySet, options: EngineOptions, planner_ports: PlannerPorts,
             avoided: Collection[str]) -> DrainPlan:
        report = self._report(policies, options, planner_ports, avoided)
        leaving = {move.instance_uuid for move in report.moves}
        on_their_way = leaving | {move.instance_uuid for move in self.snapshot.moves_under_way}
        left: collections.Counter[str] = collections.Counter()
        blocked: _WhyByHost = collections.defaultdict(dict)
        to_stop: _WhyByHost = collections.defaultdict(dict)
        interrupted: _WhyByHost = collections.defaultdict(dict)
        unmovable = self._unmovable(options, planner_ports.now)
        reasons = {uuid: skip.reason for skip in report.not_moved for uuid in skip.instances}
        details = {uuid: why for skip in report.not_moved for uuid, why in skip.details}
        unplaced = {each.instance_uuid: each for each in report.unplaced}
        failure = report.warnings[0] if report.outcome == FAILED else ''
        # Servers that are migrating to a drained host have to leave it again.
        left.update(move.destination for move in self.snapshot.moves_under_way
                    if move.destination in self.hosts and not self._is_on(move))
        for uuid, server in self.servers.items():
            left[server.host] += 1
            if uuid in leaving & unmovable.keys():
                interrupted[server.host][uuid] = unmovable[uuid]
            if uuid not in on_their_way and uuid in unmovable and self._stops(server):
                to_stop[server.host][uuid] = unmovable[uuid]
            elif uuid not in on_their_way:
                # A planner that has no server to move reports no reason for those that stay.
                reason = reasons.get(uuid) or eligibility.obstacle(
                    server, options.opt_out, eligibility.TO_EVACUATE,
                    self._request(avoided, unmovable).statuses(server), uuid in unmovable,
                ) or 'capacity'
                blocked[server.host][uuid] = failure or details.get(uuid) or self._why(
                    server, reason, unplaced.get(uuid))
        return DrainPlan(
            report=dataclasses.replace(report, policies=(), host_scores=(), not_moved=(),
                                       warnings=(), combined_before=None, combined_after=None),
            kinds={uuid: states.RESTART if uuid in unmovable else states.COLD
                   for uuid in leaving & self.servers.keys()
                   if uuid in unmovable or self.servers[uuid].status == SHUTOFF},
            left={host: left[host] for host in self.hosts}, blocked=dict(blocked),
            to_stop=dict(to_stop), interrupted=dict(interrupted))

    def _unmovable(self, options: EngineOptions, now: float) -> dict[str, str]:
        """Return the running servers that the drain may interrupt, as {uuid: reason why Nova does
        not migrate the server live}.

        To interrupt a server is to migrate it cold or to stop it. An operator permits this by an
        option of the drain, or by a rule. Locked servers, busy servers, and servers that a rule
        keeps on their hosts are left out. Outside maintenance windows the result is empty.
        """
        if not options.windows.is_open(self.aggregate, now):
            return {}
        found = {uuid: eligibility.movability(server) for uuid, server in self.servers.items()
                 if server.status in eligibility.COLD_STATUSES and server.status != SHUTOFF
                 and not (server.locked or server.task_state or uuid in self.ruled.held)}
        return {uuid: f'{each.why}{self._by_rule(uuid)}' for uuid, each in found.items()
                if each.can == COLD and self._treatment(self.servers[uuid]) != states.LEAVE
                or each.can == IMMOVABLE and self._stops(self.servers[uuid])}

    def _treatment(self, server: Instance) -> str:
        """Return the treatment of a running server that Nova does not migrate live, one of
        :data:`~kronos_nova.drain.states.UNMOVABLE`. A rule of the policies file takes precedence
        over the option of the drain."""
        if server.uuid in self.ruled.treatments:
            return self.ruled.treatments[server.uuid].what
        return self.drains[server.host].unmovable

    def _by_rule(self, uuid: str) -> str:
        found = self.ruled.treatments.get(uuid)
        return f' (rule {found.rule})' if found else ''

    def _stops(self, server: Instance) -> bool:
        return self._treatment(server) == states.STOP

    def _is_on(self, move: MoveUnderWay) -> bool:
        server = self.servers.get(move.instance_uuid)
        return server is not None and server.host == move.destination

    def _why(self, server: Instance, reason: str, unplaced: Unplaced | None) -> str:
        if self.services[server.host].state != 'up':
            return 'its host is down, and nothing can be migrated off it'
        if server.uuid in self.failures:
            return f'moving it failed {FAILURES} times: {self.failures[server.uuid]}'
        if server.status == SHUTOFF and not self.drains[server.host].with_stopped:
            return 'it is stopped; "--with-stopped" migrates it cold'
        if reason == 'not_active' and server.task_state and server.status != 'ERROR':
            reason = 'busy'  # Nova sets such a status while it moves the server
        if reason == 'refused' and eligibility.movability(server).why:
            return (f'Nova does not migrate it live: {eligibility.movability(server).why}'
                    f'{self._why_uninterrupted(server)}')
        if reason == 'capacity' and not self._others(server.host):
            return ('every other host of the aggregate is being emptied, disabled or down'
                    if len(self._members()) > 1 else 'the aggregate has no other host')
        if reason == 'refused' and unplaced:
            return f'no other host can hold it: {unplaced.why}'
        if reason == 'capacity' and unplaced:
            return f'{WORDS[reason]}: {unplaced.why}' if unplaced.is_proven else unplaced.why
        return WORDS.get(reason, reason).format(status=server.status,
                                                task_state=server.task_state)

    def _why_uninterrupted(self, server: Instance) -> str:
        """Return a clause with the reason why the drain does not interrupt a server that Nova
        cannot migrate live. To interrupt a server is to migrate it cold or to stop it.

        Return '' if no clause is needed. This is so in two cases: the option of the drain leaves
        such servers on the host, or it asks for a cold migration and Nova cannot migrate the server
        cold either.
        """
        if self._treatment(server) == states.LEAVE:
            return f'; rule {self.ruled.treatments[server.uuid].rule} leaves it' if (
                server.uuid in self.ruled.treatments) else ''
        if server.locked:
            return '; it is not interrupted, because it is locked'
        if server.uuid in self.ruled.held:
            return f'; it is not interrupted, because {self.ruled.held[server.uuid]}'
        return ('' if eligibility.movability(server).can == IMMOVABLE
                and not self._stops(server) else '; it is interrupted in a maintenance window only')

    def _members(self) -> tuple[str, ...]:
        return self.snapshot.hosts_of(self.aggregate)

    def _others(self, host: str) -> set[str]:
        """Return the names of the aggregate's hosts that take servers. The result has neither
        ``host`` nor the drained hosts."""
        return {name for name in self._members()
                if name != host and name not in self.hosts and self.services[name].is_available}

    def _report(self, policies: PolicySet, options: EngineOptions,
                planner_ports: PlannerPorts, avoided: Collection[str]) -> AggregateReport:
        # Moves of a drain need no gain, so breaking a soft group has no penalty.
        soft_group_cost = None if options.soft_group_cost is None else 0.0
        wanted = dataclasses.replace(
            options, evacuate_disabled_hosts=True, enforce_hard_affinity=False,
            enforce_soft_affinity=False, repair_rules='off', soft_groups_yield=True,
            budget=WITHOUT_END, min_coverage=1.0, windows=Windows(), stabilization_cycles=1,
            restraint=Restraint(), min_gain=MinGain(),
            soft_group_cost=soft_group_cost,
            pace=self._pace(options.pace, planner_ports.now),
            reserve_hosts=max(drain.keep_spare for drain in self.drains.values()),
            include_unassigned_hosts=self.aggregate not in self._aggregates(),
            aggregates=tuple({self.aggregate} & self._aggregates()))
        reader = _WithRoom(self.measurements.reader, MetricsReader(
            AllocatedSource(self.snapshot, planner_ports.now), self.snapshot.instances,
            hosts=[host.name for host in self.snapshot.hosts]))
        [report] = steps.plan_cycle(
            self.snapshot, _policies(policies), wanted, planner_ports, self.history,
            Measurements(reader),
            self._request(avoided, self._unmovable(options, planner_ports.now))).aggregates
        return report

    def _request(self, avoided: Collection[str], unmovable: Mapping[str, str]) -> DrainRequest:
        return DrainRequest(
            sources=frozenset(self.hosts), avoid=frozenset(avoided),
            include_stopped=frozenset(host for host, drain in self.drains.items()
                                      if drain.with_stopped),
            give_up=(frozenset(self.failures) & self.servers.keys()) | self.stopped,
            restart=frozenset(uuid for uuid in unmovable if not self._stops(self.servers[uuid])))

    def _pace(self, pace: PaceOptions, now: float) -> PaceOptions:
        drains = self.drains.values()
        # Moves of a drain do not depend on a load that changes.
        return dataclasses.replace(
            pace, stale_plan_age=math.inf, caps=dataclasses.replace(pace.caps, sources={
                drain.host: drain.parallel for drain in drains if drain.parallel}),
            due={drain.host: drain.deadline.timestamp() - now
                 for drain in drains if drain.deadline})

    def _aggregates(self) -> set[str]:
        return {aggregate.name for aggregate in self.snapshot.aggregates}


@dataclasses.dataclass(frozen=True, slots=True)
class _Treatment:
    """The treatment that a rule of an operator demands for a server in a drain.

    what : one of :data:`~kronos_nova.drain.states.UNMOVABLE`
    rule : name of the rule
    """

    what: str
    rule: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Ruled:
    """The rules of operators that apply to servers in a drain.

    treatments : {uuid of a server: its _Treatment}; used if Nova does not migrate the server live
    held : {uuid of a server that a rule keeps on its host even in a drain: reason}
    """

    treatments: Mapping[str, _Treatment]
    held: Mapping[str, str]

    @classmethod
    def made(cls, selections: Selections, aggregate: str, now: float) -> '_Ruled':
        """Return the rules that apply now. If rules demand several treatments of one server, the
        mildest treatment is used. The mildest treatment is to leave the server; the next is a cold
        migration; the last is a stop."""
        treatments: dict[str, _Treatment] = {}
        for each in selections:
            what = each.rule.unmovable
            if what is None or what == states.LEAVE and each.rule.yields:
                continue
            for uuid in each.servers:
                if uuid not in treatments or (states.UNMOVABLE.index(what) <
                                              states.UNMOVABLE.index(treatments[uuid].what)):
                    treatments[uuid] = _Treatment(what, each.rule.name)
        holds = rule_holds(selections, aggregate, selections.host_of.keys(), now, {})
        return cls(treatments, {uuid: hold.why for uuid, hold in holds.items() if not hold.yields})


class _WithRoom(MetricsReader):
    """A MetricsReader with one additional policy, :data:`ROOM`, for the allocated fraction of each
    host. All other policies are those of the operator.

    :param reader: MetricsReader for the operator's policies
    :param room: MetricsReader for :data:`ROOM`
    """

    def __init__(self, reader: MetricsReader, room: MetricsReader) -> None:
        # Answers are not cached here, because both readers cache theirs.
        self._reader, self._room = reader, room

    def profile(self, policy: Policy) -> Profile:
        return self._reader_of(policy.name).profile(policy)

    def vector(self, policy: Policy, kind: str) -> metrics.Vector:
        return self._reader_of(policy.name).vector(policy, kind)

    def answer(self, query: metrics.MetricQuery) -> metrics.Vector:
        return self._reader_of(query.policy).answer(query)

    def shared_names(self, label_type: str) -> set[str]:
        return self._reader.shared_names(label_type)

    def _reader_of(self, policy: str) -> MetricsReader:
        return self._room if policy == ROOM else self._reader


def _policies(policies: PolicySet) -> PolicySet:
    """Return a PolicySet with the operator's policies and the policy for allocated resources. The
    thresholds are above any possible imbalance, and all other limits of the policies are removed.
    So no move is planned to balance load."""
    room = Policy(name=ROOM, mode='spread', weight=ROOM_WEIGHT, threshold=1.0, imbalance_query=ROOM,
                  vm_profile_query=ROOM, vm_profile_label='uuid', vm_profile_unit='score',
                  vm_profile_fallback='flavor_vcpu_ratio')
    measured = [policy.model_copy(update={
        'mode': 'spread', 'weight': policy.weight * (1 - ROOM_WEIGHT), 'threshold': ANY_IMBALANCE,
        'capacity_query': None, 'capacity_threshold': None,
        'high': None, 'target': None, 'vm_high': None, 'forecast': None,
        'vm_profile_fallback': 'flavor_vcpu_ratio' if policy.vm_profile_fallback == 'skip'
        else policy.vm_profile_fallback}) for policy in policies.active]
    room = room.model_copy(update={'threshold': ANY_IMBALANCE})
    return PolicySet.model_construct(
        policies=(*measured, room), rules=policies.rules, migration=policies.migration)


def in_scope(snapshot: Snapshot, scopes: Sequence[str], host: str) -> str:
    """Return the aggregate in which a host is drained: the first aggregate in ``scopes`` that has
    the host.

    :raises NotInScope: the host does not exist, or is in no aggregate of ``scopes``
    :raises InventoryError: the host is missing in the snapshot, and hosts could not be read
    """
    if host not in {each.name for each in snapshot.hosts}:
        snapshot.refuse_unread()
        raise exception.NotInScope(
            what=f'Host {host}', problem='Nova has no nova-compute of that name with QEMU or KVM',
            remedy='"openstack compute service list" shows the names.')
    for scope in scopes:
        try:
            hosts = snapshot.hosts_of(scope)
        except KeyError:
            continue
        if host in hosts:
            return scope
    raise exception.NotInScope(
        what=f'Host {host}', problem='is in no aggregate in scope',
        remedy='The options [kronos] aggregates and include_unassigned_hosts select: '
               f'{", ".join(scopes) or "none"}.')
