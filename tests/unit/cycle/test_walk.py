"""How many modules an evaluation walks through, from the answers of Prometheus to a recorded
plan."""

import pathlib
import sys

import kronos_nova
from kronos_nova.cycle import evaluation
from kronos_nova.objects import plan as plans
from kronos_nova.policies import loader
from tests.unit.cycle import test_evaluation

MOST = 100
"""Modules. The goal is 45, one a step of an evaluation and what the kernel needs. Raised, more has
to be read to follow a move; lowered, steps have to be brought together first. There were 93 when
this was measured."""
ROOT = str(pathlib.Path(kronos_nova.__file__).parent)


class WalkTest(test_evaluation.CycleTestCase):
    def walked(self, call):
        """The modules of Kronos of which a function is called, in the order of the first calls."""
        seen = {}

        def note(frame, event, _argument):
            name = frame.f_code.co_filename
            if event == 'call' and name.startswith(ROOT):
                seen.setdefault(name.removeprefix(ROOT))
        sys.setprofile(note)
        try:
            found = call()
        finally:
            sys.setprofile(None)
        return found, list(seen)

    def test_an_evaluation_walks_through_no_more_modules_than_before(self):
        # Libraries are loaded, and planners found, by the first one.
        self.run_cycle(rules=self.level(gpu='observe'))
        self.clock.go(1000)
        made = evaluation.Cycle(self.ports(), loader.parse(test_evaluation.POLICIES),
                                test_evaluation.OPTIONS, test_evaluation.RULES, self.clock)
        report, modules = self.walked(made.run)
        self.assertEqual([plans.PLANNED], [each.outcome for each in report.aggregates])
        self.assertIn('/planners/spread.py', modules)
        self.assertLessEqual(len(modules), MOST, modules)
