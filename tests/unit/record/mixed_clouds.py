"""Clouds in which some servers can only run on some hosts, and Nova's answer to moves in them.

The judge knows Nova's words and no rule of the engine: it reads the rows of ``inventory.json``.
"""

from tests.unit.record.clouds import Cloud

TRAITS = ('HW_CPU_X86_AVX2', 'CUSTOM_LICENCE', 'CUSTOM_SSD', 'CUSTOM_GPU')
FEATURES = {'Haswell': ('aes',), 'Skylake-Server': ('aes', 'avx512f'),
            'Cascadelake-Server': ('aes', 'avx512f', 'avx512vnni'), 'EPYC': ('aes', 'svm')}
"""Features of CPU models. Of a model that another includes, servers go to that other only."""

RARE = 0.3
"""Part of the hosts that have a trait."""

CHOOSY = 0.4
"""Part of the servers that require something of their hosts."""


class MixedCloud(Cloud):
    """A random cloud in which every server is where Nova could have put it."""

    def __init__(self, seed, mode='spread', hosts=12, vms=60):
        super().__init__(seed, mode, hosts, vms)
        self.format = 3
        for host in self.inventory['hosts']:
            self._describe(host)
        hosts = {host['name']: host for host in self.inventory['hosts']}
        self.inventory['aggregates'][0]['metadata'] = {'trait:CUSTOM_GPU': 'required'}
        for instance in self.inventory['instances']:
            if self.rng.random() < CHOOSY:
                self._require(instance, hosts[instance['host']])

    def _describe(self, host):
        model = self.rng.choice(sorted(FEATURES))
        is_arm = self.rng.random() < 0.15
        host |= {'traits': [trait for trait in TRAITS if self.rng.random() < RARE],
                 'cpu': {'arch': 'aarch64', 'model': 'host', 'features': []} if is_arm else {
                     'arch': 'x86_64', 'model': model, 'features': list(FEATURES[model])},
                 'hypervisor_version': self.rng.choice((8002001, 9001000))}

    def _require(self, instance, host):
        rng = self.rng
        aggregates = [each['uuid'] for each in self.inventory['aggregates']
                      if host['name'] in each['hosts']]
        instance['requires'] = {
            'traits': [trait for trait in host['traits'] if rng.random() < 0.5],
            'forbidden': [trait for trait in TRAITS
                          if trait not in host['traits'] and rng.random() < 0.2],
            'member_of': [aggregates] if aggregates and rng.random() < 0.2 else [],
            'image': {'hw_architecture': host['cpu']['arch']} if rng.random() < 0.5 else {},
            **({'cpu_model': 'Haswell'} if rng.random() < 0.2 else {})}
        if rng.random() < 0.1:
            instance['live'] = {'can': rng.choice(('cold', 'no')), 'why': 'a device'}


class Nova:
    """Nova's answer to live migrations.

    :param inventory: the content of ``inventory.json``
    """

    def __init__(self, inventory):
        self.hosts = {row['name']: row for row in inventory['hosts']}
        self.servers = {row['uuid']: row for row in inventory['instances']}
        self.inside = {name: [row for row in inventory['aggregates'] if name in row['hosts']]
                       for name in self.hosts}

    def refusals(self, uuid, source, destination):
        """Yield each reason for which Nova refuses a move."""
        server = self.servers[uuid]
        requires, home, there = (server.get('requires', {}), self.hosts[source],
                                 self.hosts[destination])
        traits = set(there['traits'])
        if server.get('live', {'can': 'live'})['can'] != 'live':
            yield 'API: it is not migrated live'
        if not set(requires.get('traits', ())) <= traits:
            yield 'placement: a trait is missing'
        if traits & set(requires.get('forbidden', ())):
            yield 'placement: a forbidden trait'
        uuids = {row['uuid'] for row in self.inside[destination]}
        if any(uuids.isdisjoint(part) for part in requires.get('member_of', ())):
            yield 'placement: in none of the aggregates'
        for row in self.inside[destination]:
            isolated = {key.removeprefix('trait:') for key, value in row['metadata'].items()
                        if key.startswith('trait:') and value == 'required'}
            if not isolated <= set(requires.get('traits', ())):
                yield 'placement: an isolated aggregate'
        arch = requires.get('image', {}).get('hw_architecture')
        if arch and arch != there['cpu']['arch']:
            yield 'ImagePropertiesFilter: another architecture'
        if home['hypervisor_type'] != there['hypervisor_type']:
            yield 'conductor: another hypervisor'
        if there['hypervisor_version'] < home['hypervisor_version']:
            yield 'conductor: an older hypervisor'
        if not requires.get('cpu_model') and home['cpu']['arch'] != 'aarch64' and (
                home['cpu']['arch'] != there['cpu']['arch']
                or not set(home['cpu']['features']) <= set(there['cpu']['features'])):
            yield 'libvirt: another processor'
