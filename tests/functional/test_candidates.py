"""Hosts on which an instance could lie in several ways, not all of which its NUMA cells allow."""

from nova import exception
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api import client as api_client
from nova.tests.functional.libvirt import test_pci_sriov_servers as nova_tests
from nova.virt.libvirt import driver
from oslo_serialization import jsonutils
from oslo_utils import versionutils

from kronos_nova.placement import client
from tests.functional import base

VIRTUAL_FUNCTION = {'vendor_id': fakelibvirt.PCI_VEND_ID, 'product_id': fakelibvirt.VF_PROD_ID,
                    'live_migratable': 'yes'}
ALIAS = {**VIRTUAL_FUNCTION, 'name': 'nic', 'device_type': 'type-VF'}
VERSIONS = {
    'libvirt_version': versionutils.convert_version_to_int(
        driver.MIN_VFIO_PCI_VARIANT_LIBVIRT_VERSION),
    'qemu_version': versionutils.convert_version_to_int(
        driver.MIN_VFIO_PCI_VARIANT_QEMU_VERSION),
}


class OrdersCandidates:
    """A mixin for tests on Nova's fixtures."""

    def order_candidates(self, reverse):
        """Let placement name the ways to lie on a host by the names of their providers."""

        real = client.PlacementClient.candidates

        def candidates(this, query):
            names = {each['uuid']: each['name'] for each in self._get_all_providers()}
            return sorted(real(this, query), reverse=reverse, key=lambda found: sorted(
                names[uuid] for uuid in found['allocations']))

        self.stub_out('kronos_nova.placement.client.PlacementClient.candidates', candidates)


class NumaAndDevicesTestCase(base.KronosServices, nova_tests._PCIServersWithMigrationTestBase):
    """Two hosts, each with two NUMA cells, a device in each; devices are tracked in placement."""

    managers = {'nova-conductor': 'kronos_nova.plugin.managers.Conductor',
                'nova-compute': 'kronos_nova.plugin.managers.Compute'}
    microversion = 'latest'
    ADMIN_API = True
    PCI_DEVICE_SPEC = [jsonutils.dumps(VIRTUAL_FUNCTION)]
    PCI_ALIAS = [jsonutils.dumps(ALIAS)]

    def setUp(self):
        super().setUp()
        self.flags(report_in_placement=True, group='pci')
        self.flags(pci_in_placement=True, group='filter_scheduler')
        self.flags(cpu_dedicated_set='0-7', group='compute')
        for host in ('host1', 'host2'):
            self.start_compute(hostname=host, pci_info=fakelibvirt.HostPCIDevicesInfo(
                num_pfs=2, num_vfs=2), **VERSIONS)
        pinned = {'hw:cpu_policy': 'dedicated'}
        self.with_device = self._create_flavor(
            vcpu=3, memory_mb=256, disk=1, extra_spec={**pinned, 'pci_passthrough:alias': 'nic:1'})
        self.without = self._create_flavor(vcpu=3, memory_mb=256, disk=1, extra_spec=pinned)


class NumaAndDevicesTest(OrdersCandidates, NumaAndDevicesTestCase):
    def check(self, reverse):
        self.order_candidates(reverse)
        server = self._create_server(host='host1', flavor_id=self.with_device, networks='none')
        # One cell of the other host is taken: what is free of the other has one device by it.
        self._create_server(host='host2', flavor_id=self.without, networks='none')

        self._live_migrate(server, 'completed')

        self.assertPCIDeviceCounts('host1', total=2, free=2)
        self.assertPCIDeviceCounts('host2', total=2, free=1)
        self.assertEqual('ACTIVE', self.api.get_server(server['id'])['status'])

    def test_the_candidate_is_one_that_fits_the_cells(self):
        self.check(reverse=False)

    def test_in_whichever_order_placement_names_them(self):
        self.check(reverse=True)

    def test_a_host_whose_devices_were_taken_meanwhile_does_not_put_it_into_error(self):
        server = self._create_server(host='host1', flavor_id=self.with_device, networks='none')

        def claim(*args, **kwargs):
            raise exception.PciDeviceRequestFailed(requests='nic')

        self.stub_out('nova.compute.manager.ComputeManager._flavor_based_pci_claim', claim)
        # These fixtures let the request itself wait for its end.
        self.assertRaises(api_client.OpenStackApiException, self._live_migrate, server, 'error')

        server = self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None})
        self.assertEqual('host1', server['OS-EXT-SRV-ATTR:host'])

    def test_placements_first_candidate_alone_does_not_do(self):
        """The result of the two tests before is due to Nova's filters."""
        self.stub_out('kronos_nova.plugin.candidate_filters.left_over',
                      lambda found, spec, node: found)

        self.assertRaises(api_client.OpenStackApiException, self.check, reverse=False)
