"""Exporters of real hosts: Debian's node_exporter and libvirt exporter on each."""

import sys

from tests.e2e.box.processes import Process
from tests.e2e.box.rabbitmq import listens
from tests.e2e.box.settings import LOOPBACK

COLLECTORS = 'cpu', 'meminfo', 'pressure', 'uname'
"""Collectors of node_exporter that see the host. Others would report this machine."""

PORTS = {'node': 9100, 'libvirt': 9177}
"""Their ports in a cloud, by Prometheus' job. Here all share an address, so each has a port
of its own; Prometheus is configured to name it as in a cloud."""


class Exporters:
    """The exporters of all hosts of a box; ``targets`` is {job: {name in Prometheus: address}}.

    :param hosts: name -> HypervisorHost
    """

    def __init__(self, hosts, root, ports):
        self._views = {host: root / 'hosts' / name / 'proc' for name, host in hosts.items()}
        self._view = Process('views', [
            sys.executable, '-m', 'tests.e2e.box.hypervisors.views',
            *(f'{host.share.path}={folder}' for host, folder in self._views.items())], root,
            ready=lambda: all((folder / 'stat').exists() for folder in self._views.values()))
        self.targets, self._processes = {job: {} for job in PORTS}, []
        for name, host in hosts.items():
            for job, argv in (('node', _node_exporter(self._views[host])),
                              ('libvirt', ['prometheus-libvirt-exporter'])):
                self._add(name, host, job, argv, root, ports.take())

    def _add(self, name, host, job, argv, root, port):
        address = f'{LOOPBACK}:{port}'
        self.targets[job][f'{name}:{PORTS[job]}'] = address
        self._processes.append(Process(
            f'{name}-{job}-exporter', [*argv, f'--web.listen-address={address}'], root,
            ready=lambda: listens(port), enter=host.enter))

    def start(self, timeout):
        self._view.start()
        self._view.wait_ready(timeout)
        for process in self._processes:
            process.start()
        for process in self._processes:
            process.wait_ready(timeout)


def _node_exporter(view):
    return ['prometheus-node-exporter', f'--path.procfs={view}', '--collector.disable-defaults',
            *(f'--collector.{name}' for name in COLLECTORS)]
