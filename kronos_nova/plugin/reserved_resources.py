"""The resources that a host reserves for itself. nova-compute saves the amounts, and nova-scheduler
reads them.

The capacity of a host in placement is (total - reserved) * allocation ratio. Without the reserved
amounts, nova-scheduler could only compute total * allocation ratio - reserved, which is more.
"""

import collections
import math
from collections.abc import Mapping
from collections.abc import MutableMapping

import nova.conf

CONF = nova.conf.CONF

PREFIX = 'kronos_reserved_'
"""Beginning of the keys in the ``stats`` of a ComputeNode. The rest of a key is the name of a
resource class."""


def mark(stats: MutableMapping[str, object]) -> None:
    """Record in the stats of a node the amounts that its nova-compute reports to placement as
    reserved."""
    stats[f'{PREFIX}MEMORY_MB'] = str(CONF.reserved_host_memory_mb)
    stats[f'{PREFIX}DISK_GB'] = str(math.ceil(CONF.reserved_host_disk_mb / 1024))
    stats[f'{PREFIX}VCPU'] = str(CONF.reserved_host_cpus)


def amounts(stats: Mapping[str, str]) -> 'collections.Counter[str]':
    """Return {resource class: reserved amount} of a node from its stats; 0 for amounts that its
    nova-compute has not recorded."""
    return collections.Counter({key.removeprefix(PREFIX): int(value)
                                for key, value in stats.items() if key.startswith(PREFIX)})
