"""Local search: one move or one exchange of two instances after the other.

A beam search makes plans longer, and what a longer plan costs it has from all others. This one
works on a single placement, in which an instance may be sent elsewhere again or back home, and goes
on for as long as something lowers the smooth value. Then some moves of the best plan are taken back
and it begins anew from there. The more moves a plan may have, the further it gets. This is iterated
local search (Lourenço, Martin and Stützle 2003) with the neighbourhoods *shift* and *swap* of
machine reassignment (ROADEF 2012).
"""

import dataclasses
import itertools

import numpy as np

from kronos_nova.planners import order
from kronos_nova.planners.base import Limits
from kronos_nova.planners.beam import Beam
from kronos_nova.planners.beam import End
from kronos_nova.planners.generation import Plan
from kronos_nova.planners.softened_max import SoftenedMax
from kronos_nova.simulation import TOLERANCE

STEP, PAIR, MOVE = 2e5, 6.0, 5e4
"""What looking at one host costs, rating an exchange, and finding an order for one move, in about
nanoseconds."""
TEMPERATURES = (0.1, 0.03, 0.2)
"""As parts of what is left of the combined imbalance."""
COLDEST = 1e-4
PATIENCE = 12
"""Hosts that are looked at without success before moves are taken back."""
TAKEN_BACK = (0.05, 0.15, 0.02)
"""Parts of the best plan."""
COOLED = 0.8
AGAIN = 3
TRIED = 4
FAINTEST = 1e-35


@dataclasses.dataclass(frozen=True, slots=True)
class _Change:
    """``first`` goes from ``here`` to ``there``, ``second`` comes back."""

    here: int
    there: int
    first: int
    second: int

    @property
    def moves(self) -> tuple[tuple[int, int], ...]:
        return (self.first, self.there), (self.second, self.here)


