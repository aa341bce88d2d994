"""A rule that forbids moves after which a loss of hosts would no longer be covered. A loss is the
failure of a host, or of all hosts of a failure domain. A loss is covered if all servers of these
hosts could restart elsewhere. A loss that is covered before moves has to be covered after the
moves."""

import copy
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.objects import plan as plans
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.objects.snapshot import is_supported
from kronos_nova.room import defragmenting
from kronos_nova.room import failover
from kronos_nova.room import losses
from kronos_nova.room.failover import FITS
from kronos_nova.room.failover import Failover
from kronos_nova.room.losses import HOST
from kronos_nova.room.losses import JudgedLoss
from kronos_nova.room.losses import Loss
from kronos_nova.room.losses import LossMemory


class LossRule:
    """A check of which losses of hosts are covered after moves. A loss is covered if all servers of
    the lost hosts could restart elsewhere.

    :param snapshot: the cloud before any move
    :param rules: rules for servers that restart elsewhere
    :param hosts: number of hosts that may be lost together; 0 if no loss of hosts is checked
    :param domains: number of failure domains of one level that may be lost together; 0 if no loss
        of domains is checked
    :param memory: results of earlier checks: the hosts on which the servers of a loss could
        restart. While these hosts are still possible, no others are searched
    :param left: returns the seconds that are left for checks; if none are left, no further loss
        counts as covered
    """

    def __init__(self, snapshot: Snapshot, rules: ConstraintRules, hosts: int, domains: int,
                 memory: LossMemory, left: Callable[[], float]):
        self._snapshot, self._rules, self._left = snapshot, rules, left
        self._memory = memory
        supported = [host for host in snapshot.hosts if is_supported(host.hypervisor_type)]
        single = losses.of_hosts(supported, {host.name for host in supported})
        self.losses = list(_together(single, hosts, domains))
        memory.forget_but(self.losses)
        self._judge: Failover | None = None
        self._before: dict[Loss, JudgedLoss] = {}
        self._latest: tuple[list[PlannedMove], Mapping[Loss, JudgedLoss]] = [], {}

    def fitting(self, moves: Iterable[PlannedMove],
                among: Sequence[Loss] | None = None) -> list[Loss]:
        """Return the losses that are proven to be covered after moves.

        :param among: the losses to check; None for all
        """
        return [loss for loss, each in self._judged([*moves], among).items() if _is_covered(each)]

    def uncovered(self) -> list[Loss]:
        """Return the losses that are not covered in the cloud before any move: some servers of the
        lost hosts could not restart elsewhere. The losses with the most such servers come first.
        Losses that were not checked within the time limit of the rule (``left``) are left out."""
        found = [(len(each.verdict.left), loss) for loss, each in self._judged([], None).items()
                 if each.verdict is not None and not _is_covered(each)]
        return [loss for _left, loss in sorted(found, key=lambda each: -each[0])]

    def after(self, moves: Sequence[PlannedMove], left: Callable[[], float]) -> 'LossRule':
        """Return the rule for the cloud after moves. By the new rule, only losses that were
        covered before the moves have to stay covered.

        :param left: returns the seconds that are left for the checks of the new rule
        """
        other = copy.copy(self)
        other._left, other._latest = left, ([], {})
        if moves:
            other._snapshot = self._cloud_after(moves)
            judged = self._latest[1] if self._latest[0] == moves else {}
            other._before = {loss: each for loss, each in self._before.items()
                             if not _is_covered(each)}
            other._before |= self._unchanged(moves)
            other._before |= {loss: each for loss, each in judged.items() if _is_covered(each)}
        return other

    def _judged(self, moves: list[PlannedMove],
                among: Sequence[Loss] | None) -> Mapping[Loss, JudgedLoss]:
        wanted = self.losses if among is None else among
        known = self._unchanged(moves) if moves else self._before
        rest = [loss for loss in wanted if loss not in known]
        judged: Mapping[Loss, JudgedLoss] = {}
        if rest:
            judge = failover.failover_of(self._cloud_after(moves), self._rules)
            judged = losses.judged(judge, rest, self._memory, self._left)
            self._judge = self._judge or judge
        found = {loss: known.get(loss) or judged[loss] for loss in wanted}
        if not moves:
            self._before |= {loss: each for loss, each in found.items()
                             if each.verdict is not None}
        self._latest = moves, found
        return found

    def _unchanged(self, moves: Iterable[PlannedMove]) -> dict[Loss, JudgedLoss]:
        """Return the covered losses that certainly stay covered after moves, so that they need not
        be checked again. For such a loss, no move begins or ends on a lost host, and no move ends
        on a host on which a server of the lost hosts would restart. Some moves can affect any loss.
        If there is such a move, the result is empty."""
        judge, reached = self._judge, {move.destination for move in moves}
        if judge is None or not all(judge.is_local(move.instance_uuid) for move in moves):
            return {}
        touched = reached | {move.source for move in moves}
        return {loss: each for loss, each in self._before.items()
                if each.verdict is not None and each.verdict.verdict == FITS
                and touched.isdisjoint(loss.hosts)
                and reached.isdisjoint(each.verdict.placement.values())}

    def _cloud_after(self, moves: Iterable[PlannedMove]) -> Snapshot:
        return defragmenting.after(self._snapshot, _last_of_each(moves), self._rules)


