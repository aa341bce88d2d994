"""Settings of Python's garbage collector for processes that create many objects and keep them."""

import gc

CONTAINERS = 100_000
"""Number of new container objects after which the garbage collector of Python runs. Raised, objects
in reference cycles take more memory; lowered, loading data takes longer. Chosen far above 700, the
default of Python. With the default, the collector takes a fifth of the time of loading Nova, and
half of the time of reading an answer of Prometheus."""


def collect_rarely() -> None:
    """Make the garbage collector run rarely. A process calls this function before it loads large
    modules or large answers."""
    gc.set_threshold(CONTAINERS)


def exempt_loaded_objects() -> None:
    """Exempt all objects that exist now from garbage collection. A process calls this function
    after it has loaded all modules and data, and again before it ends.

    In a process that has loaded Nova or Kronos' API, each collection of these objects would stop
    the process for more than a tenth of a second. Python also runs a collection at the end of a
    process.
    """
    gc.freeze()
