"""Moves of a plan have their turn, and what would come too late stays."""

import dataclasses
import datetime
import math

import fixtures
import numpy as np
import testtools

from kronos_nova import exception
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cooldown.planning_history import PastTry
from kronos_nova.cycle import schedule
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.options import PaceOptions
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.drain import planning
from kronos_nova.drain.states import Drain
from kronos_nova.objects import snapshot as objects
from kronos_nova.objects.move import Caps
from kronos_nova.objects.plan import EVACUATE
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.planners.base import Limits
from kronos_nova.policies import MigrationQueries
from kronos_nova.policies import Policy
from kronos_nova.policies import PolicySet
from tests.unit.cycle import test_steps as clouds

MIB = 2**20
HOSTS = 'h0', 'h1', 'h2'
ONE = Caps(total=1, per_source=1, per_destination=1)
DISK = objects.ResourceInventory(total=100)
NOON = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)


class Paced(testtools.TestCase):
    """Two of four instances of 1 GiB leave h0, one for each of the others; a move takes 11 s."""

    def setUp(self):
        super().setUp()
        self.policies = PolicySet(policies=(Policy(**clouds.POLICY),))
        self.instances = [clouds.instance(name, 'h0') for name in 'abcd']
        self.under_way, self.disabled = (), frozenset()
        self.ports = PlannerPorts(
            source=clouds.Recorded(imbalance={'h0': .8, 'h1': 0.0, 'h2': 0.0},
                                   vm_profile=dict.fromkeys('abcd', .2)),
            clock=lambda: 0.0, now=NOON.timestamp())

    def snapshot(self):
        return objects.Snapshot(
            taken_at='', hosts=tuple(dataclasses.replace(
                clouds.host(name, status='disabled' if name in self.disabled else 'enabled'),
                inventory={**clouds.ROOM, 'DISK_GB': DISK}) for name in HOSTS),
            instances=tuple(self.instances),
            moves_under_way=self.under_way,
            aggregates=(objects.Aggregate(name='agg', uuid='agg', hosts=HOSTS),))

    def options(self, **pace):
        return EngineOptions(
            aggregates=('agg',), include_unassigned_hosts=False,
            pace=PaceOptions(**{'caps': ONE, 'stream': 1024.0, **pace}))

    def plan(self, history=None, **pace):
        report, = plan_cycle(self.snapshot(), self.policies, self.options(**pace), self.ports,
                             history).aggregates
        return report

    def drained(self, *drains, tries=()):
        return planning.plan(self.snapshot(), self.policies, self.options(), self.ports, 'agg',
                             drains, tries=tries).report.moves


