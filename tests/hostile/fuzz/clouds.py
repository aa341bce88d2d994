"""The valid inputs that are mutated."""

import json
import pathlib
import tempfile
import uuid

import requests
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.metrics import Sample
from kronos_nova.objects.metrics import Vector
from kronos_nova.policies import loader
from tests.hostile.fuzz import mutate
from tests.unit.inventory import fakes_public_api as api

NOW = 1_793_000_000.0
UUID = '6f1c3b1e-0000-4000-8000-000000000001'
POLICIES = b"""
policies:
- name: cpu
  mode: spread
  weight: 0.6
  threshold: 0.05
  max_migrations_per_cycle: 8
  imbalance_query: 'avg by (host) (rate(node_cpu_seconds_total{mode!="idle"}[15m]))'
  vm_profile_query: |
    sum by (uuid) (rate(libvirt_domain_info_cpu_time_seconds_total[15m]))
  vm_profile_label: uuid
  vm_profile_label_type: uuid
  vm_profile_fallback: flavor_vcpu_ratio
- {name: memory, mode: spread, weight: 0.4, threshold: 0.1, imbalance_query: mem,
   vm_profile_query: vm_mem, enabled: true}
"""
ONE_POLICY = b"""
policies:
- {name: cpu, mode: spread, weight: 1.0, threshold: 0.05, max_migrations_per_cycle: 8,
   imbalance_query: host, vm_profile_query: vm}
"""
BIG = (0, 1, -1, 2 ** 31, 2 ** 53, 2 ** 63, 2 ** 64, -2 ** 63)
FLOATS = (0.0, -0.0, -1.0, 1.0 + 1e-9, 1.5, 1e-320, 1e308, float('inf'), float('-inf'),
          float('nan'))
NAMES = ('[/x]', '[link=http://x]y', '\x1b[2J', 'a\nb', '\u202e', '', 'x' * 5000, '_unassigned_')