def _is_covered(judged: JudgedLoss) -> bool:
    return judged.verdict is not None and judged.verdict.verdict == FITS


def cut(rule: LossRule, moves: Sequence[PlannedMove]) -> dict[int, str]:
    """Return the moves to leave out of a plan, so that no covered loss becomes uncovered by the
    plan.

    A loss is covered if all servers of the lost hosts could restart elsewhere. Moves that empty
    disabled hosts are never left out, even if they make a loss uncovered.

    :param moves: moves of a plan, in its order
    :returns: {``order`` of a PlannedMove that is left out: text about the loss that the move would
        make uncovered}
    """
    kept, gone = list(moves), dict[int, str]()
    required = [move for move in moves if move.phase == plans.EVACUATE]
    if len(required) == len(moves):
        return gone
    before = rule.fitting(required)
    while True:
        lost = _lowered(rule, kept, before)
        optional = [move for move in kept if move.phase != plans.EVACUATE]
        if not lost or not optional:
            return gone
        # Find the shortest beginning after which a loss is uncovered: its last move is the cause.
        low, high = 0, len(optional)
        while high - low > 1:
            middle = (low + high) // 2
            found = _lowered(rule, [*required, *optional[:middle]], before)
            low, high = (low, middle) if found else (middle, high)
            lost = found or lost
        why = f'{lost[0].name} could not be lost any more with all servers restarting elsewhere'
        out = _with_it(optional[high - 1], kept)
        kept = [move for move in kept if move not in out]
        gone |= {move.order: why for move in out}


def _lowered(rule: LossRule, moves: Iterable[PlannedMove], before: Sequence[Loss]) -> list[Loss]:
    """Return the losses in ``before`` that are not covered after moves."""
    after = {*rule.fitting(moves, before)}
    return [loss for loss in before if loss not in after]


def _with_it(move: PlannedMove, moves: Iterable[PlannedMove]) -> list[PlannedMove]:
    """Return the moves to leave out if one move is left out: the move itself, moves that help only
    together with this move, and moves that depend on any of these moves."""
    out = {each.order for each in moves if each.order == move.order or (
        move.group is not None and each.group == move.group)}
    for each in moves:
        if out & {*each.depends_on}:
            out.add(each.order)
    return [each for each in moves if each.order in out]


def _last_of_each(moves: Iterable[PlannedMove]) -> list[PlannedMove]:
    """Return the last move of each instance."""
    return list({move.instance_uuid: move for move in moves}.values())


def _together(single: Sequence[Loss], hosts: int, domains: int) -> Iterator[Loss]:
    """Yield the losses of up to ``hosts`` hosts together, and of up to ``domains`` failure domains
    of one level together."""
    levels: dict[str, list[Loss]] = {}
    for loss in single:
        levels.setdefault(loss.level, []).append(loss)
    for level, members in levels.items():
        for count in range(1, (hosts if level == HOST else domains) + 1):
            for some in itertools.combinations(members, count):
                yield Loss(level=level, name=' and '.join(loss.name for loss in some),
                           hosts=tuple(name for loss in some for name in loss.hosts))
