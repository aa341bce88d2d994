"""What can be had without knowing what comes: what no placement avoids, and what one does that
knows what each server is like, but not when."""

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
    """Minutes for which a server alone asks for more of a host than 0.9, wherever it is."""
    share = scenario.demand / scenario.cores
    there = np.arange(scenario.samples)[:, None]
    there = (there >= scenario.born) & (there < scenario.dies)
    return float((there & (share > HOT)).sum()) * scenarios.STEP / 60


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
        """float64 (t, V): loads in any order."""
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
    """float64 (...): of loads (..., t) of a host."""
    return (loads > HOT).mean(axis=-1) + DREAD * np.maximum(loads - WARM, 0.0).mean(axis=-1)