class TwoAggregates:
    """Aggregates ``good`` and ``bad`` that share no host; answers the policy's queries."""

    def __init__(self, rng):
        self.policies = loader.parse(ONE_POLICY)
        self.names = tuple(f'{side}{n}' for side in ('good', 'bad') for n in range(4))
        room = {'VCPU': objects.ResourceInventory(total=16),
                'MEMORY_MB': objects.ResourceInventory(total=65536)}
        self.hosts = [{'name': name, 'uuid': f'rp-{name}', 'inventory': dict(room),
                       'service': {'state': 'up', 'status': 'enabled'}} for name in self.names]
        self.instances = [self._instance(rng, number) for number in range(32)]
        self.groups = [self._group(rng, side, number)
                       for side in ('good', 'bad') for number in range(2)]
        profile = {row['uuid']: rng.randrange(12) / 100 for row in self.instances}
        load = dict.fromkeys(self.names, 0.05)
        for row in self.instances:
            load[row['host']] += profile[row['uuid']]
        self.values = {'imbalance': {name: min(value, 1.0) for name, value in load.items()},
                       'vm_profile': profile}
        self.vectors = {}

    def _instance(self, rng, number):
        side = 'good' if number % 2 else 'bad'
        return {'uuid': str(uuid.UUID(int=rng.getrandbits(128))), 'name': f'instance-{number:08x}',
                'display_name': f'vm{number}', 'host': f'{side}{rng.randrange(2)}',
                'project_id': f'p{number % 4}', 'status': 'ACTIVE', 'vcpus': 1, 'memory_mb': 1024,
                'disk_gb': 1, 'metadata': {}, 'flavor_extra_specs': {},
                'resources': {'VCPU': 1, 'MEMORY_MB': 1024}}

    def _group(self, rng, side, number):
        members = [row['uuid'] for row in self.instances if row['host'].startswith(side)]
        return {'uuid': f'{side}-group{number}', 'name': f'group{number}',
                'policy': rng.choice(('affinity', 'anti-affinity', 'soft-affinity',
                                      'soft-anti-affinity')),
                'members': tuple(rng.sample(members, 3)), 'rules': {}}

    @property
    def snapshot(self):
        return objects.Snapshot(
            taken_at='2026-11-20T12:00:00Z',
            hosts=tuple(objects.Host(**{**row, 'service': objects.Service(**row['service'])})
                        for row in self.hosts),
            instances=tuple(objects.Instance(**row) for row in self.instances),
            aggregates=tuple(objects.Aggregate(
                name=side, uuid=side,
                hosts=tuple(name for name in self.names if name.startswith(side)))
                for side in ('good', 'bad')),
            server_groups=tuple(objects.ServerGroup(**row) for row in self.groups))

    def query(self, query):
        if query.kind not in self.vectors:
            label = 'host' if query.kind == 'imbalance' else 'uuid'
            return Vector(tuple(Sample({label: name}, value, NOW)
                                for name, value in self.values[query.kind].items()))
        return self.vectors[query.kind]

    def answer(self, kind):
        """Return the answer of Prometheus."""
        label = 'host' if kind == 'imbalance' else 'uuid'
        return {'status': 'success', 'warnings': ['a store is away'], 'data': {
            'resultType': 'vector', 'result': [
                {'metric': {label: name}, 'value': [NOW, repr(value)]}
                for name, value in self.values[kind].items()]}}

    def spoil(self, rng):
        """Do to ``bad`` whatever a tenant, an exporter of its hosts or its hosts can."""
        theirs = [row for row in self.instances if row['host'].startswith('bad')]
        hosts = [row for row in self.hosts if row['name'].startswith('bad')]
        groups = [row for row in self.groups if row['uuid'].startswith('bad')]
        for _ in range(rng.randint(1, 6)):
            rng.choice((self._spoil_instance, self._spoil_host, self._spoil_group,
                        self._spoil_values))(rng, rng.choice(theirs), rng.choice(hosts),
                                             rng.choice(groups))

    def _spoil_instance(self, rng, instance, _host, _group):
        field = rng.choice(('display_name', 'metadata', 'locked', 'status', 'task_state',
                            'resources', 'memory_mb', 'vcpus', 'project_id',
                            'flavor_extra_specs'))
        instance[field] = {
            'display_name': lambda: rng.choice(NAMES), 'locked': lambda: True,
            'metadata': lambda: {'kronos:move': rng.choice((*NAMES, 'never', 'always'))},
            'flavor_extra_specs': lambda: {rng.choice((
                'kronos:move', 'aggregate_instance_extra_specs:x')): rng.choice(NAMES)},
            'status': lambda: rng.choice(('ERROR', 'SHUTOFF', '', 'MIGRATING')),
            'task_state': lambda: rng.choice(('migrating', 'x' * 5000)),
            'resources': lambda: {rng.choice(('VCPU', 'CUSTOM_X', '')): rng.choice(BIG)},
            'memory_mb': lambda: rng.choice(BIG[:5]), 'vcpus': lambda: rng.choice(BIG[:5]),
            'project_id': lambda: rng.choice((None, *NAMES))}[field]()

    def _spoil_host(self, rng, _instance, host, _group):
        if rng.random() < 0.5:
            host['service'] = {'state': rng.choice(('up', 'down')),
                               'status': rng.choice(('enabled', 'disabled')),
                               'forced_down': rng.random() < 0.3,
                               'disabled_reason': rng.choice(NAMES)}
        else:
            host['inventory'] = {rng.choice(('VCPU', 'MEMORY_MB', 'CUSTOM_Y')):
                                 objects.ResourceInventory(
                                     total=rng.choice(BIG), reserved=rng.choice(BIG),
                                     allocation_ratio=rng.choice(FLOATS))}

    def _spoil_group(self, rng, instance, _host, group):
        kind = rng.randrange(4)
        if kind == 0:
            group['rules'] = {'max_server_per_host': rng.choice(BIG)}
        elif kind == 1:
            group['name'] = rng.choice(NAMES)
        elif kind == 2:
            group['members'] += (instance['uuid'],) * rng.choice((1, 1000))
        else:
            group['policy'] = rng.choice(('affinity', 'anti-affinity'))

    def _spoil_values(self, rng, instance, host, _group):
        if rng.random() < 0.5:
            self.values['imbalance'][host['name']] = rng.choice(FLOATS)
        else:
            self.values['vm_profile'][instance['uuid']] = rng.choice(FLOATS)


def spoil_folder(rng, folder):
    """Mutate some files of a recorded snapshot."""
    files = [path for path in sorted(pathlib.Path(folder).rglob('*')) if path.is_file()]
    for path in rng.sample(files, rng.choice((1, 1, 2))):
        content = path.read_bytes()
        if path.suffix == '.json' and rng.random() < 0.7:
            path.write_bytes(mutate.encoded(mutate.tree(rng, json.loads(content))))
        else:
            path.write_bytes(mutate.text(rng, content))


