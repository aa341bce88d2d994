"""Resources of instances besides VCPU and memory, and their providers: one class for each kind of
cloud.

Each tells Nova's fixtures what they need, and what an instance holds on a host.
"""

import copy

import fixtures
import os_resource_classes as orc
from nova.tests import fixtures as nova_fixtures
from oslo_serialization import jsonutils

from tests.functional.mixed import fakes_drivers

COMPUTE = {'VCPU': 1, 'MEMORY_MB': 512}
SHARING = 'MISC_SHARES_VIA_AGGREGATE'
SECOND_PORT = 'b6a1d1e2-1d9c-4a57-9f0e-6d3f6b4b5c11'


class LocalDisk:
    driver = 'Steered'
    extra_specs = {}
    # Nova's scheduler asks placement for the tree of a named host, without what is shared with it.
    may_name_host = True
    # Whether one cloud may see every operation, one after the other.
    may_be_used_again = True

    def configure(self, test):
        """Before the services start."""

    def furnish(self, test):
        """Once the hosts have providers."""

    def networks(self, test):
        return 'none'

    def held(self, host, disk):
        """{provider name: {resource class: amount}} of an instance with a disk of ``disk`` GiB."""
        return {host: COMPUTE | {'DISK_GB': disk}}

    def left_by_evacuation(self, host, disk):
        """The allocations of an evacuated instance when its old host is back."""
        return {}


class SharedPool(LocalDisk):
    """One pool for all hosts."""

    driver = 'WithoutDisk'
    may_name_host = False

    def pool_of(self, host):
        return 'pool'

    def furnish(self, test):
        for host in test.hosts:
            pool = self.pool_of(host)
            if pool not in {each['name'] for each in test._get_all_providers()}:
                uuid = test._post_resource_provider(pool)['uuid']
                test._update_inventory(uuid, {
                    'resource_provider_generation': 0,
                    'inventories': {'DISK_GB': {'total': 100}}})
                test._set_provider_traits(uuid, [SHARING])
                test._set_aggregate(uuid, uuid)
            test._set_aggregate(test.uuid_of(host), test.uuid_of(pool))

    def held(self, host, disk):
        return {host: COMPUTE, self.pool_of(host): {'DISK_GB': disk}}


class TwoPools(SharedPool):
    """A pool for each host."""

    def left_by_evacuation(self, host, disk):
        """Nova removes what is held on the tree of the host, and nothing else."""
        return {self.pool_of(host): {'DISK_GB': disk}}

    def pool_of(self, host):
        return f'pool of {host}'


class Vgpu(LocalDisk):
    driver = 'WithVgpu'
    extra_specs = {'resources:VGPU': '1'}

    def held(self, host, disk):
        return {**super().held(host, disk), f'{host}_gpu': {'VGPU': 1}}


class Pci(LocalDisk):
    driver = 'WithPci'
    # Where a live migration was, Nova takes a device that placement says is free for one in use.
    may_be_used_again = False
    extra_specs = {'pci_passthrough:alias': 'card:1'}

    def configure(self, test):
        device = {'vendor_id': fakes_drivers.WithPci.VENDOR,
                  'product_id': fakes_drivers.WithPci.PRODUCT}
        test.flags(group='pci', report_in_placement=True, device_spec=[
            jsonutils.dumps(device | {'live_migratable': 'yes'})], alias=[
            jsonutils.dumps(device | {'name': 'card', 'device_type': 'type-PCI',
                                      'live_migratable': 'yes'})])
        test.flags(group='filter_scheduler', pci_in_placement=True)
        # The machine that tests run on has no such devices.
        test.useFixture(fixtures.MockPatch('nova.pci.utils.is_physical_function'))
        test.useFixture(fixtures.MockPatch('nova.pci.utils.get_function_by_ifname',
                                           return_value=(None, False)))

    def held(self, host, disk):
        return {**super().held(host, disk), f'{host}_PCI': {'CUSTOM_PCI_8086_1520': 1}}


class QosPort(LocalDisk):
    """A port with guaranteed bandwidth, which Neutron reports below each host."""

    BANDWIDTH = (orc.NET_BW_IGR_KILOBIT_PER_SEC, orc.NET_BW_EGR_KILOBIT_PER_SEC)
    TRAITS = ('CUSTOM_PHYSNET2', 'CUSTOM_VNIC_TYPE_NORMAL')

    def furnish(self, test):
        for trait in self.TRAITS:
            test._create_trait(trait)
        for host in test.hosts:
            agent = test.placement.post('/resource_providers', version='1.20', body={
                'name': f'{host}:agent', 'parent_provider_uuid': test.uuid_of(host)}).body['uuid']
            bridge = test.placement.post('/resource_providers', version='1.20', body={
                'name': f'{host}:bridge', 'parent_provider_uuid': agent}).body['uuid']
            test._update_inventory(bridge, {
                'resource_provider_generation': 0,
                'inventories': {name: {'total': 10000} for name in self.BANDWIDTH}})
            test._set_provider_traits(bridge, list(self.TRAITS))

    def networks(self, test):
        """A port that no server has."""
        first, ports = test.neutron.port_with_resource_request, test.neutron._ports
        second = {**first, 'id': SECOND_PORT, 'mac_address': '52:54:00:1e:59:c4', 'fixed_ips': [
            {**fixed_ip, 'ip_address': '192.168.1.43'} for fixed_ip in first['fixed_ips']]}
        ports.setdefault(SECOND_PORT, copy.deepcopy(second))
        return [{'port': next(uuid for uuid in (first['id'], SECOND_PORT)
                              if not ports[uuid]['device_id'])}]

    def held(self, host, disk):
        request = nova_fixtures.NeutronFixture.port_with_resource_request['resource_request']
        return {**super().held(host, disk), f'{host}:bridge': dict(request['resources'])}


class Everything(QosPort, TwoPools):
    """A virtual GPU, a port with guaranteed bandwidth, and a pool for each host."""

    driver = 'WithVgpuWithoutDisk'
    extra_specs = Vgpu.extra_specs

    def furnish(self, test):
        TwoPools.furnish(self, test)
        super().furnish(test)

    def held(self, host, disk):
        return {**super().held(host, disk), f'{host}_gpu': {'VGPU': 1}}


KINDS = {'local disk': LocalDisk, 'shared pool': SharedPool, 'two pools': TwoPools,
         'VGPU': Vgpu, 'PCI': Pci, 'QoS port': QosPort}
