"""The recipes that are shipped, each asked of a real Prometheus that scrapes such series: those of
node_exporter, and those of each of the two libvirt exporters in use, as it names them."""

import pathlib
import time
import uuid

import ddt
import testtools

from kronos_nova import policies
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.endpoint import Endpoint
from kronos_nova.objects.metrics import CAPACITY
from kronos_nova.objects.metrics import HOST_CAPACITY
from kronos_nova.objects.metrics import IMBALANCE
from kronos_nova.objects.metrics import VM_PROFILE
from kronos_nova.objects.metrics import MetricQuery
from tests.functional.prometheus import Prometheus
from tests.unit.fakes_web_server import WebServer

RECIPES = pathlib.Path(__file__).parents[3] / 'etc/kronos/policies'
WINDOW = 4
"""Seconds that stand for the recipes' five minutes, so that a test need not last that long."""

CPUS = 4
MEMORY, HUGE_PAGE = 64e9, 2e6
# Per host: fraction of CPU and memory in use, of time in which something waited for them.
HOSTS = {'cmp1': (0.5, 0.75, 0.3, 0.1), 'cmp2': (0.25, 0.5, 0.1, 0.0), 'cmp3': (0.0, 0.1, 0.0, 0.0)}
# Per domain: host, CPUs in use, bytes, virtual CPUs, CPUs waited for.
GUESTS = {'instance-00000001': ('cmp1', 1.5, 32e9, 4, 0.8),
          'instance-00000002': ('cmp1', 0.5, 16e9, 2, 0.0),
          'instance-00000003': ('cmp2', 1.0, 32e9, 2, 0.4)}


class Exporter:
    """node_exporter and libvirt exporter of every host, at /node/HOST and /libvirt/HOST.

    :param guest_series: of a guest: called with domain, seconds, cpu, memory, vcpus, waiting
    """

    def __init__(self, guest_series):
        self.started = time.time()
        self.guest_series = guest_series
        self.guests = [(domain, *rest) for domain, rest in GUESTS.items()]
        self.failing = set()

    def __call__(self, handler):
        _, kind, host = handler.path.split('/')
        lines = self.node(host) if kind == 'node' else self.libvirt(host)
        body = ('\n'.join(lines) + '\n').encode()
        handler.send_response(200)
        handler.send_header('Content-Type', 'text/plain; version=0.0.4')
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def node(self, host):
        cpu, memory, cpu_waiting, memory_waiting = HOSTS[host]
        seconds = time.time() - self.started
        for number in range(CPUS):
            for mode, share in (('idle', 0.9 * (1 - cpu)), ('iowait', 0.1 * (1 - cpu)),
                                ('user', cpu)):
                yield f'node_cpu_seconds_total{{cpu="{number}",mode="{mode}"}} {share * seconds}'
        yield f'node_memory_MemTotal_bytes {MEMORY}'
        # A tenth of what is free is huge pages.
        yield f'node_memory_MemAvailable_bytes {MEMORY * (1 - memory) * 0.9}'
        yield f'node_memory_HugePages_Free {MEMORY * (1 - memory) * 0.1 / HUGE_PAGE}'
        yield f'node_memory_Hugepagesize_bytes {HUGE_PAGE}'
        yield f'node_pressure_cpu_waiting_seconds_total {cpu_waiting * seconds}'
        yield f'node_pressure_memory_waiting_seconds_total {memory_waiting * seconds}'
        yield from io_of_host(seconds)
        yield f'node_uname_info{{nodename="{host}"}} 1'

    def libvirt(self, host):
        seconds = time.time() - self.started
        yield f'libvirt_up {int(host not in self.failing)}'
        for domain, at, *used in self.guests:
            if at == host:
                yield from self.guest_series(domain, seconds, *used)

    def jobs(self, address):
        """One target for each exporter, with the addresses that a cloud would have. The
        node_exporter of cmp1 is scraped by two jobs."""
        targets = [(kind, port, host, '') for kind, port in (('node', 9100), ('libvirt', 9177))
                   for host in HOSTS]
        targets.append(('node', 9100, 'cmp1', '-again'))
        return [{'job_name': f'{kind}-{host}{again}', 'metrics_path': f'/{kind}/{host}',
                 'static_configs': [{'targets': [address],
                                     'labels': {'instance': f'{host}:{port}'}}]}
                for kind, port, host, again in targets]


