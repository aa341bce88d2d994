"""Many placements side by side, each of which makes one exchange after the other.

An exchange sends an instance from one host to another, and another one back. Beside the instances
there is one *nothing* on every host: to exchange an instance with it is a move. These are the
neighbourhoods *shift* and *swap* of machine reassignment (ROADEF 2012). Where a plan has all the
moves that it may have, an exchange also undoes the move that is missed least.
"""

import numpy as np

from kronos_nova.planners.incumbents import End
from kronos_nova.planners.incumbents import Plan
from kronos_nova.planners.softened_max import SoftenedMax
from kronos_nova.simulation import TOLERANCE
from kronos_nova.simulation.space import NEVER
from kronos_nova.simulation.space import SearchSpace

PARTNERS = 40
"""Hosts that a host may exchange with: those that contribute most to the softened value, which are
the hottest and the coldest. What the others could do shows after some exchanges."""


UNTRIED = 0.4
"""A placement is taken for a local optimum once the hosts that were drawn in vain contribute all
but so much of the softened value: with less, few placements get to where they could be changed
again; with more, they are left too early."""
HOMING = {True: 0.5, False: 0.3}
"""How often what changes places with an instance goes home instead; with few moves (True) more
often, as it then seldom serves on the other host. Without, no plan finds another instance for a
host that needs one, but only another host for the instance."""


class Placements:
    """n placements of the v instances of a search space.

    place : intp (n, v + h), the host of every instance and every nothing
    scores : float64 (n, h, P); free : float64 (n, h, c); left : intp (n,), moves that a plan may
        still have
    tried : bool (n, 2, h), hosts drawn in vain since the last change, to receive or to send
    """

    def __init__(self, space: SearchSpace, budget: int, plans: list[Plan]):
        self.space, hosts = space, len(space.scores)
        self.home = np.concatenate([space.home, np.arange(hosts)])
        self.budget, count = budget, len(plans)
        self.place = np.tile(self.home, (count, 1))
        self.scores = np.tile(space.scores, (count, 1, 1))
        self.free = np.tile(space.free, (count, 1, 1))
        self.left = np.full(count, budget)
        self.tried = np.zeros((count, 2, hosts), dtype=bool)
        self.restart(np.arange(count), plans)
        self.weights, self.sizes = (np.pad(rows, ((0, hosts), (0, 0)))
                                    for rows in (space.weights, space.sizes))

    def restart(self, rows: np.ndarray, plans: list[Plan]) -> None:
        """Begin some placements anew."""
        self.place[rows] = self.home
        for row, plan in zip(rows, plans, strict=True):
            vms, there = np.array(plan, dtype=np.intp).reshape(-1, 2).T
            self.place[row, vms] = there
        self.scores[rows], self.free[rows] = (
            end.transpose(2, 0, 1) for end in self.space.after(plans))
        self.left[rows] = self.budget - np.array([len(plan) for plan in plans])
        self.tried[rows] = False

    def improve(self, smooth: SoftenedMax, chance, are_few: bool) -> tuple[np.ndarray, int]:
        """Make in each placement the best exchange of a host drawn by what it contributes, if that
        lowers the softened value. Returns which are local optima now, and how many pairs were
        rated."""
        exchanges = Exchanges(self, smooth, chance, are_few)
        trial = exchanges.best()
        trial.make()
        failed = np.ones(len(self.place), dtype=bool)
        failed[trial.number[trial.is_better]] = False
        self.tried[~failed] = False
        self.tried[failed, exchanges.side, exchanges.here[failed]] = True
        untried = np.where(self.tried, 0, exchanges.drawn).sum(axis=(1, 2))
        optimal = failed & (untried <= UNTRIED * exchanges.drawn.sum(axis=(1, 2)))
        return np.flatnonzero(optimal), exchanges.changes.size

    def ends(self, rows: np.ndarray, below: float) -> list[End]:
        """Where those of some placements are that are legal and cost less than ``below``, prices
        aside."""
        space, scores = self.space, self.scores[rows]
        top, bottom = scores.max(axis=1), scores.min(axis=1)
        combined = (top - bottom) @ space.policy_weights
        good = (combined < below) & space.is_legal(
            top.T, bottom.T, self.free[rows].transpose(1, 2, 0))
        ends = []
        for row, cost in zip(rows[good], combined[good], strict=True):
            moved = np.flatnonzero(self.place[row] != self.home)
            plan = list(zip(moved.tolist(), self.place[row, moved].tolist(), strict=True))
            ends.append(End(float(cost) + space.price_of(plan), plan))
        return ends


