"""What a move is said to do."""

import testtools

from kronos_nova.planners import steps


class ChangeTest(testtools.TestCase):
    def test_as_many_digits_as_it_takes(self):
        self.assertEqual('cpu 0.412 to 0.398', steps.change('cpu', 0.41234, 0.398))
        self.assertEqual('cpu 0.1471 to 0.1470', steps.change('cpu', 0.14712, 0.14698))

    def test_what_stays_the_same_is_not_said(self):
        self.assertIsNone(steps.change('memory', 0.067, 0.067))
        self.assertIsNone(steps.change('memory', 0.067, 0.067 + 1e-9))
