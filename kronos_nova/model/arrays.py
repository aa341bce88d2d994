"""Types of arguments about moves: positions of instances and hosts, one or many at once."""

import numpy as np

Index = int | np.integer | np.ndarray
"""Position of one instance or host in the problem, or intp (...), the positions of many."""
Move = tuple[Index, Index]
"""(instances, destinations), one or many moves; both broadcast to one shape."""
ArrayMove = tuple[np.ndarray, np.ndarray]
"""(instances, destinations) of many moves, both arrays of one shape."""
Chains = tuple[ArrayMove, ...]
"""Chains, each of several moves that are made together. The first element has the first move of
every chain, the second element the second move."""
