"""The availability zones that servers are pinned to, read both ways."""

from kronos_nova.plugin.inventory import InProcessInventory
from tests.functional.inventory import test_two_ways
from tests.functional.inventory.public import public_inventory


class PinnedTest(test_two_ways.QemuTestCase):
    def test_columns_say_which_aggregates_a_server_is_pinned_to(self):
        uuids = {}
        for zone, host in (('az1', 'host1'), ('az2', 'host2')):
            aggregate = self.api.post_aggregate({'aggregate': {
                'name': zone, 'availability_zone': zone}})
            self.api.add_host_to_aggregate(aggregate['id'], host)
            uuids[zone] = aggregate['uuid']
        pinned = {zone: self._create_server(az=zone, networks='none')['id'] for zone in uuids}
        free = self.boot('host1')['id']
        for way in (InProcessInventory(), public_inventory(self)):
            for _again in range(2):
                found = {each.uuid: each.requires.member_of for each in way.read().instances}
                self.assertEqual({pinned['az1']: ((uuids['az1'],),),
                                  pinned['az2']: ((uuids['az2'],),), free: ()}, found)
