"""Resources that moves in progress need, by provider."""

import collections
import dataclasses

import testtools

from kronos_nova.objects import numa as objects_numa
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


class AfterMovesTest(testtools.TestCase):
    """An instance of one vCPU and 10 GB moves, and Nova has begun the migration or has not."""

    def after(self, source, destination, has_begun, **values):
        """(instance afterwards, {provider: used amounts that are not 0}, moves that are left)"""
        pool_of = {name: uuid for name, uuid in NEEDED.items() if uuid != name}
        before, then = pool_of.get(source), pool_of.get(destination)
        used = {name: collections.Counter() for name in (*NEEDED, 'pool1', 'pool2')}
        used[source]['VCPU'] += 1
        used[before or source]['DISK_GB'] += 10
        if has_begun:
            used[destination]['VCPU'] += 1
            used[then or destination]['DISK_GB'] += 10
        where = then if has_begun else before
        own = {'VCPU': 1, **({} if where else {'DISK_GB': 10})}
        instance = objects.Instance(**{
            'uuid': 'vm', 'name': 'vm', 'display_name': 'vm', 'host': source, 'project_id': 'p',
            'status': 'ACTIVE', 'vcpus': 1, 'memory_mb': 1, 'disk_gb': 10,
            'resources': {} if has_begun else own,
            'shared_resources': {'DISK_GB': 10} if where else {}, **values})
        snapshot = objects.Snapshot(
            taken_at='', instances=(instance,),
            hosts=tuple(dataclasses.replace(host(name), used=used[name]) for name in NEEDED),
            shared_providers=tuple(dataclasses.replace(pool(name), used=used[name])
                                   for name in ('pool1', 'pool2')),
        ).with_moves_under_way([objects.MoveUnderWay(
            instance_uuid='vm', source=source, destination=destination,
            arrived=own if has_begun else {})]).after_moves()
        [found] = snapshot.instances
        return found, {
            provider.uuid: {name: amount for name, amount in provider.used.items() if amount}
            for provider in (*snapshot.hosts, *snapshot.shared_providers)
            if any(provider.used.values())}, snapshot.moves_under_way

    def test_the_instance_is_on_its_destination_and_counts_once(self):
        for source, destination, used in (
                ('local', 'other', {'other': {'DISK_GB': 10, 'VCPU': 1}}),
                ('slow', 'slow2', {'slow2': {'VCPU': 1}, 'pool2': {'DISK_GB': 10}}),
                ('fast', 'slow', {'slow': {'VCPU': 1}, 'pool2': {'DISK_GB': 10}}),
                ('fast', 'local', {'local': {'DISK_GB': 10, 'VCPU': 1}}),
                ('local', 'fast', {'fast': {'VCPU': 1}, 'pool1': {'DISK_GB': 10}})):
            for has_begun in (False, True):
                instance, found, left = self.after(source, destination, has_begun)
                self.assertEqual((destination, used, ()), (instance.host, found, left))
                self.assertEqual({'VCPU': 1, 'DISK_GB': 10},
                                 {**instance.resources, **instance.shared_resources})
                self.assertEqual('DISK_GB' in used[destination], 'DISK_GB' in instance.resources)

    def test_a_move_whose_place_on_the_destination_is_not_known_is_still_in_progress(self):
        for values in ({'cells': (objects_numa.InstanceCell(cpus=1, memory_mb=1),)},
                       {'devices': (objects_numa.Device(alias='gpu'),)}):
            instance, found, left = self.after('local', 'other', True, **values)
            self.assertEqual(('local', 1, 2), (instance.host, len(left), len(found)))

    def test_a_move_whose_amounts_are_not_known_is_still_in_progress(self):
        instance, _found, left = self.after('local', 'other', False, resources={})
        self.assertEqual(('local', 1), (instance.host, len(left)))
