"""The states of plans and drains: a table of legal transitions, and one function that writes."""

import ast
import functools
import itertools

import testtools

from kronos_nova import exception
from kronos_nova.db import drains as db_drains
from kronos_nova.drain import states as drains
from kronos_nova.objects import plan as plans
from kronos_nova.objects import transitions
from tests.unit.db import fixtures
from tests.unit.test_layers import ROOT
from tests.unit.test_layers import modules

WRITERS = {'PlanRow': {('db/journal/plans.py', '_write_state')},
           'DrainRow': {('db/drains.py', '_write_state')},
           'HoldRow': {('db/holds.py', 'enter')}}
OTHERS = {('db/check.py', '_end_maintenance'), ('db/repairs.py', '_close')}
"""Functions that set the state of a row of another table."""


def writers(table):
    """(module, function) of each update of the state of a table's rows."""
    for path in modules():
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and any(
                    _updates_state(node, table) for node in ast.walk(function)):
                yield str(path.relative_to(ROOT)), function.name


def _updates_state(node, table):
    """Return whether a node is ``update(models.TABLE)....values(state=...)``."""
    return (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            and node.func.attr == 'values'
            and f'update(models.{table})' in ast.unparse(node.func)
            and any(each.arg == 'state' for each in node.keywords))


def assigners():
    """(module, function) that sets the state of a row by its attribute."""
    for path in modules():
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                for node in ast.walk(function):
                    targets = node.targets if isinstance(node, ast.Assign) else ()
                    if any(isinstance(each, ast.Attribute) and each.attr == 'state'
                           and ast.unparse(each.value) != 'self'
                           for target in targets for each in ast.walk(target)):
                        yield str(path.relative_to(ROOT)), function.name


def orderers():
    """Modules that bring drains to another state, by the store that writes it."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                    and node.func.attr in ('enter', 'end', 'request')
                    and ast.unparse(node.func.value).split('.')[-1] in ('drains', 'known')):
                yield path.relative_to(ROOT)


class WritersTest(testtools.TestCase):
    def test_drains_are_brought_to_another_state_in_their_room_and_by_maintenances(self):
        found = {*orderers()}
        self.assertTrue(found)
        self.assertEqual([], [path for path in found if path.parts[0] != 'drain'
                              and not path.stem.startswith('maintenance')])

    def test_plans_and_drains_have_one_writer_of_their_state_each(self):
        self.assertEqual(WRITERS, {table: {*writers(table)} for table in WRITERS})

    def test_no_row_of_theirs_is_given_a_state_by_its_attribute(self):
        self.assertEqual(OTHERS, {each for each in assigners() if each[0].startswith('db/')})


class DrainLifeTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        self.drains = db_drains.Drains(self.useFixture(fixtures.ControlDatabase()).database)

    def drain(self, number, state=drains.REQUESTED):
        wanted = drains.Drain(
            uuid=f'd{number}', host=f'h{number}', aggregate='gpu', state=drains.REQUESTED,
            requested_by='jane', requested_at=self.clock())
        self.drains.request([wanted])
        fixtures.bring(self.drains, wanted, state)
        return self.drains.get(wanted.uuid)

    def test_what_the_table_permits_is_done_and_nothing_else(self):
        states = (*drains.ACTIVE, *drains.OVER, *drains.OPENED)
        self.assertEqual({*states}, {*drains.DRAIN_TRANSITIONS})
        for number, (old, new) in enumerate(itertools.product(states, states)):
            drain = self.drain(number, old)
            if new in drains.DRAIN_TRANSITIONS[old]:
                self.assertTrue(self.drains.enter(drain, (old,), new))
                self.assertEqual(new, self.drains.get(drain.uuid).state)
            else:
                self.assertRaises(exception.IllegalDrainTransition, self.drains.enter, drain,
                                  (old,), new)
                self.assertEqual(old, self.drains.get(drain.uuid).state)

    def test_a_drain_in_another_state_is_left_alone(self):
        drain = self.drain(1, drains.EMPTY)
        self.assertFalse(self.drains.enter(drain, (drains.DRAINING,), drains.BLOCKED))
        self.assertFalse(self.drains.note(drain, drains.ACTIVE, left=3))
        self.assertEqual((drains.EMPTY, None), (self.drains.get('d1').state,
                                                self.drains.get('d1').left))

    def test_that_a_drain_waits_in_vain_is_a_fact_of_its_own(self):
        drain = self.drain(1, drains.DRAINING)
        note = functools.partial(self.drains.note, drain, drains.ACTIVE)
        for values, expected in (
                ({'wait': drains.Wait(why=f'anything; {drains.released_by("h1")}')}, False),
                ({'wait': drains.Wait(why='an evaluation', is_in_vain=True)}, True),
                ({'left': 3}, True),  # another fact
                ({'wait': drains.Wait(why='an evaluation')}, False)):
            self.assertTrue(note(**values))
            self.assertIs(expected, self.drains.get('d1').waits_in_vain)
        for values in ({'waits_for': 'an evaluation'}, {'waits_in_vain': True}):
            self.assertRaises(ValueError, note, **values)

    def test_a_drain_that_has_ended_waits_neither_for_anything_nor_in_vain(self):
        drain = self.drain(1, drains.DRAINING)
        self.drains.note(drain, drains.ACTIVE, wait=drains.Wait(
            why='an evaluation', is_in_vain=True))
        self.drains.enter(drain, (drains.DRAINING,), drains.RELEASING)
        found = self.drains.get('d1')
        self.assertEqual(('', False), (found.waits_for, found.waits_in_vain))

    def test_each_state_of_both_is_reached(self):
        for table, first in ((transitions.PLAN_TRANSITIONS, {plans.OBSERVED, plans.PROPOSED}),
                             (drains.DRAIN_TRANSITIONS, {drains.REQUESTED})):
            self.assertEqual({*table}, first.union(*table.values()))
