"""Every option of Kronos, one file a group.

Takes an existing ``ConfigOpts`` and never makes or reads a global one: only ``plugin/`` and
``cmd/`` know which it is.
"""

import copy

from kronos_nova.conf import allocations
from kronos_nova.conf import bounds
from kronos_nova.conf import claims
from kronos_nova.conf import database
from kronos_nova.conf import executor
from kronos_nova.conf import exporter
from kronos_nova.conf import kronos
from kronos_nova.conf import nova
from kronos_nova.conf import paths
from kronos_nova.conf import prometheus
from kronos_nova.conf import scheduler

GROUPS = (kronos, prometheus, database, executor, nova, claims, scheduler, allocations, exporter)

for _module in GROUPS:
    bounds.bound(_module.OPTS)


def register_opts(conf):
    """Register every group on ``conf``; harmless when repeated."""
    paths.register_opts(conf)
    for module in GROUPS:
        # A group that is registered keeps its options, and what overrides them, in itself: the
        # same one in two ConfigOpts would make one of them.
        conf.register_group(copy.deepcopy(module.GROUP))
        module.register_opts(conf)


def list_opts():
    """For oslo-config-generator: ``[(group, options), ...]``."""
    return [(module.GROUP, module.list_opts()) for module in GROUPS]