class PaceTest(Paced):
    def test_moves_have_their_turn_and_what_they_take(self):
        first, second = self.plan().moves
        self.assertEqual((0.0, 11.0, 11.0, 11.0), (
            first.begins_after, first.expected_seconds, second.begins_after,
            second.expected_seconds))

    def test_what_would_begin_when_the_load_is_another_stays(self):
        report = self.plan(stale_plan_age=10.0)
        self.assertEqual(['a'], [move.instance_uuid for move in report.moves])
        self.assertEqual({'late': ('b', 'c', 'd')},
                         {skip.reason: skip.instances for skip in report.not_moved})
        self.assertIn('1 move of 10 (max_migrations_per_cycle) can begin within 10 s',
                      ' '.join(report.notes))

    def test_what_is_in_progress_is_on_its_link(self):
        two = Caps(total=2, per_source=1, per_destination=2)
        before = {move.destination: move.expected_seconds for move in self.plan(caps=two).moves}
        self.instances += [clouds.instance('e', 'h2', task_state='migrating', memory_mb=65536)]
        self.ports.source.answers['vm_profile']['e'] = 0.0
        self.under_way = (objects.MoveUnderWay(instance_uuid='e', source='h2', destination='h1'),)
        after = {move.destination: move.expected_seconds for move in self.plan(caps=two).moves}
        self.assertEqual((11.0, 12.0), (before['h1'], after['h1']))

    def test_local_disks_are_copied_where_there_are_any(self):
        self.instances = [dataclasses.replace(each, resources={'VCPU': 1, 'DISK_GB': 5})
                          for each in self.instances]
        for copied, seconds in ((False, 11.0), (True, 16.0)):
            [move, *_others] = self.plan(copies_local_disks=copied).moves
            self.assertEqual(seconds, move.expected_seconds)

    def test_what_would_never_end_stays_unless_it_is_forced_or_its_host_is_emptied(self):
        # It wrote as fast as was copied: 20 GiB in 20 s, and all of its memory was left.
        hung = PastTry(instance_uuid='a', source='h0', destination='h1', memory_mb=1024,
                       seconds=None, failed=True, lasted=30.0, processed_mb=21 * 1024.0)
        history = PlanningHistory(tries=(hung,))
        report = self.plan(history=history)
        self.assertEqual(('a',), {skip.reason: skip.instances
                                  for skip in report.not_moved}['endless'])
        self.assertEqual({'b', 'c'}, {move.instance_uuid for move in report.moves})
        self.assertIn('a', {move.instance_uuid
                            for move in self.plan(history=history, forces=True).moves})
        wish = Drain(uuid='h0', host='h0', aggregate='agg', state='draining',
                     requested_by='jane', requested_at=NOON)
        moves = self.drained(wish, tries=(hung,))
        self.assertEqual('a', moves[-1].instance_uuid)
        self.assertIn('not expected to end by itself: it writes 1024 MiB a second, and 1024',
                      moves[-1].reason)
        self.assertEqual(4, len(moves))

    def test_what_is_asked_for_goes_before_what_is_learnt(self):
        self.policies = self.policies.model_copy(update={'migration': MigrationQueries(
            dirty_rate_query='d', used_memory_query='m', link_query='l')})
        self.ports.source.answers.update(
            dirty_rate={'a': 2048 * MIB, 'b': float('nan')}, used_memory={'b': 4096 * MIB},
            link={'h0': 512 * MIB})
        report = self.plan()
        self.assertEqual(('a',), {skip.reason: skip.instances
                                  for skip in report.not_moved}['endless'])
        seconds = {move.instance_uuid: move.expected_seconds for move in report.moves}
        self.assertEqual({'b': 18.0, 'c': 12.0}, seconds)

    def test_no_answer_is_reported_and_nothing_else(self):
        self.policies = self.policies.model_copy(update={'migration': MigrationQueries(
            dirty_rate_query='d')})
        before = self.ports.source.query

        def query(asked):
            if asked.kind == 'dirty_rate':
                raise exception.MetricsUnreachable(source='prometheus', problem='no connection')
            return before(asked)

        self.ports.source.query = query
        report = self.plan()
        self.assertEqual(2, len(report.moves))
        self.assertIn('migration.dirty_rate_query has no answer', ' '.join(report.warnings))

    def test_an_answer_that_is_not_whole_is_none(self):
        self.policies = self.policies.model_copy(update={'migration': MigrationQueries(
            dirty_rate_query='d')})
        self.ports.source.answers.update(dirty_rate={'a': 2048 * MIB})
        before = self.ports.source.query

        def query(asked):
            warnings = ('a store did not answer',) if asked.kind == 'dirty_rate' else ()
            return dataclasses.replace(before(asked), warnings=warnings)

        self.ports.source.query = query
        report = self.plan()
        self.assertEqual(2, len(report.moves))
        self.assertIn('earlier moves alone: migration, dirty_rate: the answer is incomplete: the '
                      'source warns of its answer: a store did not answer',
                      ' '.join(report.warnings))
        options = dataclasses.replace(self.options(), accept_partial_metrics=True)
        report, = plan_cycle(self.snapshot(), self.policies, options, self.ports).aggregates
        self.assertEqual(('a',), {skip.reason: skip.instances
                                  for skip in report.not_moved}['endless'])

    def test_it_is_reported_whose_instances_move_and_who_is_the_better_for_it(self):
        self.instances = [dataclasses.replace(each, project_id=project)
                          for each, project in zip(self.instances, 'pqrr', strict=True)]
        first, _second = self.plan().moves
        self.assertEqual(('p', ('r', 'q')), (first.project_id, first.benefits))
        wish = Drain(uuid='h0', host='h0', aggregate='agg', state='draining',
                     requested_by='jane', requested_at=NOON)
        self.assertEqual({()}, {move.benefits for move in self.drained(wish)})

    def test_the_host_with_the_earlier_deadline_is_emptied_first(self):
        self.instances += [clouds.instance(f'on-h1-{n}', 'h1') for n in range(4)]
        for early, late in (('h0', 'h1'), ('h1', 'h0')):
            wish = Drain(uuid=late, host=late, aggregate='agg', state='draining',
                         requested_by='jane', requested_at=NOON)
            moves = self.drained(wish, dataclasses.replace(
                wish, uuid=early, host=early, deadline=NOON + datetime.timedelta(seconds=60)))
            ended = {host: max(move.begins_after for move in moves if move.source == host)
                     for host in (early, late)}
            self.assertTrue(ended[early] < ended[late], ended)

    def test_a_drain_has_as_many_at_once_as_it_may_have(self):
        wish = Drain(uuid='h0', host='h0', aggregate='agg', state='draining',
                     requested_by='jane', requested_at=NOON, parallel=2)
        options = self.options(caps=Caps(total=4, per_source=1, per_destination=4))
        self.options = lambda: options
        self.assertEqual(2, [move.begins_after for move in self.drained(wish)].count(0.0))


    def test_what_leaves_a_disabled_host_is_not_limited_by_the_age_of_its_plan(self):
        self.instances = [clouds.instance(f'vm{n:02}', 'h0') for n in range(20)]
        self.ports.source.answers['vm_profile'] = {each.uuid: .01 for each in self.instances}
        self.disabled = {'h0'}
        self.policies = PolicySet(policies=(Policy(
            **clouds.POLICY | {'max_migrations_per_cycle': 15}),))
        options = dataclasses.replace(self.options(stale_plan_age=10.0),
                                      evacuate_disabled_hosts=True)
        self.options = lambda: options
        report = self.plan()
        self.assertEqual((15, ('budget',)), (
            len(report.moves), tuple(skip.reason for skip in report.not_moved)))

    def test_a_drain_is_not_limited_by_the_age_of_its_plan(self):
        self.instances = [clouds.instance(f'vm{n:02}', 'h0') for n in range(20)]
        self.ports.source.answers['vm_profile'] = {each.uuid: .01 for each in self.instances}
        wish = Drain(uuid='h0', host='h0', aggregate='agg', state='draining',
                     requested_by='jane', requested_at=NOON)
        options = self.options(stale_plan_age=10.0)
        self.options = lambda: options
        self.assertEqual(20, len(self.drained(wish)))


