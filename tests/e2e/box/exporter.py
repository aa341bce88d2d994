"""A Prometheus exporter that plays the load of the box' guests, wherever they are.

    python -m tests.e2e.box.exporter PORT CONFIG.json

It reads the guests' files of the hypervisors, so a guest's load leaves a host in the moment the
guest does. Series are those of libvirt's and the node exporter, with Nova's name in ``host``.
"""

import dataclasses
import json
import pathlib
import signal
import sys
import threading
import time

import prometheus_client
from prometheus_client.core import CounterMetricFamily
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tests.e2e.box import load

TICK = 0.25
GUEST_LABELS = ('host', 'domain', 'uuid', 'name', 'display_name')


@dataclasses.dataclass
class Guest:
    """A guest on one host, with what has been counted since it came there."""

    labels: tuple
    vcpus: int
    memory_mb: int
    cpu_seconds: float = 0.0
    delay_seconds: float = 0.0
    memory_bytes: float = 0.0


@dataclasses.dataclass
class Host:
    name: str
    guests_file: pathlib.Path
    vcpus: int
    memory_mb: int
    guests: dict = dataclasses.field(default_factory=dict)
    busy_seconds: float = 0.0
    idle_seconds: float = 0.0
    steal_seconds: float = 0.0
    waiting_seconds: float = 0.0

    def refresh(self):
        """Take guests that came, forget guests that left."""
        try:
            found = json.loads(self.guests_file.read_text())
        except FileNotFoundError:
            found = {}
        self.guests = {uuid: self.guests.get(uuid) or self._arrived(uuid, guest)
                       for uuid, guest in found.items() if 'vcpus' in guest}

    def _arrived(self, uuid, guest):
        labels = (self.name, guest['name'], uuid, guest['name'], guest['display_name'])
        return Guest(labels, guest['vcpus'], guest['memory_mb'])

    def advance(self, seconds, now, playing):
        """Count ``seconds`` more; guests share the CPUs evenly when they want more than all."""
        said, wanted = playing.said(), {}
        for uuid, guest in self.guests.items():
            cpu, memory = playing.of(uuid, guest.labels[-1], now, said)
            wanted[uuid] = cpu * guest.vcpus
            guest.memory_bytes = memory * guest.memory_mb * 2 ** 20
        demand = sum(wanted.values())
        granted = min(1.0, self.vcpus / demand) if demand else 1.0
        for uuid, guest in self.guests.items():
            guest.cpu_seconds += wanted[uuid] * granted * seconds
            guest.delay_seconds += wanted[uuid] * (1 - granted) * seconds
        self.busy_seconds += demand * granted * seconds
        self.idle_seconds += max(self.vcpus - demand, 0.0) * seconds
        self.steal_seconds += demand * (1 - granted) * seconds
        self.waiting_seconds += (1 - granted) * seconds


class Exporter(Collector):
    def __init__(self, hosts, playing):
        self._hosts = hosts
        self._playing = playing
        self._lock = threading.Lock()
        self._last = time.time()

    def advance(self):
        with self._lock:
            now = time.time()
            for host in self._hosts:
                host.refresh()
                host.advance(now - self._last, now, self._playing)
            self._last = now

    def collect(self):
        with self._lock:
            yield from self._guest_series()
            yield from self._host_series()

    def _guest_series(self):
        series = [
            (CounterMetricFamily, 'libvirt_domain_info_cpu_time_seconds', 'cpu_seconds'),
            (CounterMetricFamily, 'libvirt_domain_vcpu_delay_seconds', 'delay_seconds'),
            (GaugeMetricFamily, 'libvirt_domain_info_virtual_cpus', 'vcpus'),
            (GaugeMetricFamily, 'libvirt_domain_info_memory_usage_bytes', 'memory_bytes')]
        for family, name, attribute in series:
            metric = family(name, attribute, labels=GUEST_LABELS)
            for host in self._hosts:
                for guest in host.guests.values():
                    metric.add_metric(guest.labels, getattr(guest, attribute))
            yield metric

    def _host_series(self):
        cpu = CounterMetricFamily('node_cpu_seconds', 'CPU time by mode', labels=('host', 'mode'))
        waiting = CounterMetricFamily('node_pressure_cpu_waiting_seconds', 'CPU pressure',
                                      labels=('host',))
        cpus = GaugeMetricFamily('machine_cpu_cores', 'CPUs', labels=('host',))
        total = GaugeMetricFamily('node_memory_MemTotal_bytes', 'memory', labels=('host',))
        free = GaugeMetricFamily('node_memory_MemAvailable_bytes', 'memory', labels=('host',))
        for host in self._hosts:
            for mode in ('busy', 'idle', 'steal'):
                cpu.add_metric((host.name, {'busy': 'user'}.get(mode, mode)),
                               getattr(host, f'{mode}_seconds'))
            used = sum(guest.memory_bytes for guest in host.guests.values())
            waiting.add_metric((host.name,), host.waiting_seconds)
            cpus.add_metric((host.name,), host.vcpus)
            total.add_metric((host.name,), host.memory_mb * 2 ** 20)
            free.add_metric((host.name,), host.memory_mb * 2 ** 20 - used)
        yield from (cpu, waiting, cpus, total, free)


def build(config):
    day_seconds = config['day_seconds']
    base = (load.Trace(config['trace'], day_seconds) if config['trace'] else
            load.Days(day_seconds))
    hosts = [Host(name, pathlib.Path(file), config['vcpus'], config['memory_mb'])
             for name, file in config['guests'].items()]
    return Exporter(hosts, load.Load(base, config['orders']))


def main(port, config):
    exporter = build(json.loads(pathlib.Path(config).read_text()))
    prometheus_client.REGISTRY.register(exporter)
    prometheus_client.start_http_server(int(port), addr='127.0.0.1')
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    while True:
        exporter.advance()
        time.sleep(TICK)


if __name__ == '__main__':
    main(*sys.argv[1:])
