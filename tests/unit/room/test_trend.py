"""The time at which an aggregate will be full, by the slots of the past."""

import testtools

from kronos_nova.room import trend


class TrendTest(testtools.TestCase):
    def full_in(self, *slots):
        return trend.full_in((day + part, count) for day, count in enumerate(slots)
                             for part in (0.0, 0.5))

    def test_a_line_leads_to_the_day_on_which_nothing_fits(self):
        found = self.full_in(100, 98, 96, 94, 92, 90, 88)
        self.assertAlmostEqual(44.0, found.days)
        self.assertAlmostEqual(0.0, found.error)

    def test_the_error_grows_with_what_is_off_the_line(self):
        found = self.full_in(100, 97, 97, 93, 93, 89, 89)
        self.assertTrue(30 < found.days < 60, found)
        self.assertTrue(5 < found.error < 20, found)

    def test_without_a_certain_trend_nothing_is_said(self):
        for slots in ((100,) * 7, (90, 91, 92, 93, 94, 95, 96), (90, 100, 85, 99, 88, 101, 86)):
            self.assertIsNone(self.full_in(*slots))

    def test_few_days_are_no_trend(self):
        self.assertIsNone(self.full_in(100, 98, 96, 94, 92, 90))

    def test_what_is_full_is_full_in_no_days(self):
        self.assertEqual(0.0, self.full_in(6, 5, 4, 3, 2, 1, 0).days)
