"""The number of providers that are read from placement at once."""

from concurrent import futures

import ddt
import fixtures
import testtools

from kronos_nova.inventory import providers
from kronos_nova.placement.client import ProviderState


class SlowPlacement:
    """Knows some roots; each answer about one takes so many seconds."""

    def __init__(self, count, seconds):
        self.count, self.seconds, self.answers = count, seconds, 0

    def monotonic(self):
        return self.answers * self.seconds

    def providers(self):
        return {str(number): ProviderState(root=str(number), generation=1)
                for number in range(self.count)}

    def sharing(self):
        return ()

    def held_on(self, _uuid):
        self.answers += 1
        return {}

    def inventories(self, _uuid):
        return {}

    def traits(self, _uuid):
        return frozenset()


class Placement:
    """Knows one root; a test changes what it has, and counts what is asked."""

    def __init__(self):
        self.generation, self.inventory, self.names, self.asked = 1, {'VCPU': 1}, {'A'}, []

    def providers(self):
        return {'root': ProviderState(root='root', generation=self.generation)}

    def sharing(self):
        return ()

    def held_on(self, _uuid):
        self.asked.append('held')
        return {}

    def inventories(self, _uuid):
        return dict(self.inventory)

    def traits(self, _uuid):
        self.asked.append('traits')
        return frozenset(self.names)


class TraitsTest(testtools.TestCase):
    """Reading a provider again whose generation has changed."""

    def setUp(self):
        super().setUp()
        self.placement = Placement()
        self.cache = providers.ProviderCache(read_all_every=4)

    def read(self):
        self.placement.asked.clear()
        [provider] = self.cache.read(self.placement, {'root': set()}).of['root']
        return sorted(provider.traits), self.placement.asked

    def test_traits_are_read_again_with_other_inventories_and_now_and_then(self):
        self.assertEqual((['A'], ['held', 'traits']), self.read())
        self.assertEqual((['A'], []), self.read())
        self.placement.generation, self.placement.names = 2, {'A', 'B'}
        self.assertEqual((['A'], ['held']), self.read())  # something was allocated
        self.placement.generation, self.placement.inventory = 3, {'VCPU': 2}
        self.assertEqual((['A', 'B'], ['held', 'traits']), self.read())
        self.placement.names = {'C'}
        self.assertEqual((['C'], ['held', 'traits']), self.read())  # the fifth reading


@ddt.ddt
class PaceOfProvidersTest(testtools.TestCase):
    @ddt.data((100, .05, 1, 1), (101, .05, 2, 2), (100, .2, 1, 8), (200, .2, 2, 8))
    @ddt.unpack
    def test_more_are_read_at_once_where_placement_is_slow(self, count, seconds, first, last):
        pools = self.useFixture(fixtures.MockPatchObject(
            futures, 'ThreadPoolExecutor', wraps=futures.ThreadPoolExecutor)).mock
        placement = SlowPlacement(count, seconds)
        cache = providers.ProviderCache(monotonic=placement.monotonic)
        found = cache.read(placement, {str(number): set() for number in range(count)})
        self.assertEqual(list(placement.providers()), list(found.of))
        at_once = [made.args[0] for made in pools.call_args_list]
        self.assertEqual((first, last), (at_once[0], at_once[-1]))
