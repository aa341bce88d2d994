"""Sparse tables as sorted keys: few bytes for what is there, none for what is not."""

import numpy as np


def find(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each of ``wanted`` is among sorted ``keys``: intp (...), and bool (...), whether it is
    there; where it is not, the place means nothing but is one of ``keys``, of which there is at
    least one."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


def contains(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """bool (...): which of ``wanted`` are among sorted ``keys``."""
    if not len(keys):
        return np.zeros(np.shape(wanted), dtype=bool)
    return find(keys, wanted)[1]
