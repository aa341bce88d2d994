"""The recipes that are shipped, each asked of a real Prometheus that scrapes such series."""

import pathlib
import time

import ddt
import testtools

from kronos_nova import policies
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.transport import Endpoint
from kronos_nova.objects.metrics import CAPACITY
from kronos_nova.objects.metrics import IMBALANCE
from kronos_nova.objects.metrics import VM_PROFILE
from kronos_nova.objects.metrics import MetricQuery
from tests.functional.prometheus import Prometheus
from tests.unit.web import WebServer

RECIPES = pathlib.Path(__file__).parents[3] / 'etc/kronos/policies'
WINDOW = 4
"""Seconds that stand for the recipes' five minutes, so that a test need not last that long."""

CPUS = 4
MEMORY = 64e9
# Per host: fraction of CPU and memory in use, of time in which something waited for them.
HOSTS = {'cmp1': (0.5, 0.75, 0.3, 0.1), 'cmp2': (0.25, 0.5, 0.1, 0.0), 'cmp3': (0.0, 0.1, 0.0, 0.0)}
# Per domain: host, CPUs in use, bytes, virtual CPUs, CPUs waited for.
GUESTS = {'instance-00000001': ('cmp1', 1.5, 32e9, 4, 0.8),
          'instance-00000002': ('cmp1', 0.5, 16e9, 2, 0.0),
          'instance-00000003': ('cmp2', 1.0, 32e9, 2, 0.4)}


class Exporter:
    """node_exporter and libvirt exporter of every host, at /node/HOST and /libvirt/HOST."""

    def __init__(self):
        self.started = time.time()
        self.guests = [(domain, *rest) for domain, rest in GUESTS.items()]

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
            for mode, share in (('idle', 1 - cpu), ('user', cpu)):
                yield f'node_cpu_seconds_total{{cpu="{number}",mode="{mode}"}} {share * seconds}'
        yield f'node_memory_MemTotal_bytes {MEMORY}'
        yield f'node_memory_MemAvailable_bytes {MEMORY * (1 - memory)}'
        yield f'node_pressure_cpu_waiting_seconds_total {cpu_waiting * seconds}'
        yield f'node_pressure_memory_waiting_seconds_total {memory_waiting * seconds}'
        yield f'node_uname_info{{nodename="{host}"}} 1'

    def libvirt(self, host):
        seconds = time.time() - self.started
        for domain, at, cpu, memory, vcpus, waiting in self.guests:
            if at != host:
                continue
            yield f'libvirt_domain_info_cpu_time_seconds_total{{domain="{domain}"}} {cpu * seconds}'
            yield f'libvirt_domain_info_memory_usage_bytes{{domain="{domain}"}} {memory}'
            yield f'libvirt_domain_info_virtual_cpus{{domain="{domain}"}} {vcpus}'
            for vcpu in range(vcpus):
                yield ('libvirt_domain_vcpu_delay_seconds_total'
                       f'{{domain="{domain}",vcpu="{vcpu}"}} {waiting / vcpus * seconds}')

    def jobs(self, address):
        """One target for each exporter, with the addresses that a cloud would have."""
        return [{'job_name': f'{kind}-{host}', 'metrics_path': f'/{kind}/{host}',
                 'static_configs': [{'targets': [address],
                                     'labels': {'instance': f'{host}:{port}'}}]}
                for kind, port in (('node', 9100), ('libvirt', 9177)) for host in HOSTS]


@ddt.ddt
class RecipesTest(testtools.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.exporter = Exporter()
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
            if len(full.samples) == 2 * len(HOSTS):
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
        self.assertEqual(len(vector.samples), len(values), 'one series each')
        return values

    def assert_soon(self, check, *args):
        """Where the machine is busy, scrapes are late now and then, and rates off by it until they
        have left the window."""
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

    @ddt.data(
        ('cpu-memory', 'cpu', (0.5, 0.25, 0.0), (0.375, 0.125, 0.25)),
        ('cpu-memory', 'memory', (0.75, 0.5, 0.1), (0.5, 0.25, 0.5)),
        ('pack-cpu-memory', 'cpu', (0.5, 0.25, 0.0), (0.375, 0.125, 0.25)),
        ('pack-cpu-memory', 'memory', (0.75, 0.5, 0.1), (0.5, 0.25, 0.5)),
        ('cpu-steal', 'cpu-steal', (0.2, 0.1, 0.0), (0.2, 0.0, 0.1)),
        ('pressure', 'cpu-pressure', (0.3, 0.1, 0.0), (0.225, 0.075, 0.1)),
        ('pressure', 'memory-pressure', (0.1, 0.0, 0.0), (0.0667, 0.0333, 0.0)),
        ('count', 'count', (0.04, 0.02, 0.0), (0.02, 0.02, 0.02)),
    )
    @ddt.unpack
    def test_a_recipe(self, recipe, name, hosts, guests):
        policy = next(policy for policy in policies.load(RECIPES / f'{recipe}.yaml').active
                      if policy.name == name)
        self.assert_soon(self.check_policy, policy, dict(zip(HOSTS, hosts, strict=True)),
                         dict(zip(GUESTS, guests, strict=True)))

    def check_policy(self, policy, hosts, guests):
        self.assertClose(hosts, self.ask(policy, IMBALANCE, policy.imbalance_query))
        self.assertClose(guests, self.ask(policy, VM_PROFILE, policy.vm_profile_query))
        if policy.mode == 'pack':
            self.assertClose(hosts, self.ask(policy, CAPACITY, policy.capacity_query))

    def test_every_recipe_is_tested(self):
        self.assertEqual(['count', 'cpu-memory', 'cpu-steal', 'pack-cpu-memory', 'pressure'],
                         sorted(path.stem for path in RECIPES.glob('*.yaml')))

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
            for policy in policies.load(recipe).active:
                self.assertEqual(sorted(GUESTS), sorted(
                    self.ask(policy, VM_PROFILE, policy.vm_profile_query)), recipe)
