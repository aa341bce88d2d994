"""The imbalance that noise alone is expected to cause.

Hosts with equal mean loads rarely have equal loads at one time. The difference between the highest
and the lowest load of *n* hosts grows with *n*. The expected value of this difference is the
expected range of *n* normal variables (Tippett, Biometrika 17, 1925). If all hosts have the same
standard deviation, the range is 3.7 standard deviations for 20 hosts, and 5.8 for 320 hosts.

If a fixed fraction of the highest loads and of the lowest loads is left out, the difference does
not grow with *n*.
"""

import numpy as np

_REACH = 6.0
"""Number of standard deviations above the mean load at which a numerical integration ends. The
integration computes the expected highest load of several hosts. Raised, the integration has coarser
steps; lowered, very high loads are left out. Chosen because the error of the result is below a
thousandth with :data:`_STEPS`."""
_STEPS = 240
"""Number of loads for which a numerical integration evaluates a probability. The loads lie between
the mean and :data:`_REACH` standard deviations above the mean. Raised, the integration takes
longer; lowered, its error grows. Chosen together with :data:`_REACH`."""
_TABLE = np.linspace(-8.0, 8.0, 3201)
_DENSITY = np.exp(-_TABLE ** 2 / 2)
_CUMULATED = (np.cumsum(_DENSITY) - _DENSITY / 2) / _DENSITY.sum()
"""Probabilities (no unit) that a standard normal variable is below each value of ``_TABLE``, from
-8 to 8. Fixed by the normal distribution."""
_LEAST = 1e-300
"""Probability that replaces 0 before a logarithm is taken. Fixed by float64: nearly the smallest
number whose logarithm is finite."""
_DIGITS = 3
"""Number of decimal digits to which the logarithm of the standard deviation of a host's load is
rounded. Hosts with equal rounded values are computed together. Raised, fewer hosts have equal
values, and the computation takes longer; lowered, the result is less exact. Chosen because rounding
to three digits changes a deviation by less than a thousandth."""


def expected_range(deviations: np.ndarray, left_out: int = 0) -> float:
    """Return the difference between the highest and the lowest load that is expected on average, if
    loads differ only by chance. The loads are independent and normally distributed, with the same
    mean.

    :param deviations: float64 (n,), the standard deviation of each load
    :param left_out: number of loads at each end that do not count
    """
    if left_out:
        return _expected_span(deviations, left_out)
    varying = deviations[deviations > 0]
    if not len(varying):
        return 0.0
    rounded = np.exp(np.round(np.log(varying), _DIGITS))
    sizes, counts = np.unique(rounded, return_counts=True)
    at = np.linspace(0.0, _REACH * float(varying.max()), _STEPS)
    above, below = (np.exp(np.log(np.maximum(np.interp(
        side[:, None] / sizes, _TABLE, _CUMULATED), _LEAST)) @ counts) for side in (at, -at))
    if len(varying) < len(deviations):    # a load that does not vary is a lower bound
        below = np.zeros(len(at))
    # Twice the mean of the highest load, because the mean of the lowest is its negative.
    return 2.0 * max(float(np.trapezoid(1.0 - above - below, at)), 0.0)


def _expected_span(deviations: np.ndarray, left_out: int) -> float:
    """Return the mean difference between the highest and the lowest load, without ``left_out``
    loads at each end.

    :param deviations: float64 (n,), the standard deviation of each load
    :param left_out: number of loads at each end that do not count
    """
    if len(deviations) - 2 * left_out < 2 or not deviations.any():
        return 0.0
    # The points are denser near the mean, where the loads of hosts with small deviations are.
    at = np.linspace(0.0, 1.0, _STEPS) ** 2 * _REACH * float(deviations.max())
    above, below = np.split(_at_most(np.concatenate([at, -at]), deviations, left_out), 2)
    return 2.0 * max(float(np.trapezoid(1.0 - above - below, at)), 0.0)


def _at_most(loads: np.ndarray, deviations: np.ndarray, most: int) -> np.ndarray:
    """Return float64: for each value in ``loads``, the probability that at most ``most`` hosts have
    a load above this value.

    :param deviations: the standard deviation of each host's load
    """
    count = np.zeros((most + 1, len(loads)))
    count[0] = 1.0
    for deviation in deviations:    # computes the Poisson binomial distribution, host by host
        part = (1.0 - np.interp(loads / deviation, _TABLE, _CUMULATED) if deviation > 0
                else loads < 0)
        moved = count * part
        count -= moved
        count[1:] += moved[:-1]
    return count.sum(axis=0)
