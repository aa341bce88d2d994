"""Movability: whether Nova can move a server live, only cold or not at all.

The result depends on the devices, secrets and shares of the server. If Nova cannot move the server
live, the result has the reason. The reasons are the cases in which Nova 33 and 34 refuse a
migration in ``nova.compute.api.API.live_migrate``, in the conductor (``LiveMigrationTask``) or in
libvirt's driver. They do not depend on the destination, and no filter of the scheduler checks them.
"""

import dataclasses
from collections.abc import Mapping

from kronos_nova.objects import requirements
from kronos_nova.objects.snapshot import COLD
from kronos_nova.objects.snapshot import IMMOVABLE
from kronos_nova.objects.snapshot import MOVES_LIVE
from kronos_nova.objects.snapshot import Movability

NUMA_SERVICE = 40
VPMEM_SERVICE = 51
VDPA_SERVICE = 63
VTPM_SERVICE = 72
COLD_WITH_SHARES_SERVICE = 74
"""Service versions (no unit) of nova-compute. Nova migrates some kinds of servers only if every
nova-compute of the cell has at least the version for this kind:

* ``NUMA_SERVICE``: live migration of servers with NUMA cells
* ``VPMEM_SERVICE``: live migration of servers with persistent memory
* ``VDPA_SERVICE``: live migration of servers with vDPA ports
* ``VTPM_SERVICE``: live migration of servers with vTPMs
* ``COLD_WITH_SHARES_SERVICE``: cold migration of servers with shares

Fixed by ``nova.compute.api`` and ``nova.conductor.tasks.live_migrate`` of Nova 34."""

MEDIATED_QEMU = 8_001_000
"""Lowest version of QEMU (no unit) for live migrations of servers with mediated devices. Nova
writes a version as one whole number: 8001000 is 8.1.0. Fixed by ``MIN_MDEV_LIVEMIG_QEMU_VERSION``
of Nova 33 and 34."""

ACCELERATOR = 'accel:device_profile'
ACCELERATOR_PORTS = frozenset(('accelerator-direct', 'accelerator-direct-physical'))
VDPA_PORT = 'vdpa'
VPMEM = 'CUSTOM_PMEM_NAMESPACE_'
VGPU = 'VGPU'
POWERED = frozenset((1, 3))
"""Power states (no unit) in which Nova migrates a server live: running (1) and paused (3). Fixed by
Nova's conductor."""

IN_A_FLAVOR = 'Cyborg accelerators of the flavor cannot be moved'
AT_A_PORT = 'a port has a Cyborg accelerator, which cannot be moved'
NEVER_LAUNCHED = 'it was never launched'
SHARES = 'a share is attached, which cannot be migrated live'
SHARES_FOR_GOOD = 'a share is attached, and a nova-compute is too old to move it'
USERS_SECRET = 'the vTPM secret is the user\'s'  # noqa: S105
NO_HOST_SECRET = 'the vTPM secret is not the host\'s'  # noqa: S105
VTPM_AND_OLD_COMPUTE = 'a nova-compute is too old to migrate a vTPM live'
ENCRYPTED = 'the memory is encrypted, which excludes a live migration'
DEVICE = 'a PCI device of the flavor is not live_migratable'
VDPA_AND_OLD_COMPUTE = 'a nova-compute is too old to migrate a vDPA port live'
NUMA_AND_OLD_COMPUTE = 'a nova-compute is too old to migrate a NUMA topology live'
VPMEM_AND_OLD_COMPUTE = 'a nova-compute is too old to migrate persistent memory live'
OLD_QEMU = 'QEMU of the host is too old to migrate a vGPU live'
POWER = 'its power state is neither running nor paused'
REASONS = frozenset((
    '', IN_A_FLAVOR, AT_A_PORT, NEVER_LAUNCHED, SHARES, SHARES_FOR_GOOD, USERS_SECRET,
    NO_HOST_SECRET, VTPM_AND_OLD_COMPUTE, ENCRYPTED, DEVICE, VDPA_AND_OLD_COMPUTE,
    NUMA_AND_OLD_COMPUTE, VPMEM_AND_OLD_COMPUTE, OLD_QEMU, POWER))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """The facts about a server's devices that decide on its movability. Nova's database has these
    facts, and its public API does not show them.

    has_fixed_device : whether the flavor requests a PCI device that is not ``live_migratable``
    port_types : those vnic types of the server's ports that matter for movability
    has_share : whether a share is attached
    has_numa : whether the server has a NUMA topology
    """

    has_fixed_device: bool = False
    port_types: frozenset[str] = frozenset()
    has_share: bool = False
    has_numa: bool = False


