"""Movability of every kind of server: predicted from the inventory, and answered by Nova."""

import contextlib
import json

from nova import context as nova_context
from nova import objects
from nova.compute import manager
from nova.compute import power_state
from nova.compute import vm_states
from nova.db.main import api as main_db
from nova.network import model as network_model
from nova.network import neutron
from nova.objects import service
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client as api_client

from kronos_nova.objects import eligibility
from kronos_nova.objects import movability
from kronos_nova.objects.snapshot import COLD
from kronos_nova.objects.snapshot import IMMOVABLE
from kronos_nova.objects.snapshot import LIVE
from kronos_nova.plugin import cells
from kronos_nova.plugin.inventory import InProcessInventory
from tests.functional.inventory import test_two_ways

ENDED = ('completed', 'error', 'failed')
TPM = {'hw:tpm_version': '2.0', 'hw:tpm_model': 'tpm-crb'}
SEV = {'hw:mem_encryption': 'true'}
UEFI = {'hw_firmware_type': 'uefi', 'hw_machine_type': 'q35'}
NUMA = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
    id=0, cpuset={0}, pcpuset=set(), memory=64)])
HUGE = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
    id=0, cpuset={0}, pcpuset=set(), memory=64, pagesize=2048)])

WITH_SHARE = (COLD if service.SERVICE_VERSION >= movability.COLD_WITH_SHARES_SERVICE
              else IMMOVABLE)
"""Nova migrates servers with shares cold since release 34."""


def device(alias, **spec):
    return [{'request_id': None, 'requester_id': None, 'count': 1, 'numa_policy': None,
             'is_new': False, 'alias_name': alias, 'spec': [spec]}]


KINDS = (
    # (number, kind, what is said of it, what makes it)
    (1, 'local disk', LIVE, {}),
    (2, 'root disk on a volume', LIVE, {'boot': 'volume'}),
    (3, 'config drive', LIVE, {'boot': 'config_drive'}),
    (4, 'port', LIVE, {'boot': 'port'}),
    (5, 'NUMA topology', LIVE, {'numa': NUMA}),
    (6, 'huge pages', LIVE, {'numa': HUGE}),
    (7, 'PCI device', COLD, {'pci': device('gpu', vendor_id='8086')}),
    (8, 'PCI device, live_migratable', LIVE, {'pci': device('vf', live_migratable='true')}),
    (9, 'PCI device, live_migratable = false', COLD,
     {'pci': device('vf', live_migratable='false')}),
    (10, 'two devices, one of them live_migratable', COLD,
     {'pci': device('vf', live_migratable='true') + device('gpu', vendor_id='8086')}),
    (11, 'SR-IOV port', LIVE, {'pci': device(None, physical_network='net')}),
    (12, 'SR-IOV port with indirection', LIVE,
     {'boot': 'port', 'pci': device(None, physical_network='net'), 'vnic': 'macvtap'}),
    (13, 'vGPU', LIVE, {'extra_specs': {'resources:VGPU': '1'}}),
    (14, 'vTPM, secret of the user', IMMOVABLE, {'extra_specs': TPM}),
    (15, 'vTPM, secret of the host', LIVE,
     {'extra_specs': TPM | {'hw:tpm_secret_security': 'host'}}),
    (16, 'vTPM, secret of the deployment', COLD,
     {'extra_specs': TPM | {'hw:tpm_secret_security': 'deployment'}}),
    (17, 'vTPM of the image', IMMOVABLE, {'image': {'hw_tpm_version': '2.0'}}),
    (18, 'SEV', COLD, {'extra_specs': SEV, 'image': UEFI}),
    (19, 'SEV of the image', COLD, {'image': {'hw_mem_encryption': 'true', **UEFI}}),
    (20, 'port with groups of resources', LIVE, {'boot': 'port', 'qos': True}),
    (21, 'vDPA port', LIVE, {'boot': 'port', 'vnic': 'vdpa'}),
    (22, 'share', WITH_SHARE, {'share': True}),
    (23, 'Cyborg accelerator of the flavor', IMMOVABLE,
     {'extra_specs': {'accel:device_profile': 'fpga'}}),
    (24, 'Cyborg accelerator of a port', IMMOVABLE,
     {'boot': 'port', 'vnic': 'accelerator-direct'}),
    (25, 'PAUSED', LIVE, {'vm_state': vm_states.PAUSED, 'power_state': power_state.PAUSED}),
    (26, 'SUSPENDED', IMMOVABLE, {'vm_state': vm_states.SUSPENDED,
                                  'power_state': power_state.SUSPENDED}),
    (27, 'RESCUED', IMMOVABLE, {'vm_state': vm_states.RESCUED}),
    (28, 'SHELVED', IMMOVABLE, {'vm_state': vm_states.SHELVED,
                                'power_state': power_state.SHUTDOWN}),
    (29, 'SHUTOFF', COLD, {'vm_state': vm_states.STOPPED, 'power_state': power_state.SHUTDOWN}),
    (30, 'ERROR', IMMOVABLE, {'vm_state': vm_states.ERROR}),
    (31, 'locked', LIVE, {'locked': True}),
    (32, 'never launched', IMMOVABLE, {'launched_at': None}),
    (33, 'ACTIVE without power', COLD, {'power_state': power_state.SHUTDOWN}),
    (34, 'PAUSED with SEV', IMMOVABLE,
     {'vm_state': vm_states.PAUSED, 'power_state': power_state.PAUSED, 'extra_specs': SEV,
      'image': UEFI}),
    (35, 'SHUTOFF with a Cyborg accelerator', IMMOVABLE,
     {'vm_state': vm_states.STOPPED, 'power_state': power_state.SHUTDOWN,
      'extra_specs': {'accel:device_profile': 'fpga'}}),
)

