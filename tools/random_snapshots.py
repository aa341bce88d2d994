"""Writes random snapshots (doc/source/replay.rst), with the options to plan each with.

Every mode and planner takes its turn. Hosts have two sizes, and some are disabled or down. Some
servers may not be moved, and some are in server groups. The same seed gives the same snapshot.
"""

import json
import pathlib
import random
import uuid
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

TAKEN_AT, EPOCH = '2026-11-20T12:00:00Z', 1_795_176_000
KINDS = (('spread', 'spread'), ('pack', 'pack'), ('relieve', 'relieve'), ('spread', 'greedy'),
         ('pack', 'ffd'), ('spread', 'restraint'))
"""Mode, and the planner of that mode; ``restraint`` is the planner ``spread`` with restraint."""
GROUP_POLICIES = ('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity')
SIZES = {'small': (16, 65536), 'big': (32, 131072)}
"""Processors and MiB of a host."""
FLAVORS = ((1, 2048), (2, 4096), (2, 8192), (4, 8192), (8, 16384))
CPU_RATIO = 2.0


def write(seed: int, folder: pathlib.Path) -> None:
    """Write the snapshot of a seed."""
    made = _Snapshot(seed)
    for name, content in made.files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))


class _Snapshot:
    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.mode, self.planner = KINDS[seed % len(KINDS)]
        self.has_sizes = self.rng.random() < 0.5
        self.hosts = [self._host(n) for n in range(self.rng.randint(4, 30))]
        self.size = {host['name']: {'cpu': host['inventory']['VCPU']['total'],
                                    'memory': host['inventory']['MEMORY_MB']['total']}
                     for host in self.hosts}
        self.instances = list(self._instances(len(self.hosts) * self.rng.randint(3, 10)))
        self.loads = {row['uuid']: self._load(row) for row in self.instances}

    def files(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            'meta.json': {'format': 2, 'taken_at': TAKEN_AT, 'kronos_version': '0',
                          'cloud': f'random, {self.mode} by {self.planner}'},
            'inventory.json': {
                'hosts': self.hosts, 'instances': self.instances, 'aggregates': self._aggregates(),
                'server_groups': list(self._groups()), 'moves_under_way': self._moves()},
            'policies.yaml': json.dumps({'policies': [
                self._policy('cpu', 0.6), self._policy('memory', 0.4)]}, indent=1),
            'kronos.conf': '[kronos]\n' + ''.join(
                f'{name} = {value}\n' for name, value in self._options().items())}
        for policy in ('cpu', 'memory'):
            for kind, body in self._metrics(policy):
                found[f'metrics/{policy}/{kind}.json'] = body
        return found

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def _host(self, number: int) -> Json:
        service = {'state': 'up', 'status': 'enabled', 'forced_down': False,
                   'disabled_reason': None}
        odd = self.rng.random()
        if odd < 0.12:
            service |= {'status': 'disabled', 'disabled_reason': 'new memory'}
        elif odd < 0.16:
            service |= {'state': 'down'}
        vcpus, memory_mb = SIZES[self.rng.choice(sorted(SIZES))]
        return {'name': f'cmp{number:02}', 'uuid': self._uuid(), 'cell': 'cell1',
                'hypervisor_type': 'QEMU', 'service': service, 'inventory': {
                    'VCPU': {'total': vcpus, 'reserved': 0, 'allocation_ratio': CPU_RATIO},
                    'MEMORY_MB': {'total': memory_mb, 'reserved': 2048, 'allocation_ratio': 1.0}}}

    def _instances(self, count: int) -> Iterator[Json]:
        """Yield the servers on hosts. Hosts are chosen with unequal probabilities, among those that
        have room."""
        chances = [self.rng.gammavariate(1.0, 1.0) for _host in self.hosts]
        left = {host['name']: [CPU_RATIO * host['inventory']['VCPU']['total'],
                               host['inventory']['MEMORY_MB']['total'] - 2048]
                for host in self.hosts}
        for number in range(count):
            [host] = self.rng.choices(self.hosts, chances)
            size = self.rng.choice(FLAVORS)
            room = left[host['name']]
            if room[0] >= size[0] and room[1] >= size[1]:
                room[0], room[1] = room[0] - size[0], room[1] - size[1]
                yield self._instance(number, host['name'], *size)

    def _instance(self, number: int, host: str, vcpus: int, memory_mb: int) -> Json:
        row = {'uuid': self._uuid(), 'name': f'instance-{number:08x}',
               'display_name': f'vm{number}', 'project_id': f'p{number % 3}', 'host': host,
               'status': 'ACTIVE', 'task_state': None, 'locked': False, 'vcpus': vcpus,
               'memory_mb': memory_mb, 'disk_gb': 0, 'metadata': {}, 'flavor_extra_specs': {},
               'resources': {'VCPU': vcpus, 'MEMORY_MB': memory_mb}}
        odd = self.rng.random()
        for limit, change in ((0.03, {'status': 'SHUTOFF'}), (0.05, {'task_state': 'resize_prep'}),
                              (0.07, {'locked': True}), (0.09, {'metadata': {
                                  'kronos:move': 'never'}})):
            if odd < limit:
                return row | change
        return row

    def _load(self, row: Json) -> dict[str, float]:
        """Return the use of a server: processors and MiB."""
        return {'cpu': row['vcpus'] * self.rng.betavariate(2, 3),
                'memory': row['memory_mb'] * self.rng.uniform(0.2, 0.95)}

    def _aggregates(self) -> list[Json]:
        names = [host['name'] for host in self.hosts]
        half, shared = len(names) // 2, self.rng.randint(0, 1)
        chosen = {'gpu': names[:half + shared], 'web': names[half:len(names) - 1]}
        if self.rng.random() < 0.4:
            chosen = {'all': names}
        return [{'name': name, 'uuid': self._uuid(), 'availability_zone': None, 'metadata': {},
                 'hosts': hosts} for name, hosts in chosen.items()]

    def _groups(self) -> Iterator[Json]:
        left = self.rng.sample(self.instances, len(self.instances))
        for number in range(self.rng.randint(0, 5)):
            members, left = left[:3], left[3:]
            policy = self.rng.choice(GROUP_POLICIES)
            yield {'uuid': self._uuid(), 'name': f'group{number}', 'policy': policy,
                   'rules': {'max_server_per_host': 2} if policy == 'anti-affinity'
                   and number % 2 else None, 'members': [row['uuid'] for row in members]}

    def _moves(self) -> list[Json]:
        moves = []
        for row in self.instances[:self.rng.randint(0, 2)]:
            others = [host['name'] for host in self.hosts if host['name'] != row['host']]
            moves.append({'instance_uuid': row['uuid'], 'source': row['host'],
                          'destination': self.rng.choice(others)})
        return moves

    def _policy(self, name: str, weight: float) -> Json:
        more: Json = {'threshold': 0.05}
        if self.mode == 'pack':
            more = {'threshold': 0.05, 'capacity_query': f'full_{name}', 'capacity_threshold': 0.9}
        elif self.mode == 'relieve':
            more = {'high': 0.5, 'target': 0.4}
        if self.has_sizes:
            more['host_capacity_query'] = f'size_{name}'
        return {'name': name, 'mode': self.mode, 'weight': weight,
                'imbalance_query': f'host_{name}', 'vm_profile_query': f'vm_{name}',
                'vm_profile_label': 'uuid',
                'vm_profile_fallback': self.rng.choice(('skip', 'flavor_vcpu_ratio')),
                'max_migrations_per_cycle': self.rng.choice((5, 10, 30)), **more}

    def _options(self) -> Json:
        options: Json = {'evacuate_disabled_hosts': self.rng.random() < 0.7,
                   'enforce_hard_affinity': self.rng.random() < 0.5,
                   'enforce_soft_affinity': self.rng.random() < 0.5,
                   'soft_group_cost': self.rng.choice((None, 0.02)),
                   'reserve_hosts': self.rng.choice((0, 0, 1)),
                   'min_gain': self.rng.choice((0, 0, 0.01)),
                   'restraint': 1.0 if self.planner == 'restraint' else 0.0}
        if self.planner in ('greedy', 'ffd'):
            options[f'{self.mode}_planner'] = self.planner
        return {name: value for name, value in options.items() if value is not None}

    def _metrics(self, policy: str) -> Iterator[tuple[str, Json]]:
        load = dict.fromkeys(self.size, 0.0)
        for row in self.instances:
            load[row['host']] += self.loads[row['uuid']][policy] / self.size[row['host']][policy]
        load = {host: min(value, 1.0) for host, value in load.items()}
        shares = {row['uuid']: self.loads[row['uuid']][policy] / (
            1 if self.has_sizes else self.size[row['host']][policy])
            for row in self.instances if self.rng.random() > 0.02}
        yield 'imbalance', _vector('host', load)
        yield 'vm_profile', _vector('uuid', shares)
        if self.mode == 'pack':
            yield 'capacity', _vector('host', load)
        if self.has_sizes:
            yield 'host_capacity', _vector('host', {
                name: size[policy] for name, size in self.size.items()})


def _vector(label: str, values: Mapping[str, float]) -> Json:
    return {'status': 'success', 'data': {'resultType': 'vector', 'result': [
        {'metric': {label: name}, 'value': [EPOCH, repr(value)]}
        for name, value in values.items()]}}