NO_DEVICES = Devices()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The versions of services on the host and in the cell of a server.

    oldest_service : version of the oldest nova-compute in the cell; None if unknown
    hypervisor_version : version of the host's hypervisor; None if unknown
    """

    oldest_service: int | None = None
    hypervisor_version: int | None = None

    def is_older(self, service: int) -> bool:
        """Return True if the oldest nova-compute of the cell is older than version ``service``.
        Return False if the oldest nova-compute is not older, or if its version is unknown."""
        return self.oldest_service is not None and self.oldest_service < service


NOWHERE = Where()


def movability(extra_specs: Mapping[str, str], image: Mapping[str, str],
               resources: Mapping[str, int], devices: Devices = NO_DEVICES,
               where: Where = NOWHERE, has_launched: bool = True,
               power_state: int | None = None) -> Movability:
    """Return whether Nova can move a server live, only cold or not at all, with the reason. If one
    reason rules out all migrations, and another reason rules out live migrations only, the result
    has the first reason.

    :param image: properties of the server's image; empty if unknown
    :param resources: the server's allocations by resource class
    :param has_launched: whether the server has ever run
    :param power_state: power state of the server if the server is active or paused; None if the
        power state is unknown or the server has another status
    """
    why = _bound(extra_specs, image, devices, where, has_launched)
    if why:
        return Movability(can=IMMOVABLE, why=why)
    why = _only_cold(extra_specs, image, resources, devices, where, power_state)
    return Movability(can=COLD, why=why) if why else MOVES_LIVE


def _bound(extra_specs: Mapping[str, str], image: Mapping[str, str], devices: Devices,
           where: Where, has_launched: bool) -> str:
    """Return the reason why Nova cannot move the server at all; '' if Nova can move the server live
    or cold."""
    if extra_specs.get(ACCELERATOR):
        return IN_A_FLAVOR
    if devices.port_types & ACCELERATOR_PORTS:
        return AT_A_PORT
    if not has_launched:
        return NEVER_LAUNCHED
    if devices.has_share and where.is_older(COLD_WITH_SHARES_SERVICE):
        return SHARES_FOR_GOOD
    # Nova accepts the request for a cold migration, but cannot unlock the vTPM on the new host.
    if requirements.has_tpm(extra_specs, image) and requirements.tpm_secret(extra_specs) == 'user':
        return USERS_SECRET
    return ''


def _only_cold(extra_specs: Mapping[str, str], image: Mapping[str, str],
               resources: Mapping[str, int], devices: Devices, where: Where,
               power_state: int | None) -> str:
    """Return the reason why Nova can migrate the server only cold; '' if Nova can migrate the
    server live."""
    if devices.has_share:
        return SHARES
    if requirements.has_tpm(extra_specs, image):
        if requirements.tpm_secret(extra_specs) != 'host':
            return NO_HOST_SECRET
        if where.is_older(VTPM_SERVICE):
            return VTPM_AND_OLD_COMPUTE
    if requirements.encrypted_memory(extra_specs, image):
        return ENCRYPTED
    if VDPA_PORT in devices.port_types and where.is_older(VDPA_SERVICE):
        return VDPA_AND_OLD_COMPUTE
    if power_state is not None and power_state not in POWERED:
        return POWER
    if devices.has_numa and where.is_older(NUMA_SERVICE):
        return NUMA_AND_OLD_COMPUTE
    if where.is_older(VPMEM_SERVICE) and any(name.startswith(VPMEM) for name in resources):
        return VPMEM_AND_OLD_COMPUTE
    if devices.has_fixed_device:
        return DEVICE
    if resources.get(VGPU) and (where.hypervisor_version or MEDIATED_QEMU) < MEDIATED_QEMU:
        return OLD_QEMU
    return ''
