"""Which of what is held on sharing providers belongs to a host."""

import testtools

from kronos_nova.placement.holdings import Holdings

HERE, POOL = {'here': {'VCPU': 1}}, {'pool': {'DISK_GB': 1}}
OTHER_POOL = {'other pool': {'DISK_GB': 1}}
HOLDINGS = Holdings(
    roots={'here': 'here', 'there': 'there'}, consumers={},
    sharing={'pool': frozenset(('here',)), 'other pool': frozenset(('there',))})


class SharedTest(testtools.TestCase):
    def test_what_serves_the_host_is_its(self):
        self.assertEqual(POOL, HOLDINGS.shared({**HERE, **POOL}, 'here'))

    def test_what_serves_others_is_theirs_where_the_host_has_such_too(self):
        self.assertEqual(POOL, HOLDINGS.shared({**HERE, **POOL, **OTHER_POOL}, 'here'))

    def test_it_is_the_hosts_where_only_the_aggregates_can_have_changed(self):
        self.assertEqual(OTHER_POOL, HOLDINGS.shared({**HERE, **OTHER_POOL}, 'here'))

    def test_where_nothing_is_held_on_the_host_it_is_not(self):
        self.assertEqual({}, HOLDINGS.shared({'there': {'VCPU': 1}, **OTHER_POOL}, 'here'))