def io_of_host(seconds):
    """A fast interface that is 30 % busy one way, a guest's own, and a disk of 10 ms a request."""
    yield f'node_network_receive_bytes_total{{device="eth0"}} {3e8 * seconds}'
    yield f'node_network_transmit_bytes_total{{device="eth0"}} {1e8 * seconds}'
    yield f'node_network_transmit_bytes_total{{device="tap0"}} {1e9 * seconds}'
    yield 'node_network_speed_bytes{device="eth0"} 1e9'
    yield 'node_network_speed_bytes{device="tap0"} 1.25e6'
    for what in ('read', 'write'):
        yield f'node_disk_{what}s_completed_total{{device="sda"}} {100 * seconds}'
        yield f'node_disk_{what}_time_seconds_total{{device="sda"}} {1.0 * seconds}'


def io_of_guest(labels, seconds):
    """The input and output of every guest."""
    for what in ('interface_stats_receive_bytes', 'interface_stats_transmit_bytes',
                 'block_stats_read_requests', 'block_stats_write_requests'):
        yield f'libvirt_domain_{what}_total{{{labels},target_device="a"}} {100 * seconds}'


def debian(domain, seconds, cpu, memory, vcpus, waiting):
    """Debian's prometheus-libvirt-exporter 0.2.0 (Kumina's), as it was read of a real libvirt."""
    names = f'domain="{domain}",uuid="{uuid.uuid5(uuid.NAMESPACE_DNS, domain)}"'
    labels = f'{{{names}}}'
    yield from io_of_guest(names, seconds)
    yield f'libvirt_domain_info_cpu_time_seconds_total{labels} {cpu * seconds}'
    yield f'libvirt_domain_info_maximum_memory_bytes{labels} {memory}'
    yield f'libvirt_domain_info_memory_usage_bytes{labels} {memory}'
    yield f'libvirt_domain_info_virtual_cpus{labels} {vcpus}'
    yield f'libvirt_domain_state_code{labels} 1'


def inovex(domain, seconds, cpu, memory, vcpus, waiting):
    """inovex's prometheus-libvirt-exporter; of guests that are off too, for which ``cpu`` is None.
    libvirt says how much memory a guest may have, and how much of it QEMU has."""
    labels = f'domain="{domain}"'
    yield f'libvirt_domain_info_cpu_time_seconds_total{{{labels}}} {(cpu or 0) * seconds}'
    yield f'libvirt_domain_info_maximum_memory_bytes{{{labels}}} {2 * memory}'
    yield f'libvirt_domain_info_memory_usage_bytes{{{labels}}} {2 * memory}'
    yield f'libvirt_domain_info_virtual_cpus{{{labels}}} {vcpus}'
    if cpu is None:
        return
    yield from io_of_guest(labels, seconds)
    yield f'libvirt_domain_memory_stats_rss_bytes{{{labels}}} {memory}'
    for vcpu in range(vcpus):
        yield (f'libvirt_domain_vcpu_delay_seconds_total{{{labels},vcpu="{vcpu}"}} '
               f'{waiting / vcpus * seconds}')


