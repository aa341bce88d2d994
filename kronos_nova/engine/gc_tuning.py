"""Settings of Python's garbage collector for processes that create many objects and keep them."""

import gc

CONTAINERS = 100_000
"""Number of allocated container objects after which Python's garbage collector runs. Raised, cyclic
garbage takes more memory; lowered, loading data takes longer. Measured: with Python's own value,
700, the collector takes a fifth of the time of loading Nova, and half of the time of reading an
answer of Prometheus."""


def collect_rarely():
    """Make the garbage collector run rarely. Call it before large modules or answers are loaded."""
    gc.set_threshold(CONTAINERS)


def exempt_loaded_objects():
    """Exempt all objects that exist now from garbage collection. Call it when everything is loaded,
    and before the process ends.

    With Nova or Kronos' API in memory, each collection stops the process for more than a tenth of a
    second. The last collection, when the process ends, stops it for as long.
    """
    gc.freeze()
