"""``kronos-test-config --propose`` on six installations, each with a real Prometheus that scrapes
exporters named as that installation names them. The file that is written has to plan right as it
is: what its plan promises is what the hosts then have."""

import contextlib
import io
import json
import pathlib
import time

from kronos_nova import policies
from kronos_nova.cmd import test_config
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.endpoint import Endpoint
from tests.functional.metrics import machines
from tests.functional.metrics import test_keystone
from tests.functional.metrics.machines import GIB
from tests.functional.metrics.machines import Guest
from tests.functional.metrics.machines import Machine
from tests.functional.osc import keystone as ks
from tests.unit.cmd import configured
from tests.unit.inventory import fakes_public_api as api

WITHIN = 0.03
"""Largest difference of the load after all moves from the plan's promise: 3 points of a host."""
NAMES = ('cmp1', 'cmp2', 'cmp3')


def guests(first=1):
    """The guests of three hosts, the first with nearly all of the load."""
    busy = [Guest(number=first + n, cpu=1.5, used=5 * GIB, flavor=8 * GIB) for n in range(6)]
    return busy, [Guest(number=first + 6, cpu=0.5, used=2 * GIB, flavor=4 * GIB)], []


def three(**given):
    """Three hosts of two sizes; ``given`` are functions of a host's number, or values."""
    return [Machine(cpus=(16, 16, 32)[n], memory=(64, 64, 128)[n] * GIB, guests=found,
                    **{key: value(n) if callable(value) else value
                       for key, value in {'name': NAMES[n], **given}.items()})
            for n, found in enumerate(guests())]


class ProposeTestCase(configured.ConfiguredTestCase):
    def use(self, cloud, server, **options):
        """Let Nova and Prometheus be what an installation has."""
        self.machines = cloud
        self.cloud.services = [api.service(each.name) for each in cloud.machines]
        self.cloud.hypervisors = [api.hypervisor(number, each.name)
                                  for number, each in enumerate(cloud.machines)]
        self.cloud.aggregates[0]['hosts'] = [each.name for each in cloud.machines]
        self.cloud.servers = []
        roots = [each['id'] for each in self.cloud.hypervisors]
        self.cloud.providers = [{'uuid': each, 'root_provider_uuid': each, 'name': each,
                                 'generation': 1} for each in roots]
        self.cloud.inventories, self.cloud.allocations = {}, {}
        self.cloud.memberships = {}
        for root, each in zip(roots, cloud.machines, strict=True):
            self.cloud.inventories[root] = {
                'VCPU': api.inventory(each.cpus, ratio=16.0),
                'MEMORY_MB': api.inventory(int(each.memory / (1 << 20)), ratio=4.0)}
            self.cloud.allocations[root] = {}
            for guest in each.guests:
                self.cloud.servers.append(api.server(guest.number, each.name, id=machines.uuid_of(
                    guest.name)))
        self.prometheus = server.url
        self.prometheus_options = options
        self.kronos = 'include_unassigned_hosts = false\naggregates = gpu'
        self.write()
        with open(self.conf, 'a') as file:
            file.write('[kronos_prometheus]\n')
            file.writelines(f'{key} = {value}\n' for key, value in options.items())

    def run_command(self, *words):
        """(exit code, what was printed)"""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = test_config.main(['--config-file', self.conf, *words])
        return code, out.getvalue()

    def propose(self, *words):
        """(exit code, report, path of the file)"""
        path = self.folder / 'proposed.yaml'
        code, out = self.run_command('--propose', str(path), '-f', 'json', *words)
        return code, json.loads(out), path


