"""The reason of a move in words."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.planners import base
from tests.unit.planners import clouds


class ChangeTest(testtools.TestCase):
    def test_as_many_digits_as_it_takes(self):
        self.assertEqual('cpu 0.412 to 0.398', base.change('cpu', 0.41234, 0.398))
        self.assertEqual('cpu 0.1471 to 0.1470', base.change('cpu', 0.14712, 0.14698))

    def test_zero_has_no_sign(self):
        self.assertEqual('cpu 0.003 to 0.000', base.change('cpu', 0.003, -1e-17))

    def test_what_stays_the_same_is_not_said(self):
        self.assertIsNone(base.change('memory', 0.067, 0.067))
        self.assertIsNone(base.change('memory', 0.067, 0.067 + 1e-9))


class StepRecorderTest(testtools.TestCase):
    def test_a_step_tells_imbalance_and_loads_of_both_hosts_before_and_after(self):
        problem = dataclasses.replace(
            clouds.idle([0, 0, 1]), weights=np.full((3, 1), 0.2),
            scores=np.array([[0.6], [0.2], [0.3]]))
        step = base.StepRecorder(clouds.start(problem)).record(0, 1, 'evens the load')
        self.assertEqual('evens the load: imbalance p 0.400 to 0.100; load of h0 p 0.600 to 0.400; '
                         'load of h1 p 0.200 to 0.400', step.reason)
