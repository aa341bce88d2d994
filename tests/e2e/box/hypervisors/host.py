"""A host: a libvirtd of its own in namespaces of its own, and nova-compute beside it."""

import functools
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

from tests.e2e.box.hypervisors import exporters
from tests.e2e.box.hypervisors import guests
from tests.e2e.box.hypervisors import kvm
from tests.e2e.box.hypervisors import namespaces
from tests.e2e.box.hypervisors.namespaces import Machine
from tests.e2e.box.hypervisors.share import Share
from tests.e2e.box.processes import Process
from tests.e2e.box.settings import BoxError

PROGRAMS = ('bindfs', 'ip', 'libvirtd', 'nsenter', 'prometheus-libvirt-exporter',
            'prometheus-node-exporter', 'qemu-img', 'qemu-system-x86_64', 'unshare', 'virsh')
SOUND_QEMU = 9
"""Until then, QEMU without KVM lost some of what a guest wrote while it was migrated live, and
guests died of it (commit 03bfc2188f of QEMU, "Fix migration dirty bitmap coherency with TCG")."""

OURS = ('/run', '/etc/libvirt', '/var/lib', '/var/cache', '/var/log')
"""Folders of libvirt and QEMU."""

ACCOUNTS = {'/etc/passwd': 'libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin',
            '/etc/group': 'libvirt-qemu:x:64055:'}
"""Users and groups that libvirt looks up, even if QEMU runs as another. Debian's
libvirt-daemon-system makes them; it would also start libvirt on this machine."""

BINDINGS = pathlib.Path('/usr/lib/python3/dist-packages')
"""The folder of Debian's Python bindings of this libvirt."""

LIBVIRTD = '''
listen_tls = 0
listen_tcp = 1
listen_addr = "{address}"
auth_tcp = "none"
auth_unix_rw = "none"
unix_sock_rw_perms = "0777"
host_uuid = "{uuid}"
'''

# No virtlogd, no cgroups, no other user: the namespaces have root alone.
QEMU = '''
stdio_handler = "file"
security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = [ ]
namespaces = [ ]
migration_host = "{address}"
'''


class Hypervisors:
    """All hosts of a box, and what is between them. ``hosts`` is name -> HypervisorHost.

    :param is_shared: whether hosts share the folder of the instances; else each has its own
    """

    def __init__(self, names, root, ports, is_shared=False):
        self.instances_path = root / 'instances'
        self._bindings = root / 'libvirt-python'
        self.switch = namespaces.Switch('switch', root)
        self.storage = (namespaces.Storage('storage', root, self.instances_path)
                        if is_shared else None)
        self.hosts = {name: HypervisorHost(name, number, root, self.instances_path, self.storage)
                      for number, name in enumerate(names, 1)}
        self.exporters = exporters.Exporters(self.hosts, root, ports)

    def start(self, timeout):
        """:raises BoxError: this machine cannot have any, or one did not start"""
        _check_programs()
        self.instances_path.mkdir()
        self._bindings.mkdir()
        for path in BINDINGS.glob('libvirt*'):
            (self._bindings / path.name).symlink_to(path)
        self.switch.start(timeout)
        if self.storage:
            self.storage.start(timeout)
        for host in self.hosts.values():
            host.start(self.switch, timeout)
        self.exporters.start(timeout)

    @functools.cached_property
    def virt_type(self):
        return kvm.virt_type(guests.built())

    @property
    def python_path(self):
        """A folder with libvirt's Python bindings and nothing else of Debian's."""
        return self._bindings


def _check_programs():
    remedy = 'Install what the box needs: tools/setup.sh --hypervisors'
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing:
        raise BoxError(f'There is no {", ".join(missing)}. {remedy}')
    version = subprocess.run(['qemu-system-x86_64', '--version'], check=True, text=True,
                             capture_output=True).stdout
    if int(re.search(r'version (\d+)', version)[1]) < SOUND_QEMU:
        raise BoxError(f'QEMU is older than {SOUND_QEMU}.0: guests would not survive their moves. '
                       f'{remedy}')


class HypervisorHost:
    """
    :param number: the last part of its address
    :param instances_path: where Nova has the instances' files
    :param storage: what is there on all hosts; None: each has a folder of its own there
    """

    def __init__(self, name, number, root, instances_path, storage=None):
        self.name, self._number, self._instances_path = name, number, instances_path
        self._storage = storage
        self.folder = root / 'hosts' / name
        self.machine = Machine(name, root, {
            **{path: self._ours(path) for path in (*OURS, *ACCOUNTS)},
            **({} if storage else {str(instances_path): self._own_instances})})
        self.share = Share(name, root)
        self._socket = self.folder / 'run' / 'libvirt' / 'libvirt-sock'
        self.libvirtd = Process(
            f'{name}-libvirtd', ['libvirtd', '--listen'], root, ready=self._socket.exists,
            enter=lambda: [*self.share.enter(), *self.machine.enter()])
        self.address = namespaces.address(number)

    @property
    def instances(self):
        """The instances' files, for who is not on the host."""
        return self._storage.seen_from_here if self._storage else self._own_instances

    @property
    def _own_instances(self):
        return self.folder / 'instances'

    @property
    def guests(self):
        """Return where libvirt writes down which guests run."""
        return self.folder / 'run' / 'libvirt' / 'qemu'

    def _ours(self, path):
        return self.folder / path.strip('/').replace('/', '-')

    def start(self, switch, timeout):
        self.folder.mkdir(parents=True)
        self.share.make()
        for path, account in ACCOUNTS.items():
            self._ours(path).write_text(f'{pathlib.Path(path).read_text()}{account}\n')
        self.machine.start(timeout)
        switch.connect(self.machine, self._number)
        if self._storage:
            self._storage.connect(self.machine)
        etc = self.folder / 'etc-libvirt'
        (etc / 'libvirtd.conf').write_text(
            LIBVIRTD.format(address=self.address, uuid=uuid.uuid4()))
        (etc / 'qemu.conf').write_text(QEMU.format(address=self.address))
        self.start_libvirtd(timeout)

    def start_libvirtd(self, timeout):
        self._socket.unlink(missing_ok=True)
        self.libvirtd.start()
        self.libvirtd.wait_ready(timeout)

    def virsh(self, *arguments):
        """Run virsh and return its output.

        :raises BoxError: it failed
        """
        return self.machine.run('virsh', '--quiet', '--connect', 'qemu:///system', *arguments)

    def enter(self):
        """Before nova-compute and the exporters: they reach the cloud's services, or are reached,
        over this machine's loopback, and reach libvirt over the socket in its folder."""
        return [*self.share.enter(), *self.machine.enter(network=False)]

    def options(self, virt_type):
        """The options of nova-compute, in sections."""
        return {
            'DEFAULT': {'compute_driver': 'libvirt.LibvirtDriver',
                        'instances_path': self._instances_path,
                        # Guests ignore the request to shut down.
                        'shutdown_timeout': 1},
            'libvirt': {'virt_type': virt_type, 'cpu_mode': 'none', 'images_type': 'flat',
                        'sysinfo_serial': 'none',
                        'live_migration_uri': 'qemu+tcp://%s/system',
                        'live_migration_inbound_addr': self.address},
            # A bare kernel is none of the formats that Nova takes for safe.
            'workarounds': {'disable_deep_image_inspection': True,
                            'skip_cpu_compare_on_dest': True,
                            'skip_cpu_compare_at_startup': True},
            'nova_sys_admin': {'helper_command': pathlib.Path(sys.prefix) / 'bin/privsep-helper'}}
