"""When a worker looks for what others left behind."""

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova.conf import allocations
from kronos_nova.plugin import reconciling


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
        self.now, self.looks = 1000.0, []
        for path, value in (
                ('kronos_nova.plugin.reconciling.timeutils.now', lambda: self.now),
                ('kronos_nova.placement.reconcile.Reconciler.run',
                 lambda _reconciler, window: self.look())):
            self.useFixture(fixtures.MonkeyPatch(path, value))
        self.parts = RecordedParts()
        self.reconciling = reconciling.Reconciling(self.conf, self.parts, None, self.parts)

    def look(self):
        self.looks.append(self.now)
        return iter(())

    def tick(self, seconds):
        self.now += seconds
        self.reconciling.tick()
        return len(self.looks)

    def test_it_beats_often_and_looks_now_and_then(self):
        self.assertEqual(1, self.tick(0))
        self.assertEqual(1, [self.tick(5) for _ in range(11)][-1])
        self.assertEqual(2, self.tick(5))
        self.assertEqual(13, self.parts.beats)

    def test_after_a_pause_it_takes_nobody_for_dead_who_had_one_too(self):
        self.assertEqual(1, self.tick(0))
        self.assertEqual(1, self.tick(600))
        self.assertEqual(1, [self.tick(5) for _ in range(11)][-1])
        self.assertEqual(2, self.tick(5))
