import testtools

from kronos_nova.inventory import pace


class PaceTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.rests = []

    def sleep(self, seconds):
        self.rests.append(round(seconds, 6))

    def work(self, reading_pace, *steps):
        for seconds in steps:
            with reading_pace.step():
                self.now += seconds

    def pace(self, rest_time):
        return pace.ReadingPace(rest_time, self.sleep, lambda: self.now)

    def test_it_rests_as_long_as_it_worked(self):
        self.work(self.pace(5), .01, .02)
        self.assertEqual([.01, .02], self.rests)

    def test_a_long_step_is_not_followed_by_a_long_rest(self):
        self.work(self.pace(5), 3)
        self.assertEqual([pace.LONGEST_REST], self.rests)

    def test_a_large_reading_is_not_held_up_for_ever(self):
        self.work(self.pace(.07), *[.03] * 4)
        self.assertEqual([.03, .03, .01, 0], self.rests)

    def test_each_reading_has_its_rests(self):
        found = self.pace(.02)
        self.work(found, .02, .02)
        found.begin()
        self.work(found, .02)
        self.assertEqual([.02, 0, .02], self.rests)

