"""A reentrant lock around Nova's connection to libvirt.

If nova-compute runs in native threads, the first thread that notices a closed connection to libvirt
calls Nova's handler for closed connections. This thread may be testing the connection under Nova's
lock. The handler then waits for the same lock for ever. No thread of this nova-compute reaches
libvirt until nova-compute is killed. With a reentrant lock, the thread can take the lock a second
time. The handler then runs in the middle of the test. This is safe, because both would only drop
the closed connection.

This fix sets :data:`LOCK`, a private attribute of the ``Host`` object of Nova's libvirt driver.

Launchpad: no bug is known. Option: ``[kronos_fixes] libvirt_connection``.
"""

import threading
from typing import Any

import nova.conf

from kronos_nova.plugin.nova_types import Mixin

CONF = nova.conf.CONF

EXPECTED = {
    'nova.virt.libvirt.host:Host._connection_closed': ('self', 'conn', 'args', 'kwargs'),
    'nova.virt.libvirt.host:Host._get_connection': ('self',),
}

LOCK = '_wrapped_conn_lock'


class SurvivesLibvirt(Mixin):
    """A mixin for the compute manager that makes the lock of the libvirt driver reentrant. Other
    drivers are not changed."""

    def __init__(self, compute_driver: str | None = None, *args: Any, **kwargs: Any):
        super().__init__(compute_driver, *args, **kwargs)
        host = getattr(self.driver, '_host', None)
        if CONF.kronos_fixes.libvirt_connection and hasattr(host, LOCK):
            # There is no connection yet.
            setattr(host, LOCK, threading.RLock())
