"""Facts about hosts apart from room, read both ways: Nova's and placement's own records."""

import json

from nova import context as nova_context
from nova import objects

from kronos_nova.objects.snapshot import Cpu
from kronos_nova.plugin import cells
from kronos_nova.plugin.inventory import InProcessInventory
from tests.functional.inventory import test_two_ways
from tests.functional.inventory.public import public_inventory


class HostFactsTest(test_two_ways.QemuTestCase):
    @staticmethod
    def cell():
        context = cells.admin_context()
        return nova_context.target_cell(context, cells.mappings(context)[0])

    def traits(self, provider):
        return self.placement.get(f'/resource_providers/{provider}/traits', version='1.38').body

    def test_columns_say_what_novas_own_objects_say_of_processors_and_traits(self):
        uuid = self.uuid_of('host2')
        self.placement.put('/traits/CUSTOM_LICENCE', None, version='1.38')
        held = self.traits(uuid)
        self.placement.put(f'/resource_providers/{uuid}/traits', {
            **held, 'traits': [*held['traits'], 'CUSTOM_LICENCE']}, version='1.38')
        with self.cell() as cell:
            nodes = {node.host: node for node in objects.ComputeNodeList.get_all(cell)}
            nodes['host1'].cpu_info = json.dumps({
                'arch': 'x86_64', 'model': 'Haswell', 'vendor': 'Intel',
                'topology': {'sockets': 1, 'cores': 4, 'threads': 1}, 'features': ['sse', 'aes']})
            nodes['host1'].hypervisor_version = 8002001
            nodes['host1'].save()
            nodes['host3'].cpu_info = ''
            nodes['host3'].save()
        for way in (InProcessInventory(), public_inventory(self)):
            hosts = {host.name: host for host in way.read().hosts}
            self.assertEqual(Cpu(arch='x86_64', model='Haswell', features=('aes', 'sse')),
                             hosts['host1'].cpu)
            self.assertEqual({name: nodes[name].hypervisor_version for name in hosts},
                             {name: host.hypervisor_version for name, host in hosts.items()})
            self.assertIsNone(hosts['host3'].cpu)
            found = {name: set(host.traits) for name, host in hosts.items()}
            self.assertEqual({name: set(self.traits(self.uuid_of(name))['traits'])
                              for name in hosts}, found)
            self.assertIn('CUSTOM_LICENCE', found['host2'])

    def test_a_description_of_processors_that_cannot_be_read_is_ignored(self):
        with self.cell() as cell:
            node = objects.ComputeNode.get_by_host_and_nodename(cell, 'host1', 'host1')
            node.cpu_info = '{"arch": "x86_64", "model": ['
            node.save()
        hosts = {host.name: host for host in InProcessInventory().read().hosts}
        self.assertIsNone(hosts['host1'].cpu)
        self.assertIsNotNone(hosts['host2'].cpu)