class BudgetTest(Paced):
    """Ten hosts of which the first three are full, and time for some moves only."""

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(3)
        self.hosts = tuple(f'h{number}' for number in range(10))
        self.loads = {f'vm{number:02}': float(rng.choice([.03, .05, .08, .12]))
                      for number in range(40)}
        self.place = {name: self.hosts[number % 3] for number, name in enumerate(self.loads)}
        self.instances = [clouds.instance(name, host, memory_mb=1024 * int(rng.choice([1, 4, 16])))
                          for name, host in self.place.items()]
        scores = {host: sum(self.loads[name] for name in self.loads if self.place[name] == host)
                  for host in self.hosts}
        self.ports = PlannerPorts(
            source=clouds.Recorded(imbalance=scores, vm_profile=self.loads),
            clock=lambda: 0.0, now=NOON.timestamp())

    def snapshot(self):
        return objects.Snapshot(
            taken_at='', hosts=tuple(map(clouds.host, self.hosts)),
            instances=tuple(self.instances),
            aggregates=(objects.Aggregate(name='agg', uuid='agg', hosts=self.hosts),))

    def ends(self, restraint):
        for budget in (10, 40):
            self.policies = PolicySet(policies=(Policy(
                **clouds.POLICY | {'max_migrations_per_cycle': budget, 'threshold': .05}),))
            options = dataclasses.replace(
                self.options(caps=Caps(total=2, per_source=1, per_destination=2),
                             stale_plan_age=150.0),
                restraint=Restraint(restraint), overload_ceiling=2.0)
            report, = plan_cycle(self.snapshot(), self.policies, options, self.ports).aggregates
            self.assertTrue(all(move.begins_after <= 150 for move in report.moves))
            yield report.combined_after

    def test_a_larger_budget_never_plans_worse(self):
        for restraint in (0.0, 1.0):
            best = 1.0
            for end in self.ends(restraint):
                self.assertLessEqual(end, best * 1.01)
                best = min(best, end)


