"""Small clouds of every class of the bench: what can be emptied is."""

import testtools

from bench import optimum


class EmptyingTest(testtools.TestCase):
    def test_every_server_leaves_where_all_can(self):
        for kind in optimum.CLASSES:
            for seed in range(1000, 1005):
                _slack, whole, _others, is_wrong, _seconds = optimum.emptied(kind, seed)
                self.assertEqual((True, False), (whole, is_wrong), f'{kind}, seed {seed}')
