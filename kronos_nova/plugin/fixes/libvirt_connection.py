"""A lock around the connection to libvirt that its own thread may take again.

Where nova-compute runs in native threads, libvirt's client says that the connection has ended in
the thread that notices it first. That may be the one that looks, under Nova's lock of the
connection, whether it is sound: Nova then asks for that lock once more, and waits for itself. From
then on no thread of that nova-compute reaches libvirt, until it is killed. A lock that its own
thread may take again has none of this; what is done under it the second time, to forget the
connection, is what is done there anyway.

This sets a private attribute of Nova's libvirt driver, :data:`LOCK`, on the driver's instance.

Launchpad: no bug is known. Option: ``[kronos_fixes] libvirt_connection``.
"""

import threading

import nova.conf

CONF = nova.conf.CONF

EXPECTED = {
    'nova.virt.libvirt.host:Host._connection_closed': ('self', 'conn', 'args', 'kwargs'),
    'nova.virt.libvirt.host:Host._get_connection': ('self',),
}

LOCK = '_wrapped_conn_lock'


class SurvivesLibvirt:
    """A part of the compute manager. Drivers other than libvirt's are left as they are."""

    def __init__(self, compute_driver=None, *args, **kwargs):
        super().__init__(compute_driver, *args, **kwargs)
        host = getattr(self.driver, '_host', None)
        if CONF.kronos_fixes.libvirt_connection and hasattr(host, LOCK):
            # There is no connection yet.
            setattr(host, LOCK, threading.RLock())
