"""One plan of an installation for a cluster, and what it leaves of what is wrong there."""

import dataclasses
import datetime
import math
import time
import uuid

import numpy as np

from bench import inputs
from bench import installation
from bench import operation
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.drain import planning
from kronos_nova.drain.states import DRAINING
from kronos_nova.drain.states import Drain
from kronos_nova.objects.plan import PlannedMove

HOT_PART, BELOW = 0.2, 0.1
"""Marks of ``relieve``: the part of the hosts that is above ``high``, and by how much ``target`` is
lower. The load of the clusters is below the 0.9 of other benches."""
DRAINED_PART = 0.1
"""Part of the hosts that is disabled or drained."""
NEVER_BALANCED = 1.0
"""A threshold that nothing exceeds."""


@dataclasses.dataclass(frozen=True, slots=True)
class Planned:
    """A plan. ``end`` is what it leaves, less is better; ``last_begins`` the seconds after which
    its last move begins."""

    end: float
    moves: tuple[PlannedMove, ...]
    cpu_seconds: float

    @property
    def gib(self) -> float:
        return sum(move.memory_mb for move in self.moves) / 1024

    @property
    def last_begins(self) -> float:
        return max((move.begins_after or 0.0 for move in self.moves), default=0.0)


class Case:
    """A cluster and what is to be done in it.

    ``spread``, ``pack`` and ``relieve`` are modes of policies; ``disabled`` are hosts that
    ``evacuate_disabled_hosts`` empties, ``drain`` hosts that an operator drains.

    least : ends below this are equally good
    """

    def __init__(self, cluster: str, mode: str, restraint: float | None = None,
                 threshold: float = 0.05):
        self.cluster, self.mode, self.restraint = cluster, mode, restraint
        self._threshold = threshold if mode == 'spread' else NEVER_BALANCED
        self._policy_mode = mode if mode in ('spread', 'pack', 'relieve') else 'spread'
        self._problem = (inputs.balcon(cluster) if cluster in inputs.balcon_names() else
                         inputs.cluster(cluster, 'pack' if mode == 'pack' else 'spread'))
        high = float(np.quantile(self._problem.scores.max(axis=1), 1 - HOT_PART))
        self._marks = round(high, 3), round(high - BELOW, 3)
        count = len(self._problem.hosts)
        self._emptied = np.random.default_rng(0).permutation(count)[
            :max(1, round(DRAINED_PART * count))]
        self.least = {'spread': threshold if restraint else threshold / 2,
                      'relieve': 0.01}.get(mode, 0.1)
        self.stale_after = installation.conf().kronos_executor.stale_plan_age

    def planned(self, budget: int | None, has_age_limit: bool = True) -> Planned:
        """Make the plan for a budget and return it as Planned.

        :param budget: number of moves; None for a drain, which has no budget
        """
        cloud = installation.Cloud(self._problem)
        if self.mode == 'disabled':
            cloud.disabled.update(self._emptied.tolist())
        found = operation.Installation(
            cloud, installation.policies(self._problem, self._policy_mode, self._threshold,
                                         budget or 1, self._marks), self._conf())
        if not has_age_limit:
            found.options = dataclasses.replace(found.options, pace=dataclasses.replace(
                found.options.pace, stale_plan_age=math.inf))
        begun = time.process_time()
        report = self._drained(found) if self.mode == 'drain' else found.evaluate()[0]
        seconds = time.process_time() - begun
        for move in report.moves:
            cloud.move(move.instance_uuid, move.destination)
        return Planned(self._end(cloud), report.moves, seconds)

    def fitting(self, budget: int) -> tuple[int, float]:
        """Search a large budget with which a plan, made without the age limit, begins all moves in
        time. Return the budget and the end of its plan."""
        while True:
            found = self.planned(budget, has_age_limit=False)
            in_time = sum((move.begins_after or 0.0) <= self.stale_after for move in found.moves)
            if in_time == len(found.moves):
                return budget, found.end
            budget = min(in_time, budget - 1)

    def _conf(self):
        more = {} if self.restraint is None else {'restraint': self.restraint}
        return installation.conf(evacuate_disabled_hosts=self.mode == 'disabled', **more)

    def _drained(self, found):
        cloud = found.cloud
        wanted = [Drain(uuid=str(uuid.UUID(int=int(host))), host=self._problem.hosts[host],
                        aggregate=installation.AGGREGATE, state=DRAINING, requested_by='bench',
                        requested_at=datetime.datetime.fromtimestamp(cloud.now, datetime.UTC))
                  for host in self._emptied]
        ports = PlannerPorts(source=cloud, clock=time.process_time, now=cloud.now)
        return planning.plan(cloud.snapshot(), found.policies, found.options, ports,
                             installation.AGGREGATE, wanted).report

    def _end(self, cloud):
        scores = cloud.scores()
        if self.mode == 'spread':
            return float(cloud.imbalances() @ self._problem.policy_weights)
        if self.mode == 'pack':
            return float(len(np.unique(cloud.place)))
        if self.mode == 'relieve':
            return float(np.maximum(scores - self._marks[0], 0.0).sum())
        return float(np.isin(cloud.place, self._emptied).sum())
