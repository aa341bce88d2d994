"""What the demo shows: hosts, racks, servers, and the policies they are balanced by."""

import dataclasses

import yaml

FLAVORS = {'small': (1, 4096), 'medium': (2, 8192), 'large': (4, 10240)}
KINDS = ('web', 'db', 'cache', 'batch')
WINDOW = '10s'
QUERIES = {
    'cpu': (
        f'sum by (host) (rate(node_cpu_seconds_total{{mode="user"}}[{WINDOW}]))'
        ' / on (host) machine_cpu_cores',
        f'rate(libvirt_domain_info_cpu_time_seconds_total[{WINDOW}])'
        ' / on (host) group_left machine_cpu_cores'),
    'memory': (
        '1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes',
        'libvirt_domain_info_memory_usage_bytes'
        ' / on (host) group_left node_memory_MemTotal_bytes'),
}
WEIGHTS = {'cpu': 0.6, 'memory': 0.4}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """:param racks: aggregate name -> share of its servers that each of its hosts starts with"""

    racks: dict
    servers: int
    threshold: float
    migration_seconds: float
    budget: int
    timeout: float

    @property
    def hosts(self):
        """Aggregate name -> its hosts."""
        numbers = iter(range(1, 1 + sum(len(shares) for shares in self.racks.values())))
        return {rack: [f'compute{next(numbers)}' for _share in shares]
                for rack, shares in self.racks.items()}

    def placed(self):
        """(name, flavor, host) of every server."""
        order = list(FLAVORS)
        spots = [host for rack, shares in self.racks.items()
                 for host, share in zip(self.hosts[rack], shares, strict=True)
                 for _each in range(round(share * self.servers / len(self.racks)))]
        return [(f'{KINDS[number % len(KINDS)]}{number + 1}', order[number % len(order)], host)
                for number, host in enumerate(spots)]

    def policies(self, threshold):
        """The policies file with one threshold for all."""
        return yaml.safe_dump({'policies': [
            {'name': name, 'mode': 'spread', 'weight': WEIGHTS[name], 'threshold': threshold,
             'imbalance_query': imbalance, 'vm_profile_query': profile,
             'vm_profile_label': 'uuid', 'vm_profile_label_type': 'uuid',
             'max_migrations_per_cycle': self.budget}
            for name, (imbalance, profile) in QUERIES.items()]}, sort_keys=False)

    def nova_conf(self, policies_file):
        return {
            'DEFAULT': {'max_concurrent_live_migrations': 2},
            'kronos': {
                'automation': 'auto', 'aggregates': ','.join(self.racks),
                'policies_file': policies_file, 'evaluation_interval': 10, 'cooldown': 15,
                'instance_cooldown': 60},
            'kronos_executor': {
                'max_concurrent_migrations': 4, 'max_concurrent_per_source': 2,
                'poll_interval': 0.5, 'migration_timeout': 120}}


FULL = Scenario(racks={'rack1': (0.5, 0.3, 0.2, 0.0), 'rack2': (0.6, 0.1, 0.1, 0.2)},
                servers=40, threshold=0.1, migration_seconds=6.0, budget=10, timeout=400.0)
FAST = Scenario(racks={'rack1': (0.5, 0.3, 0.1, 0.1, 0.0, 0.0)},
                servers=30, threshold=0.12, migration_seconds=2.0, budget=12, timeout=200.0)
