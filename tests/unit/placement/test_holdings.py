"""The part of allocations on sharing providers that belongs to a host."""

import testtools

from kronos_nova.placement import holdings
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


class ReadTest(testtools.TestCase):
    def test_progress_is_reported_for_every_provider(self):
        seen = []

        def track(items, description, total):
            for done, item in enumerate(items, 1):
                seen.append((description, done, total))
                yield item

        found = holdings.read(RecordedPlacement(), track)

        self.assertEqual({'vm': {'here': {'VCPU': 1}, 'there': {'VCPU': 1}}}, found.consumers)
        self.assertEqual([('Resource providers', 1, 2), ('Resource providers', 2, 2)], seen)


class RecordedPlacement:
    """Two providers, and a consumer that holds something on both."""

    def sharing(self):
        return ()

    def roots(self):
        return {'here': 'here', 'there': 'there'}

    def held_on(self, _provider):
        return {'vm': {'VCPU': 1}}
