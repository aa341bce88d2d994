"""The requirements of a server are those that Nova's scheduler makes of its flavor and image."""

import ddt
import testtools
from nova import context as nova_context
from nova import objects
from nova.scheduler import request_filter
from nova.scheduler import utils as scheduler_utils

from kronos_nova.objects.requirements import requirements

FILTERS = ('packed_virtqueue_filter', 'ephemeral_encryption_filter', 'virtio_sound_filter',
           'tpm_secret_security_filter')
"""Request filters that no option turns off and that look at flavor and image alone."""

UEFI = {'hw_firmware_type': 'uefi', 'hw_machine_type': 'q35'}

KINDS = {
    'nothing': ({}, {}),
    'traits of the flavor': ({'trait:HW_CPU_X86_AVX2': 'required',
                              'trait:CUSTOM_LICENCE': 'forbidden'}, {}),
    'traits of a group': ({'resources1:VGPU': '1', 'trait1:CUSTOM_A': 'required',
                           'trait_b:CUSTOM_B': 'required', 'resources_b:CUSTOM_X': '1'}, {}),
    'another word for a trait': ({'hw:numa_nodes': '1', 'quota:cpu_shares': '2'}, {}),
    'traits of the image': ({}, {'trait:CUSTOM_LICENCE': 'required'}),
    'vTPM 1.2': ({'hw:tpm_version': '1.2'}, {}),
    'vTPM of the image, secret of the host': ({'hw:tpm_secret_security': 'host'},
                                              {'hw_tpm_version': '2.0', 'hw_tpm_model': 'tpm-crb'}),
    'vTPM, secret of the deployment': ({'hw:tpm_version': '2.0',
                                        'hw:tpm_secret_security': 'deployment'}, {}),
    'encrypted memory': ({'hw:mem_encryption': 'true'}, UEFI),
    'encrypted memory of the image': ({}, {'hw_mem_encryption': 'True',
                                           'hw_mem_encryption_model': 'amd-sev-es', **UEFI}),
    'plain memory': ({'hw:mem_encryption': 'false'}, UEFI),
    'secure boot': ({'os:secure_boot': 'required'}, UEFI),
    'secure boot of the image': ({}, {'os_secure_boot': 'required', **UEFI}),
    'secure boot, if possible': ({}, {'os_secure_boot': 'optional', **UEFI}),
    'stateless firmware': ({}, {'hw_firmware_stateless': 'true', **UEFI}),
    'addresses': ({'hw:maxphysaddr_mode': 'emulate', 'hw:maxphysaddr_bits': '42'}, {}),
    'addresses of the host': ({'hw:maxphysaddr_mode': 'passthrough'}, {}),
    'devices at the socket': ({'hw:pci_numa_affinity_policy': 'socket'}, {}),
    'devices at the socket, of the image': ({}, {'hw_pci_numa_affinity_policy': 'socket'}),
    'devices anywhere': ({'hw:pci_numa_affinity_policy': 'preferred'}, {}),
    'packed rings': ({'hw:virtio_packed_ring': 'yes'}, {}),
    'packed rings of the image': ({}, {'hw_virtio_packed_ring': 'true'}),
    'encrypted disks': ({'hw:ephemeral_encryption': 'true'}, {}),
    'encrypted disks of a format': ({}, {'hw_ephemeral_encryption': 'true',
                                         'hw_ephemeral_encryption_format': 'luks'}),
    'sound': ({}, {'hw_sound_model': 'virtio'}),
    'another sound': ({'hw:sound_model': 'sb16'}, {}),
    'threads': ({'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': 'require'}, {}),
    'no threads': ({'hw:cpu_policy': 'dedicated'}, {'hw_cpu_thread_policy': 'isolate'}),
}


@ddt.ddt
class RequirementsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()

    @ddt.data(*KINDS)
    def test_traits_are_those_that_the_scheduler_asks_placement_for(self, kind):
        extra_specs, image = KINDS[kind]
        found = requirements(extra_specs, image)
        self.assertEqual(self.asked_by_nova(extra_specs, dict(image)),
                         (set(found.traits), set(found.forbidden)))

    def asked_by_nova(self, extra_specs, image):
        """(required, forbidden) traits"""
        spec = objects.RequestSpec(
            flavor=objects.Flavor(id=1, name='f', vcpus=2, memory_mb=1024, root_gb=1,
                                  ephemeral_gb=0, swap=0, extra_specs=extra_specs),
            image=objects.ImageMeta(
                id='1', name='i', properties=objects.ImageMetaProps.from_dict(image)),
            is_bfv=False, requested_resources=[])
        for name in FILTERS:
            getattr(request_filter, name)(nova_context.get_admin_context(), spec)
        request = scheduler_utils.ResourceRequest.from_request_spec(spec)
        groups = request._rg_by_id.values()
        return (request.all_required_traits | set(spec.root_required),
                set(spec.root_forbidden).union(*(group.forbidden_traits for group in groups)))

    def test_old_names_of_properties_are_understood(self):
        image = {'architecture': 'x86_64', 'hypervisor_type': 'kvm', 'vm_mode': 'hvm',
                 'hypervisor_version_requires': '>=6.0'}
        properties = objects.ImageMetaProps.from_dict(dict(image))
        found = requirements({}, image).image
        self.assertEqual({name: getattr(properties, name) for name in found}, found)
        self.assertEqual(4, len(found))
        self.assertEqual({'hw_architecture': 'i686'}, requirements({}, {
            'architecture': 'x86_64', 'hw_architecture': 'i686'}).image)
