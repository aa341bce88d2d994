"""Python's collector of garbage, for processes that make much and keep it."""

import gc

CONTAINERS = 100_000
"""Made before the collector looks. With Python's own 700, a fifth of the time of loading Nova, and
half of that of reading an answer of Prometheus, goes into looking at what stays."""


def collect_rarely():
    """To be called before what is large is loaded."""
    gc.set_threshold(CONTAINERS)


def exempt_loaded_objects():
    """To be called when everything is loaded. Whoever has Nova, or Kronos' API, in its memory would
    stand still for more than a tenth of a second each time the collector looks at all of it."""
    gc.freeze()
