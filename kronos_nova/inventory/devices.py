"""PCI devices that servers need, as Nova's database and flavors have them."""

import json
import re
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from kronos_nova import boundary
from kronos_nova.objects.numa import LEGACY
from kronos_nova.objects.numa import POLICIES
from kronos_nova.objects.numa import Device

ALIAS, POLICY = 'pci_passthrough:alias', 'hw:pci_numa_affinity_policy'
"""Extra specs of a flavor: the devices, and their policy for NUMA cells."""
NAMED = re.compile(r'\s*([^:,]{1,255}):([0-9]{1,6})')
"""Pattern of an alias with the number of devices."""
MOST = 1 << 16
"""Maximum number of PCI requests of a server, and of devices in each request. Raised, a faulty
record in Nova's database takes more memory; lowered, servers with more devices are refused. Chosen
as far more than any host has."""
IDS = 'vendor_id', 'product_id'
"""Keys of a specification that name a type of device. Without these, placement alone decides which
devices match."""


class Requested(NamedTuple):
    """The devices that a server needs by aliases.

    specs : (alias, JSON of its specifications); a device has to match one of these
    """

    devices: tuple[Device, ...] = ()
    specs: tuple[tuple[str, str], ...] = ()


NOTHING = Requested()


def requested(raw: Any) -> Requested:
    """Return the devices that an instance needs. Devices of ports, which have no alias, and devices
    that only placement counts are left out.

    :param raw: ``instance_extra.pci_requests``, parsed
    :raises OutOfBounds: ``raw`` is not in the form in which Nova writes it
    """
    found, specs = [], []
    for each in boundary.sized(raw or (), 'PCI requests', MOST):
        if not isinstance(each, Mapping):
            raise boundary.OutOfBounds(what='a PCI request', problem='must be a JSON object')
        alias, spec = each.get('alias_name'), each.get('spec')
        if alias is None or not is_counted(spec):
            continue
        policy = each.get('numa_policy')
        found.append(Device(
            alias=boundary.text(alias, 'an alias'),
            count=boundary.integer(each.get('count'), 'a PCI request: count', 0, MOST),
            policy=policy if policy in POLICIES else LEGACY))
        specs.append((found[-1].alias, json.dumps(spec, sort_keys=True)))
    return Requested(tuple(found), tuple(specs))


def is_counted(spec: Any) -> bool:
    """Return whether the specifications of an alias name types of devices."""
    return bool(spec) and all(key in each for each in spec for key in IDS)


def of_flavor(extra_specs: Mapping[str, str], known: Collection[str]) -> tuple[Device, ...]:
    """Return the devices that servers of a flavor need, of the known aliases."""
    policy = extra_specs.get(POLICY)
    pairs = (NAMED.fullmatch(each.rstrip()) for each in extra_specs.get(ALIAS, '').split(','))
    return tuple(Device(alias=pair[1].strip(), count=int(pair[2]),
                        policy=policy if policy in POLICIES else LEGACY)
                 for pair in pairs if pair and pair[1].strip() in known)
