"""Bounds: hot minutes that no placement avoids, those of a placement that knows what each server is
like but not when, and the GiB that any strategy copies at least."""

import numpy as np

from bench.days import rivals
from bench.days import scenario as scenarios
from bench.days.tally import HOT

WARM, DREAD = .75, .3
"""Above which load a host counts a little already, and how much of it, so that the search sees
where it is going."""
DRAWS = 3
"""Days that are drawn for each that there was: more change no placement."""


def unavoidable(scenario) -> float:
    """Return the minutes for which a server by itself needs more than 0.9 of a host, on whichever
    host it is."""
    share = scenario.demand / scenario.cores
    there = np.arange(scenario.samples)[:, None]
    there = (there >= scenario.born) & (there < scenario.dies)
    return float((there & (share > HOT)).sum()) * scenarios.STEP / 60


SUBSETS = 16
"""Servers of a host of which all subsets are rated. Raised, the bound of hosts with more servers is
higher and takes twice the time for each. Lowered, it is lower: further servers, those with the
least load, are taken to leave for nothing. Chosen for hosts of ten servers."""
INNER = 10
"""Servers of which all subsets are rated in one array. Raised, the array has twice the memory for
each; lowered, there are twice the arrays. Chosen for arrays of a few MB."""
ROUNDING = 1e-9
"""Part of a host by which a load has to exceed the mark to be hot. Raised, the bound falls;
lowered, sums in another order may count a load that is at the mark. Far above the rounding error of
a sum of 100 loads, far below any sample."""


class LeastGib:
    """The GiB that any strategy copies at least for some hot minutes, also one that knows what
    comes.

    The hot minutes of a host fall only by servers that leave it. At best they leave before the
    first sample, each once, and none arrives; room is not looked at. Each host has a Pareto front
    over the subsets of its servers. The least sum over the hosts is bounded by the linear
    relaxation: parts of the steps of the convex fronts, the steepest first.

    minutes : hot host minutes without any move, of servers that are there from the beginning
    """

    def __init__(self, scenario: scenarios.Scenario):
        if scenario.events:
            raise ValueError('servers leave hosts that die or are serviced without a copy')
        there = np.arange(scenario.samples)[:, None] < scenario.dies
        share = np.where(there, scenario.demand, 0.0) / scenario.cores
        gib = scenario.vm_memory_mb / 1024
        steps = [np.zeros((0, 2))]
        self.minutes = 0.0
        for host in range(scenario.hosts):
            vms = np.flatnonzero(scenario.place == host)
            copied, hot = _front(share[:, vms], gib[vms])
            self.minutes += float(hot[0])
            steps.append(_convex_steps(copied, hot))
        found = np.concatenate(steps)
        self._steps = found[np.argsort(-found[:, 1] / found[:, 0], kind='stable')]

    def gib(self, minutes: float) -> float:
        """Return a lower bound of the GiB that a strategy copies if it leaves at most ``minutes``
        of hot hosts."""
        saved = np.concatenate([[0.0], np.cumsum(self._steps[:, 1])])
        copied = np.concatenate([[0.0], np.cumsum(self._steps[:, 0])])
        return float(np.interp(self.minutes - minutes, saved, copied))


def _front(use: np.ndarray, gib: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (GiB of the servers that leave a host, hot minutes of the host with the servers that
    stay), float64 (n,) each, for the subsets of its servers of which no other has fewer of both.
    The subset with the fewest GiB comes first.

    :param use: float64 (t, v), parts of the host
    :param gib: float64 (v,)
    """
    rated = np.argsort(-use.mean(axis=0), kind='stable')[:SUBSETS]
    use, gib = use[:, rated], gib[rated]
    inner, outer = _subsets(min(len(gib), INNER)), _subsets(max(len(gib) - INNER, 0))
    loads, leave = inner @ use[:, :INNER].T, (1 - inner) @ gib[:INNER]
    hot = np.concatenate([_minutes(loads + use[:, INNER:] @ stay) for stay in outer])
    copied = np.concatenate([leave + (1 - stay) @ gib[INNER:] for stay in outer])
    order = np.lexsort((hot, copied))
    copied, hot = copied[order], hot[order]
    is_less = hot < np.minimum.accumulate(np.concatenate([[np.inf], hot[:-1]]))
    return copied[is_less], hot[is_less]


def _subsets(count: int) -> np.ndarray:
    """Return all subsets of ``count`` items as float64 (2 ** count, count), 1 where an item is in
    the subset."""
    return (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(float)


def _minutes(loads: np.ndarray) -> np.ndarray:
    """Return the hot minutes of loads (..., t) as float64 (...)."""
    return (loads > HOT + ROUNDING).sum(axis=-1) * scenarios.STEP / 60


def _convex_steps(copied: np.ndarray, hot: np.ndarray) -> np.ndarray:
    """Return float64 (m, 2): the GiB copied and the hot minutes saved by each step of the convex
    hull of a front."""
    steps, at = [], 0
    while at < len(copied) - 1:
        slopes = (hot[at] - hot[at + 1:]) / (copied[at + 1:] - copied[at])
        to = at + 1 + int(slopes.argmax())
        steps.append((copied[to] - copied[at], hot[at] - hot[to]))
        at = to
    return np.array(steps).reshape(-1, 2)


class HabitsKnown(rivals.NoMoves):
    """Has all servers, from the first moment and for nothing, where hosts are hot least often, by
    all that they ask for in the time to come, but for when: their samples come in any order, of
    each server by itself. The best single move again and again."""

    name = 'habits known'
    largest = 40

    def __init__(self, seed: int = 0):
        self._seed = seed

    def begin(self, world):
        super().begin(world)
        scenario, place, free = world.scenario, world.place, world.free_mb()
        use = self._drawn(scenario)
        loads = np.stack([use[:, place == host].sum(axis=1) for host in range(scenario.hosts)])
        while True:
            gain, vm, host = _best(scenario, use, loads, place, free)
            if gain <= 1e-9:
                break
            for at, way in ((place[vm], -1), (host, 1)):
                loads[at] += way * use[:, vm]
                free[at] -= way * scenario.vm_memory_mb[vm]
            place[vm] = host

    def _drawn(self, scenario):
        """Return the loads of servers, each in a random order of time, as float64 (t, V)."""
        rng = np.random.default_rng(self._seed)
        share = scenario.demand / scenario.cores
        return np.concatenate([rng.permuted(share, axis=0) for _ in range(DRAWS)]).astype(float)


def _best(scenario, use, loads, place, free):
    best, now = (0.0, -1, -1), _dread(loads)
    for source in range(scenario.hosts):
        vms = np.flatnonzero(place == source)
        if not len(vms) or now[source] == 0.0:
            continue
        gone = now[source] - _dread(loads[source] - use[:, vms].T)
        for host in range(scenario.hosts):
            fits = (scenario.vm_memory_mb[vms] <= free[host]) & (host != source)
            gain = np.where(fits, gone + now[host] - _dread(loads[host] + use[:, vms].T), -np.inf)
            best = max(best, (float(gain.max()), int(vms[gain.argmax()]), int(host)))
    return best


def _dread(loads):
    """Return the penalty of loads (..., t) of a host as float64 (...): the part of the time above
    HOT, and a part of the load above WARM."""
    return (loads > HOT).mean(axis=-1) + DREAD * np.maximum(loads - WARM, 0.0).mean(axis=-1)
