"""Server groups that owners want apart by failure domains."""

import dataclasses

import testtools

from kronos_nova import model
from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.model import State
from kronos_nova.objects.snapshot import ServerGroup
from tests.unit.planners import clouds

RACKS = {'h0': 'r1', 'h1': 'r1', 'h2': 'r2', 'h3': None}


class ApartTest(testtools.TestCase):
    def groups(self, policy='anti-affinity', **wishes):
        """The groups of three servers, on h0, h1 and h2."""
        self.problem = clouds.idle([0, 1, 2], hosts=4)
        cloud = clouds.snapshot_of(self.problem)
        self.cloud = dataclasses.replace(
            cloud, hosts=tuple(dataclasses.replace(host, domains={'rack': RACKS[host.name]}
                                                   if RACKS[host.name] else {})
                               for host in cloud.hosts),
            instances=tuple(dataclasses.replace(
                each, metadata={'kronos:apart': wishes[each.uuid]} if each.uuid in wishes else {})
                for each in cloud.instances),
            server_groups=(ServerGroup(uuid='g', name='db', policy=policy,
                                       members=('v0', 'v1', 'v2')),))
        return model.groups(self.cloud, self.problem.vms, self.problem.hosts)

    def test_a_group_is_there_once_more_for_a_level_that_a_member_names(self):
        by_host, by_rack = self.groups(v1='rack')
        self.assertEqual(('db', None, 'db by rack', [0, 0, 2, 3]), (
            by_host.name, by_host.places, by_rack.name, by_rack.places.tolist()))
        self.assertEqual((True, True), (by_rack.hard, by_rack.yields))

    def test_it_may_be_a_preference(self):
        self.assertEqual([True, False], [each.hard for each in self.groups(v0='soft-rack')])
        self.assertEqual([False, False, True], [each.hard for each in self.groups(
            'soft-anti-affinity', v0='soft-rack', v1='rack')])

    def test_what_names_no_level_or_is_kept_together_is_left_as_it_is(self):
        for policy, wishes in (('anti-affinity', {}), ('anti-affinity', {'v0': 'row'}),
                               ('affinity', {'v0': 'rack'})):
            self.assertEqual(1, len(self.groups(policy, **wishes)))

    def test_no_member_goes_to_the_rack_of_another_but_to_empty_a_host(self):
        groups = self.groups(v1='rack')
        problem = dataclasses.replace(self.problem, groups=groups)
        state = State(clouds.model(problem, ConstraintRules(), snapshot=self.cloud))
        state.move(1, 3)
        self.assertEqual(0, int(state.groups.misplaced.sum()))
        self.assertFalse(state.delta((2, 1)).feasible)
        self.assertTrue(state.delta((0, 1)).feasible)
        self.assertTrue(state.delta((2, 1), model=state.model.for_emptying).feasible)
