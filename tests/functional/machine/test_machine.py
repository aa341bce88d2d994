"""A short run of the state machine; ``python -m tests.functional.machine`` makes long ones."""

import hypothesis
from hypothesis import stateful

from tests.functional.machine import machine
from tests.functional.placement import base

# What fails here is made smaller by a long run, which takes minutes.
SHORT = hypothesis.settings(max_examples=8, stateful_step_count=25, derandomize=True,
                            deadline=None, database=None, phases=[hypothesis.Phase.generate],
                            suppress_health_check=list(hypothesis.HealthCheck))


class MachineTest(base.PlacementTestCase):
    def test_in_the_end_each_instance_holds_what_it_should(self):
        world = machine.World(self)

        stateful.run_state_machine_as_test(lambda: machine.Machine(world), settings=SHORT)

        self.assertGreater(world.steps, 50)
