"""Settings of Python's garbage collector for processes that create many objects and keep them."""

import gc

CONTAINERS = 100_000
"""Number of container objects that are allocated before the garbage collector runs. Raised, cyclic
garbage takes more memory; lowered, loading takes longer. With Python's own 700, a fifth of the time
of loading Nova and half of the time of reading an answer of Prometheus are spent in the
collector."""


def collect_rarely():
    """Let the collector run rarely. Called before large modules and answers are loaded."""
    gc.set_threshold(CONTAINERS)


def exempt_loaded_objects():
    """Exempt all objects from collection; called when everything is loaded, and before the process
    ends. A process that has Nova or Kronos' API in its memory would stop for more than a tenth of a
    second at each collection, of which the last is at its end."""
    gc.freeze()
