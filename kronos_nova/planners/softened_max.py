"""A softened stand-in for the combined imbalance, which tells apart what the maximum cannot.

Two hosts share the top: no single move lowers the maximum, so max − min says that none is of use.
``temperature × log Σ exp(score / temperature)`` is close to the maximum but counts every host near
it, and it falls with the first of the two moves. The same with the sign turned gives the minimum.
The log-sum-exp bound of the maximum is in Boyd and Vandenberghe, Convex Optimization, section
3.1.5.

To first order what a move changes is a product of something of the instance and something of the
host, so one matrix product rates all pairs at once. Single precision is enough to choose by.
"""

import numpy as np

from kronos_nova.simulation.space import SearchSpace

COLDEST = 1e-4
"""Below this the differences that an operator could measure would overflow the exponent."""
STEEPEST = 80.0
FAINTEST = 1e-35
"""exp(STEEPEST) times this is still felt, and exp(STEEPEST) still a number in single precision."""


class SoftenedMax:
    """Rates placements and moves in a search space at one temperature.

    The T terms are the top of each policy and the bottom of each policy. Behind the instances come
    things of no weight, one for each host.

    kind : intp (h,), which scale each host has
    arriving, leaving : float32 (k, v + h, T), for each kind of host the factor by which a thing
        changes what a host contributes to each term
    """

    def __init__(self, space: SearchSpace, temperature: float):
        self.space, self.temperature = space, max(temperature, COLDEST)
        self._price = np.tile(space.policy_weights, 2) * self.temperature
        scales, self.kind = space.kinds
        weights = np.pad(space.weights, ((0, len(space.scores)), (0, 0)))
        steps = weights * scales[:, None] / self.temperature
        steps = np.clip(np.concatenate([steps, -steps], axis=2), -STEEPEST, STEEPEST)
        self.arriving, self.leaving = (np.exp(way * steps, dtype=np.float32) for way in (1, -1))

    def of(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The softened values of scores (n, h, P), float64 (n,); and what each host contributes,
        float32 (n, h, T)."""
        top, bottom = scores.max(axis=1), scores.min(axis=1)
        terms = np.concatenate([scores - top[:, None], bottom[:, None] - scores], axis=2)
        terms = np.exp(terms / self.temperature)
        sums = terms.sum(axis=1)
        values = np.log(sums) @ self._price + (top - bottom) @ self.space.policy_weights
        shares = np.maximum(terms * (self._price / sums)[:, None], FAINTEST)
        return values, shares.astype(np.float32)
