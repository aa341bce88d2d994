"""Machines within this one: namespaces that live as long as a process of theirs.

Nothing of them has a name outside, so nothing is left when that process and those that entered are
gone. A machine has a network of its own, a cable to the switch, and its own folders where libvirt
and Nova expect to find theirs.
"""

import os
import pathlib
import shlex
import subprocess
import uuid

from tests.e2e.box import processes
from tests.e2e.box.settings import BoxError

SUBNET = '10.77.0'
"""The network between the machines; it has no others."""

STORAGE_BYTES = 2 ** 30
"""Size of the storage in memory: a guest's files are 16 MiB."""
STORAGE_FILES = 2 ** 16
"""Once there is no limit, the kernel takes none."""


class Machine:
    """Namespaces for network, mounts and the host name.

    :param folders: {path where programs look: folder that they find there, or file}
    """

    def __init__(self, name, root, folders=None):
        self._name = name
        self._folders = folders or {}
        self.port = None  # of the switch, where its cable ends
        self._made = root / 'run' / f'{name}-machine.made'
        self._record = root / 'run' / f'{name}-machine.namespace'
        self._mark = f'kronos-box-{uuid.uuid4().hex[:12]}-{name}'
        self.process = processes.Process(
            f'{name}-machine', ['unshare', '--net', '--mount', '--uts', '--propagation', 'private',
                   'sh', '-ec', self._script()], root, ready=self._made.exists)

    def _script(self):
        steps = [f'hostname {shlex.quote(self._name)}', 'ip link set lo up',
                 # What is there shows the network devices of the machine that they were made in.
                 f'mount -t sysfs {shlex.quote(self._mark)} /sys']
        for where, folder in self._folders.items():
            steps.append(f'mount --bind {shlex.quote(str(folder))} {shlex.quote(where)}')
        return '\n'.join([*steps, f'touch {shlex.quote(str(self._made))}', 'exec sleep infinity'])

    def start(self, timeout):
        self._made.unlink(missing_ok=True)
        self._record.write_text(self._mark)
        for folder in self._folders.values():
            if not folder.is_file():
                folder.mkdir(parents=True, exist_ok=True)
        self.process.start()
        self.process.wait_ready(timeout)

    def enter(self, network=True):
        """The words before a command that runs in it, in its network or in this machine's."""
        return ['nsenter', '--target', str(self.process.pid), '--mount', '--uts',
                *(['--net'] if network else []), '--']

    def run(self, *command):
        """Run a command in it and return the output.

        :raises BoxError: it failed
        """
        return _run(*self.enter(), *command)

    def kill(self):
        """End all processes in it, also those without a parent in it: QEMU has none."""
        processes.end_namespace(self._mark)


class Switch(Machine):
    """The switch that the cables of all machines lead to."""

    def start(self, timeout):
        super().start(timeout)
        self.run('ip', 'link', 'add', 'switch', 'type', 'bridge')
        self.run('ip', 'link', 'set', 'switch', 'up')

    def connect(self, machine, number):
        """Give a machine its cable and its address."""
        machine.port = f'port{number}'
        _run('ip', 'link', 'add', 'name', machine.port, 'netns', str(self.process.pid),
             'type', 'veth', 'peer', 'name', 'eth0', 'netns', str(machine.process.pid))
        machine.run('ip', 'address', 'add', f'{address(number)}/24', 'dev', 'eth0')
        machine.run('ip', 'link', 'set', 'eth0', 'up')
        self.run('ip', 'link', 'set', machine.port, 'master', 'switch')
        self.plug(machine)

    def plug(self, machine):
        self.run('ip', 'link', 'set', machine.port, 'up')

    def unplug(self, machine):
        """Pull the cable; what both ends sent is lost."""
        self.run('ip', 'link', 'set', machine.port, 'down')


class Storage(Machine):
    """A file system that machines share, as over a network.

    Each has it by FUSE under a name by which libvirt knows that all hosts see the same; to share a
    folder of a local file system is unsafe, it says.
    """

    def __init__(self, name, root, path):
        super().__init__(name, root, {str(path): root / name})
        self._path = path

    def start(self, timeout):
        super().start(timeout)
        self.run('mount', '-t', 'tmpfs', '-o', f'size={STORAGE_BYTES},nr_inodes={STORAGE_FILES}',
                 'storage', str(self._path))

    @property
    def seen_from_here(self):
        """The folder, for who is in none of the machines."""
        return pathlib.Path(f'/proc/{self.process.pid}/root{self._path}')

    def connect(self, machine):
        machine.run('bindfs', '-o', 'subtype=glusterfs', str(self.seen_from_here), str(self._path))

    def fill(self):
        """Let nothing more be written to it, and no file be made."""
        now = os.statvfs(self.seen_from_here)
        # To the kernel 0 is no limit.
        self._limit(max(now.f_blocks - now.f_bfree, 1) * now.f_frsize, now.f_files - now.f_ffree)

    def empty(self):
        self._limit(STORAGE_BYTES, STORAGE_FILES)

    def _limit(self, size, files):
        self.run('mount', '-o', f'remount,size={size},nr_inodes={files}', str(self._path))


def address(number):
    """The address of the machine with this number."""
    return f'{SUBNET}.{number}'


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BoxError(f'{" ".join(command)} ended with {done.returncode}: {done.stderr}')
    return done.stdout
