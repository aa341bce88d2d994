"""Run the state machine for many steps: ``python -m tests.functional.machine --steps 10000``.

Exit status: 0 no violation, 1 one was found; the smallest history that shows it is printed.
"""

import argparse
import sys
import time
import unittest

import hypothesis
from hypothesis import stateful

from tests.functional.machine import machine
from tests.functional.placement import base

STEPS_A_HISTORY = 50


class LongRun(base.PlacementTestCase):
    steps, seed = 0, 0

    def runTest(self):  # noqa: N802 - unittest's way
        world = machine.World(self)
        began = time.process_time()
        number = self.seed
        while world.steps < self.steps:
            settings = hypothesis.settings(
                max_examples=20, stateful_step_count=STEPS_A_HISTORY, deadline=None, database=None,
                suppress_health_check=list(hypothesis.HealthCheck))
            run = hypothesis.seed(number)(lambda: machine.Machine(world))
            stateful.run_state_machine_as_test(run, settings=settings)
            print(f'seed {number}: no violation; {world.steps} steps in all, '
                  f'{time.process_time() - began:.0f} s of CPU', flush=True)
            number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--steps', type=int, default=10000)
    parser.add_argument('--seed', type=int, default=0, help='of the first twenty histories')
    options = parser.parse_args()
    LongRun.steps, LongRun.seed = options.steps, options.seed
    result = unittest.TextTestRunner().run(LongRun())
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
