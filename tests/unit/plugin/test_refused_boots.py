"""A request that found no host makes a wish for room, unless it names a host."""

import testtools
from nova.objects import flavor as nova_flavor
from nova.objects import request_spec

from kronos_nova.db import holds
from kronos_nova.objects import hold
from kronos_nova.plugin import refused_boots
from tests.unit.db import fixtures

FLAVOR = {'flavorid': '7', 'name': 'm1.huge', 'vcpus': 8, 'memory_mb': 4096, 'root_gb': 10,
          'ephemeral_gb': 1, 'swap': 512, 'extra_specs': {'hw:numa_nodes': '2'}}


class RefusedBootsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(fixtures.ControlDatabase()).database

    def wishes(self, **more):
        """Note a request, and return what is wished by now."""
        flavor = nova_flavor.Flavor(**FLAVOR | more.pop('flavor', {}))
        refused_boots.note(self.database, request_spec.RequestSpec(**{
            'flavor': flavor, 'project_id': 'p', 'num_instances': 2, 'availability_zone': None,
            'force_hosts': None, 'force_nodes': None, 'requested_destination': None, **more}), 600)
        return holds.Holds(self.database).in_states(hold.OPEN)

    def test_flavor_project_and_count_are_kept(self):
        [wish] = self.wishes(availability_zone='az2')
        self.assertEqual(
            ('m1.huge', 8, 4096, 12, {'hw:numa_nodes': '2'}, 'p', 'az2', 2, 600),
            (wish.shape.name, wish.shape.vcpus, wish.shape.memory_mb, wish.shape.disk_gb,
             wish.shape.extra_specs, wish.project_id, wish.availability_zone, wish.count,
             wish.hold_seconds))
        self.assertEqual((hold.ANY, hold.REQUESTED), (wish.aggregate, wish.state))

    def test_the_same_is_wished_once(self):
        for _request in range(3):
            self.assertEqual(1, len(self.wishes()))
        self.assertEqual(2, len(self.wishes(project_id='q')))
        self.assertEqual(3, len(self.wishes(flavor={'name': 'm1.other', 'flavorid': '8'})))

    def test_few_wishes_are_open_at_a_time(self):
        for number in range(refused_boots.MOST + 2):
            found = self.wishes(project_id=f'p{number}')
        self.assertEqual(refused_boots.MOST, len(found))

    def test_one_that_names_a_host_wishes_nothing(self):
        for more in ({'force_hosts': ['a']}, {'force_nodes': ['a']},
                     {'requested_destination': request_spec.Destination(host='a')}):
            self.assertEqual([], self.wishes(**more))
        self.assertEqual(1, len(self.wishes(
            requested_destination=request_spec.Destination(aggregates=['uuid']))))

    def test_a_database_that_is_away_fails_no_request(self):
        broken = fixtures.ControlDatabase()
        self.useFixture(broken)
        broken.database.writer = self.raising
        broken.database.reader = self.raising
        refused_boots.note(broken.database, request_spec.RequestSpec(
            flavor=nova_flavor.Flavor(**FLAVOR), project_id='p', num_instances=1,
            availability_zone=None, force_hosts=None, force_nodes=None,
            requested_destination=None), 600)

    def raising(self, *_args):
        raise refused_boots.db_exc.DBConnectionError('gone')