OLD_KINDS = (
    (36, 'vDPA port, and a nova-compute too old for it', COLD, {'boot': 'port', 'vnic': 'vdpa'}),
    (37, 'vTPM, secret of the host, and a nova-compute too old for it', COLD,
     {'extra_specs': TPM | {'hw:tpm_secret_security': 'host'}}),
    (38, 'share, and a nova-compute too old for it', IMMOVABLE, {'share': True}),
)


class EveryKindTest(test_two_ways.QemuTestCase):
    hosts = ('host1', 'host2')

    def setUp(self):
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        super().setUp()
        self.useFixture(nova_fixtures.CinderFixture(self))
        # Destinations have every device that is asked for, and no old server is synchronized.
        self.stub_out('nova.compute.manager.ComputeManager._flavor_based_pci_claim',
                      lambda *args: {})
        self.stub_out('nova.compute.manager.ComputeManager._claim_pci_for_instance_vifs',
                      lambda *args: {})
        self.assertTrue(hasattr(manager.ComputeManager, '_claim_from_pci_reqs'))
        self.flavor = self._create_flavor(vcpu=1, memory_mb=64, disk=0, ephemeral=0)
        self.with_groups = set()
        self.stub_out('nova.network.neutron.API.instance_has_extended_resource_request',
                      lambda api, uuid: uuid in self.with_groups)
        self.assertTrue(callable(neutron.API.instance_has_extended_resource_request))

    @contextlib.contextmanager
    def cell(self):
        context = cells.admin_context()
        with nova_context.target_cell(context, cells.mappings(context)[0]) as cell:
            yield cell

    def make(self, boot='', extra_specs=None, image=None, pci=None, numa=None, vnic=None,
             share=False, qos=False, **fields):
        """A server of some kind, on host1."""
        options = {'host': 'host1', 'flavor_id': self.flavor, 'networks': 'none'}
        if boot == 'port':
            port = self.neutron.create_port({'port': {
                'network_id': self.neutron.network_1['id'], 'tenant_id': 'p'}})['port']
            options['networks'] = [{'port': port['id']}]
        body = self._build_server(**options, **({'image_uuid': ''} if boot == 'volume' else {}))
        if boot == 'volume':
            body['block_device_mapping_v2'] = [{
                'boot_index': 0, 'uuid': nova_fixtures.CinderFixture.IMAGE_BACKED_VOL,
                'source_type': 'volume', 'destination_type': 'volume'}]
        body['config_drive'] = boot == 'config_drive'
        server = self._wait_for_state_change(self.api.post_server({'server': body}), 'ACTIVE')
        uuid = server['id']
        if qos:
            self.with_groups.add(uuid)
        with self.cell() as cell:
            if pci or numa:
                main_db.instance_extra_update_by_uuid(cell, uuid, {
                    **({'pci_requests': json.dumps(pci)} if pci else {}),
                    **({'numa_topology': json.dumps(numa.obj_to_primitive())} if numa else {})})
            if share:
                objects.share_mapping.ShareMapping(
                    cell, uuid=uuid, instance_uuid=uuid, share_id=uuid, status='active',
                    tag='share', export_location='nfs', share_proto='NFS').create()
            instance = objects.Instance.get_by_uuid(
                cell, uuid, expected_attrs=['flavor', 'system_metadata', 'info_cache'])
            if vnic:
                networks = instance.info_cache.network_info
                for vif in networks:
                    vif['vnic_type'] = vnic
                main_db.instance_info_cache_update(cell, uuid, {
                    'network_info': network_model.NetworkInfo(networks).json()})
            for key, value in (image or {}).items():
                instance.system_metadata[f'image_{key}'] = value
            if extra_specs:
                flavor = instance.flavor
                flavor.extra_specs = extra_specs
                instance.flavor = flavor
            for name, value in fields.items():
                setattr(instance, name, value)
            instance.save()
        return server

    def foretold(self):
        """{uuid: (how Nova can move a server, why not live)}"""
        return {each.uuid: eligibility.movability(each)
                for each in InProcessInventory().read().instances}

    def answer(self, server):
        """Return how Nova does move it: what its API says, and its conductor once the API has
        agreed."""
        if self.is_migrated_live(server):
            return LIVE
        try:
            self.api.post_server_action(server['id'], {'migrate': None})
        except api_client.OpenStackApiException as error:
            self.assertIn(error.response.status_code, (400, 403, 409))
            return IMMOVABLE
        # Its conductor would wait for ever for a scheduler that the end of the test stops.
        self._wait_for_server_parameter(server, {'OS-EXT-STS:task_state': None})
        return COLD

    def is_migrated_live(self, server):
        try:
            self.migrate(server, 'host2')
        except api_client.OpenStackApiException as error:
            self.assertIn(error.response.status_code, (400, 403, 409))
            return False
        self._wait_for_migration_status(server, ENDED)
        with self.cell() as cell:
            [migration] = objects.MigrationList.get_by_filters(
                cell, {'instance_uuid': server['id']})
        return migration.status == 'completed'

    def check(self, kinds):
        servers = {number: self.make(**made) for number, _kind, _can, made in kinds}
        foretold = self.foretold()
        self.assertEqual(
            {(number, kind): can for number, kind, can, _made in kinds},
            {(number, kind): foretold[servers[number]['id']].can for number, kind, *_ in kinds})
        for number, kind, can, _made in kinds:
            answer = self.answer(servers[number])
            if foretold[servers[number]['id']].why == movability.USERS_SECRET:
                # Nova takes the request, and cannot unlock the vTPM without its owner's word.
                self.assertEqual((IMMOVABLE, COLD), (can, answer))
            else:
                self.assertEqual((number, kind, can), (number, kind, answer))

    def oldest_service(self, *args, **kwargs):
        with self.cell() as cell:
            return main_db.service_get_minimum_version(cell, ['nova-compute'])['nova-compute']

    def test_columns_say_how_nova_moves_a_server_of_every_kind(self):
        self.check(KINDS)

    def test_columns_say_how_nova_moves_a_server_where_a_nova_compute_is_old(self):
        with self.cell() as cell:
            main_db.service_create(cell, {'host': 'old', 'binary': 'nova-compute', 'version': 62,
                                          'topic': 'compute', 'report_count': 0})
        # Nova's fixtures say of every service that it is current.
        for name in ('Service.get_minimum_version_multi', 'service.get_minimum_version_all_cells'):
            self.stub_out(f'nova.objects.{name}', self.oldest_service)
        self.check(OLD_KINDS)
