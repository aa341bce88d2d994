"""PCI devices that servers request, as Nova's database and flavors describe them."""

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
"""Extra specs of a flavor that request PCI devices, and that set their NUMA affinity policy."""
NAMED = re.compile(r'\s*([^:,]{1,255}):([0-9]{1,6})')
"""Pattern of the alias of a PCI device, followed by the number of requested devices, such as
``gpu:2``."""
MOST = 1 << 16
"""Maximum number of PCI requests of a server, and maximum number of devices in one PCI request.
Raised, a faulty record in Nova's database takes more memory; lowered, servers with more devices are
refused. Chosen far above the number of devices of any host."""
IDS = 'vendor_id', 'product_id'
"""Keys of a PCI specification that together name a type of device. If a specification lacks a key,
only placement can decide which devices match."""


class Requested(NamedTuple):
    """The PCI devices that a server requests by the name of a ``[pci] alias``.

    devices : one Device (alias, number of devices and NUMA policy) for each request
    specs : one pair for each request: the alias, and the JSON of the alias's specifications. A
        device has to match one of the specifications
    """

    devices: tuple[Device, ...] = ()
    specs: tuple[tuple[str, str], ...] = ()


NOTHING = Requested()


def requested(raw: Any) -> Requested:
    """Return the PCI devices that an instance requests. Devices of ports, which have no alias, and
    devices that only placement tracks are left out.

    :param raw: ``instance_extra.pci_requests``, parsed
    :raises OutOfBounds: ``raw`` does not have the form in which Nova writes it
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
    """Return True if each specification of an alias has the keys in :data:`IDS`, else False.
    Without these keys, only placement can decide which devices match.

    :param spec: list of the specifications of the alias
    """
    return bool(spec) and all(key in each for each in spec for key in IDS)


def of_flavor(extra_specs: Mapping[str, str], known: Collection[str]) -> tuple[Device, ...]:
    """Return the PCI devices that servers of a flavor request. Aliases that are not in ``known``
    are left out."""
    policy = extra_specs.get(POLICY)
    pairs = (NAMED.fullmatch(each.rstrip()) for each in extra_specs.get(ALIAS, '').split(','))
    return tuple(Device(alias=pair[1].strip(), count=int(pair[2]),
                        policy=policy if policy in POLICIES else LEGACY)
                 for pair in pairs if pair and pair[1].strip() in known)
