"""Detection of a KVM on this machine that runs guests; without one QEMU emulates them."""

import pathlib
import subprocess

from tests.e2e.box.hypervisors import heartbeats

DEVICE = pathlib.Path('/dev/kvm')
BOOT = pathlib.Path('/proc/sys/kernel/random/boot_id')
QEMU = ('qemu-system-x86_64', '-accel', 'kvm', '-machine', 'pc', '-m', '128', '-nodefaults',
        '-no-user-config', '-display', 'none', '-serial', 'stdio', '-append', 'console=ttyS0 quiet')
SECONDS = 5.0
"""A guest is up in one, by KVM; in three without it."""


def virt_type(folder, qemu=QEMU, device=DEVICE, seconds=SECONDS):
    """Nova's ``virt_type``: kvm where a guest is heard that runs by it, else qemu.

    That there is a device and it can be opened does not tell: where this machine is itself a guest,
    guests may hang at their first instructions. What was found is kept in ``folder`` until this
    machine is started again.

    :param folder: what a guest boots from
    """
    if not device.exists():
        return 'qemu'
    kept, boot = folder / 'virt-type', BOOT.read_text().strip()
    known = kept.read_text().split() if kept.exists() else []
    if known[:1] != [boot]:
        known = [boot, 'kvm' if _is_heard(folder, qemu, seconds) else 'qemu']
        kept.write_text(' '.join(known))
    return known[1]


def _is_heard(folder, qemu, seconds):
    try:
        said = subprocess.run(
            [*qemu, '-kernel', folder / 'vmlinuz', '-initrd', folder / 'initramfs'],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds).stdout
    except subprocess.TimeoutExpired as guest:      # it goes on, as it should
        said = guest.stdout or b''
    return heartbeats.BEAT.search(said) is not None
