"""Resources that moves in progress need, by provider."""

import testtools

from kronos_nova.objects import snapshot as objects

UP = objects.Service(state='up', status='enabled')
NEEDED = {'local': 'local', 'other': 'other', 'fast': 'pool1', 'slow': 'pool2', 'slow2': 'pool2'}
"""From which provider instances of each host are allocated their disks."""


def inventory(**total):
    return {name: objects.ResourceInventory(total=amount) for name, amount in total.items()}


def host(name):
    disks = {'DISK_GB': 50} if NEEDED[name] == name else {}
    return objects.Host(name=name, uuid=name, service=UP, inventory=inventory(VCPU=8, **disks),
                        used={})


def pool(uuid):
    return objects.SharedProvider(
        uuid=uuid, inventory=inventory(DISK_GB=50),
        hosts=tuple(name for name, provider in NEEDED.items() if provider == uuid))


class MovesUnderWayTest(testtools.TestCase):
    def needed(self, source, destination, **values):
        """{provider: what the move of an instance of one vCPU and 10 GB needs of it}"""
        own = NEEDED[source] == source
        instance = objects.Instance(**{
            'uuid': 'vm', 'name': 'vm', 'display_name': 'vm', 'host': source, 'project_id': 'p',
            'status': 'ACTIVE', 'vcpus': 1, 'memory_mb': 1, 'disk_gb': 10,
            'resources': {'VCPU': 1, **({'DISK_GB': 10} if own else {})},
            'shared_resources': {} if own else {'DISK_GB': 10}, **values})
        snapshot = objects.Snapshot(
            taken_at='', hosts=tuple(map(host, NEEDED)), instances=(instance,),
            shared_providers=(pool('pool1'), pool('pool2')),
        ).with_moves_under_way([objects.MoveUnderWay(
            instance_uuid='vm', source=source, destination=destination)])
        self.assertEqual(1, len(snapshot.moves_under_way))
        return {provider.uuid: provider.used
                for provider in (*snapshot.hosts, *snapshot.shared_providers) if provider.used}

    def test_between_local_disks(self):
        self.assertEqual({'other': {'DISK_GB': 10, 'VCPU': 1}}, self.needed('local', 'other'))

    def test_within_a_pool(self):
        self.assertEqual({'slow2': {'VCPU': 1}}, self.needed('slow', 'slow2'))

    def test_between_pools(self):
        self.assertEqual({'slow': {'VCPU': 1}, 'pool2': {'DISK_GB': 10}},
                         self.needed('fast', 'slow'))

    def test_between_a_pool_and_a_local_disk(self):
        self.assertEqual({'local': {'DISK_GB': 10, 'VCPU': 1}}, self.needed('fast', 'local'))
        self.assertEqual({'fast': {'VCPU': 1}, 'pool1': {'DISK_GB': 10}},
                         self.needed('local', 'fast'))

    def test_what_was_allocated_already_is_not_needed_again(self):
        self.assertEqual({}, self.needed('fast', 'slow', resources={}))