class ProposeTest(ProposeTestCase):
    def check_installation(self, *words):
        """Propose, plan with the file, carry the plan out, and compare. Returns the report."""
        code, found, path = self.propose(*words)
        broken = [row for row in (*found['checks'], *found['queries'])
                  if row['state'] not in ('ok', 'not checked') and row.get('check') != 'broker']
        self.assertEqual([], broken)
        self.assertEqual(3, code, 'the broker cannot be checked here')
        for row in found['proposal']['hosts']:
            self.assertEqual('ok', row['state'], row)
        self.check_plan(path)
        return found

    def client(self):
        names = {'username', 'password'}
        return prometheus.PrometheusClient(Endpoint(url=self.prometheus, **{
            key: value for key, value in self.prometheus_options.items() if key in names}))

    def check_plan(self, path):
        report, = plan_cycle(
            self.machines.snapshot(), policies.load(path),
            EngineOptions(aggregates=('agg',), include_unassigned_hosts=False),
            PlannerPorts(source=self.client(), clock=lambda: 0.0, now=time.time())).aggregates
        self.assertEqual('planned', report.outcome, report)
        self.assertEqual((), report.unbelieved)
        by_name = {each.name: each for each in self.machines.machines}
        server = {machines.uuid_of(guest.name): guest
                  for each in by_name.values() for guest in each.guests}
        for move in report.moves:
            by_name[move.source].guests.remove(server[move.instance_uuid])
            by_name[move.destination].guests.append(server[move.instance_uuid])
        for score in report.host_scores:
            host = by_name[score.host]
            true = host.cpu if score.policy == 'cpu' else host.memory_load
            self.assertAlmostEqual(true, score.after, delta=WITHIN, msg=score)
        self.assertLess(max(each.cpu for each in by_name.values()), 0.45)

    def test_debian(self):
        """Names everywhere, Debian's exporters. Two jobs scrape the node_exporter of one host."""
        cloud = machines.Machines(three(jobs=lambda n: 2 if n == 0 else 1), machines.kumina)
        for each in cloud.machines:     # this exporter knows flavors alone
            for guest in each.guests:
                guest.used = guest.flavor
        self.use(cloud, cloud.server(self))
        found = self.check_installation()
        self.assertEqual({'node_exporter': 'instance by "([^:]+).*"',
                          'libvirt exporter': 'instance by "([^:]+).*"'},
                         found['proposal']['namings'])
        recipe = pathlib.Path('etc/kronos/policies/cpu-memory.yaml').read_text()
        self.assertTrue((self.folder / 'proposed.yaml').read_text().endswith(recipe))

    def test_kolla(self):
        """Addresses for names, and a Prometheus that asks for a user."""
        cloud = machines.Machines(
            three(name=lambda n: f'{NAMES[n]}.example.com', nodename=lambda n: NAMES[n],
                  instance=lambda n: f'192.0.2.{n + 11}'), machines.inovex)
        self.use(cloud, cloud.server(self, login=('admin', 'pw')), username='admin', password='pw')
        found = self.check_installation()
        self.assertEqual({'node_uname_info nodename by "([^.:]+).*"'},
                         {*found['proposal']['namings'].values()})

    def test_a_host_that_is_scraped_at_two_addresses(self):
        """The networks of management and of tunnels: one machine, that counts once."""
        cloud = machines.Machines(
            three(nodename=lambda n: NAMES[n], instance=lambda n: f'192.0.2.{n + 11}',
                  second=lambda n: '' if n == 1 else f'198.51.100.{n + 11}'), machines.inovex)
        self.use(cloud, cloud.server(self))
        found = self.check_installation()
        self.assertEqual('', found['proposal']['selector'])
        self.assertEqual([], found['proposal']['problems'])

    def test_hosts_that_are_scraped_by_two_names_each(self):
        cloud = machines.Machines(
            three(instance=lambda n: f'{NAMES[n]}.mgmt.example.com',
                  second=lambda n: f'{NAMES[n]}.tun.example.com'), machines.tinkoff)
        self.use(cloud, cloud.server(self))
        found = self.check_installation()
        self.assertEqual({'instance by "([^.:]+).*"'}, {*found['proposal']['namings'].values()})

    def test_two_machines_of_one_name_are_named(self):
        cloud = machines.Machines(
            three(nodename=lambda n: NAMES[n], instance=lambda n: f'192.0.2.{n + 11}'),
            machines.inovex, foreign=[Machine(name='cmp2', instance='198.51.100.7')])
        self.use(cloud, cloud.server(self))
        found = self.propose()[1]['proposal']
        self.assertEqual(
            ['node_exporter: cmp2 is the name of 192.0.2.12 and 198.51.100.7, which are not known '
             'to be one machine; scrape one of them, or give the label that yours have with '
             '--match'], [each for each in found['problems'] if 'node_exporter' in each])
        self.assertEqual({'cmp2': 'warning', 'cmp1': 'ok', 'cmp3': 'ok'},
                         {row['host']: row['state'] for row in found['hosts']})

    def test_a_size_that_is_no_number_is_not_known(self):
        cloud = machines.Machines(three(), machines.inovex)
        odd = cloud.machines[1]
        lines = odd.node
        odd.node = lambda at: ('node_memory_MemTotal_bytes +Inf' if 'MemTotal' in line else line
                               for line in lines(at))
        self.use(cloud, cloud.server(self))
        row = self.propose()[1]['proposal']['hosts'][1]
        self.assertEqual(('cmp2', 'warning', [65536.0, None]),
                         (row['host'], row['state'], row['memory_mb']))

    def test_openstack_ansible(self):
        """Addresses, and a label of the inventory; Nova has full names."""
        cloud = machines.Machines(
            three(name=lambda n: f'{NAMES[n]}.openstack.local', nodename='localhost',
                  instance=lambda n: f'172.29.236.{n + 11}',
                  labels=lambda n: {'hostname': NAMES[n]},
                  libvirt_labels=lambda n: {'hostname': NAMES[n]}), machines.inovex)
        self.use(cloud, cloud.server(self))
        found = self.check_installation()
        self.assertEqual({'hostname by "([^.:]+).*"'}, {*found['proposal']['namings'].values()})

    def test_rhoso(self):
        """node_exporter with a label fqdn; ceilometer by sg-core has the servers."""
        cloud = machines.Machines(
            three(name=lambda n: f'compute-{n}.ctlplane.example.com',
                  instance=lambda n: f'192.0.2.{n + 11}',
                  labels=lambda n: {'fqdn': f'compute-{n}.ctlplane.example.com'}),
            machines.sg_core)
        self.use(cloud, cloud.server(self))
        found = self.check_installation()
        self.assertEqual(('cpu-memory-ceilometer', {'node_exporter': 'fqdn',
                                                    'ceilometer': 'names no host'}),
                         (found['proposal']['recipe'], found['proposal']['namings']))

    def test_two_regions(self):
        """Two clouds with the same hosts, addresses and domains; a label tells the region."""
        def labels(region):
            return {'labels': {'region': region}, 'libvirt_labels': {'region': region}}

        def address(n):
            return f'192.0.2.{n + 11}'

        other = three(instance=address, **labels('two'))
        other[0].guests, other[2].guests = other[2].guests, other[0].guests
        cloud = machines.Machines(three(instance=address, **labels('one')), machines.tinkoff,
                                  foreign=other)
        self.use(cloud, cloud.server(self))
        found = self.check_installation()
        self.assertEqual('region="one"', found['proposal']['selector'])

    def test_two_regions_that_cannot_be_distinguished(self):
        def labels(region):
            return {'labels': {'region': region}, 'libvirt_labels': {'region': region}}

        cloud = machines.Machines(three(**labels('one')), machines.inovex,
                                  foreign=three(**labels('two')))
        for each in cloud.everything:
            each.instance = f'192.0.2.{11 + cloud.everything.index(each)}'
        self.use(cloud, cloud.server(self))
        problems = self.propose()[1]['proposal']['problems']
        self.assertIn('region="one" and region="two" alike', ''.join(problems))
        (self.folder / 'proposed.yaml').unlink()
        self.check_installation('--match', 'region=one')

    def test_aetos(self):
        """A Prometheus behind keystone, asked with a token."""
        cloud = machines.Machines(three(), machines.inovex)
        keystone = self.useFixture(ks.Keystone())
        keystone.project('service')
        for person in ('aetos', 'kronos'):
            keystone.person(person, 'service', 'service')
        server = cloud.server(self)
        aetos = self.useFixture(test_keystone.Aetos(keystone, server.url))
        self.use(cloud, aetos, auth_section='kronos_aetos')
        with open(self.conf, 'a') as file:
            file.write('[kronos_aetos]\nauth_type = password\n'
                       f'auth_url = {keystone.url}\nusername = kronos\n'
                       f'password = {ks.PASSWORD}\nproject_name = service\n'
                       'user_domain_name = Default\nproject_domain_name = Default\n')
        self.client = lambda: prometheus.PrometheusClient(Endpoint(url=server.url))
        self.check_installation()
        self.assertGreater(len(aetos.tokens), 10)

    def test_scrapes_every_five_minutes_get_longer_windows(self):
        cloud = machines.Machines(three(), machines.inovex)
        self.addCleanup(setattr, machines, 'STEP', machines.STEP)
        self.addCleanup(setattr, machines, 'HISTORY', machines.HISTORY)
        machines.STEP, machines.HISTORY = 300, 7200
        self.use(cloud, cloud.server(self, interval='5m'))
        _code, _found, path = self.propose()
        self.assertIn('[20m]', path.read_text())
        self.assertNotIn('[5m]', path.read_text())
        self.check_plan(path)
