"""nova-conductor as it is, but for what it plans: a recorded cloud in place of the live one.

The module that a conductor starts for a cycle is :mod:`bench.recorded_cycle`, or what
``KRONOS_BENCH_CHILD`` names. Everything else, when it is started, by whom, under which locks, is
Kronos' own.
"""

import os
import sys

from nova.cmd import conductor  # isort: skip (it chooses the concurrency mode)

from kronos_nova.plugin import conductor as kronos_conductor

if __name__ == '__main__':
    sys.argv[0] = 'nova-conductor'
    kronos_conductor.CHILD = os.environ.get('KRONOS_BENCH_CHILD', 'bench.recorded_cycle')
    sys.exit(conductor.main())
