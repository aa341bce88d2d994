"""Search of integers in sorted arrays, and numbers that identify equal rows."""

import numpy as np


def find(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Search each number of ``wanted`` in ``keys``, which are sorted and not empty. Return two
    arrays: intp (...), the position of each number; and bool (...), true for numbers that are
    found. The position of a number that is not found has no meaning, but is a valid index of
    ``keys``."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


def contains(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return bool (...): true for each of ``wanted`` that is in ``keys``. The ``keys`` are
    sorted."""
    if not len(keys):
        return np.zeros(np.shape(wanted), dtype=bool)
    return find(keys, wanted)[1]


def equal_rows(rows: np.ndarray) -> np.ndarray:
    """Return intp, a number for each row. Equal rows have equal numbers, and different rows have
    different numbers. The smallest row has the number 0, the next larger one 1, and so on.
    ``np.unique`` is not used, because it would copy the rows."""
    sequence = np.lexsort((np.arange(len(rows)), *rows.T[::-1]))
    is_new = np.zeros(len(rows), dtype=bool)
    for column in rows.T:
        is_new[1:] |= np.diff(column[sequence]) != 0
    number = np.empty(len(rows), dtype=np.intp)
    number[sequence] = np.cumsum(is_new)
    return number
