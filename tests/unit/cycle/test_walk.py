"""The way of an evaluation from the answers of Prometheus to a recorded plan: its steps, and the
number of modules that it walks through."""

import pathlib
import sys

import kronos_nova
from kronos_nova.cycle import evaluation
from kronos_nova.cycle import explain
from kronos_nova.cycle import metrics
from kronos_nova.cycle import observe
from kronos_nova.cycle import persist
from kronos_nova.cycle import precheck
from kronos_nova.cycle import problem
from kronos_nova.cycle import schedule
from kronos_nova.cycle import solve
from kronos_nova.db import models
from kronos_nova.objects import plan as plans
from kronos_nova.policies import loader
from tests.unit.cycle import test_evaluation

MOST = 103
"""Modules. Raised, more has to be read to follow a move; lowered, modules have to be joined first.
There were 93 when this was first measured, and 84 when the steps became modules; since then came
requirements, rules of operators (3), failure domains, held room, the comparison with no moves, the
loss of hosts (7), which is judged after the plan and need not be read to follow a move, nouns that
agree with their number, and the integer program that plans for tiny clusters (4).

The aim of 45 is out of reach while the layout holds: a step is a module (9, and the one that runs
them), a constraint is a module (10, and their base), a table of the control database has one module
that writes it (13). With those of model, planners, objects, policies and pacing that the layout
names (13) these are 47."""
ROOT = str(pathlib.Path(kronos_nova.__file__).parent)

STEPS = (
    (observe, 'observe'), (metrics, 'measure_aggregate'), (problem, 'state_problem'),
    (solve, 'due_phases'), (schedule, 'timely'), (precheck, 'checked'), (solve, 'run'),
    (explain, 'explain'), (persist.ResultWriter, 'persist'))
"""The functions of the steps, in the order in which they begin. A schedule has plans made and
checked until all of their moves can begin in time."""


class WalkTest(test_evaluation.CycleTestCase):
    def made(self):
        return evaluation.Cycle(self.ports(), loader.parse(test_evaluation.POLICIES),
                                test_evaluation.OPTIONS, test_evaluation.RULES, self.clock)

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
        # Libraries are loaded, and planners found, by the first one. Tables are mapped once.
        self.run_cycle(rules=self.level(gpu='observe'))
        for name in models.HOMES:
            getattr(models, name)
        self.clock.go(1000)
        report, modules = self.walked(self.made().run)
        self.assertEqual([plans.PLANNED], [each.outcome for each in report.aggregates])
        self.assertIn('/planners/spread.py', modules)
        self.assertLessEqual(len(modules), MOST, modules)

    def test_each_step_is_entered_once_and_in_order(self):
        entered = []

        def counted(owner, name):
            real = getattr(owner, name)

            def call(*args, **kwargs):
                entered.append((owner, name))
                return real(*args, **kwargs)
            self.patch(owner, name, call)
        for step in STEPS:
            counted(*step)
        [report] = self.made().run().aggregates
        self.assertEqual(plans.PLANNED, report.outcome)
        self.assertEqual([*STEPS], entered)
