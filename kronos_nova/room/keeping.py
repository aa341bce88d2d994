"""Ways to keep room from other servers, by what a flavor asks for."""

import re

from kronos_nova.objects.hold import ALLOCATIONS
from kronos_nova.objects.hold import FILTER
from kronos_nova.objects.shape import Shape

COUNTED = frozenset(('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB'))
"""Resource classes that nova-scheduler's own records of hosts have."""
ALIAS, PROFILE = 'pci_passthrough:alias', 'accel:device_profile'
"""Extra specs that ask for devices of which placement is not asked by the flavor."""
GROUPED = re.compile(r'resources[a-zA-Z0-9_-]{1,64}:[A-Z0-9_]+')
"""Extra specs that ask placement for resources in groups of their own."""


def keeper_of(shape: Shape, is_filtered: bool) -> tuple[str, str]:
    """Return what keeps room for servers of a shape, and why nothing does.

    An allocation holds amounts, also those of VGPUs and custom classes, and no NUMA cells;
    KronosFilter holds cells, and no more amounts than nova-scheduler knows.

    :param is_filtered: whether KronosFilter is enabled in nova-scheduler
    :returns: (keeper, ''), or ('', problem and remedy)
    """
    for key in (ALIAS, PROFILE):
        if key in shape.extra_specs:
            return '', (f'flavor {shape.name} asks for devices ({key}), which cannot be kept free: '
                        'ask for a flavor without them')
    others = sorted(shape.resources.keys() - COUNTED) + sorted(
        key for key in shape.extra_specs if GROUPED.fullmatch(key))
    if shape.cells and others:
        return '', (f'flavor {shape.name} needs NUMA cells and {", ".join(others)}, and nothing '
                    'keeps both: ask for a flavor without one of them')
    if shape.cells and not is_filtered:
        return '', (f'flavor {shape.name} needs NUMA cells, which an allocation does not hold: '
                    'enable KronosFilter in every nova-scheduler')
    return (ALLOCATIONS if others or not is_filtered else FILTER), ''
