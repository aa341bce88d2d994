"""Writes snapshots of clouds in which everything is wrong at once."""

import collections
import json
import pathlib
import random
import uuid

import yaml

GROUP_POLICIES = ('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity')
TAKEN_AT = '2026-11-20T12:00:00Z'
EPOCH = 1_793_000_000


def vector(label, values):
    return {'status': 'success', 'data': {'resultType': 'vector', 'result': [
        {'metric': {label: key}, 'value': [EPOCH, repr(value)]} for key, value in values]}}


class Cloud:
    """A random cloud from a seed: several aggregates, some sharing a host, hosts in none, hosts
    disabled, down, forced down, of another hypervisor and cell; instances that may not move for
    every reason there is; server groups of all four policies, some of them broken; figures from a
    coarse grid, so that ties are common.
    """

    def __init__(self, seed, mode='spread', hosts=9, vms=40):
        self.rng = random.Random(seed)
        self.mode = mode
        self.format = 1
        self.names = ('cpu', 'memory')
        self.inventory = {'hosts': [self._host(n) for n in range(hosts)], 'aggregates': [],
                          'instances': [], 'server_groups': []}
        self.inventory['instances'] = [self._instance(n) for n in range(vms)]
        self.inventory['aggregates'] = self._aggregates()
        self.inventory['server_groups'] = [self._group(n) for n in range(5)]
        self.weights = {name: {i['uuid']: self.rng.randint(0, 12) / 100
                               for i in self.inventory['instances']} for name in self.names}
        self.scores = {name: self._scores(name) for name in self.names}
        self.cooldowns = self._cooldowns()

    def _uuid(self):
        return str(uuid.UUID(int=self.rng.getrandbits(128)))

    def _host(self, number):
        odd = self.rng.random()
        service = {'state': 'up', 'status': 'enabled', 'forced_down': False,
                   'disabled_reason': None}
        if odd < 0.15:
            service |= {'status': 'disabled', 'disabled_reason': 'to be serviced'}
        elif odd < 0.22:
            service |= {'state': 'down'}
        elif odd < 0.28:
            service |= {'state': 'down', 'forced_down': True}
        elif odd < 0.32:
            service |= {'forced_down': True}
        return {'name': f'cmp{number}', 'uuid': self._uuid(),
                'cell': 'cell2' if self.rng.random() < 0.15 else 'cell1',
                'hypervisor_type': 'ironic' if self.rng.random() < 0.05 else 'QEMU',
                'service': service, 'inventory': {
                    'VCPU': {'total': self.rng.choice((8, 12)), 'reserved': self.rng.choice((0, 1)),
                             'allocation_ratio': self.rng.choice((1.0, 1.5))},
                    'MEMORY_MB': {'total': 16384, 'reserved': 512, 'allocation_ratio': 1.0}}}

    def _instance(self, number):
        vcpus, memory = self.rng.choice(((1, 512), (1, 1024), (2, 1024), (4, 4096)))
        row = {'uuid': self._uuid(), 'name': f'instance-{number:08x}',
               'display_name': f'vm{number}', 'project_id': 'p1',
               'host': self.rng.choice(self.inventory['hosts'])['name'],
               'status': 'ACTIVE', 'task_state': None, 'locked': False, 'vcpus': vcpus,
               'memory_mb': memory, 'disk_gb': 0, 'metadata': {}, 'flavor_extra_specs': {},
               'resources': {'VCPU': vcpus, 'MEMORY_MB': memory}}
        odd = self.rng.random()
        if odd < 0.04:
            row['status'] = 'SHUTOFF'
        elif odd < 0.08:
            row['task_state'] = 'resize_prep'
        elif odd < 0.12:
            row['locked'] = True
        elif odd < 0.16:
            row['metadata'] = {'kronos:move': 'never'}
        elif odd < 0.20:
            row['flavor_extra_specs'] = {'kronos:move': 'only-evacuate'}
        return row

    def _aggregates(self):
        names = [host['name'] for host in self.inventory['hosts']]
        return [{'name': name, 'uuid': self._uuid(), 'availability_zone': None, 'metadata': {},
                 'hosts': chosen} for name, chosen in (
                     ('gpu', names[:len(names) // 2]), ('web', names[len(names) // 2 - 1:-2]))]

    def _group(self, number):
        policy = self.rng.choice(GROUP_POLICIES)
        members = self.rng.sample(self.inventory['instances'], 3)
        return {'uuid': self._uuid(), 'name': f'group{number}', 'policy': policy,
                'rules': {'max_server_per_host': self.rng.choice((1, 2))}
                if policy == 'anti-affinity' else {},
                'members': [*(i['uuid'] for i in members), self._uuid()]}

    def _scores(self, name):
        load = {host['name']: self.rng.randint(0, 20) / 100 for host in self.inventory['hosts']}
        for instance in self.inventory['instances']:
            load[instance['host']] += self.weights[name][instance['uuid']]
        return {host: min(round(value, 2), 1.0) for host, value in load.items()}

    def _cooldowns(self):
        some = [instance['uuid'] for instance in self.inventory['instances'][::9]]
        return {'aggregate_cooldowns': {'web': 60} if self.rng.random() < 0.1 else {},
                'instance_cooldowns': {uuid: 100 for uuid in some[:2]},
                'instance_quarantines': {some[2]: -1, some[3]: 50}}

    def know_what_placement_holds(self):
        """Make it a snapshot of format 2: with others' holdings, units, moves in progress and a
        provider that some hosts share. Returns itself."""
        rng, hosts = self.rng, self.inventory['hosts']
        self.format = 2
        for host in hosts:
            used = collections.Counter({'VCPU': rng.choice((0, 0, 2)),
                                        'MEMORY_MB': rng.choice((0, 512))})
            for instance in self.inventory['instances']:
                if instance['host'] == host['name']:
                    used.update(instance['resources'])
            host['used'] = dict(used)
            host['inventory']['VCPU'] |= {'min_unit': 1, 'max_unit': rng.choice((2, 12)),
                                          'step_size': rng.choice((1, 1, 2))}
        self.inventory['moves_under_way'] = [self._move(instance) for instance in
                                             rng.sample(self.inventory['instances'], 3)]
        self._share([host['name'] for host in hosts[:4]])
        return self

    def know_what_rules_go_by(self):
        """Make it a snapshot of format 3: with failure domains, flavors, images and tags. Returns
        itself."""
        self.format = 3
        self.inventory['flavors'] = [
            {'id': str(n), 'name': f'small{n}', 'vcpus': n + 1, 'memory_mb': 512, 'disk_gb': n,
             'extra_specs': {'hw:cpu_policy': 'shared', 'acme:tier': 'gold'},
             'resources': {'VCPU': n + 1, 'MEMORY_MB': 512}} for n in range(3)]
        for number, host in enumerate(self.inventory['hosts']):
            host['domains'] = {'room': f'room{number % 2}', 'rack': f'rack{number % 3}'}
        for number, instance in enumerate(self.inventory['instances']):
            instance['flavor'] = {'name': f'small{number % 3}', 'id': str(number % 3)}
            instance['image'] = {'id': self._uuid() if number % 4 else '',
                                 'properties': {'os_distro': 'distribution', 'licence': 'Acme'}}
            instance['metadata'] |= {'kronos:apart': ('rack', 'soft-room')[number % 2]}
            instance['tags'] = [f'tag{number % 5}', 'acme'][:number % 3]
        return self

    def know_requirements(self):
        """Make it a snapshot of format 3: with what hosts have and what servers require. Returns
        itself."""
        rng, self.format = self.rng, 3
        traits = ['HW_CPU_X86_AVX2', 'CUSTOM_LICENCE', 'CUSTOM_SSD']
        for host in self.inventory['hosts']:
            model = rng.choice(('Haswell', 'Skylake-Server'))
            host |= {'traits': [each for each in traits if rng.random() < 0.7],
                     'cpu': {'arch': 'x86_64', 'model': model,
                             'features': ['aes', *(['avx512f'] if model != 'Haswell' else [])]},
                     'hypervisor_version': rng.choice((8002001, 9001000))}
        pool = [each['uuid'] for each in self.inventory['aggregates']]
        for instance in self.inventory['instances']:
            if rng.random() < 0.5:
                instance['requires'] = {
                    'traits': [each for each in traits if rng.random() < 0.2],
                    'forbidden': [each for each in traits if rng.random() < 0.1],
                    'member_of': [pool[:2]] if rng.random() < 0.2 else [],
                    'image': {'hw_architecture': 'x86_64'} if rng.random() < 0.5 else {}}
            if rng.random() < 0.1:
                instance['requires'] = {'cpu_model': 'Haswell'}
            if rng.random() < 0.2:
                instance['live'] = {'can': rng.choice(('cold', 'no')), 'why': rng.choice((
                    'the memory is encrypted, which excludes a live migration', 'vm3 forbids it'))}
        return self

    def know_cells(self):
        """Make it a snapshot of format 3: with NUMA cells and devices. Returns itself."""
        rng, self.format = self.rng, 3
        for host in self.inventory['hosts']:
            host |= {'cells': [
                {'id': number, 'memory_mb': 65536, 'memory_used_mb': rng.choice((0, 4096)),
                 'cpus': 16, 'cpus_used': rng.randrange(16), 'pinned_cpus': 16,
                 'pinned_used': rng.randrange(6),
                 'pages': {'2048': {'total': 8192, 'used': rng.randrange(1025), 'reserved': 0}}}
                for number in range(2)], 'pools': [
                {'alias': 'acme nic', 'class': 'CUSTOM_NIC', 'cell': 1, 'total': 4, 'used': 1},
                {'alias': 'gpu', 'cell': None, 'total': 1}]}
        for instance in self.inventory['instances']:
            if rng.random() < 0.6:
                count = rng.choice((1, 1, 2))
                part = {'cpus': rng.randrange(1, 9), 'memory_mb': 1024,
                        'pinned': rng.random() < 0.7} | rng.choice(({}, {'page_kb': 2048}))
                instance |= {'cells': [part] * count, 'on_cells': list(range(count))}
            if rng.random() < 0.2:
                instance['devices'] = [{'alias': 'acme nic', 'count': 1, 'policy': 'required'}]
        self.inventory['flavors'] = [{
            'id': '1', 'name': 'wide', 'vcpus': 8, 'memory_mb': 2048, 'disk_gb': 1,
            'extra_specs': {'hw:numa_nodes': '2', 'hw:cpu_policy': 'dedicated'},
            'devices': [{'alias': 'acme nic'}]}]
        return self

    def _move(self, instance):
        others = [h for h in self.inventory['hosts'] if h['name'] != instance['host']]
        destination = self.rng.choice(others)
        destination['used'] = dict(collections.Counter(destination['used'])
                                   + collections.Counter(instance['resources']))
        return {'instance_uuid': instance['uuid'], 'source': instance['host'],
                'destination': destination['name']}

    def _share(self, names):
        on_it = [i for i in self.inventory['instances'] if i['host'] in names]
        for instance in on_it:
            instance['shared_resources'] = {'DISK_GB': 10}
        self.inventory['shared_providers'] = [{
            'uuid': self._uuid(), 'hosts': names, 'used': {'DISK_GB': 10 * len(on_it)},
            'inventory': {'DISK_GB': {'total': 1000, 'reserved': 0, 'allocation_ratio': 1.0}}}]

    def lose_metrics(self):
        """Spoil one policy's figures, each time in another way."""
        name = self.rng.choice(self.names)
        host = self.rng.choice(sorted(self.scores[name]))
        kind = self.rng.choice(('host', 'high', 'negative', 'nan', 'profile', 'bad profile'))
        if kind == 'host':
            del self.scores[name][host]
        elif kind in ('profile', 'bad profile'):
            for uuid_ in sorted(self.weights[name])[::3]:
                if kind == 'profile':
                    del self.weights[name][uuid_]
                else:
                    self.weights[name][uuid_] = self.rng.choice((-0.1, 1.5, float('inf')))
        else:
            self.scores[name][host] = {'high': 1.2, 'negative': -0.2, 'nan': float('nan')}[kind]
        return name, kind

    def policies(self):
        return {'policies': [{
            'name': name, 'mode': self.mode, 'weight': weight, 'threshold': 0.05,
            'imbalance_query': f'host_{name}', 'vm_profile_query': f'vm_{name}',
            'vm_profile_label': 'uuid', 'max_migrations_per_cycle': 8,
            **({'capacity_query': f'full_{name}', 'capacity_threshold': 0.8}
               if self.mode == 'pack' else {})}
            for name, weight in zip(self.names, (0.6, 0.4), strict=True)]}

    def write(self, folder, shuffle=None):
        """Write the folder; with a Random, every list in another order that means the same."""
        mix = (lambda rows: shuffle.sample(list(rows), len(list(rows)))) if shuffle else list
        inventory = {key: mix(rows) for key, rows in self.inventory.items()}
        for aggregate in inventory['aggregates']:
            aggregate['hosts'] = mix(aggregate['hosts'])
        policies = self.policies()
        policies['policies'] = mix(policies['policies'])
        self._put(folder, 'meta.json', {'format': self.format, 'taken_at': TAKEN_AT,
                                        'kronos_version': '0', 'cloud': 'made'})
        self._put(folder, 'inventory.json', inventory)
        self._put(folder, 'cooldowns.json', self.cooldowns)
        self._put(folder, 'policies.yaml', yaml.safe_dump(policies, sort_keys=False))
        for name in self.names:
            scores = vector('host', mix(self.scores[name].items()))
            self._put(folder, f'metrics/{name}/imbalance.json', scores)
            self._put(folder, f'metrics/{name}/vm_profile.json',
                      vector('uuid', mix(self.weights[name].items())))
            if self.mode == 'pack':
                self._put(folder, f'metrics/{name}/capacity.json', scores)
        return folder

    @staticmethod
    def _put(folder, name, content):
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
