"""Types of the arguments of functions about moves. Instances and hosts are given by their indexes
in the arrays of the problem, one index or an array of indexes."""

import numpy as np

Index = int | np.integer | np.ndarray
"""Index of one instance or host in the problem, or intp (...), the indexes of many."""
Move = tuple[Index, Index]
"""One or many moves: (instances, destinations). Instances and destinations are broadcast to one
shape."""
ArrayMove = tuple[np.ndarray, np.ndarray]
"""Many moves: (instances, destinations), two arrays of one shape."""
Chains = tuple[ArrayMove, ...]
"""Chains of moves; the moves of a chain are made together, such as the two moves of a swap. The
first element has the first move of every chain, the second element the second move."""
