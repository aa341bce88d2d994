"""Requirements of a server on its host, from its flavor's extra specs and its image's properties.

The requirements are the same as those of ``nova.scheduler.utils.ResourceRequest`` and of the
request filters in ``nova.scheduler.request_filter`` that no option can disable.
"""

import re
from collections.abc import Iterator
from collections.abc import Mapping

from kronos_nova.objects.snapshot import NO_REQUIREMENTS
from kronos_nova.objects.snapshot import Requirements

COMPARED = ('hw_architecture', 'img_hv_type', 'hw_vm_mode', 'img_hv_requested_version')
"""Image properties that Nova's ImagePropertiesFilter compares with hosts."""

OLD_NAMES = {'architecture': 'hw_architecture', 'hypervisor_type': 'img_hv_type',
             'vm_mode': 'hw_vm_mode', 'hypervisor_version_requires': 'img_hv_requested_version'}
"""Former names of the properties in :data:`COMPARED`, which images may still have. Each is mapped
to the present name."""

TRAIT = re.compile(r'trait([a-zA-Z0-9_-]{0,64}):([A-Z0-9_]{1,255})')
"""Pattern of an extra spec or image property that requests a trait. Its first group is the name of
the request group, '' for the unnamed one, and its second group is the trait."""

MEMORY_TRAITS = {'amd-sev': 'HW_CPU_X86_AMD_SEV', 'amd-sev-es': 'HW_CPU_X86_AMD_SEV_ES',
                 'amd-sev-snp': 'HW_CPU_X86_AMD_SEV_SNP', 'intel-tdx': 'HW_CPU_X86_INTEL_TDX'}
TPM_MODELS = {'tpm-tis': 'COMPUTE_SECURITY_TPM_TIS', 'tpm-crb': 'COMPUTE_SECURITY_TPM_CRB'}
TPM_VERSIONS = {'1.2': 'COMPUTE_SECURITY_TPM_1_2', '2.0': 'COMPUTE_SECURITY_TPM_2_0'}
ADDRESS_MODES = {'passthrough': 'COMPUTE_ADDRESS_SPACE_PASSTHROUGH',
                 'emulate': 'COMPUTE_ADDRESS_SPACE_EMULATED'}
TRUE = frozenset(('1', 't', 'true', 'on', 'y', 'yes'))
"""Words, in lower case, that Nova reads as true in a property."""


def requirements(extra_specs: Mapping[str, str], image: Mapping[str, str],
                 member_of: tuple[tuple[str, ...], ...] = (), cpu_model: str = '') -> Requirements:
    """Return the requirements of a server on its host.

    :param image: properties of the server's image; empty if unknown
    :param member_of: sets of aggregate uuids; the host has to be in at least one aggregate of each
        set
    :param cpu_model: named CPU model of the guest; '' if the guest has the CPU model of its host
    """
    wanted, forbidden = set(), set()
    for key, value in extra_specs.items():
        match = TRAIT.fullmatch(key)
        if match and value == 'required':
            wanted.add(match[2])
        elif match and value == 'forbidden' and not match[1]:
            forbidden.add(match[2])
    wanted.update(match[2] for key, value in image.items()
                  if value == 'required' and (match := TRAIT.fullmatch(key)) and not match[1])
    wanted.update(_implied(extra_specs, image))
    threads = _either(extra_specs, image, 'cpu_thread_policy')
    if threads == 'require':
        wanted.add('HW_CPU_HYPERTHREADING')
    elif threads == 'isolate':
        forbidden.add('HW_CPU_HYPERTHREADING')
    compared = {name: image[key] for key, name in OLD_NAMES.items() if key in image}
    compared |= {name: image[name] for name in COMPARED if name in image}
    if not (wanted or forbidden or compared or member_of or cpu_model):
        return NO_REQUIREMENTS  # most servers have none: one object serves all
    return Requirements(traits=tuple(sorted(wanted)), forbidden=tuple(sorted(forbidden)),
                        member_of=member_of, image=compared, cpu_model=cpu_model)


def has_tpm(extra_specs: Mapping[str, str], image: Mapping[str, str]) -> bool:
    """Return True if the server has an emulated TPM, else False."""
    return bool(_either(extra_specs, image, 'tpm_version'))


def tpm_secret(extra_specs: Mapping[str, str]) -> str:
    """Return the owner of the secret of the server's emulated TPM: ``user``, ``host`` or
    ``deployment``."""
    return extra_specs.get('hw:tpm_secret_security') or 'user'


def encrypted_memory(extra_specs: Mapping[str, str], image: Mapping[str, str]) -> bool:
    """Return True if the server's memory is encrypted, else False."""
    return _is_on(extra_specs, image, 'mem_encryption')


def _implied(extra_specs: Mapping[str, str], image: Mapping[str, str]) -> Iterator[str]:
    """Yield the required traits that no extra spec or image property names. For example, an
    emulated TPM requires a trait of hosts that support TPMs."""
    if has_tpm(extra_specs, image):
        version = _either(extra_specs, image, 'tpm_version') or ''
        yield TPM_VERSIONS.get(version, TPM_VERSIONS['1.2'])
        model = _either(extra_specs, image, 'tpm_model') or ''
        yield TPM_MODELS.get(model, TPM_MODELS['tpm-tis'])
        yield f'COMPUTE_SECURITY_TPM_SECRET_SECURITY_{tpm_secret(extra_specs).upper()}'
    if encrypted_memory(extra_specs, image):
        model = _either(extra_specs, image, 'mem_encryption_model') or 'amd-sev'
        yield MEMORY_TRAITS.get(model, MEMORY_TRAITS['amd-sev'])
    if _either(extra_specs, image, 'secure_boot', 'os') == 'required':
        yield 'COMPUTE_SECURITY_UEFI_SECURE_BOOT'
    mode = _either(extra_specs, image, 'maxphysaddr_mode')
    if mode in ADDRESS_MODES:
        yield ADDRESS_MODES[mode]
    if image.get('hw_firmware_type') == 'uefi' and _means_true(image.get('hw_firmware_stateless')):
        yield 'COMPUTE_SECURITY_STATELESS_FIRMWARE'
    if _either(extra_specs, image, 'pci_numa_affinity_policy') == 'socket':
        yield 'COMPUTE_SOCKET_PCI_NUMA_AFFINITY'
    if _is_on(extra_specs, image, 'virtio_packed_ring'):
        yield 'COMPUTE_NET_VIRTIO_PACKED'
    if _is_on(extra_specs, image, 'ephemeral_encryption'):
        yield 'COMPUTE_EPHEMERAL_ENCRYPTION'
        if kind := _either(extra_specs, image, 'ephemeral_encryption_format'):
            yield f'COMPUTE_EPHEMERAL_ENCRYPTION_{kind.upper()}'
    if _either(extra_specs, image, 'sound_model') == 'virtio':
        yield 'COMPUTE_SOUND_MODEL_VIRTIO'


def _either(extra_specs: Mapping[str, str], image: Mapping[str, str], key: str,
            prefix: str = 'hw') -> str | None:
    """Return the flavor's value for a key, or the image's value if the flavor has none. None if
    neither the flavor nor the image has a value. Nova starts no server whose flavor and image have
    different values."""
    return extra_specs.get(f'{prefix}:{key}') or image.get(f'{prefix}_{key}')


def _is_on(extra_specs: Mapping[str, str], image: Mapping[str, str], key: str) -> bool:
    return (_means_true(extra_specs.get(f'hw:{key}')) or _means_true(image.get(f'hw_{key}')))


def _means_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() in TRUE
