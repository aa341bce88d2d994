"""The parts of a box, and the places of its files."""

import dataclasses
import importlib.metadata
import os
import pathlib
import random
import socket
import sys

LOOPBACK = '127.0.0.1'
SOURCE = pathlib.Path(__file__).resolve().parents[3]
PYTHONPATH = f'{SOURCE}{os.pathsep}{SOURCE / "kronos_nova/client"}'
"""The packages of this source, as all services of the box use."""


class BoxError(Exception):
    """A component did not start, ended on its own, or did not do what was asked in time."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a box.

    :param computes: nova-compute processes, one host each
    :param conductors: nova-conductor services, each with ``conductor_workers`` processes
    :param driver: what runs the guests: fake (they are made up, as is their load) or libvirt (QEMU,
        each host in namespaces of its own)
    :param storage: of hosts with libvirt: local (each has its own disks, which a live migration
        copies) or shared
    :param concurrency: Nova's ``concurrency_backend``: auto, threading or eventlet
    :param kronos: whether nova.conf has the driver line that loads the plugin
    :param nova_conf: further options, section -> option -> value (a list gives the option
        several times), for every Nova service
    :param alerting: whether Prometheus reads kronos-exporter and the rules that are shipped, and
        tells an Alertmanager
    :param keystone: keystone in front of every service, in place of a fixed token
    :param trace: an .npz file with loads to play, synthetic days if None
    :param day_seconds: wall seconds in which a day of load passes
    :param migration_seconds: how long a live migration takes unless ``faults`` say otherwise
    :param vcpus: of a host
    :param memory_mb: of a host
    :param root: where its files are; a temporary directory if None
    :param keep: leave the files where they are after ``stop``
    :param timeout: seconds that any single component may take to start
    """

    computes: int = 6
    conductors: int = 1
    conductor_workers: int = 2
    driver: str = 'fake'
    storage: str = 'local'
    concurrency: str = 'auto'
    kronos: bool = False
    nova_conf: dict = dataclasses.field(default_factory=dict)
    alerting: bool = False
    keystone: bool = False
    trace: pathlib.Path | None = None
    day_seconds: float = 600.0
    migration_seconds: float = 3.0
    vcpus: int = 16
    memory_mb: int = 65536
    root: pathlib.Path | None = None
    keep: bool = False
    timeout: float = 240.0

    def hosts(self):
        return [f'compute{number}' for number in range(1, self.computes + 1)]


def installed(package, name):
    """Return the path of a file that a package installed outside its modules, such as ``bin/...``.

    A build leaves an ``egg-info`` folder in the checkout, which is a second distribution of the
    package and lists no such files.

    :raises BoxError: when the package or the file is not there
    """
    found = [*importlib.metadata.distributions(name=package)]
    if not found:
        raise BoxError(f'{package} is not installed in {sys.prefix}')
    for file in (file for each in found for file in each.files or []):
        if str(file).endswith(f'../{name}'):
            return file.locate().resolve()
    raise BoxError(f'{package} installed no {name}')


def command(package, name):
    """Argument list of a package's own command, run by this interpreter."""
    return [sys.executable, str(installed(package, f'bin/{name}'))]


class Ports:
    """Free TCP ports below the range that outgoing connections use, none given twice."""

    def __init__(self):
        self._given = set()

    def take(self):
        while True:
            port = random.randrange(20000, 32000)
            if port not in self._given and _is_free(port):
                self._given.add(port)
                return port


def _is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
