"""The times at which a worker looks for leftovers of others."""

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova.conf import allocations
from kronos_nova.db import leases
from kronos_nova.plugin import reconciling
from tests.unit.db import fixtures as db_fixtures


class RecordedParts:
    """In the place of placement's client and of the register of tasks."""

    def __init__(self):
        self.beats = 0

    def negotiate(self):
        """Nothing to agree on."""

    def beat(self):
        self.beats += 1


class ReconcilingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        allocations.register_opts(self.conf)
        self.conf([], default_config_files=[])
        self.now, self.looks, self.windows = 1000.0, [], []
        for path, value in (
                ('kronos_nova.plugin.reconciling.timeutils.now', lambda: self.now),
                ('kronos_nova.placement.reconcile.Reconciler.run',
                 lambda _reconciler, window: self.look(window))):
            self.useFixture(fixtures.MonkeyPatch(path, value))
        self.parts = RecordedParts()
        self.clock = db_fixtures.Clock()
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.reconciling = self.worker('one')

    def worker(self, name):
        return reconciling.Reconciling(self.conf, self.parts, None, self.parts,
                                       leases.Leases(self.database, name, self.clock))

    def look(self, window=None):
        self.looks.append(self.now)
        self.windows.append(window)
        return iter(())

    def tick(self, seconds):
        self.now += seconds
        self.clock.go(seconds)
        self.reconciling.tick()
        return len(self.looks)

    def test_one_worker_looks_and_another_goes_on_where_it_died(self):
        other = self.worker('two')
        self.assertEqual(1, self.tick(0))
        for _tick in range(24):
            self.tick(5)
            other.tick()
        self.assertEqual(3, len(self.looks))
        self.assertEqual([86400, 420.0, 420.0], self.windows)
        # The first says nothing any more.
        for _tick in range(14):
            self.now += 5
            self.clock.go(5)
            other.tick()
        self.assertEqual(4, len(self.looks))
        self.assertLess(420, self.windows[-1])
        self.assertLess(self.windows[-1], 600)

    def test_it_beats_often_and_looks_now_and_then(self):
        self.assertEqual(1, self.tick(0))
        self.assertEqual(1, [self.tick(5) for _ in range(11)][-1])
        self.assertEqual(2, self.tick(5))
        self.assertEqual(13, self.parts.beats)

    def test_after_a_pause_workers_that_paused_too_do_not_count_as_dead(self):
        self.assertEqual(1, self.tick(0))
        self.assertEqual(1, self.tick(600))
        self.assertEqual(1, [self.tick(5) for _ in range(11)][-1])
        self.assertEqual(2, self.tick(5))
