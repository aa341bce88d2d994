"""The limits on the number of moves, as planning applies them to a plan."""

import numpy as np
import testtools

from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle.move_limits import MoveLimits
from kronos_nova.cycle.move_limits import RemainingMoveLimits
from kronos_nova.objects import plan as plans
from kronos_nova.policies.selection import Selections
from tests.unit.cycle import test_steps as clouds
from tests.unit.planners.clouds import idle


class PassedTest(testtools.TestCase):
    """A host with the heaviest server, which stays, and three lighter ones, which leave."""

    def passed(self, projects, **limits):
        problem = idle([0] * 4, hosts=2)
        problem.weights[:] = np.array([.4, .1, .1, .1])[:, None]
        instances = [clouds.instance(uuid, 'h0', project_id=project) for uuid, project in zip(
            problem.vms, ('q', *projects), strict=True)]
        found = RemainingMoveLimits(MoveLimits(**limits), problem, instances, PlanningHistory(),
                                    Selections())
        return found.passed([plans.PlannedMove(
            order=order, phase=plans.SPREAD, instance_uuid=uuid, source=problem.hosts[0],
            destination=problem.hosts[1], memory_mb=1, combined_after=0.0, reason='')
            for order, uuid in enumerate(problem.vms[1:], start=1)])

    def test_moves_beyond_a_limit_are_left_out(self):
        self.assertEqual({2}, self.passed(('p', 'p', 'r'), per_project=1))
        self.assertEqual({3}, self.passed(('p', 'p', 'r'), per_cause_and_day=2))

    def test_a_move_that_one_limit_leaves_out_uses_up_no_other(self):
        """The second move of project p is not made, and its load causes no move."""
        self.assertEqual({2}, self.passed(('p', 'p', 'r'), per_project=1, per_cause_and_day=2))
