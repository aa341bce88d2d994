"""A softened stand-in for the combined imbalance, which tells apart what the maximum cannot.

Two hosts share the top: no single move lowers the maximum, so max − min says that none is of use.
``temperature × log Σ exp(score / temperature)`` is close to the maximum but counts every host near
it, and it falls with the first of the two moves. The same with the sign turned gives the minimum.
The log-sum-exp bound of the maximum is in Boyd and Vandenberghe, Convex Optimization, section
3.1.5.

What a swap of two instances leaves of such a sum is the rest of it and two products, each of
something of the one instance with something of the other: one matrix product rates all pairs at
once. Single precision is enough to choose by.

Hosts that are left out contribute nothing. A swap that brings one of them inside is rated too
well or not well enough; :class:`~kronos_nova.planners.population.Trial` rates it exactly.
"""

import numpy as np

from kronos_nova.model import spans
from kronos_nova.model.space import SearchSpace

COLDEST = 1e-4
"""Below this the differences that an operator could measure would overflow the exponent."""
STEEPEST = 80.0
FAINTEST = 1e-35
"""exp(STEEPEST) times this is still felt, and exp(STEEPEST) still a number in single precision."""


class SoftenedMax:
    """Rates assignments and moves in a search space at one temperature.

    The T terms are the top of each policy and the bottom of each policy.

    price : float32 (T,), of the logarithm of each term
    kind : intp (h,), which scale each host has
    arriving, leaving : float32 (k, v + h, T), for each kind of host the factor by which an item
        changes what a host contributes to each term
    """

    def __init__(self, space: SearchSpace, temperature: float):
        self.space, self.temperature = space, max(temperature, COLDEST)
        self.price = (np.tile(space.policy_weights, 2) * self.temperature).astype(np.float32)
        scales, self.kind = space.kinds
        steps = space.weights * scales[:, None] / self.temperature
        steps = np.clip(np.concatenate([steps, -steps], axis=2), -STEEPEST, STEEPEST)
        self.arriving, self.leaving = (np.exp(way * steps, dtype=np.float32) for way in (1, -1))

    def evaluate(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The softened values of scores (n, P, h), float64 (n,); the imbalances, (n, P); and which
        part of each term comes from each host, (n, h, T)."""
        left_out = self.space.problem.left_out
        top, bottom = ((scores.max(axis=2), scores.min(axis=2)) if left_out is None
                       else spans.ends(scores, left_out))
        terms = np.concatenate([scores - top[:, :, None], bottom[:, :, None] - scores], axis=1)
        if left_out is not None:
            terms[terms > 0] = -np.inf
        terms = np.exp(terms / self.temperature)
        sums = terms.sum(axis=2)
        values = np.log(sums) @ self.price + (top - bottom) @ self.space.policy_weights
        parts = np.maximum(terms / sums[:, :, None], FAINTEST)
        return values, top - bottom, parts.transpose(0, 2, 1).copy()