class RecipesTestCase(testtools.TestCase):
    guest_series = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.exporter = Exporter(cls.guest_series)
        web = WebServer(cls.exporter)
        web.setUp()
        cls.addClassCleanup(web.cleanUp)
        server = Prometheus(cls.exporter.jobs(web.url.removeprefix('http://')))
        server.setUp()
        cls.addClassCleanup(server.cleanUp)
        cls.client = prometheus.PrometheusClient(Endpoint(url=server.url))
        cls.wait_for_a_whole_window()

    @classmethod
    def wait_for_a_whole_window(cls):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            full = cls.client.instant(f'count_over_time(up[{WINDOW + 1}s]) >= {2 * WINDOW + 1}')
            if len(full.samples) == 2 * len(HOSTS) + 1:
                return
            time.sleep(0.25)
        raise AssertionError('Prometheus did not scrape the exporters')

    def bring_back(self):
        self.exporter.guests[:] = [(domain, *rest) for domain, rest in GUESTS.items()]
        time.sleep(WINDOW + 1)

    def ask(self, policy, kind, promql):
        vector = self.client.query(MetricQuery(
            policy.name, kind, promql.replace('[5m]', f'[{WINDOW}s]')))
        label = policy.vm_profile_label if kind == VM_PROFILE else policy.host_label
        values = {sample.labels[label]: sample.value for sample in vector.samples}
        if kind != VM_PROFILE:
            self.assertEqual(len(vector.samples), len(values), 'one series each')
        return values

    def shares(self, policy):
        """The share of each guest in its host."""
        samples = self.ask(policy, VM_PROFILE, policy.vm_profile_query)
        if policy.host_capacity_query is None:
            return samples
        sizes = self.ask(policy, HOST_CAPACITY, policy.host_capacity_query)
        self.assertEqual(sorted(HOSTS), sorted(sizes))
        return {domain: value / sizes['cmp1'] for domain, value in samples.items()}

    def assert_soon(self, check, *args):
        """Return where the machine is busy, scrapes are late now and then, and rates off by it
        until they have left the window."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return check(*args)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.5)

    def assertClose(self, expected, found):  # noqa: N802 - as testtools spells it
        self.assertEqual(sorted(expected), sorted(found))
        for name, value in expected.items():
            self.assertAlmostEqual(value, found[name], delta=0.02, msg=name)

    def check_recipe(self, recipe, name, hosts, guests):
        policy = self.policy(recipe, name)
        self.assert_soon(self.check_policy, policy, dict(zip(HOSTS, hosts, strict=True)),
                         dict(zip(GUESTS, guests, strict=True)))

    def policy(self, recipe, name):
        return next(policy for policy in policies.load(RECIPES / f'{recipe}.yaml').active
                    if policy.name == name)

    def check_policy(self, policy, hosts, guests):
        self.assertClose(hosts, self.ask(policy, IMBALANCE, policy.imbalance_query))
        self.assertClose(guests, self.shares(policy))
        if policy.mode == 'pack':
            self.assertClose(hosts, self.ask(policy, CAPACITY, policy.capacity_query))


EVERYWHERE = (
    ('cpu-memory', 'cpu', (0.5, 0.25, 0.0), (0.375, 0.125, 0.25)),
    ('cpu-memory', 'memory', (0.75, 0.5, 0.1), (0.5, 0.25, 0.5)),
    ('cpu-memory-forecast', 'cpu', (0.5, 0.25, 0.0), (0.375, 0.125, 0.25)),
    ('cpu-memory-forecast', 'memory', (0.75, 0.5, 0.1), (0.5, 0.25, 0.5)),
    ('pack-cpu-memory', 'cpu', (0.5, 0.25, 0.0), (0.375, 0.125, 0.25)),
    ('pack-cpu-memory', 'memory', (0.75, 0.5, 0.1), (0.5, 0.25, 0.5)),
    ('pressure', 'cpu-pressure', (0.3, 0.1, 0.0), (0.225, 0.075, 0.1)),
    ('pressure', 'memory-pressure', (0.1, 0.0, 0.0), (0.0667, 0.0333, 0.0)),
    ('cpu-memory-io', 'cpu', (0.5, 0.25, 0.0), (0.375, 0.125, 0.25)),
    ('cpu-memory-io', 'memory', (0.75, 0.5, 0.1), (0.5, 0.25, 0.5)),
    ('cpu-memory-io', 'network', (0.3, 0.3, 0.3), (0.15, 0.15, 0.3)),
    ('cpu-memory-io', 'disk', (0.2, 0.2, 0.2), (0.1, 0.1, 0.2)),
    ('count', 'count', (0.04, 0.02, 0.0), (0.02, 0.02, 0.02)))
"""Recipe, policy, scores of the hosts, weights of the guests."""

OF_CEILOMETER = 'cpu-memory-ceilometer'
"""The recipe that needs no libvirt exporter; see test_recipe_matrix."""

WHERE_WAITING_IS_COUNTED = ('cpu-steal', 'cpu-steal', (0.2, 0.1, 0.0), (0.2, 0.0, 0.1))


@ddt.ddt
class DebianRecipesTest(RecipesTestCase):
    guest_series = staticmethod(debian)

    @ddt.idata(EVERYWHERE)
    @ddt.unpack
    def test_a_recipe(self, recipe, name, hosts, guests):
        self.check_recipe(recipe, name, hosts, guests)

    def test_hosts_without_a_metric_of_waiting_guests_have_no_score(self):
        policy = self.policy('cpu-steal', 'cpu-steal')
        self.assert_soon(self.check_policy, policy, {'cmp3': 0.0}, {})


@ddt.ddt
class InovexRecipesTest(RecipesTestCase):
    guest_series = staticmethod(inovex)

    @ddt.idata((*EVERYWHERE, WHERE_WAITING_IS_COUNTED))
    @ddt.unpack
    def test_a_recipe(self, recipe, name, hosts, guests):
        self.check_recipe(recipe, name, hosts, guests)

    def test_every_recipe_is_tested(self):
        self.assertEqual(
            sorted(path.stem for path in RECIPES.glob('*.yaml') if path.stem != OF_CEILOMETER),
            sorted({recipe for recipe, *_rest in (*EVERYWHERE, WHERE_WAITING_IS_COUNTED)}))

    def test_a_host_whose_guests_are_off_has_no_waiting(self):
        self.addCleanup(self.bring_back)
        self.exporter.guests.append(('instance-00000004', 'cmp3', None, 8e9, 1, 0.0))
        time.sleep(WINDOW + 1)
        self.check_recipe(*WHERE_WAITING_IS_COUNTED)

    def test_a_host_whose_exporter_could_not_read_all_domains_has_no_count(self):
        self.addCleanup(self.exporter.failing.clear)
        self.exporter.failing.add('cmp2')
        policy = self.policy('count', 'count')
        self.assert_soon(lambda: self.assertClose(
            {'cmp1': 0.04, 'cmp3': 0.0}, self.ask(policy, IMBALANCE, policy.imbalance_query)))

    def test_a_guest_has_one_weight_on_both_sides_of_a_migration_and_after_it(self):
        self.addCleanup(self.bring_back)
        moving = 'instance-00000003'
        self.exporter.guests.append((moving, 'cmp3', *GUESTS[moving][1:]))
        time.sleep(1.6)
        self.weights_of_one_series_each()
        self.exporter.guests[:] = [row for row in self.exporter.guests
                                   if row[:2] != (moving, 'cmp2')]
        # Within the window there are samples of it at the source yet.
        time.sleep(1.2)
        self.weights_of_one_series_each()
        self.assert_soon(self.check_hosts_of_guests, {'cmp1', 'cmp3'})

    def check_hosts_of_guests(self, expected):
        self.assertEqual(expected, {
            sample.labels['host'] for sample in self.client.instant(
                'label_replace(rate(libvirt_domain_info_cpu_time_seconds_total[4s]) and '
                'libvirt_domain_info_cpu_time_seconds_total, "host", "$1", "instance", '
                '"([^:]+).*")').samples})

    def weights_of_one_series_each(self):
        for recipe in RECIPES.glob('*.yaml'):
            if recipe.stem == OF_CEILOMETER:
                continue
            for policy in policies.load(recipe).active:
                self.assertEqual(sorted(GUESTS), sorted(
                    self.ask(policy, VM_PROFILE, policy.vm_profile_query)), recipe)