class LocalSearch:
    """Improves on a plan, and tells a beam what it found.

    Beside the instances there is one *nothing* on every host: to exchange an instance with it is a
    move. ``place`` tells where everything is; ``scores`` and ``free`` follow from it.
    """

    def __init__(self, beam: Beam, limits: Limits):
        self.beam, self.space, self.limits = beam, beam.space, limits
        space, hosts = self.space, len(self.space.scores)
        self.state = space.state.copy()
        self.chance = np.random.default_rng(0)
        self.vms = len(space.vms)
        self.home = np.concatenate([space.home, np.arange(hosts)])
        self.weights, self.sizes = (np.pad(rows, ((0, hosts), (0, 0)))
                                    for rows in (space.weights, space.sizes))
        self._rows: dict[int, np.ndarray] = {}

    def run(self, plan: Plan, effort: float) -> None:
        """Go on from ``plan`` until so much effort is spent."""
        end = self.beam.effort + effort
        self._begin(plan)
        best = self._end()
        for turn in itertools.count():
            if self.beam.effort >= end or self.limits.is_over:
                return
            self._descend_to_possible(TEMPERATURES[turn % len(TEMPERATURES)], end)
            found = self._end()
            if found.cost < best.cost - TOLERANCE:
                best = found
                self.beam.keep(found)
            self._begin(best.plan)
            self._begin(self._shortened(best.plan, turn))

    def _descend_to_possible(self, part: float, end: float) -> None:
        """Descend to a plan for which there is an order of moves."""
        for _again in range(AGAIN):
            self._descend(part, end)
            plan = self._end().plan
            ordering = order.Ordering(self.state, self.limits)
            is_whole = ordering.do_all([(int(self.space.vms[vm]), int(self.space.hosts[host]))
                                   for vm, host in plan])
            done, moves = self.space.plan_of(self.state), len(ordering.done)
            ordering.undo()
            self.beam.effort += MOVE * len(plan)
            if is_whole:
                return
            self._begin(done)
            self.left = self.limits.budget - moves - (len(plan) - len(done)) // 2

    def _shortened(self, plan: Plan, turn: int) -> Plan:
        """A plan without some moves: any, or of two thirds of them those that help least."""
        count = len(plan)
        if not count:
            return []
        taken = min(count, 2 + int(TAKEN_BACK[turn % len(TAKEN_BACK)] * count))
        among = self.chance.permutation(count)
        if turn % 2:
            among = among[:max(taken, count * 2 // 3)]
            among = among[np.argsort(self._losses(plan)[among], kind='stable')]
        back = set(among[:taken].tolist())
        return [move for n, move in enumerate(plan) if n not in back]

    def _losses(self, plan: Plan) -> np.ndarray:
        """float64 (len(plan),): to first order, by how much each move lowers the smooth value."""
        vms, hosts = np.array(plan).T
        rates = self._rates(TEMPERATURES[0])
        shares, home, kind = rates.of(self.scores)[1], self.home[vms], rates.smooth.kind
        leaves = shares[hosts] * (rates.leaving[kind[hosts], :, vms] - 1)
        comes = shares[home] * (rates.arriving[kind[home], :, vms] - 1)
        return (leaves + comes).sum(axis=1)

    def _begin(self, plan: Plan) -> None:
        scores, free = self.space.after([plan])
        self.scores, self.free = scores[:, :, 0].copy(), free[:, :, 0].copy()
        self.place, self.paid = self.home.copy(), np.zeros(len(self.home))
        vms, hosts = np.array(plan, dtype=np.intp).reshape(-1, 2).T
        self.place[vms], self.paid[vms] = hosts, self.space.prices(vms, hosts)
        self.left = self.limits.budget - len(plan)

    def _end(self) -> End:
        space = self.space
        plan = [(int(vm), int(self.place[vm])) for vm in np.flatnonzero(self.place != self.home)]
        top, bottom = self.scores.max(axis=0), self.scores.min(axis=0)
        is_legal = space.is_legal(top[:, None], bottom[:, None], self.free[:, :, None])[0]
        cost = float(space.policy_weights @ (top - bottom)) + space.price_of(plan)
        return End(cost if is_legal else np.inf, plan)

    def _descend(self, part: float, end: float) -> None:
        """Change what lowers the smooth value until nothing does."""
        idle, rates = 0, self._rates(part)
        while idle < PATIENCE and self.beam.effort < end and not self.limits.is_over:
            if self._temperature(part) < COOLED * rates.smooth.temperature:
                rates = self._rates(part)
            value, shares = rates.of(self.scores)
            each = np.cumsum(shares.sum(axis=1))
            host = np.searchsorted(each, self.chance.random() * each[-1])
            change = self._best(rates, value, shares, min(int(host), len(each) - 1))
            idle = idle + 1 if change is None else 0
            if change is not None:
                self._make(change)

    def _temperature(self, part: float) -> float:
        return max(part * float(self.space.policy_weights @ np.ptp(self.scores, axis=0)), COLDEST)

    def _rates(self, part: float) -> '_Rates':
        return _Rates(SoftenedMax(self.space, self._temperature(part)), len(self.home))

    def _best(self, rates, value: float, shares: np.ndarray, here: int) -> _Change | None:
        """The exchange between a host and any other that lowers the smooth value most."""
        first = np.flatnonzero(self.place == here)
        second = np.flatnonzero(self.place != here)
        there = self.place[second]
        changes = rates.changes(shares, here, first, second, there)
        changes += self._prices_of(first)[:, there] - self.paid[first][:, None]
        changes += self._prices_at(here)[second] - self.paid[second]
        self._weigh(changes, here, first, second, there)
        self.beam.effort += STEP + PAIR * (2 + self.free.shape[1]) * changes.size
        changes = changes.reshape(-1)
        few = np.arange(len(changes))
        if len(few) > TRIED:
            few = np.argpartition(changes, TRIED)[:TRIED]
        for n in few[np.argsort(changes[few], kind='stable')]:
            if not changes[n] < -TOLERANCE:
                return None
            row, column = divmod(int(n), len(second))
            change = _Change(here, int(there[column]), int(first[row]), int(second[column]))
            if self._is_good(rates, change, value):
                return change
        return None

    def _prices_at(self, host: int) -> np.ndarray:
        """float64 (v + h,): what it costs to have something on a host; inf if it may not be."""
        prices = np.pad(self.space.column(host), (0, len(self.home) - self.vms))
        prices[self.home == host] = 0.0
        return prices

    def _prices_of(self, vms: np.ndarray) -> np.ndarray:
        """float64 (len(vms), h): the same, of instances on any host."""
        return np.array([self._prices_of_one(int(vm)) for vm in vms])

    def _prices_of_one(self, vm: int) -> np.ndarray:
        if vm not in self._rows:
            prices = np.zeros(len(self.scores))
            if vm < self.vms:
                prices = self.space.row(vm).copy()
                prices[self.home[vm]] = 0.0
            self._rows[vm] = prices
        return self._rows[vm]

    def _weigh(self, changes, here, first, second, there) -> None:
        """Per move that it takes; inf where the budget, the room or a policy has something against
        it."""
        away = self.place != self.home
        more = (self.home[first][:, None] != there).astype(int) - away[first][:, None]
        more += (self.home[second] != here).astype(int) - away[second]
        bad = more > self.left
        for c in range(self.free.shape[1]):
            extra = self.sizes[first, c][:, None] - self.sizes[second, c]
            room = self.free[:, c] - self.space.floor[:, c]
            bad |= (extra > room[there]) & (extra > 0)
            bad |= (-extra > room[here]) & (extra < 0)
        changes[bad] = np.inf
        changes /= np.maximum(more, 1)

    def _is_good(self, rates, change: _Change, value: float) -> bool:
        if (self.space.is_met(change.first, change.there, self.place, (change.second,))
                or self.space.is_met(change.second, change.here, self.place, (change.first,))):
            return False
        scores = self.scores.copy()
        self._shift(scores, change)
        spread = np.ptp(scores, axis=0)
        if ((spread > self.space.worst) & (spread > np.ptp(self.scores, axis=0))).any():
            return False
        price = sum(self._prices_at(host)[vm] - self.paid[vm] for vm, host in change.moves)
        return rates.of(scores)[0] + price < value - TOLERANCE

    def _shift(self, scores: np.ndarray, change: _Change) -> None:
        swing = self.weights[change.second] - self.weights[change.first]
        scores[change.here] += swing * self.space.scale[change.here]
        scores[change.there] -= swing * self.space.scale[change.there]

    def _make(self, change: _Change) -> None:
        self._shift(self.scores, change)
        room = self.sizes[change.first] - self.sizes[change.second]
        self.free[change.here] += room
        self.free[change.there] -= room
        for vm, host in change.moves:
            if vm < self.vms:
                self.paid[vm] = self._prices_at(host)[vm]
                self.left += int(self.place[vm] != self.home[vm]) - int(host != self.home[vm])
                self.place[vm] = host


class _Rates:
    """Rates exchanges at one temperature."""

    def __init__(self, smooth: SoftenedMax, count: int):
        self.smooth = smooth
        wide = ((0, 0), (0, 0), (0, count - smooth.arriving.shape[2]))
        self.arriving, self.leaving = (np.pad(table, wide) + np.float32(1)
                                       for table in (smooth.arriving, smooth.leaving))
        self.both = np.concatenate([self.arriving, self.leaving], axis=1)

    def of(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """The smooth value of scores, and float32 (h, T), what each host contributes."""
        smooth, top, bottom = self.smooth, scores.max(axis=0), scores.min(axis=0)
        terms = np.exp(np.hstack([scores - top, bottom - scores]) / smooth.temperature)
        sums = terms.sum(axis=0)
        value = smooth.price @ np.log(sums) + smooth.space.policy_weights @ (top - bottom)
        shares = np.maximum(terms * (smooth.price / sums), FAINTEST)
        return float(value), shares.astype(np.float32)

    def changes(self, shares, here, first, second, there) -> np.ndarray:
        """float32 (len(first), len(second)): to first order, what each exchange changes."""
        smooth = self.smooth
        own, total = smooth.kind[here], shares.sum(axis=1)
        arrives = self.arriving[own][:, second] * shares[here][:, None]
        leaves = self.leaving[smooth.kind[there], :, second].T * shares[there].T
        right = np.concatenate([arrives, leaves])
        changes = np.empty((len(first), len(second)), dtype=np.float32)
        for kind in np.unique(smooth.kind[there]):
            some = np.flatnonzero(smooth.kind[there] == kind)
            left = np.concatenate([self.leaving[own][:, first], self.arriving[kind][:, first]])
            changes[:, some] = left.T @ right[:, some]
        changes -= total[here] + total[there]
        return changes
