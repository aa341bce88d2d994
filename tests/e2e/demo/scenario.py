"""Scenarios of the demo: hosts, racks, servers, and the policies they are balanced by."""

import dataclasses
import json

import yaml

from tests.e2e import box

FLAVORS = {'small': (1, 4096), 'medium': (2, 8192), 'large': (4, 10240)}
KINDS = ('web', 'db', 'cache', 'batch')
WINDOW_SECONDS = 10
WINDOW = f'{WINDOW_SECONDS}s'
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scenario:
    """The properties of all demos.

    :param racks: aggregate name -> for each of its hosts, what it starts with
    :param budget: of moves in a cycle
    :param restraint: as in nova.conf, at its default
    :param timeout: seconds to boot, and to balance
    """

    racks: dict
    threshold: float
    budget: int
    timeout: float
    restraint: float = 1.0

    @property
    def hosts(self):
        """Aggregate name -> its hosts."""
        numbers = iter(range(1, 1 + sum(len(shares) for shares in self.racks.values())))
        return {rack: [f'compute{next(numbers)}' for _share in shares]
                for rack, shares in self.racks.items()}

    def nova_conf(self, policies_file):
        return {
            'DEFAULT': {'max_concurrent_live_migrations': 2},
            'kronos': {
                'automation': 'auto', 'aggregates': ','.join(self.racks),
                'policies_file': policies_file, 'evaluation_interval': 10, 'cooldown': 15,
                'instance_cooldown': 60, 'restraint': self.restraint},
            'kronos_executor': {
                'max_concurrent_migrations': 4, 'max_concurrent_per_source': 2,
                'poll_interval': 0.5, 'migration_timeout': 120}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MadeUp(Scenario):
    """Guests that are made up, as is their load. A host starts with a share of a rack's servers.

    :param migration_seconds: how long a migration takes
    """

    servers: int
    migration_seconds: float

    queries = QUERIES
    window_seconds = WINDOW_SECONDS

    def settings(self, **chosen):
        """The settings of the box that it takes place in."""
        return box.Settings(
            computes=sum(map(len, self.racks.values())), kronos=True, alerting=True,
            # A recorded day has ups and downs of its own; faster, it would outrun every plan.
            day_seconds=86400.0 if chosen.get('trace') else 7200.0,
            migration_seconds=self.migration_seconds, memory_mb=131072, **chosen)

    def boot(self, cloud):
        """(uuid, name) of each server, most of them on one host of a rack."""
        for name, (vcpus, memory) in FLAVORS.items():
            cloud.client.create_flavor(name, vcpus, memory)
        for name, flavor, host in self._placed():
            yield cloud.client.create(cloud.image, name, flavor=flavor, host=host), name

    def _placed(self):
        """(name, flavor, host) of every server."""
        order = list(FLAVORS)
        spots = [host for rack, shares in self.racks.items()
                 for host, share in zip(self.hosts[rack], shares, strict=True)
                 for _each in range(round(share * self.servers / len(self.racks)))]
        return [(f'{KINDS[number % len(KINDS)]}{number + 1}', order[number % len(order)], host)
                for number, host in enumerate(spots)]

    def guests_on(self, cloud):
        """Host -> number of servers."""
        def count(daemon):
            path = daemon.state_path / 'guests.json'
            return len(json.loads(path.read_text())) if path.exists() else 0
        return {host: count(daemon) for host, daemon in cloud.nova.computes.items()}

    def policies(self, threshold):
        """The policies file with one threshold for all."""
        return yaml.safe_dump({'policies': [
            {'name': name, 'mode': 'spread', 'weight': WEIGHTS[name], 'threshold': threshold,
             'imbalance_query': imbalance, 'vm_profile_query': profile,
             'vm_profile_label': 'uuid', 'vm_profile_label_type': 'uuid',
             'max_migrations_per_cycle': self.budget}
            for name, (imbalance, profile) in self.queries.items()]}, sort_keys=False)


FULL = MadeUp(racks={'rack1': (0.5, 0.3, 0.2, 0.0), 'rack2': (0.6, 0.1, 0.1, 0.2)},
              servers=40, threshold=0.1, migration_seconds=6.0, budget=10, timeout=400.0)
FAST = MadeUp(racks={'rack1': (0.5, 0.3, 0.1, 0.1, 0.0, 0.0)},
              servers=30, threshold=0.12, migration_seconds=2.0, budget=12, timeout=200.0)
