"""Compute hosts with exporters, as a real Prometheus scrapes them: text over HTTP, and the ten
minutes before in Prometheus' own database, so that windows are full at once."""

import dataclasses
import itertools
import os
import subprocess
import time
import uuid

import fixtures

from kronos_nova.objects import snapshot as objects
from tests.functional.prometheus import Prometheus
from tests.unit.fakes_web_server import WebServer

GIB = 1 << 30
HISTORY, STEP = 960, 5
"""Seconds of the past, and between its samples, which are those between scrapes too: where samples
are not even, ``rate()`` leaves a part of its window out."""
HUGE_PAGE = 1 << 30
_BOOTS = itertools.count(1_700_000_000, 60)
"""Unix seconds at which machines started, another one for each."""


@dataclasses.dataclass(kw_only=True)
class Guest:
    """A server.

    cpu : CPUs in use; used : bytes of the host's memory that it has
    flavor : bytes that it may have
    waiting : virtual CPUs that are ready and wait; huge : whether its memory is huge pages
    """

    number: int
    cpu: float
    used: float
    flavor: float
    vcpus: int = 4
    waiting: float = 0.0
    huge: bool = False
    is_rss_known: bool = True

    @property
    def name(self):
        return f'instance-{self.number:08x}'


@dataclasses.dataclass(kw_only=True)
class Machine:
    """A compute host.

    instance : what Prometheus' targets have for ``instance``, without the port
    second : another address at which the same exporters are scraped, '' for none
    labels : of the targets of node_exporter, libvirt_labels of the libvirt exporter
    base_cpu, base_memory : what the host uses itself, CPUs and bytes
    shared : part of the guests' memory that pages in common save (KSM)
    pressure : (CPU, memory) shares of time; network, disk : part of the speed, seconds a request
    is_down : of the libvirt exporter; shows : guests that it can read, None = all
    jobs : how many jobs scrape node_exporter
    """

    name: str
    nodename: str = ''
    instance: str = ''
    cpus: int = 16
    memory: float = 64 * GIB
    guests: list = dataclasses.field(default_factory=list)
    labels: dict = dataclasses.field(default_factory=dict)
    libvirt_labels: dict = dataclasses.field(default_factory=dict)
    base_cpu: float = 0.2
    base_memory: float = 2 * GIB
    shared: float = 0.0
    huge_pages: int = 0
    pressure: tuple = (0.0, 0.0)
    network: float = 0.1
    disk: float = 0.004
    iowait: float = 0.05
    is_down: bool = False
    shows: int | None = None
    jobs: int = 1
    second: str = ''
    booted: float = dataclasses.field(default_factory=_BOOTS.__next__)

    def __post_init__(self):
        self.nodename = self.nodename or self.name
        self.instance = self.instance or self.name

    @property
    def cpu(self):
        """Its true load."""
        return (self.base_cpu + sum(guest.cpu for guest in self.guests)) / self.cpus

    @property
    def memory_load(self):
        """Its true load: memory that guests have, without what pages in common save."""
        return (self.base_memory + sum(self.footprint(guest) for guest in self.guests)) / (
            self.memory)

    def footprint(self, guest):
        """Bytes of the host that a guest costs."""
        return guest.used * (1.0 if guest.huge else 1.0 - self.shared)

    def node(self, at):
        """Lines of node_exporter at a moment."""
        idle = 1.0 - self.cpu
        for number in range(self.cpus):
            for mode, share in (('idle', idle * (1 - self.iowait)), ('iowait', idle * self.iowait),
                                ('user', self.cpu)):
                yield f'node_cpu_seconds_total{{cpu="{number}",mode="{mode}"}} {share * at}'
        yield f'node_boot_time_seconds {self.booted}'
        yield f'node_memory_MemTotal_bytes {self.memory}'
        in_huge = sum(guest.used for guest in self.guests if guest.huge)
        free_huge = self.huge_pages * HUGE_PAGE - in_huge if self.huge_pages else 0
        free = self.memory * (1 - self.memory_load) - free_huge
        yield f'node_memory_MemAvailable_bytes {free}'
        yield f'node_memory_HugePages_Total {self.huge_pages}'
        yield f'node_memory_HugePages_Free {free_huge / HUGE_PAGE}'
        yield f'node_memory_Hugepagesize_bytes {HUGE_PAGE}'
        for kind, share in zip(('cpu', 'memory'), self.pressure, strict=True):
            yield f'node_pressure_{kind}_waiting_seconds_total {share * at}'
        speed = 1.25e9
        for way, part in (('receive', self.network), ('transmit', self.network / 2)):
            yield f'node_network_{way}_bytes_total{{device="eth0"}} {part * speed * at}'
            yield f'node_network_{way}_bytes_total{{device="tap1"}} {part * speed * at}'
        yield f'node_network_speed_bytes{{device="eth0"}} {speed}'
        yield 'node_network_speed_bytes{device="tap1"} 1.25e6'
        for words, rate in (('read_time_seconds', 50 * self.disk), ('reads_completed', 50),
                            ('write_time_seconds', 50 * self.disk), ('writes_completed', 50)):
            yield f'node_disk_{words}_total{{device="sda"}} {rate * at}'
        yield f'node_uname_info{{nodename="{self.nodename}",release="6.1",sysname="Linux"}} 1'

    def libvirt(self, at, series):
        """Lines of the libvirt exporter at a moment."""
        shown = self.guests if self.shows is None else self.guests[:self.shows]
        yield f'libvirt_up {int(len(shown) == len(self.guests))}'
        for guest in shown:
            yield from series(guest, at)


