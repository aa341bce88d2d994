"""The moves of a plan that help only together."""

import dataclasses

import numpy as np
import testtools

from kronos_nova.cycle import approval
from kronos_nova.cycle import problem
from kronos_nova.cycle import solve
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.model import Group
from kronos_nova.model import State
from kronos_nova.objects import plan as plans
from kronos_nova.planners.base import Limits
from kronos_nova.planners.base import StepRecorder
from tests.unit.planners import clouds
from tests.unit.planners.test_order import PrefixesTest as Example

LIMITS = Limits(budget=10, overload_ceiling=9.0)


class GroupsTest(testtools.TestCase):
    def chosen(self, *moves):
        return self.sorted(*moves)[1].moves()

    def sorted(self, *moves):
        """A plan, and the same plan sorted."""
        self.model = clouds.model(Example.PROBLEM)
        recorder = StepRecorder(State(self.model))
        steps = tuple((phase, recorder.record(vm, host, 'evens the load'))
                      for phase, (vm, host) in moves)
        before = solve.Chosen(state=recorder.state.under(self.model.with_rules()), steps=steps,
                              budget_left=7)
        return before, solve.sorted_by_prefixes(before, self.model, LIMITS)

    def test_the_rules_by_which_others_stayed_are_kept(self):
        for moves in ((Example.FIRST, Example.ALONE, Example.SECOND), (Example.ALONE, (2, 2))):
            before, after = self.sorted(*((plans.SPREAD, move) for move in moves))
            self.assertIs(before.state.model, after.state.model)
            self.assertEqual(before.budget_left, after.budget_left)

    def test_a_plan_that_may_be_cut_anywhere_is_left_as_it_is(self):
        before, after = self.sorted((plans.SPREAD, Example.ALONE), (plans.SPREAD, (2, 2)))
        self.assertIs(before, after)

    def test_the_reason_of_a_move_says_with_which_others_it_helps(self):
        first, *others = self.chosen(
            (plans.SPREAD, Example.FIRST), (plans.SPREAD, Example.ALONE),
            (plans.SPREAD, Example.SECOND))
        self.assertEqual((None, [1, 1]), (first.group, [move.group for move in others]))
        self.assertNotIn('together', first.reason)
        self.assertIn('; helps only together with move 3; 512 MiB', others[0].reason)
        self.assertIn('; helps only together with move 2; 512 MiB', others[1].reason)

    def test_a_last_move_that_alone_raises_the_imbalance_is_in_no_group(self):
        moves = self.chosen((plans.SPREAD, Example.ALONE), (plans.SPREAD, Example.FIRST))
        self.assertEqual([('v3', None), ('v0', None)],
                         [(move.instance_uuid, move.group) for move in moves])
        self.assertGreater(moves[1].combined_after, State(self.model).combined())

    def test_figures_are_those_of_the_new_order(self):
        moves = self.chosen((plans.SPREAD, Example.FIRST), (plans.SPREAD, Example.ALONE),
                            (plans.SPREAD, Example.SECOND))
        state = State(self.model)
        self.assertEqual(3, len(moves))
        for move in moves:
            state.move(state.problem.vms.index(move.instance_uuid),
                       state.problem.hosts.index(move.destination))
            self.assertAlmostEqual(state.combined(), move.combined_after)

    def test_moves_that_empty_hosts_keep_their_order_and_are_in_no_group(self):
        moves = self.chosen((plans.EVACUATE, Example.FIRST), (plans.EVACUATE, Example.SECOND))
        self.assertEqual([('v0', None), ('v1', None)],
                         [(move.instance_uuid, move.group) for move in moves])

    def test_a_plan_that_empties_and_then_spreads_is_sorted_from_where_emptying_ends(self):
        moves = self.chosen((plans.EVACUATE, Example.ALONE), (plans.SPREAD, Example.FIRST),
                            (plans.SPREAD, Example.SECOND))
        self.assertEqual(['v3', 'v0', 'v1'], [move.instance_uuid for move in moves])
        self.assertEqual([None, 1, 1], [move.group for move in moves])


class FakePlanner:
    """Makes the moves that are permitted, one after the other."""

    def __init__(self, phase, *moves, why=''):
        self.phase, self.moves, self.why = phase, moves, why

    def plan(self, state, limits):
        return [dataclasses.replace(clouds.step(state, *move), why=self.why)
                for move in self.moves if state.delta(move).feasible]


