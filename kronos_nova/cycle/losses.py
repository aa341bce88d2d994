"""The check of which losses of hosts are covered. A loss is covered if all servers of the lost host
could restart elsewhere. The check is made only in some evaluations. On average, the check takes
about ``failover_check_percent`` of the duration of the evaluations. As long as the cloud does not
change, the results of a complete check stay valid, and no other check is made."""

import collections
import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from kronos_nova import plural
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.cycle import slot_figures
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.inputs import restart_rules
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.inventory.base import InventorySource
from kronos_nova.objects.plan import LossReport
from kronos_nova.objects.plan import SlotReport
from kronos_nova.objects.snapshot import UNASSIGNED
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.objects.snapshot import is_supported
from kronos_nova.policies import OperatorRule
from kronos_nova.policies import PolicySet
from kronos_nova.room import failover
from kronos_nova.room import losses
from kronos_nova.room.failover import LossVerdict
from kronos_nova.room.losses import JudgedLoss
from kronos_nova.room.losses import Loss
from kronos_nova.room.losses import LossMemory
from kronos_nova.room.slots import SlotCounter

FIRST_SECONDS = 5.0
"""Seconds available for the first check of losses of hosts after a start of Kronos. The check finds
out for each host whether its servers would restart elsewhere. Raised, the first evaluation may take
longer; lowered, more hosts of large clouds are left for the next evaluations. Chosen as twice the
2.4 seconds that 1,000 hosts with 30,000 servers take (``python -m bench failover``)."""
MOST_SECONDS = 20.0
"""Maximum seconds that one evaluation may use to check losses of hosts. The check finds out for
each host whether its servers would restart elsewhere. A check uses a time budget, to which each
evaluation adds a share of its duration. The time budget never exceeds this maximum. Raised, a
single evaluation may take longer; lowered, more evaluations of large clouds check only a part of
the hosts. Chosen as four times :data:`FIRST_SECONDS`, the time for the first check."""
LEAST_SECONDS = 0.05
"""Minimum seconds that each evaluation adds to the time budget of the next check of losses of
hosts. Raised, small clouds are checked more often, and their evaluations take longer; lowered,
small clouds are checked less often. Chosen because the check of 40 hosts with 1,200 servers takes
this time."""
SAVED = 1.25
"""Factor that decides when the next check of losses of hosts begins. The check finds out for each
host whether its servers would restart elsewhere. Each evaluation adds time to a time budget. The
next check begins when the budget is as long as the last check took, times this factor. A factor
above 1 leaves time for an additional check, which places the servers one after the other as Nova
does. In this order, room may be missing although the first check found a place for every server.
Raised, checks are rarer, and the additional check is made for more hosts; lowered, checks are more
frequent, and the additional check is made for fewer hosts. Not measured."""
COLD = 3.0
"""Estimated ratio of the duration of the first check of losses of hosts to the duration of the
second check, after a start of Kronos. The check finds out for each host whether its servers would
restart elsewhere. The second check is faster, because it reuses results of the first check. The
second check begins when its time budget suffices for its estimated duration. Raised, the second
check begins sooner, but may end before all hosts are checked; lowered, the second check begins
later. Measured for 1,000 hosts: the first check takes 2.4 seconds, a later check 0.75 seconds
(``python -m bench failover``)."""
MOST_FLAVORS = 10
"""Maximum number of flavors for which an evaluation counts slots. A slot is room for one more
server of a flavor. Raised, the Prometheus exporter has more series, and evaluations take longer;
lowered, operators can watch fewer flavors. Chosen so that an aggregate has about as many Prometheus
series on slots as on lost hosts."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RoomFigures:
    """The results of :class:`LossJudge` for one aggregate.

    losses : reports on whether the remaining hosts have room for the servers of lost hosts: one
        report for the loss of single hosts, and one for each level of failure domains
    slots : how many more servers fit, for each flavor that ``slot_flavors`` names
    """

    losses: tuple[LossReport, ...] = ()
    slots: tuple[SlotReport, ...] = ()

    def at(self, now: float) -> 'RoomFigures':
        """Return a copy in which the results are of the time ``now``."""
        return dataclasses.replace(self, losses=tuple(
            dataclasses.replace(each, judged_at=now) for each in self.losses))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """All that the results of a complete check depend on, without flavors.

    snapshot : the cloud, without the time at which it was read
    names : names of the aggregates
    rules : the rules of the operator
    options : the options of the evaluation
    """

    snapshot: Snapshot
    names: tuple[str, ...]
    rules: tuple[OperatorRule, ...]
    options: EngineOptions


class LossJudge:
    """A checker of which losses of hosts and failure domains are covered in each aggregate. The
    results are kept for later evaluations.

    rule_memory : results of earlier checks by the rule of :mod:`kronos_nova.cycle.loss_rule`, kept
        from one evaluation to the next
    """

    def __init__(self) -> None:
        self.rule_memory = LossMemory()
        self._allowance = FIRST_SECONDS
        self._last_round: dict[tuple[str, ...], float] = {}
        self._figures: dict[str, RoomFigures] = {}
        self._final: _Facts | None = None
        self._memories: dict[str, LossMemory] = collections.defaultdict(LossMemory)

    def reports(self, snapshot: Snapshot, names: Iterable[str], policies: PolicySet,
                options: EngineOptions, planner_ports: PlannerPorts, seconds: float,
                inventory: InventorySource) -> Mapping[str, RoomFigures]:
        """Return {aggregate: its RoomFigures}. The figures show whether servers would restart
        elsewhere if their hosts failed.

        The checks may take much time, so they are not made in every evaluation. Each evaluation
        adds a share of its duration to a time budget. Until the budget suffices to check all
        aggregates, the results of an earlier evaluation are returned.

        :param names: names of the aggregates
        :param seconds: duration of the evaluation so far
        :param inventory: source of the flavors
        """
        if not options.failover_check_percent:
            return {}
        there = {each.name for each in snapshot.aggregates} | {UNASSIGNED}
        known = tuple(sorted(there & {*names}))
        facts = _Facts(snapshot=dataclasses.replace(snapshot, taken_at=''), names=known,
                       rules=policies.rules, options=options)
        if facts == self._final:
            return {name: self._figures[name].at(planner_ports.now) for name in known}
        self._allowance = min(MOST_SECONDS, self._allowance + max(
            LEAST_SECONDS, seconds * options.failover_check_percent / 100))
        needed = min(MOST_SECONDS, SAVED * self._last_round.get(known, 0.0))
        if known and self._allowance > 0 and self._allowance >= needed:
            self._final = None  # after an error, a part of the results is of this cloud
            if self._judge(snapshot, known, policies, options, planner_ports, inventory):
                self._final = facts
        return {name: self._figures[name] for name in known if name in self._figures}

    def _judge(self, snapshot: Snapshot, names: tuple[str, ...], policies: PolicySet,
               options: EngineOptions, planner_ports: PlannerPorts,
               inventory: InventorySource) -> bool:
        """Check the losses of hosts of the aggregates. Return True if a further check of the same
        cloud would have the same results."""
        clock = planner_ports.clock
        begun = clock()
        deadline = begun + self._allowance
        rules = restart_rules(options, policies, snapshot)
        judge = failover.failover_of(snapshot, rules)
        hosts = [host for host in snapshot.hosts if is_supported(host.hypervisor_type)]
        found: dict[str, Mapping[Loss, JudgedLoss]] = {}
        for position, name in enumerate(names):
            wanted = losses.of_hosts(hosts, {*snapshot.hosts_of(name)} & {*judge.problem.hosts})
            self._memories[name].forget_but(wanted)
            left = _share(clock, deadline, len(names) - position)
            found[name] = losses.judged(judge, wanted, self._memories[name], left)
        slots = self._slots(snapshot, rules, found, options, inventory,
                            lambda: deadline - clock())
        taken = clock() - begun
        self._last_round[names] = taken if names in self._last_round else taken / COLD
        for position, name in enumerate(names):
            left = _share(clock, deadline, len(names) - position)
            found[name] = losses.ordered(judge, found[name], self._memories[name], left)
            self._figures[name] = RoomFigures(
                losses=tuple(_reports(judge, found[name].values(), planner_ports.now)),
                slots=slots.get(name, ()))
        self._allowance -= clock() - begun
        return not options.slot_flavors and all(
            _is_final(each) for judged in found.values() for each in judged.values())

    @staticmethod
    def _slots(snapshot: Snapshot, rules: ConstraintRules,
               found: Mapping[str, Mapping[Loss, JudgedLoss]], options: EngineOptions,
               inventory: InventorySource, left: Callable[[], float]
               ) -> dict[str, tuple[SlotReport, ...]]:
        """Return {aggregate: slots (how many more servers fit) of the flavors that ``slot_flavors``
        names}; empty if the option names no flavor."""
        names = options.slot_flavors[:MOST_FLAVORS]
        wanted = slot_figures.shapes_of(names, inventory) if names else []
        if not wanted:
            return {}
        counter = SlotCounter(snapshot, rules, wanted)
        return {name: slot_figures.slot_reports(counter.within(snapshot.hosts_of(name)),
                                                judged.values(), left)
                for name, judged in found.items()}


def _is_final(each: JudgedLoss) -> bool:
    """Return True if a further check of the same cloud would have the same result: no part of the
    check was left out, and no search ended without a result."""
    if each.verdict is None or each.verdict.verdict == failover.NOT_FOUND:
        return False
    return each.in_order is not None or each.verdict.verdict == failover.DOES_NOT


def _share(clock: Callable[[], float], deadline: float, parts: int) -> Callable[[], float]:
    """Return a function that returns the seconds left of a share of the remaining time. The share
    begins now. Its length is the time until ``deadline``, divided by ``parts``."""
    now = clock()
    until = now + (deadline - now) / parts
    return lambda: until - clock()


def _reports(judge: failover.Failover, found: Iterable[JudgedLoss],
             now: float) -> Iterator[LossReport]:
    """Yield one report for each level of failure domains. The report about single hosts is
    first."""
    levels: dict[str, list[JudgedLoss]] = {losses.HOST: []}
    for each in found:
        levels.setdefault(each.loss.level, []).append(each)
    for level, judged in levels.items():
        verdicts = collections.Counter(each.verdict.verdict if each.verdict else None
                                       for each in judged)
        worst = max((each for each in judged if each.verdict and each.verdict.left),
                    key=_badness, default=None)
        why = _why(judge, worst.verdict) if worst and worst.verdict else ''
        yield LossReport(
            level=level, fits=verdicts[failover.FITS], does_not_fit=verdicts[failover.DOES_NOT],
            not_found=verdicts[failover.NOT_FOUND], not_judged=verdicts[None],
            in_order=sum(each.in_order is True for each in judged),
            not_in_order=sum(each.in_order is False for each in judged),
            worst=worst.loss.name if worst else '', why=why, judged_at=now)


def _badness(each: JudgedLoss) -> tuple[bool, int]:
    """Return a tuple that is larger the worse a loss is: (True if its servers provably do not fit
    elsewhere, number of servers that cannot restart)."""
    verdict = each.verdict
    return (verdict is not None and verdict.verdict == failover.DOES_NOT,
            len(verdict.left) if verdict else 0)


def _why(judge: failover.Failover, verdict: LossVerdict) -> str:
    """Return a text with the number of servers that cannot restart anywhere, and the reason for one
    of these servers."""
    first = min(verdict.left)
    servers = sum(judge.servers(judge.index(name)) for name in verdict.lost)
    return (f'{len(verdict.left)} of {servers} servers '
            f'{plural.agreeing(len(verdict.left), "find")} no place, such as {first}: '
            f'{verdict.left[first]}')