def uuid_of(name, cloud=''):
    """The uuid of a server, which differs between clouds that have a domain of the same name."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f'{name}{cloud}'))


def _traffic(labels, at):
    for what, amount in (('interface_stats_receive_bytes', 1e6),
                         ('interface_stats_transmit_bytes', 1e6),
                         ('block_stats_read_requests', 20), ('block_stats_write_requests', 20)):
        yield f'libvirt_domain_{what}_total{{{labels},target_device="dev0"}} {amount * at}'


def kumina(guest, at):
    """Debian's prometheus-libvirt-exporter 0.2.0."""
    labels = f'domain="{guest.name}",uuid="{uuid_of(guest.name)}"'
    yield f'libvirt_domain_info_cpu_time_seconds_total{{{labels}}} {guest.cpu * at}'
    yield f'libvirt_domain_info_maximum_memory_bytes{{{labels}}} {guest.flavor}'
    yield f'libvirt_domain_info_memory_usage_bytes{{{labels}}} {guest.flavor}'
    yield f'libvirt_domain_info_virtual_cpus{{{labels}}} {guest.vcpus}'
    yield from _traffic(labels, at)


def inovex(guest, at, extra=''):
    """inovex's prometheus-libvirt-exporter."""
    labels = f'domain="{guest.name}"{extra}'
    yield f'libvirt_domain_info_cpu_time_seconds_total{{{labels}}} {guest.cpu * at}'
    yield f'libvirt_domain_info_maximum_memory_bytes{{{labels}}} {guest.flavor}'
    yield f'libvirt_domain_info_memory_usage_bytes{{{labels}}} {guest.flavor}'
    yield f'libvirt_domain_info_virtual_cpus{{{labels}}} {guest.vcpus}'
    rss = 0.0 if not guest.is_rss_known or guest.huge else guest.used
    yield f'libvirt_domain_memory_stats_rss_bytes{{{labels}}} {rss}'
    for vcpu in range(guest.vcpus):
        yield (f'libvirt_domain_vcpu_delay_seconds_total{{{labels},vcpu="{vcpu}"}} '
               f'{guest.waiting / guest.vcpus * at}')
    yield from _traffic(labels, at)


def tinkoff(guest, at):
    """Tinkoff's libvirt-exporter, with a series of metadata and virtual CPUs by state."""
    yield (f'libvirt_domain_info_meta{{domain="{guest.name}",flavor="m1",instance_name="web",'
           f'project_name="p",uuid="{uuid_of(guest.name)}"}} 1')
    yield f'libvirt_domain_info_vstate{{domain="{guest.name}"}} 1'
    yield from inovex(guest, at)


def sg_core(guest, at, host):
    """sg-core's series of ceilometer's meters, all at one target."""
    server = uuid_of(guest.name)
    labels = (f'publisher="{host}",project="p",resource="{server}",vm_instance="abc",'
              f'resource_name="web:{guest.name}"')
    yield (f'ceilometer_cpu{{cpu="{server}",type="cpu",counter="cpu",unit="ns",{labels}}} '
           f'{guest.cpu * 1e9 * at}')
    yield (f'ceilometer_memory_usage{{memory="{server}",type="usage",counter="memory.usage",'
           f'unit="MB",{labels}}} {guest.used * 0.6 / (1 << 20)}')
    yield (f'ceilometer_memory_resident{{memory="{server}",type="resident",'
           f'counter="memory.resident",unit="MB",{labels}}} {guest.used / (1 << 20)}')