class FakePace:
    """Moves begin one after the other, in larger plans at longer intervals."""

    def __init__(self, likely=1000):
        self.likely = likely

    def most_moves(self):
        return self.likely

    def is_timely(self, moves):
        return moves <= 11

    def paced(self, moves, scores):
        interval = 10.0 if len(moves) > 60 else 2.0
        return tuple(dataclasses.replace(move, begins_after=interval * number)
                     for number, move in enumerate(moves))

    def late(self, moves):
        return frozenset(move.order for move in moves
                         if move.begins_after > 100 and move.phase != EVACUATE)

    def room(self, moves):
        if moves and {move.phase for move in moves} == {EVACUATE}:
            return math.inf
        return 100 / moves[-1].begins_after if moves else 1.0


class FakeChosen:
    def __init__(self, budget, end=0.0, phase='spread', emptied=()):
        self.budget, self.end, self.phase, self.emptied = budget, end, phase, emptied

    def moves(self):
        return tuple(PlannedMove(
            order=order, phase=self.phase, instance_uuid='', source='', destination='',
            memory_mb=1, combined_after=self.end, reason='')
            for order in range(1, self.budget + 1))


class TimelyTest(testtools.TestCase):
    def plan(self, budget, needed=1000, **pace):
        """A plan of at most the needed moves, and the budgets of the plans that were made."""
        budgets = []

        def choose(limits):
            budgets.append(limits.budget)
            return FakeChosen(min(limits.budget, needed))

        return schedule.timely(FakePace(**pace), choose, {}, Limits(budget=budget)), budgets

    def test_a_plan_that_leaves_time_is_followed_by_a_larger_one(self):
        found, budgets = self.plan(200)
        self.assertEqual([200, 10], budgets[:2])
        self.assertEqual(49, len(found.moves))
        self.assertTrue(found.is_short)
        self.assertLessEqual(len(budgets), schedule.ROUNDS)

    def test_the_first_plan_has_as_many_moves_as_may_begin_in_time(self):
        found, budgets = self.plan(200, likely=30)
        self.assertEqual([30, 48], budgets[:2])
        self.assertEqual((50, True), (len(found.moves), found.is_short))

    def test_moves_that_empty_hosts_are_not_limited_by_time(self):
        budgets = []

        def choose(limits):
            budgets.append(limits.budget)
            return FakeChosen(min(limits.budget, 150), phase=EVACUATE)

        found = schedule.timely(FakePace(likely=30), choose, {}, Limits(budget=200))
        self.assertEqual(([30, 200], 150, False), (budgets, len(found.moves), found.is_short))

    def test_without_a_budget_one_plan_without_moves_is_made(self):
        found, budgets = self.plan(0)
        self.assertEqual(([0], ()), (budgets, found.moves))

    def test_a_plan_that_needs_no_more_moves_is_the_only_one(self):
        found, budgets = self.plan(200, needed=20, likely=30)
        self.assertEqual([30], budgets)
        self.assertEqual((20, False), (len(found.moves), found.is_short))

    def test_of_plans_that_begin_in_time_the_most_even_end_is_taken(self):
        def choose(limits):
            return FakeChosen(limits.budget, 0.1 if limits.budget == 10 else 0.2)

        found = schedule.timely(FakePace(), choose, {}, Limits(budget=200))
        self.assertEqual(10, len(found.moves))

    def test_of_plans_that_spread_nothing_the_largest_is_taken(self):
        def choose(limits):
            return FakeChosen(limits.budget, 0.1 if limits.budget == 10 else 0.2, 'pack')

        found = schedule.timely(FakePace(), choose, {}, Limits(budget=200))
        self.assertEqual(49, len(found.moves))

    def test_of_plans_that_pack_the_one_that_empties_most_hosts_is_taken(self):
        def choose(limits):
            return FakeChosen(limits.budget, phase='pack',
                              emptied=('a', 'b') if limits.budget == 10 else ('a',))

        found = schedule.timely(FakePace(), choose, {}, Limits(budget=200))
        self.assertEqual(10, len(found.moves))

    def test_a_search_that_would_use_all_the_time_leaves_some_for_a_plan_that_fits(self):
        now = 0.0

        def choose(limits):
            nonlocal now
            if limits.budget > 60:
                now = limits.deadline
                self.assertTrue(limits.is_over)
            return FakeChosen(limits.budget)

        limits = Limits(budget=200, clock=lambda: now, deadline=10.0)
        found = schedule.timely(FakePace(), choose, {}, limits)
        self.assertEqual(49, len(found.moves))
        self.assertFalse(limits.cut.happened)

    def test_three_searches_that_use_all_of_their_time_have_enough_of_it(self):
        """The plan of a search is useless if the search has less than a tenth of the time."""
        now = 0.0

        def choose(limits):
            nonlocal now
            begin, now = now, limits.deadline
            self.assertTrue(limits.is_over)
            return FakeChosen(limits.budget, end=0.1 if now - begin >= 1.0 else 0.5)

        class Longer(FakePace):
            """The moves of the second plan take a little longer than those of the first."""

            def is_timely(self, moves):
                return False

            def late(self, moves):
                return frozenset(range(1, 4)) if len(moves) == 10 else super().late(moves)

        limits = Limits(budget=200, clock=lambda: now, deadline=10.0)
        found = schedule.timely(Longer(), choose, {}, limits)
        self.assertEqual([0.1] * 6, [move.combined_after for move in found.moves])

    def test_late_moves_are_dropped_where_no_time_is_left_for_a_plan_that_fits(self):
        """The last search has so little time that its plan has three moves of ten."""
        now = 0.0

        def choose(limits):
            nonlocal now
            now = limits.deadline
            self.assertTrue(limits.is_over)
            return (FakeChosen(limits.budget, end=0.2) if limits.budget > 10 else
                    FakeChosen(3, end=0.4))

        def without(chosen, refused, limits):
            return FakeChosen(chosen.budget - len(refused), end=0.3)

        self.useFixture(fixtures.MonkeyPatch('kronos_nova.cycle.schedule.without', without))
        limits = Limits(budget=200, clock=lambda: now, deadline=10.0)
        found = schedule.timely(FakePace(), choose, {}, limits)
        self.assertEqual((11, 0.3), (len(found.moves), found.moves[-1].combined_after))
        self.assertTrue(found.is_short)

    def test_a_budget_with_which_a_late_plan_has_no_other_moves_is_not_tried(self):
        """Hosts are emptied by 11, 24, 46 or 99 moves. 46 moves do not begin in time."""
        budgets = []

        def choose(limits):
            budgets.append(limits.budget)
            moves = max(each for each in (0, 11, 24, 46, 99) if each <= limits.budget)
            return FakeChosen(moves, phase='pack', emptied=range(moves // 11))

        class Slow(FakePace):
            def late(self, moves):
                return frozenset(range(31, len(moves) + 1))

            def room(self, moves):
                return 5.0

        found = schedule.timely(Slow(), choose, {}, Limits(budget=50))
        self.assertEqual(([50, 28, 45], 24), (budgets, len(found.moves)))

    def test_no_number_of_moves_is_tried_twice(self):
        budgets = []

        def choose(limits):
            budgets.append(limits.budget)
            return FakeChosen(limits.budget if limits.budget > 60 else 5)

        schedule.timely(FakePace(), choose, {}, Limits(budget=200))
        self.assertEqual(sorted({*budgets}), sorted(budgets))