class PhasesTest(testtools.TestCase):
    def test_no_phase_moves_a_server_back_to_where_another_phase_took_it_from(self):
        model = clouds.model(clouds.idle([0, 1], hosts=3))
        self.patch(solve, '_planners', lambda *_given: (
            FakePlanner(plans.RELIEVE, (0, 2)), FakePlanner(plans.PACK, (0, 0), (1, 0))))
        self.assertEqual([(0, 2), (1, 0)], self.moves(model))

    def moves(self, model):
        due = solve.DuePhases(evacuate=False, repair=False, balance=True)
        chosen = solve.run(model, due, 'pack', EngineOptions(), LIMITS)
        self.assertEqual(chosen.state.vm_host.tolist(), chosen.end_in(model).vm_host.tolist())
        return [(step.vm, step.destination) for _phase, step in chosen.steps]

    def test_no_phase_moves_a_server_that_another_phase_has_moved(self):
        """The server goes to its last host at once, or when that host has room. It stays where the
        other phase moves it if its last host has room only while it is elsewhere."""
        for first, second, expected in ((9.0, 9.0, [(0, 1), (1, 0)]), (9.0, 1.0, [(1, 0), (0, 1)]),
                                        (1.0, 1.0, [(0, 2), (1, 0)])):
            for phase in (plans.PACK, plans.RELIEVE):
                problem = dataclasses.replace(
                    clouds.idle([0, 1], hosts=3), used=np.array([[1.0], [1.0], [0.0]]),
                    limits=np.array([[first], [second], [9.0]]))
                self.patch(solve, '_planners', lambda *_given, phase=phase: (
                    FakePlanner(plans.AFFINITY, (0, 2)), FakePlanner(phase, (1, 0), (0, 1))))
                self.assertEqual(expected, self.moves(clouds.model(problem)))

    def test_a_move_for_two_phases_has_the_purposes_of_both(self):
        """The purpose of the second move is left out if it is about host h2, where the server does
        not arrive."""
        model = clouds.model(clouds.idle([0, 1], hosts=3))
        for phase, late, expected in (
                (plans.AFFINITY, 'repairs server group h2', 'relieves h0, and repairs server group '
                                                            'h2'),
                (plans.SPREAD, '', 'relieves h0'), (plans.AFFINITY, 'relieves h0', 'relieves h0'),
                (plans.PACK, 'makes room', 'relieves h0'),
                (plans.RELIEVE, 'cools it', 'relieves h0')):
            self.patch(solve, '_planners', lambda *_given, phase=phase, late=late: (
                FakePlanner(plans.EVACUATE, (0, 2), why='relieves h0'),
                FakePlanner(phase, (0, 1), why=late)))
            due = solve.DuePhases(evacuate=False, repair=False, balance=True)
            [(found, step)] = solve.run(model, due, 'pack', EngineOptions(), LIMITS).steps
            self.assertEqual((plans.EVACUATE, 1, expected), (found, step.destination, step.why))


class LeftOutTest(testtools.TestCase):
    """Two servers of a group are on full hosts; one of a third server's neighbours gives way."""

    def setUp(self):
        super().setUp()
        self.problem = dataclasses.replace(
            clouds.idle([0, 0, 1, 1, 2], hosts=3, groups=(
                Group(uuid='g', name='g', members=np.array([0, 2]), anti=False, hard=True),)),
            limits=np.full((3, 1), 2.0), used=np.array([[2.0], [2.0], [1.0]]))
        due = solve.DuePhases(evacuate=False, repair=True, balance=False)
        self.chosen = solve.run(clouds.model(self.problem), due, 'spread',
                                EngineOptions(enforce_hard_affinity=True), LIMITS)
        self.assertEqual([('affinity', ()), ('affinity', (0,))], [
            (phase, step.depends_on) for phase, step in self.chosen.steps])

    def test_a_server_gives_way_only_for_a_move_that_is_made(self):
        self.assertEqual((), solve.without(self.chosen, {2}, LIMITS).steps)

    def test_nothing_is_left_out_unasked(self):
        self.assertEqual(2, len(solve.without(self.chosen, (), LIMITS).steps))

    def test_nor_for_one_that_is_not_permitted_any_more(self):
        case = problem.PlanningCase(
            name='agg', problem=self.problem, held={2: 'locked'},
            instances=clouds.snapshot_of(self.problem).instances, around=None, forecasts={},
            ahead=self.problem, load_stats={}, outlook=None, marks=None, compile=clouds.model,
            holds={})
        report = plans.AggregateReport(name='agg', outcome='planned', mode='spread',
                                       planner='spread', moves=self.chosen.moves())
        state = clouds.start(self.problem)
        found = approval.check_again(case, state, state.model, report)
        self.assertEqual({1: approval.SERVES_NOTHING}, {
            order: why for order, why in found.wrong.items() if order == 1})
        self.assertIn('locked', found.wrong[2])
