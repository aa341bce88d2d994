"""Types of arguments about moves: positions of instances and hosts, one or many at once."""

import numpy as np

Index = int | np.integer | np.ndarray
"""Position of one instance or host, or intp (...), the positions of many."""
Move = tuple[Index, Index]
"""(instances, destinations); both broadcast to one shape."""
ArrayMove = tuple[np.ndarray, np.ndarray]
"""(instances, destinations), both arrays."""
Chains = tuple[ArrayMove, ...]
"""Moves that are made together: the first move of every chain, then the second."""
