"""Restraint (``[kronos] restraint``): planning for the load that is likely in the next half hour,
with few moves.

Moves are needed if the imbalance of a policy is above its threshold and too high to be noise. Noise
is the imbalance that random changes of load cause. A plan then has a target: the imbalance of each
policy that the plan has to reach. The cheapest moves that reach the target are made, even if they
cost more than they gain.

All other moves are optional. An optional move makes full hosts less likely. It has to save more CPU
time than its copy costs (:mod:`kronos_nova.cycle.prices`).
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from kronos_nova.load import LoadStats
from kronos_nova.load import expected_range
from kronos_nova.model import TOLERANCE
from kronos_nova.model import Problem
from kronos_nova.model import State
from kronos_nova.model import spans
from kronos_nova.planners import level
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import Planner
from kronos_nova.planners.base import Step
from kronos_nova.planners.bound import least_imbalances

LEAST_TARGET = 0.8
"""Lowest imbalance that a plan aims at, as a share (0 to 1) of the policy's threshold. A plan aims
below the threshold, because random changes of load would otherwise soon raise the imbalance above
the threshold again. Raised, the threshold is exceeded again sooner; lowered, plans copy more memory
without a lasting effect. Chosen by ``bench days``."""

LEAST_GAIN = 0.2
"""Smallest margin above the least possible imbalance, as a share (0 to 1) of a policy's threshold.
The margin is used if no plan can bring the imbalance down to the threshold. Moves are then needed
only if the imbalance is higher than the least possible imbalance plus the margin. The margin is at
least the noise, the imbalance that random changes of load cause, but at most half of the threshold.
A threshold below the noise is raised first, see :func:`_targets`. Raised, an aggregate whose load
could be more even is not changed; lowered, moves are made for smaller gains. Checked by ``bench
buffers``: a week has 329 moves with 0.2, as many as with 0.5."""


@dataclasses.dataclass(frozen=True, slots=True)
class Restraint:
    """The option ``restraint``, by which plans move fewer instances. An ``amount`` of 0 turns
    restraint off. With a larger ``amount``, plans are made for loads further in the future, and
    optional moves have to save more."""

    amount: float = 0.0

    def __bool__(self) -> bool:
        return self.amount > 0

    def plan(self, planner: Planner, state: State, limits: Limits) -> list[Step]:
        """Return the cheapest plan that reaches the target. If restraint is off, or if no such plan
        is found, return the plan of ``planner``. With restraint, return no plan if it only removes
        what may be noise."""
        if not self:
            return planner.plan(state, limits)
        before = state.copy()
        steps = level.Level().plan(state, limits) or planner.plan(state, limits)
        if exceeds_noise(before, state):
            return steps
        for step in reversed(steps):
            state.move(step.vm, step.source)
        return []


@dataclasses.dataclass(frozen=True, slots=True)
class Outlook:
    """The expected state of an aggregate in the next half hour.

    problem : the problem with the likely loads; the thresholds of this problem are the imbalances
        that a plan has to reach
    noise : float64 (P,), imbalance that random changes of load cause: the expected imbalance of
        hosts whose likely loads are equal
    least : float64 (P,), lower bound of the imbalance of the likely loads after any plan
    """

    problem: Problem
    noise: np.ndarray
    least: np.ndarray


def learnt(known: Mapping[str, LoadStats], problem: Problem, now: float,
           references: np.ndarray | None = None,
           keeps_others: bool = False) -> dict[str, LoadStats]:
    """Return {policy: load statistics of the instances}. The statistics are ``known``, updated with
    the measured loads of a problem.

    :param now: Unix seconds
    :param references: float64 (P,), amount of the resource that a load of 1 stands for; NaN if not
        known. None if all are not known
    :param keeps_others: True to keep the statistics of instances that the problem does not have,
        because hosts could not be read
    """
    units = [np.nan] * len(problem.policies) if references is None else references.tolist()
    return {name: known.get(name, LoadStats()).after(now, problem.vms, loads, unit, keeps_others)
            for name, loads, unit in zip(problem.policies, problem.loads().T, units, strict=True)}


def outlook(problem: Problem, load_stats: Mapping[str, LoadStats], far: float = 1.0) -> Outlook:
    """Return the Outlook, whose problem has the expected loads of instances and hosts.

    These loads are taken unchanged from ``problem``:

    * the part of a host's load that its instances do not cause
    * the columns of forecasts
    * the loads of an instance whose load is unknown in at least one policy
    * the loads of an instance that is migrating

    :param far: time of the expected loads; 1 is about half an hour from now, 2 is twice as far
    """
    weights = problem.weights.copy()
    variances = np.zeros(weights.shape) if problem.variances is None else problem.variances.copy()
    passing = variances.copy()
    for number, (name, loads) in enumerate(
            zip(problem.policies, problem.loads(of_leaving=False).T, strict=True)):
        if name in load_stats:
            expected = load_stats[name].expected(problem.vms, loads, far)
            weights[:, number] = np.where(np.isnan(expected), weights[:, number], expected)
            variances[:, number] = load_stats[name].variances(problem.vms)
            passing[:, number] = load_stats[name].noise(problem.vms, far)
    shift = np.zeros(problem.scores.shape)
    np.add.at(shift, problem.vm_host,
              (weights - problem.weights) * problem.host_scale[problem.vm_host])
    likely = dataclasses.replace(problem, weights=weights, variances=variances,
                                 scores=np.maximum(problem.scores + shift, 0.0))
    noise, least = _noise(likely, passing), least_imbalances(likely)
    return Outlook(dataclasses.replace(likely, thresholds=_targets(likely, noise, least),
                                       noise=noise), noise, least)


def exceeds_noise(before: State, after: State) -> bool:
    """Return True if a plan reaches the target, or removes more than noise from the imbalance of a
    policy or from the excess of the hosts. The excess is the part of the scores outside the target
    ranges. Excess of up to half the noise may be noise, because noise moves the scores of the most
    and the least loaded host apart by the whole noise."""
    problem = before.problem
    if problem.noise is None or after.is_balanced:
        return True
    removed = before.imbalances() - after.imbalances()
    if (removed > problem.noise)[before.imbalances() > problem.thresholds].any():
        return True
    band = level.band_of(before)
    gain, beyond = (level.excess(before, each) - level.excess(after, each)
                    for each in (band, band.widened(problem.noise / 2)))
    return bool(gain > TOLERANCE and beyond >= gain / 2)


def _noise(problem: Problem, variances: np.ndarray) -> np.ndarray:
    """Return float64 (P,): the noise, which is the imbalance that random changes of load cause. It
    is the expected imbalance of hosts whose likely loads are equal.

    :param variances: float64 (V, P), variances of the instances' loads
    """
    of_hosts = np.zeros(problem.scores.shape)
    np.add.at(of_hosts, problem.vm_host,
              variances * problem.host_scale[problem.vm_host] ** 2)
    columns = of_hosts[problem.available].T
    left_out = [0] * len(columns) if problem.left_out is None else problem.left_out.tolist()
    return np.array([expected_range(np.sqrt(column), count)
                     for column, count in zip(columns, left_out, strict=True)])


def _targets(problem: Problem, noise: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return float64 (P,): the target of each policy, which is the imbalance that a plan has to
    reach. The noise is the imbalance that random changes of load cause. The target is a base plus a
    limit, which are computed in three steps:

    1. The limit is the threshold. If the noise is above the threshold, the limit is
       noise + min(noise - threshold, threshold), because a lower imbalance may be noise.
    2. If a plan may reach this limit (``least`` is not higher), the base is 0. Otherwise the base
       is ``least``, and the limit becomes min(max(LEAST_GAIN * limit, noise), limit / 2), computed
       with the limit of step 1.
    3. If the imbalance is at most base + limit, this sum is the target. Otherwise moves are needed,
       and the target is lower: base + max(limit - noise, LEAST_TARGET * limit). With this margin,
       noise that raises the imbalance after the plan does not cause further moves.

    :param noise: float64 (P,), imbalance that random changes of load cause
    :param least: float64 (P,), lower bound of the imbalance after any plan
    """
    limit = np.maximum(problem.thresholds,
                       noise + np.clip(noise - problem.thresholds, 0.0, problem.thresholds))
    is_beyond = least > limit
    near = np.clip(noise, LEAST_GAIN * limit, limit / 2)
    least, limit = np.where(is_beyond, least, 0.0), np.where(is_beyond, near, limit)
    imbalances = spans.imbalances(problem.scores[problem.available].T, problem.left_out)
    return least + np.where(imbalances > least + limit + TOLERANCE,
                            np.maximum(limit - noise, LEAST_TARGET * limit), limit)
