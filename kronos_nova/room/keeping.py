"""The choice of the mechanism that keeps room for new servers. The mechanism prevents other servers
from using the room."""

import dataclasses
import re

from kronos_nova.objects.hold import ALLOCATIONS
from kronos_nova.objects.hold import FILTER
from kronos_nova.objects.shape import Shape

COUNTED = frozenset(('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB'))
"""Resource classes that nova-scheduler counts for each host. KronosFilter can keep amounts of these
classes free."""
ALIAS, PROFILE = 'pci_passthrough:alias', 'accel:device_profile'
"""Extra specs that request devices from Nova or Cyborg, apart from the resources that the flavor
requests from placement. Room with such devices cannot be kept."""
GROUPED = re.compile(r'resources[a-zA-Z0-9_-]{1,64}:[A-Z0-9_]+')
"""Pattern of extra specs that request resources from placement in named request groups."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """The mechanism that can keep room for servers of a shape, or the reason why no mechanism can.

    name : name of the mechanism; '' if no mechanism can keep the room
    problem, remedy : the reason; '' if a mechanism can keep the room
    """

    name: str = ''
    problem: str = ''
    remedy: str = ''

    @property
    def why_none(self) -> str:
        """The problem and its remedy in one text; '' if a mechanism can keep the room."""
        return ': '.join(filter(None, (self.problem, self.remedy)))


def keeper_of(shape: Shape, is_filtered: bool) -> Keeper:
    """Return the mechanism (keeper) that can keep room for servers of a shape, or the reason why no
    mechanism can.

    There are two mechanisms. Allocations in placement can keep amounts of all resource classes,
    such as VGPUs and custom classes, but no NUMA cells. KronosFilter can keep NUMA cells, and
    amounts of the resource classes that nova-scheduler counts: processors, memory and disk.

    :param is_filtered: True if KronosFilter is enabled in every nova-scheduler
    """
    for key in (ALIAS, PROFILE):
        if key in shape.extra_specs:
            return Keeper(problem=f'flavor {shape.name} asks for devices ({key}), which cannot be '
                                  'kept free', remedy='ask for a flavor without them')
    others = sorted(shape.resources.keys() - COUNTED) + sorted(
        key for key in shape.extra_specs if GROUPED.fullmatch(key))
    if shape.cells and others:
        return Keeper(problem=f'flavor {shape.name} needs NUMA cells and {", ".join(others)}, and '
                              'nothing keeps both', remedy='ask for a flavor without one of them')
    if shape.cells and not is_filtered:
        return Keeper(problem=f'flavor {shape.name} needs NUMA cells, which an allocation does not '
                              'hold', remedy='enable KronosFilter in every nova-scheduler')
    return Keeper(name=ALLOCATIONS if others or not is_filtered else FILTER)