def window_line(rng):
    """A line of ``maintenance_window``, often nearly right."""
    def field(lowest, highest):
        one = str(rng.randint(lowest, highest))
        return rng.choice(('*', one, f'*/{rng.choice((1, 7, 0, 99))}', f'{one}-{highest}',
                           f'{one},{lowest}', '?', 'L', '#', 'mon', 'jan', '-1', '99', '1' * 30,
                           f'{one}-{lowest}/3', '', '\x1b'))

    bounds = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
    cron = ' '.join(field(*each) if rng.random() < 0.5 else '*' for each in bounds)
    cron = rng.choice((cron, cron, cron, cron, '0 0 30 2 *', '0 0 29 2 mon', '@yearly', 'x' * 1000,
                       '* * * * * *', '0 0 31 4,6,9,11 *'))
    zone = rng.choice(('', '', '; UTC', '; Europe/Berlin', '; America/New_York', '; ../../etc',
                       '; ', '; Mars/Base', '; ' + 'x' * 300, '; Asia/Kathmandu'))
    minutes = rng.choice(('60', '1', '0', '-5', '10080', '9' * 30, '1.5', '\u0663'))
    return f'gpu; {cron}; {minutes}{zone}'


class MutatedApi:
    """The fake public API over real HTTP, answering something else now and then."""

    def __init__(self):
        self._rng = None
        self._make_cloud()
        self._server = self._cloud.fixture()
        self._server.setUp()
        self._inventory = OpenStackInventory(connect(self._conf(self._server.url)))
        self._inventory.read()  # what the services offer is asked once, and not mutated

    def _make_cloud(self):
        self._cloud = api.Cloud()
        real = self._cloud._body

        def body(path, query):
            reported = real(path, query)
            if self._rng is None or self._rng.random() > 0.15:
                return reported
            if self._rng.random() < 0.2:
                return mutate.text(self._rng, json.dumps(reported).encode())
            return mutate.tree(self._rng, reported)

        self._cloud._body = body

    @staticmethod
    def _conf(url):
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
            file.write('[kronos_nova]\nauth_type = admin_token\ntoken = t\n'
                       f'endpoint = {url}\nendpoint_override = {url}/compute/v2.1\n'
                       f'placement_endpoint_override = {url}/placement\n')
            file.flush()
            conf(['--config-file', file.name], project='kronos')
        return conf

    def mutate_with(self, rng):
        self._rng = rng

    def heal(self):
        self._rng = None

    def read(self):
        return self._inventory.read()

    def stop(self):
        self._server.cleanUp()


class MutatedPlacement:
    """In the place of a keystoneauth adapter."""

    def __init__(self, rng):
        self._rng = rng

    def request(self, path, method, **_kwargs):
        reported = {
            'versions': [{'max_version': '1.39', 'min_version': '1.0'}],
            'allocations': {UUID: {'resources': {'VCPU': 1}, 'generation': 3}},
            'consumer_generation': 1, 'project_id': 'p', 'user_id': 'u',
            'consumer_type': 'INSTANCE', 'name': 'cmp1', 'aggregates': [UUID],
            'resource_providers': [{'uuid': UUID, 'root_provider_uuid': UUID}],
            'allocation_requests': [{'allocations': {UUID: {'resources': {'VCPU': 1}}}}]}
        response = requests.Response()
        response.status_code = self._rng.choice((200, 200, 200, 200, 200, 204, 400, 404, 409, 503))
        if self._rng.random() < 0.5:
            reported = mutate.tree(self._rng, reported, most=1)
        response._content = (mutate.text(self._rng, json.dumps(reported).encode())
                             if self._rng.random() < 0.1 else mutate.encoded(reported))
        return response


def plan_anything(snapshot):
    """Plan every aggregate of a snapshot, with a load that makes moves wanted."""
    class Source:
        def query(self, query):
            if query.kind == 'imbalance':
                return Vector(tuple(Sample({'host': host.name}, 0.1 * (number % 9), NOW)
                                    for number, host in enumerate(snapshot.hosts)))
            return Vector(tuple(Sample({'uuid': each.uuid}, 0.05, NOW)
                                for each in snapshot.instances))

    return plan_cycle(snapshot, loader.parse(ONE_POLICY),
                      EngineOptions(spread_planner='greedy', evacuate_disabled_hosts=True,
                                    planning_time_limit=60.0),
                      PlannerPorts(source=Source(), clock=lambda: 0.0, now=NOW))
