"""Imbalances of policies for which the hosts with the highest and the lowest scores do not
count."""

import numpy as np


def ends(scores: np.ndarray, left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays float64 (..., P): the highest and the lowest score that count in each
    policy.

    If fewer than two hosts count, both scores are equal.

    :param scores: float64 (..., P, hosts), for at least one host
    :param left_out: intp (P,), number of hosts that each policy leaves out at each end of the
        scores
    """
    count = scores.shape[-1]
    lowest = np.where(count - 2 * left_out < 2, count // 2, left_out)
    highest = np.where(count - 2 * left_out < 2, count // 2, count - 1 - left_out)
    ordered = np.partition(scores, np.unique([lowest, highest]), axis=-1)
    policies = np.arange(len(left_out))
    return ordered[..., policies, highest], ordered[..., policies, lowest]


def imbalances(scores: np.ndarray, left_out: np.ndarray | None) -> np.ndarray:
    """Return float64 (..., P): the highest score that counts minus the lowest score that counts; 0
    if fewer than two hosts count.

    :param scores: float64 (..., P, hosts)
    :param left_out: intp (P,), number of hosts that each policy leaves out at each end of the
        scores; None if all hosts count
    """
    if not scores.shape[-1]:
        return np.zeros(scores.shape[:-1])
    if left_out is None:
        return np.ptp(scores, axis=-1)
    highest, lowest = ends(scores, left_out)
    return highest - lowest
