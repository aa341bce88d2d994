"""Random clouds with failure domains and rules, as folders of a snapshot."""

import json
import random
import uuid

import yaml

from tests.unit.record.clouds import TAKEN_AT
from tests.unit.record.clouds import vector

OPEN, CLOSED = '*; 0 0 * * *; 1440', '*; 0 3 * * *; 60'
"""Windows that are open, or closed, when the snapshot is taken (noon)."""

STATIC = ('must_run_on', 'must_not_run_on', 'should_run_on', 'should_not_run_on')
JOINT = ('keep_together', 'keep_apart', 'at_most_hosts')
HELD = ('never_move', 'move_only', 'max_moves')


class RuleCloud:
    """One aggregate of hosts in racks and rooms, three quarters full.

    :param relations: of which rules are drawn
    :param rules: how many of them
    """

    def __init__(self, seed, hosts=8, vms=28, relations=(*STATIC, *JOINT, *HELD), rules=5,
                 threshold=0.1):
        self.rng = random.Random(seed)
        self.threshold = threshold
        self.hosts = [self._host(n) for n in range(hosts)]
        self.instances = [self._instance(n) for n in range(vms)]
        self.instances = [each for each in self.instances if each is not None]
        self.rules = [self._rule(n, self.rng.choice(relations)) for n in range(rules)]
        self.load = {each['uuid']: self.rng.randint(0, 8) / 100 for each in self.instances}

    def _uuid(self):
        return str(uuid.UUID(int=self.rng.getrandbits(128)))

    def _host(self, number):
        up = {'state': 'up', 'status': 'enabled', 'forced_down': False, 'disabled_reason': None}
        return {'name': f'cmp{number}', 'uuid': self._uuid(), 'cell': 'cell1',
                'hypervisor_type': 'QEMU', 'service': up,
                'domains': {'room': f'room{number % 2}', 'rack': f'r{number % 4}'},
                'inventory': {'VCPU': {'total': 12, 'reserved': 0, 'allocation_ratio': 1.0}}}

    def _instance(self, number):
        vcpus = self.rng.choice((1, 2, 2, 3))
        room = {host['name']: 12 for host in self.hosts}
        for each in self.instances_so_far:
            room[each['host']] -= each['vcpus']
        hosts = [name for name, left in room.items() if left >= vcpus + 1]
        if not hosts:
            return None
        made = {'uuid': self._uuid(), 'name': f'instance-{number:08x}',
                'display_name': f'{self.rng.choice(("web", "db", "lic"))}-{number}',
                'project_id': f'p{number % 2}', 'host': self.rng.choice(hosts),
                'status': 'ACTIVE', 'task_state': None, 'locked': False, 'vcpus': vcpus,
                'memory_mb': 512, 'disk_gb': 0, 'flavor_extra_specs': {},
                'metadata': {'kronos:role': self.rng.choice(('a', 'b'))},
                'resources': {'VCPU': vcpus},
                'flavor': {'name': f'm{vcpus}.x', 'id': str(vcpus)},
                'image': {'id': 'im', 'properties': {
                    'os_distro': self.rng.choice(('rhel', 'debian'))}},
                'tags': [tag for tag in ('blue', 'red') if self.rng.random() < 0.3]}
        self.instances_so_far.append(made)
        return made

    @property
    def instances_so_far(self):
        return self.__dict__.setdefault('_made', [])

    def _servers(self):
        rng = self.rng
        kind = rng.choice(('tag', 'name', 'flavor', 'image', 'metadata', 'project', 'uuid'))
        some = [each['uuid'] for each in rng.sample(self.instances, 5)]
        return {kind: {'tag': ['blue'], 'name': [rng.choice(('web-*', 'db-*', 'lic-?', '*-1*'))],
                       'flavor': 'm3.*', 'image': {'os_distro': rng.choice(('rhel', 'deb*'))},
                       'metadata': {'kronos:role': 'a'}, 'project': ['p1'], 'uuid': some}[kind]}

    def _places(self):
        rng = self.rng
        return rng.choice((
            {'hosts': rng.sample([host['name'] for host in self.hosts], 3)},
            {'domain': {'rack': rng.sample(('r0', 'r1', 'r2', 'r3'), 2)}},
            {'domain': {'room': f'room{rng.randint(0, 1)}'}}, {'hosts': 'cmp[0-4]'},
            {'aggregate': 'al*', 'hosts': 'cmp1'}))

    def _rule(self, number, relation):
        rng = self.rng
        wish = {'keep_together': rng.choice(('host', 'rack', 'room')),
                'keep_apart': rng.choice(('host', 'rack')), 'at_most_hosts': rng.randint(2, 5),
                'never_move': True, 'move_only': [rng.choice((OPEN, CLOSED))],
                'max_moves': 1}.get(relation) or self._places()
        return {'name': f'rule{number}', 'servers': self._servers(), relation: wish}

    def aggregates(self):
        return [{'name': 'all', 'uuid': self._uuid(), 'availability_zone': None, 'metadata': {},
                 'hosts': [each['name'] for each in self.hosts]}]

    def groups(self):
        return []

    def write(self, folder):
        """Write the snapshot. Returns the folder."""
        load = {host['name']: 0.1 for host in self.hosts}
        for each in self.instances:
            load[each['host']] += self.load[each['uuid']]
        policy = {'name': 'cpu', 'mode': 'spread', 'weight': 1.0, 'threshold': self.threshold,
                  'imbalance_query': 'host', 'vm_profile_query': 'vm',
                  'max_migrations_per_cycle': 40}
        files = {
            'meta.json': {'format': 3, 'taken_at': TAKEN_AT, 'kronos_version': '0',
                          'cloud': 'rules'},
            'inventory.json': {
                'hosts': self.hosts, 'instances': self.instances,
                'server_groups': self.groups(), 'aggregates': self.aggregates()},
            'metrics/cpu/imbalance.json': vector('host', load.items()),
            'metrics/cpu/vm_profile.json': vector('uuid', self.load.items())}
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))
        (folder / 'policies.yaml').write_text(yaml.safe_dump(
            {'policies': [policy], 'rules': self.rules}))
        return folder