class Exchanges:
    """The exchanges of one host with others, in each of n placements, and how good they are.

    here : intp (n,); first, second : intp (n, a), (n, b), things on it and on its partners, filled
        up with its nothing; there : intp (n, b), where the second are
    changes : float32 (n, a, b), to first order, per move that it takes
    goes_home : bool (n, a) and (n, b), what goes home and not to where the other comes from
    drawn : float32 (n, 2, h), by what hosts are drawn, of either side; with many moves of one
    back : intp (n,), the instance whose move is undone if the budget is used, -1 if there is room
    """

    def __init__(self, owner: Placements, smooth: SoftenedMax, chance, are_few: bool):
        self.owner, self.smooth = owner, smooth
        self.place, self.every = owner.place, np.arange(len(owner.place))
        self.value, self.shares = smooth.of(owner.scores)
        self.shares[:, len(owner.space.hosts):] = 0
        self.share = self.shares.sum(axis=2)
        self.sends, homing = chance.random(2) < (0.5, HOMING[are_few])
        first, second = self._draw(chance, are_few)
        nothing = len(owner.space.vms) + self.here
        self.first, self.second = _filled(first, nothing), _filled(second, nothing)
        self.there = np.take_along_axis(self.place, self.second, axis=1)
        self.goes_home = [flags & homing for flags in self._counterparts(are_few)]
        self.back, self.regret = self._least_missed()
        self.leaves, self.arrives = self._moves()
        self.changes = self._rate()
        self._weigh()

    def _draw(self, chance, are_few: bool) -> tuple[np.ndarray, np.ndarray]:
        """The things that may be exchanged, bool (n, v + h), twice.

        :param are_few: leave out exchanges of two instances that are at home, which take two of few
            moves: the host, drawn by its part in the tops or in the bottoms, only sends or receives
        """
        sends, policies = self.sends, self.shares.shape[2] // 2
        tops, bottoms = (self.shares[:, :, part].sum(axis=2)
                         for part in (slice(policies), slice(policies, None)))
        self.drawn = (np.stack([bottoms, tops], axis=1) if are_few
                      else np.stack([self.share, np.zeros_like(tops)], axis=1))
        self.side = int(sends and are_few)
        share = np.where(self.owner.tried[:, self.side], 0, self.drawn[:, self.side])
        drawn = chance.random(len(share)) * share.sum(axis=1)
        passed = np.cumsum(share, axis=1) < drawn[:, None]
        self.here = np.minimum(passed.sum(axis=1), len(self.owner.space.hosts) - 1)
        first = self.place == self.here[:, None]
        loose = self.place != self.owner.home
        # What was moved may always be sent elsewhere, also where nothing is amiss any more.
        second = np.take_along_axis(self._partners(), self.place, axis=1) | (loose & ~first)
        if are_few:
            loose[:, len(self.owner.space.vms):] = True
            first, second = (first, second & loose) if sends else (first & loose, second)
        return first, second

    def _partners(self) -> np.ndarray:
        """bool (n, h)"""
        chosen = np.ones(self.share.shape, dtype=bool)
        if chosen.shape[1] > PARTNERS:
            few = np.argpartition(self.share, -PARTNERS, axis=1)[:, :-PARTNERS]
            chosen[self.every[:, None], few] = False
        chosen[self.every, self.here] = False
        chosen[:, len(self.owner.space.hosts):] = False
        return chosen

    def _least_missed(self) -> tuple[np.ndarray, np.ndarray]:
        """The move to undo, and float32 (n,), to first order, what that costs."""
        owner, smooth = self.owner, self.smooth
        regret = np.zeros(len(self.every), dtype=np.float32)
        back = np.full(len(self.every), -1)
        full = np.flatnonzero(owner.left == 0)
        number, vms = np.nonzero(self.place[full] != owner.home)
        if not len(number):
            return back, regret
        away, home = self.place[full[number], vms], owner.home[vms]
        change = (self.shares[full[number], away] * (smooth.leaving[smooth.kind[away], vms] - 1)
                  + self.shares[full[number], home] * (smooth.arriving[smooth.kind[home], vms] - 1))
        each = np.full(self.place[full].shape, np.inf, dtype=np.float32)
        each[number, vms] = change.sum(axis=1)
        if owner.space.prices_at is not None:
            each[number, vms] -= owner.space.prices_at[vms, away]
        back[full], regret[full] = each.argmin(axis=1), each.min(axis=1)
        return back, regret

    def _rate(self) -> np.ndarray:
        """What an exchange changes: of either host a product of what each of the two does there."""
        smooth, first, second, there = self.smooth, self.first, self.second, self.there
        kind, of = smooth.kind[self.here][:, None], smooth.kind[there][:, :, None]
        own = self.shares[self.every, self.here][:, None]
        gone = self.shares[self.every[:, None], there] * smooth.leaving[of[:, :, 0], second]
        row_home, column_home = (flags[:, :, None] for flags in self.goes_home)
        lefts = [own * smooth.leaving[kind, first]]
        rights = [np.where(column_home, np.float32(1), smooth.arriving[kind, second])]
        for number, arriving in enumerate(smooth.arriving):
            lefts.append(np.where(row_home, np.float32(1), arriving[first]))
            rights.append(np.where(of == number, gone, np.float32(0)))
        # Behind the terms what is added: regret per move, and NEVER to two moves where one is left.
        regret, is_short = self.regret[:, None], self.owner.left[:, None] < 2
        one = np.ones_like(self.leaves), np.ones_like(self.arrives)
        lefts.append(np.stack([one[0], regret * self.leaves - own.sum(axis=2)
                               + self._at_home(first, self.goes_home[0]),
                               NEVER * self.leaves.clip(0)], axis=2))
        rights.append(np.stack([
            regret * self.arrives - self.share[self.every[:, None], there]
            + self._at_home(second, self.goes_home[1]), one[1],
            is_short * self.arrives.clip(0)], axis=2))
        return np.matmul(np.concatenate(lefts, axis=2),
                         np.concatenate(rights, axis=2).transpose(0, 2, 1))

    def _counterparts(self, are_few: bool) -> list[np.ndarray]:
        """What changes places with an instance and may go home instead: bool (n, a) and (n, b)."""
        home, here, nothing = self.owner.home, self.here[:, None], len(self.owner.space.vms)
        return [wanted & (things < nothing) & (home[things] != at) & (home[things] != here)
                for things, at, wanted in (
                    (self.first, here, are_few and not self.sends),
                    (self.second, self.there, self.sends or not are_few))]

    def _at_home(self, things, goes_home):
        """What it changes at the homes of things that go there, to first order."""
        smooth, home = self.smooth, self.owner.home[things]
        change = smooth.arriving[smooth.kind[home], things] - 1
        change *= self.shares[self.every[:, None], home]
        return np.where(goes_home, change.sum(axis=2), 0)

    def _moves(self) -> tuple[np.ndarray, np.ndarray]:
        """How many more moves a plan has if the first leave, and if the second arrive: float32
        (n, a) and (n, b), 1, 0, or -1 for what comes home."""
        home, nothing = self.owner.home, len(self.owner.space.vms)
        here = self.here[:, None]
        leaves = (home[self.first] == here) & (self.first < nothing)
        arrives = (home[self.second] == self.there).astype(np.float32) - (
            (home[self.second] == here) | self.goes_home[1])
        return (leaves.astype(np.float32) - self.goes_home[0]), arrives * (self.second < nothing)

    def _weigh(self) -> None:
        """What else counts: prices, room, and that two moves are to be worth two."""
        owner, changes, here = self.owner, self.changes, self.here
        changes *= 1 - self.leaves.clip(0)[:, :, None] * (self.arrives.clip(0) / 2)[:, None]
        prices = owner.space.prices_at
        if prices is not None:
            first, second, there = self.first[:, :, None], self.second, self.there
            to, back = (np.where(flags, owner.home[things], other) for flags, things, other in (
                (self.goes_home[0][:, :, None], first, there[:, None]),
                (self.goes_home[1], second, here[:, None])))
            changes += prices[first, to] - prices[first, here[:, None, None]]
            changes += owner.space.price_change(second, there, back)[:, None]
        room = (owner.free - owner.space.floor).astype(np.float32)
        for c in range(room.shape[2]):
            sizes = owner.sizes[:, c].astype(np.float32)
            extra = sizes[self.first][:, :, None] - sizes[self.second][:, None]
            changes[(extra > np.take_along_axis(room[:, :, c], self.there, axis=1)[:, None])
                    | (extra < -room[self.every, here, c][:, None, None])] = NEVER
        changes[np.broadcast_to((self.there == here[:, None])[:, None], changes.shape)] = NEVER

    def best(self) -> 'Trial':
        """The best exchange of each placement that has a promising one."""
        flat = self.changes.reshape(len(self.every), -1)
        best = flat.argmin(axis=1)
        number = np.flatnonzero(flat[self.every, best] < 0)
        return Trial(self, number, *np.divmod(best[number], self.changes.shape[2]))


