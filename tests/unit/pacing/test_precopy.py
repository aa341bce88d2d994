"""Pre-copy as rounds that get shorter."""

import hypothesis
import testtools
from hypothesis import strategies as st

from kronos_nova.pacing.precopy import Copy
from tests.unit.planners.clouds import MANY

BANDWIDTH = 1000.0
COPIES = st.builds(
    Copy, memory_mb=st.floats(1, 1e6), disk_mb=st.floats(0, 1e6), dirty_mb_s=st.floats(0, 2000),
    fixed=st.floats(0, 60), downtime=st.floats(0.01, 10))


class PrecopyTest(testtools.TestCase):
    def test_an_idle_guest_is_copied_once(self):
        found = Copy(memory_mb=8000, fixed=10).forecast(BANDWIDTH)
        self.assertEqual((18.0, 0.0, 1, True), (
            found.seconds, found.downtime, found.rounds, found.converges))

    def test_rounds_are_a_geometric_series(self):
        # 8 s, 4 s, 2 s, 1 s; the half second that is left then is the guest's downtime.
        found = Copy(memory_mb=8000, dirty_mb_s=500).forecast(BANDWIDTH)
        self.assertEqual((15.5, 0.5, 4, True), (
            round(found.seconds, 6), round(found.downtime, 6), found.rounds, found.converges))

    def test_a_guest_that_writes_faster_than_is_copied_never_converges(self):
        found = Copy(memory_mb=8000, dirty_mb_s=1000).forecast(BANDWIDTH)
        self.assertEqual((False, 16.0, 8.0), (found.converges, found.seconds, found.downtime))

    def test_unless_it_is_small_enough_to_be_stopped_at_once(self):
        found = Copy(memory_mb=100, dirty_mb_s=1100).forecast(BANDWIDTH)
        self.assertEqual((True, 0, 0.1, 0.1), (
            found.converges, found.rounds, found.seconds, found.downtime))

    def test_disks_are_copied_first_and_a_factor_counts_for_all(self):
        self.assertEqual(2 * (5 + 20 + 8), Copy(
            memory_mb=8000, disk_mb=20000, fixed=5, factor=2).seconds(BANDWIDTH))

    @hypothesis.settings(max_examples=60 * MANY, deadline=None)
    @hypothesis.given(COPIES, st.floats(10, 5000))
    def test_it_is_what_playing_it_round_by_round_gives(self, copy, bandwidth):
        hypothesis.assume(abs(copy.dirty_mb_s / bandwidth - 1) > 0.01)
        found = copy.forecast(bandwidth)
        hypothesis.assume(found.converges)
        left, seconds = copy.memory_mb, copy.fixed + copy.disk_mb / bandwidth
        for _ in range(found.rounds):
            seconds += left / bandwidth
            left = copy.dirty_mb_s * left / bandwidth
        self.assertAlmostEqual(1.0, found.seconds / (seconds + left / bandwidth), 6)
        self.assertTrue(left / bandwidth <= copy.downtime * 1.000001)

    @hypothesis.settings(max_examples=60 * MANY, deadline=None)
    @hypothesis.given(COPIES, st.floats(10, 5000), st.floats(1.01, 4))
    def test_more_bandwidth_is_never_slower(self, copy, bandwidth, more):
        hypothesis.assume(copy.forecast(bandwidth).converges)
        self.assertTrue(copy.seconds(more * bandwidth) <= copy.seconds(bandwidth) * 1.000001)
