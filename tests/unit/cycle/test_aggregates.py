"""The part of a snapshot that an aggregate is planned with."""

import testtools

from kronos_nova.cycle.aggregates import ScopeIndex
from kronos_nova.cycle.problem import MovesInFlight
from kronos_nova.objects import snapshot as objects


def host(name, **service):
    return objects.Host(name=name, uuid=name, inventory={}, service=objects.Service(
        **{'state': 'up', 'status': 'enabled', **service}))


def instance(uuid, on):
    return objects.Instance(uuid=uuid, name=uuid, display_name=uuid, host=on, project_id='p',
                            status='ACTIVE', vcpus=1, memory_mb=1, disk_gb=1)


def aggregate(name, *hosts):
    return objects.Aggregate(name=name, uuid=name, hosts=hosts)


def group(uuid, *members):
    return objects.ServerGroup(uuid=uuid, name=uuid, policy='affinity', members=members)


class AroundTest(testtools.TestCase):
    cloud = objects.Snapshot(
        taken_at='', hosts=tuple(host(f'h{number}') for number in range(6)),
        instances=tuple(instance(f'{letter}{number}', f'h{number}')
                        for number in range(6) for letter in 'ab'),
        aggregates=(aggregate('one', 'h0', 'h1'), aggregate('two', 'h2', 'h3'),
                    aggregate('zone', 'h0', 'h2', 'h4'), aggregate('far', 'h5')),
        server_groups=(group('g1', 'a0', 'a5'), group('g2', 'a2', 'a3'), group('g3', 'b4', 'gone'),
                       group('g4', 'b5')),
        moves_under_way=(
            objects.MoveUnderWay(instance_uuid='b4', source='h4', destination='h1'),
            objects.MoveUnderWay(instance_uuid='b0', source='h0', destination='h4'),
            objects.MoveUnderWay(instance_uuid='b2', source='h2', destination='h5')),
        unread={'one': 'why'})

    def around(self, name, planned=None):
        scopes = ScopeIndex(self.cloud)
        return scopes.around(scopes.scope(name, planned or MovesInFlight()))

    def test_it_has_what_concerns_the_aggregate_in_the_order_of_the_whole(self):
        found = self.around('one')
        self.assertEqual(['h0', 'h1'], [each.name for each in found.hosts])
        self.assertEqual({'a0', 'a1', 'b0', 'b1', 'b4'}, {each.uuid for each in found.instances})
        self.assertEqual(['one', 'zone'], [each.name for each in found.aggregates])
        self.assertEqual(['g1', 'g3'], [each.uuid for each in found.server_groups])
        self.assertEqual(self.cloud.moves_under_way[:2], found.moves_under_way)
        self.assertEqual({'one': 'why'}, found.unread)

    def test_an_instance_that_comes_by_a_move_of_this_cycle_is_where_it_was_read(self):
        planned = MovesInFlight()
        planned.moved['a2'] = 'h1'
        found = {each.uuid: each.host for each in self.around('one', planned).instances}
        self.assertEqual('h2', found['a2'])

    def test_hosts_of_no_aggregate(self):
        self.assertEqual((), self.around(objects.UNASSIGNED).hosts)

    def test_a_move_of_an_unknown_instance(self):
        self.cloud = objects.Snapshot(
            taken_at='', hosts=self.cloud.hosts, instances=(), aggregates=self.cloud.aggregates,
            moves_under_way=(objects.MoveUnderWay(instance_uuid='x', source='h5',
                                                  destination='h1'),))
        found = self.around('one')
        self.assertEqual((), found.instances)
        self.assertEqual(self.cloud.moves_under_way, found.moves_under_way)