class Machines:
    """Exporters of some hosts.

    :param series: of a guest by the libvirt exporter; :func:`sg_core` is one target for all hosts
    :param foreign: machines that Prometheus has and Nova has not
    """

    def __init__(self, machines, series, foreign=()):
        self.machines = list(machines)
        self.everything = [*self.machines, *foreign]
        self.series = series
        self.began = time.time() - 7200

    def targets(self):
        """(job, path, labels, lines at a moment) of each exporter that answers."""
        for number, each in enumerate(self.everything):
            for job, address in itertools.product(range(each.jobs),
                                                  filter(None, (each.instance, each.second))):
                yield (f'node{job or ""}', f'/node/{number}',
                       {'instance': f'{address}:9100', **each.labels}, each.node)
            if self.series is not sg_core and not each.is_down:
                for address in filter(None, (each.instance, each.second)):
                    yield ('libvirt', f'/libvirt/{number}',
                           {'instance': f'{address}:9177', **each.libvirt_labels},
                           lambda at, each=each: each.libvirt(at, self.series))
        if self.series is sg_core:
            yield ('sg-core', '/ceilometer/0', {'instance': 'sg-core.example.com:3000'},
                   self.ceilometer)

    def ceilometer(self, at):
        for each in self.everything:
            for guest in each.guests:
                yield from sg_core(guest, at, each.name)

    def __call__(self, handler):
        lines = {path: lines for _job, path, _labels, lines in self.targets()}[handler.path]
        body = ''.join(f'{line}\n' for line in lines(time.time() - self.began)).encode()
        handler.send_response(200)
        handler.send_header('Content-Type', 'text/plain; version=0.0.4')
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def history(self, folder):
        """Write a database with what was scraped until now, and return its folder."""
        text, now = os.path.join(folder, 'history.txt'), time.time()
        with open(text, 'w') as file:
            for step in range(HISTORY // STEP, -1, -1):
                at = now - step * STEP
                for job, _path, labels, lines in self.targets():
                    given = ','.join(f'{name}="{value}"' for name, value in
                                     {'job': job, **labels}.items())
                    for line in (*lines(at - self.began), 'up 1'):
                        series, _space, value = line.rpartition(' ')
                        name, _brace, rest = series.partition('{')
                        own = f'{rest[:-1]},' if rest else ''
                        file.write(f'{name}{{{own}{given}}} {value} {at:.3f}\n')
            file.write('# EOF\n')
        data = os.path.join(folder, 'data')
        made = subprocess.run(
            ['promtool', 'tsdb', 'create-blocks-from', 'openmetrics', text, data],
            capture_output=True, text=True, timeout=300)
        if made.returncode:
            raise RuntimeError(made.stdout[-2000:] + made.stderr[-2000:])
        return data

    def jobs(self, address):
        return [{'job_name': f'{job}-{number}', 'metrics_path': path, 'static_configs': [
            {'targets': [address], 'labels': {'job': job, **labels}}]}
            for number, (job, path, labels, _lines) in enumerate(self.targets())]

    def server(self, test, **options):
        """A Prometheus that scrapes them, once it has scraped each."""

        web = test.useFixture(WebServer(self))
        server = test.useFixture(Prometheus(
            self.jobs(web.url.removeprefix('http://')),
            data=self.history(test.useFixture(fixtures.TempDir()).path),
            **{'interval': f'{STEP}s', **options}))
        if 'interval' in options:   # whose first scrape may be minutes away
            return server
        deadline = time.monotonic() + 30
        count = len(list(self.targets()))
        while len({request[1] for request in web.requests}) < len(
                {path for _job, path, *_rest in self.targets()}):
            if time.monotonic() > deadline:
                raise RuntimeError(f'Prometheus did not scrape {count} targets')
            time.sleep(0.1)
        return server

    def snapshot(self):
        """The snapshot of Nova."""
        return objects.Snapshot(
            taken_at='', aggregates=(objects.Aggregate(
                name='agg', uuid='agg', hosts=tuple(each.name for each in self.machines)),),
            hosts=tuple(objects.Host(
                name=each.name, uuid=uuid_of(each.name),
                service=objects.Service(state='up', status='enabled'),
                inventory={'VCPU': objects.ResourceInventory(total=each.cpus,
                                                             allocation_ratio=16.0),
                           'MEMORY_MB': objects.ResourceInventory(
                               total=int(each.memory / (1 << 20)), allocation_ratio=4.0)})
                for each in self.machines),
            instances=tuple(objects.Instance(
                uuid=uuid_of(guest.name), name=guest.name, display_name=f'web{guest.number}',
                host=each.name, project_id='p', status='ACTIVE', vcpus=guest.vcpus,
                memory_mb=int(guest.flavor / (1 << 20)), disk_gb=0,
                resources={'VCPU': guest.vcpus, 'MEMORY_MB': int(guest.flavor / (1 << 20))})
                for each in self.machines for guest in each.guests))
