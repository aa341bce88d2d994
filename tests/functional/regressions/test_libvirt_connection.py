"""libvirt ends while nova-compute, in native threads, looks whether its connection is sound.

Nova waits for a lock that the same thread holds, for ever, and with it all that reach for libvirt.
"""

import threading

import nova.conf
import testtools
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import host as libvirt_host

from kronos_nova import conf as kronos_conf
from kronos_nova.plugin import compute
from kronos_nova.plugin.fixes import libvirt_connection

TIMEOUT_SECONDS = 10


class Ending:
    """A connection of libvirt's, whose client notices that it has ended when it is asked."""

    def __init__(self, closed):
        self._closed = closed

    def getLibVersion(self):  # noqa: N802 - libvirt's
        self._closed(self, 1, None)
        raise fakelibvirt.make_libvirtError(
            fakelibvirt.libvirtError, 'client socket is closed',
            error_code=fakelibvirt.VIR_ERR_INTERNAL_ERROR, error_domain=fakelibvirt.VIR_FROM_RPC)


class Driver:
    """The part of libvirt's driver that matters here."""

    def __init__(self):
        self._host = libvirt_host.Host('qemu:///system')
        self._host._event_handler = libvirt_host._ThreadingLibvirtEventHandler(
            self._host._connection_closed)
        self._host._wrapped_conn = Ending(self._host._close_callback)

    def connect(self):
        return self._host._get_connection()


class Manager:
    def __init__(self, compute_driver):
        self.driver = compute_driver


class SurvivingManager(libvirt_connection.SurvivesLibvirt, Manager):
    pass


class LibvirtConnectionTest(testtools.TestCase):
    def connections(self, manager):
        """That of a manager's driver, in a list once it has one."""
        found = []
        thread = threading.Thread(target=lambda: found.append(manager.driver.connect()),
                                  daemon=True)
        thread.start()
        thread.join(TIMEOUT_SECONDS)
        return found

    def setUp(self):
        super().setUp()
        kronos_conf.register_opts(nova.conf.CONF)

    def test_a_connection_that_ends_while_it_is_looked_at(self):
        self.useFixture(fakelibvirt.LibvirtFixture())
        [connection] = self.connections(SurvivingManager(Driver()))
        # Under eventlet, Nova has a proxy of it.
        self.assertIsInstance(getattr(connection, '_obj', connection), fakelibvirt.Connection)

    def test_the_manager_is_such_a_one(self):
        self.assertTrue(issubclass(compute.KronosComputeManager,
                                   libvirt_connection.SurvivesLibvirt))

    def test_a_driver_of_another_hypervisor(self):
        self.assertEqual('fake', SurvivingManager('fake').driver)
