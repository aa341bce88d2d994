"""Nova's fake hypervisor, with live migrations that go as a test says, and more to hold."""

import threading

from nova.virt import fake
from oslo_serialization import jsonutils

RUN, FAIL, HOLD = 'run', 'fail', 'hold'
LONGEST_HOLD_SECONDS = 60


class Course:
    """The course of the live migrations of a test: ``course`` is RUN, FAIL or HOLD.

    One that is held has ``begun``, and goes on when it is aborted, forced to complete, or
    ``let_go`` with how it is to end.
    """

    def __init__(self):
        self.reset(RUN)

    def reset(self, course):
        self.course = course
        self.begun = threading.Event()
        self._told = threading.Event()
        self._status = None

    def let_go(self, status=None):
        """End it, with the status of the migration record if it fails, None if it completes."""
        self._status = status
        self._told.set()

    def wait(self):
        """Return how it ends: None, or the status of a migration that failed."""
        self.begun.set()
        if self.course == HOLD:
            self._told.wait(LONGEST_HOLD_SECONDS)
            return self._status
        return 'failed' if self.course == FAIL else None


# Nova makes the driver from its name: there is no other way to hand it in.
COURSE = Course()


def inventory(total):
    return {'total': total, 'min_unit': 1, 'max_unit': total, 'step_size': 1, 'reserved': 0,
            'allocation_ratio': 1.0}


class Steered(fake.MediumFakeDriver):
    """Local disk; room for eight of the smallest instances."""

    vcpus = 16
    memory_mb = 16384
    local_gb = 200

    def live_migration(self, context, instance, dest, post_method, recover_method,
                       block_migration=False, migrate_data=None):
        status = COURSE.wait()
        if status:
            recover_method(context, instance, dest, migrate_data, migration_status=status)
        else:
            post_method(context, instance, dest, block_migration, migrate_data)

    def live_migration_force_complete(self, instance):
        COURSE.let_go()

    def live_migration_abort(self, instance):
        COURSE.let_go('cancelled')

    def post_live_migration(self, context, instance, block_device_info, migrate_data=None):
        self.destroy(context, instance, network_info=None, block_device_info=block_device_info)


class WithoutDisk(Steered):
    """Instances' disks lie on shared storage."""

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        provider_tree.update_inventory(nodename, {
            'VCPU': inventory(self.vcpus), 'MEMORY_MB': inventory(self.memory_mb)})


class WithVgpu(Steered):
    """Virtual GPUs on a provider of their own."""

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        child = f'{nodename}_gpu'
        if not provider_tree.exists(child):
            provider_tree.new_child(child, nodename)
        provider_tree.update_inventory(child, {'VGPU': inventory(4)})


class WithVgpuWithoutDisk(WithVgpu, WithoutDisk):
    """Virtual GPUs, and disks on shared storage."""


class WithPci(Steered):
    """PCI devices, each of which Nova reports as a provider."""

    VENDOR, PRODUCT = '8086', '1520'

    def get_available_resource(self, nodename):
        devices = [{'address': f'0000:81:00.{number}', 'vendor_id': self.VENDOR,
                    'product_id': self.PRODUCT, 'status': 'available', 'dev_type': 'type-PCI',
                    'parent_addr': None, 'numa_node': 0, 'label': 'card'} for number in range(3)]
        return super().get_available_resource(nodename) | {
            'pci_passthrough_devices': jsonutils.dumps(devices)}