class Trial:
    """One exchange in each of some placements, looked at closely.

    number : intp (m,), which placements; moves : (things, from, to) for those that go, come back,
        and are undone
    is_better : bool (m,)
    """

    def __init__(self, exchanges: Exchanges, number, row, column):
        self.exchanges, self.owner, self.number = exchanges, exchanges.owner, number
        owner, space = self.owner, self.owner.space
        here = exchanges.here[number]
        row_home, column_home = exchanges.goes_home
        first, second = exchanges.first[number, row], exchanges.second[number, column]
        there, home = exchanges.there[number, column], owner.home
        nothing = len(space.vms)
        goal = np.where(row_home[number, row], home[first], there)
        back = np.where(column_home[number, column], home[second], here)
        self.more = sum(((home[vms] != to).astype(int) - (home[vms] != at)) * (vms < nothing)
                        for vms, at, to in ((first, here, goal), (second, there, back)))
        undoes = self.more > owner.left[self.number]
        undo = np.where(undoes, exchanges.back[number], nothing)  # some nothing, which stays
        self.moves = ((first, here, goal), (second, there, back),
                      (undo, exchanges.place[number, undo], home[undo]))
        self.scores, self.free = owner.scores[self.number], owner.free[self.number]
        every = np.arange(len(number))
        for vms, at, to in self.moves:
            for hosts, way in ((at, -1), (to, 1)):
                self.scores[every, hosts] += way * owner.weights[vms] * space.scale[hosts]
                self.free[every, hosts] -= way * owner.sizes[vms]
        self.undoes = undoes
        self.is_better = self._judge(first, second, undo)

    def _judge(self, first, second, undo) -> np.ndarray:
        owner, space, exchanges = self.owner, self.owner.space, self.exchanges
        value = exchanges.smooth.of(self.scores)[0] + sum(
            space.price_change(vms, at, to) for vms, at, to in self.moves)
        spread, before = np.ptp(self.scores, axis=1), np.ptp(owner.scores[self.number], axis=1)
        better = value < exchanges.value[self.number] - TOLERANCE
        better &= ~((spread > space.worst) & (spread > before)).any(axis=1)
        better &= ~self.undoes | ((undo != first) & (undo != second))
        room = np.minimum(space.floor, owner.free[self.number])
        better &= (self.free >= room).all(axis=(1, 2))
        for n in np.flatnonzero(better) if space.spacing else ():
            place = self.owner.place[self.number[n]].copy()
            for vms, _at, to in self.moves:
                place[vms[n]] = to[n]
            better[n] = all(space.keeps_apart(int(vms[n]), int(to[n]), place)
                            for vms, _at, to in self.moves)
        return better

    def make(self) -> None:
        """Make those that are better."""
        rows, owner = self.number[self.is_better], self.owner
        owner.scores[rows], owner.free[rows] = (end[self.is_better]
                                                for end in (self.scores, self.free))
        owner.left[rows] -= (self.more - self.undoes)[self.is_better]
        nothing = len(owner.space.vms)
        for vms, _at, to in self.moves:
            real = self.is_better & (vms < nothing)
            owner.place[self.number[real], vms[real]] = to[real]


def _filled(mask: np.ndarray, filler: np.ndarray) -> np.ndarray:
    """intp (n, most): the columns that are set in each row, filled up."""
    number, column = np.nonzero(mask)
    count = mask.sum(axis=1)
    filled = np.tile(filler[:, None], (1, max(1, int(count.max(initial=0)))))
    filled[number, np.arange(len(number)) - np.repeat(np.cumsum(count) - count, count)] = column
    return filled
