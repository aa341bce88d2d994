"""Guests whose work is given on their kernel's command line; see tools/guest/init.c."""

import functools
import os
import pathlib
import subprocess

from tests.e2e.box.settings import SOURCE

DISK = b'\0' * 2 ** 20
"""Nothing is read from it; a server has one, and it has to be copied or shared."""


def built():
    """The folder with a guest's kernel and ramdisk."""
    folder = pathlib.Path(os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache',
                          'kronos-nova', 'guest')
    subprocess.run([SOURCE / 'tools/guest/build.sh', folder], check=True)
    return folder


class Guests:
    """Images of guests: a kernel and a ramdisk, and an image for each kind of work."""

    def __init__(self, client):
        self._client = client

    @functools.cached_property
    def _boots_from(self):
        folder = built()
        return {'kernel_id': self._client.create_image(
                    (folder / 'vmlinuz').read_bytes(), 'aki', 'aki'),
                'ramdisk_id': self._client.create_image(
                    (folder / 'initramfs').read_bytes(), 'ari', 'ari')}

    @functools.cache  # noqa: B019 (it lives as long as the cloud)
    def image(self, **work):
        """The image of guests that work so: ``cpu=0.4, memory_mb=32, dirty_mb_s=8``."""
        reported = ' '.join(f'kronos.{name}={value}' for name, value in work.items())
        return self._client.create_image(
            DISK, os_command_line=f'console=ttyS0 quiet {reported}', hw_machine_type='pc',
            **self._boots_from)
