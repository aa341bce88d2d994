"""The moves that join fragments of free room."""

import testtools

from kronos_nova.constraints.base import ConstraintRules
from kronos_nova.planners.base import Limits
from kronos_nova.room import defragmenting
from kronos_nova.room import shapes
from tests.unit.room import clouds


class DefragmentingTest(testtools.TestCase):
    def test_as_little_memory_is_copied_however_many_new_servers_find_no_room(self):
        """Two of three hosts can be emptied. The servers of a and b have the least memory."""
        cloud = clouds.cloud([clouds.host(name) for name in 'abc'],
                             [clouds.server('s', 'a', 3, 1024), clouds.server('t', 'b', 1, 1024),
                              clouds.server('u', 'c', 3, 2048)])
        found = defragmenting.plan(cloud, ConstraintRules(), shapes.parse('8:1024'),
                                   Limits(budget=5))
        self.assertEqual((0, 2), (found.before.total, found.after.total))
        self.assertEqual(2048, sum(move.memory_mb for move in found.moves))

    def test_servers_of_a_soft_group_stay_where_another_server_can_make_room(self):
        """Less memory is copied if a becomes empty, but its servers stay together."""
        cloud = clouds.cloud([clouds.host(name) for name in 'abc'],
                             [clouds.server('s', 'a', 2, 1024), clouds.server('t', 'a', 2, 1024),
                              clouds.server('u', 'b', 3, 4096), clouds.server('v', 'c', 3, 1024)],
                             server_groups=(clouds.group('soft-affinity', 's', 't'),))
        found = defragmenting.plan(cloud, ConstraintRules(), shapes.parse('8:1024'),
                                   Limits(budget=5), pinned=['v'])
        self.assertEqual([('u', 'b')], [(move.instance_uuid, move.source) for move in found.moves])
        self.assertEqual(1, found.after.total)
