"""A cycle from what is read to what is written down, with a recorded cloud."""

import dataclasses
import datetime
import logging

import ddt
import fixtures as test_fixtures
import testtools

from kronos_nova import exception
from kronos_nova.cooldown.planning_history import PastMove
from kronos_nova.cycle import evaluation
from kronos_nova.cycle import observe
from kronos_nova.cycle import options
from kronos_nova.cycle import persist
from kronos_nova.cycle.move_limits import MoveLimits
from kronos_nova.cycle.prices import MinGain
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.db import cooldowns
from kronos_nova.db import cycles
from kronos_nova.db import drains
from kronos_nova.db import journal as db_journal
from kronos_nova.db import load_stats
from kronos_nova.db import refusals as db_refusals
from kronos_nova.db import scores
from kronos_nova.db import server_names
from kronos_nova.db import switches
from kronos_nova.drain.progress import HostDrains
from kronos_nova.drain.states import Drain
from kronos_nova.objects import metrics
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from kronos_nova.objects.automation import PAUSE
from kronos_nova.objects.automation import Defaults
from kronos_nova.objects.automation import Switch
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.dry_run import not_asked
from kronos_nova.operations import overview
from kronos_nova.policies import loader
from tests.unit.db import fixtures

POLICIES = """
policies:
- {name: cpu, mode: spread, weight: 1.0, threshold: 0.05, max_migrations_per_cycle: 5,
   imbalance_query: hosts, vm_profile_query: servers, vm_profile_label: uuid,
   vm_profile_label_type: uuid}
"""
RULES = evaluation.CycleRules(
    automation=Defaults(level='auto'), cooldown=60, instance_cooldown=100,
    instance_cooldown_factor=2, instance_cooldown_max=1000, no_return_window=0,
    experience_window=600, stale_plan_age=600, start_interval=0)
OPTIONS = options.EngineOptions(
    aggregates=('gpu',), include_unassigned_hosts=False)

WIDE = moves.Caps(total=9, per_source=9, per_destination=9)


class RecordedCloud:
    """Hosts a and b; instances are where they are put, each a tenth of a host's load."""

    def __init__(self, clock):
        self.clock = clock
        self.placed = {'vm1': 'a', 'vm2': 'a', 'vm3': 'a', 'vm4': 'b'}
        self.hosts = 'ab'
        self.status = dict.fromkeys('abcd', 'enabled')
        self.silent = set()
        self.load = {}
        self.stopped = set()
        self.aggregates = {'gpu': ('a', 'b')}
        self.used = None

    def read(self, scopes=None, moves=()):
        self.asked_for = moves
        return snapshot.Snapshot(
            taken_at='2026-11-20T12:00:00Z',
            hosts=tuple(snapshot.Host(
                name=name, uuid=f'rp-{name}',
                service=snapshot.Service(state='down' if name in self.silent else 'up',
                                         status=self.status[name]),
                inventory={'VCPU': snapshot.ResourceInventory(total=64)}, used=self.used)
                for name in self.hosts),
            aggregates=tuple(snapshot.Aggregate(name=name, uuid=name, hosts=hosts)
                             for name, hosts in self.aggregates.items()),
            instances=tuple(snapshot.Instance(
                uuid=uuid, name=uuid, display_name=uuid, host=host, project_id='p',
                status='SHUTOFF' if uuid in self.stopped else 'ACTIVE', vcpus=1, memory_mb=512,
                disk_gb=1, resources={'VCPU': 1})
                for uuid, host in self.placed.items()))

    def names_elsewhere(self, attribute, names):
        return set()

    def query(self, query):
        at = self.clock().timestamp()
        if query.kind == metrics.VM_PROFILE:
            values, label = dict.fromkeys(self.placed, 0.1), 'uuid'
        else:
            hosts = list(self.placed.values())
            values = {name: hosts.count(name) / 10 for name in self.hosts} | self.load
            label = 'host'
        return metrics.Vector(tuple(metrics.Sample({label: name}, value, at)
                                    for name, value in values.items()))


class CycleTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = fixtures.Clock()
        self.cloud = RecordedCloud(self.clock)
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.journal = db_journal.Journal(self.database, 'one')
        self.cooldowns = cooldowns.Cooldowns(self.database)
        self.cycles = cycles.Cycles(self.database)
        self.refusals = db_refusals.Refusals(self.database)
        self.dry_run = not_asked
        self.cycles.begin('gpu', 'one', self.clock(), 1)

    def ports(self, history=()):
        return evaluation.CyclePorts.over(
            self.database, self.journal, inventory=self.cloud, metrics=self.cloud,
            cooldowns=self.cooldowns, cycles=self.cycles, refusals=self.refusals,
            history=lambda since: history, dry_run=self.dry_run, requesters=(HostDrains,))

    def run_cycle(self, rules=RULES, engine_options=OPTIONS, may_write=True, history=(), more=''):
        return evaluation.Cycle(self.ports(history), loader.parse(POLICIES + more), engine_options,
                                rules,
                                self.clock, lambda: may_write).run()

    def level(self, **levels):
        return dataclasses.replace(RULES, automation=Defaults(level='observe', levels=levels))

    def states(self):
        return [plan.state for plan in self.journal.plans()]


@ddt.ddt
class CycleTest(CycleTestCase):
    def test_with_auto_the_plan_runs_and_what_it_touches_cools(self):
        [report] = self.run_cycle().aggregates
        self.assertEqual(plans.PLANNED, report.outcome)
        [move] = self.journal.moves()
        self.assertEqual(('a', 'b'), (move.source, move.destination))
        self.assertEqual({'gpu': 60}, self.cooldowns.cooling(self.clock())[cooldowns.AGGREGATE])
        self.assertEqual({move.instance_uuid: 100},
                         self.cooldowns.cooling(self.clock())[cooldowns.INSTANCE])
        self.assertAlmostEqual(0.3, scores.Scores(self.database).combined(self.clock())['a'][1])

    def test_with_restraint_what_instances_are_like_is_remembered_from_cycle_to_cycle(self):
        store = load_stats.LoadStatsStore(self.database)
        for seconds in (1, 301):
            self.run_cycle(engine_options=dataclasses.replace(
                OPTIONS, restraint=Restraint(1.0)))
            [known] = store.read(None).values()
            self.assertEqual([seconds] * 4, known['cpu'].figures[:, 0].tolist())
            self.clock.go(300)

    def test_an_instance_that_was_moved_as_often_as_it_may_in_a_week_is_let_alone(self):
        once = dataclasses.replace(OPTIONS, move_limits=MoveLimits(per_instance_and_week=1))
        self.run_cycle(engine_options=once)
        first = self.fail_the_move()
        self.run_cycle(engine_options=once)
        self.assertNotEqual(first, self.fail_the_move())
        self.clock.go(7 * 86400)
        self.run_cycle(engine_options=once)
        self.assertEqual(first, self.fail_the_move())

    def test_a_move_is_reported_beside_what_could_have_been_moved_instead(self):
        [report] = self.run_cycle().aggregates
        [move] = report.moves
        other = move.next_best
        self.assertEqual(('b', move.combined_after), (other.destination, other.combined_after))
        self.assertNotEqual(move.instance_uuid, other.instance_uuid)
        names = server_names.ServerNames(self.database)
        self.assertEqual(set(self.cloud.placed), set(names.read(self.cloud.placed)))
        self.assertEqual({report.name}, {*map(names.aggregate, self.cloud.placed)})

    def test_an_instance_that_is_moved_again_cools_for_longer(self):
        fixtures.cool(self.database, cooldowns.INSTANCE, list(self.cloud.placed), self.clock())
        self.clock.go(1)
        self.run_cycle()
        [left] = self.cooldowns.cooling(self.clock())[cooldowns.INSTANCE].values()
        self.assertEqual(200, left)

    def fail_the_move(self, **values):
        [move] = self.journal.dispatch(moves.Caps(total=1, per_source=1, per_destination=1),
                                       self.clock)
        move = self.journal.claim(move.uuid, self.clock())
        self.journal.advance(move, moves.FAILED, self.clock(), finished_at=self.clock(), **values)
        self.journal.settle(move.uuid, self.clock())
        self.journal.close_plans(self.clock())
        self.clock.go(200)
        return move.instance_uuid

    def test_moves_that_failed_make_the_next_ones_dearer(self):
        self.run_cycle()
        self.fail_the_move()
        careful = dataclasses.replace(OPTIONS, min_gain=MinGain(per_failure=0.5))
        [report] = self.run_cycle(engine_options=careful).aggregates
        self.assertEqual(plans.NO_MOVE, report.outcome)
        self.clock.go(600)  # as long as moves are remembered
        [report] = self.run_cycle(engine_options=careful).aggregates
        self.assertEqual(plans.PLANNED, report.outcome)

    def test_a_move_that_is_refused_at_its_start_is_known_of_its_kind_and_of_no_server(self):
        careful = dataclasses.replace(OPTIONS, min_gain=MinGain(per_failure=0.5))
        rules = dataclasses.replace(RULES, rejection_backoff=900)
        self.run_cycle(rules)
        refused = self.fail_the_move(error_type=moves.REFUSED, error='no CPU model')
        [report] = self.run_cycle(rules, careful).aggregates
        self.assertEqual(plans.NO_MOVE, report.outcome)
        # With two hosts, one refusal is all that its kind can have.
        self.assertEqual({*self.cloud.placed},
                         {uuid for skip in report.not_moved for uuid in skip.instances
                          if skip.reason == 'refused'})
        [refusal] = [each for each in report.refusals if each.instance_uuid == refused]
        self.assertEqual(('b',), refusal.hosts)
        self.assertIn('no CPU model', refusal.reason)
        self.clock.go(901)
        # It costs no more to move than before.
        [report] = self.run_cycle(rules, careful).aggregates
        self.assertEqual(plans.PLANNED, report.outcome)

    def test_the_level_of_an_aggregate_goes_before_that_of_all(self):
        self.run_cycle(rules=self.level())
        self.assertEqual([plans.OBSERVED], self.states())
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertIn(plans.PROPOSED, self.states())
        self.assertEqual([], self.journal.moves())

    def test_while_a_plan_is_open_its_aggregate_is_not_planned_again(self):
        self.run_cycle()
        self.clock.go(100)
        [report] = self.run_cycle().aggregates
        # The move in progress counts at its destination, and with it all is even.
        self.assertEqual((plans.BALANCED, ()), (report.outcome, report.moves))
        self.assertEqual([plans.EXECUTING], self.states())

    def given_up(self, relation, servers='{uuid: [vm1, vm2, vm3]}', phase=plans.SPREAD):
        """Run a plan of one move, vm1 to b, and evaluate with a rule: why the move was given up,
        None where it was not."""
        later = self.clock() + datetime.timedelta(hours=1)
        plan = self.journal.record_plan(
            fixtures.report([('vm1', 'a', 'b')], name='gpu', phase=phase), plans.EXECUTING,
            self.clock(), later)
        self.run_cycle(more=f'rules:\n- {{name: r, servers: {servers}, {relation}}}\n')
        [move] = self.journal.moves(plan)
        if move.state != moves.ABANDONED:
            return None
        *_step, detail = self.journal.events(move.uuid)[-1]
        return detail

    @ddt.data(('must_not_run_on: {hosts: b}', 'rule r keeps it off b'),
              ('must_run_on: {hosts: a}', 'rule r keeps it off b'),
              ('never_move: true', 'rule r never moves it'),
              ('move_only: "*; 0 3 1 1 *; 60"', 'in its windows'))
    @ddt.unpack
    def test_a_move_that_waits_is_given_up_when_a_rule_does_not_permit_it_any_more(
            self, relation, why):
        self.assertIn(why, self.given_up(relation))

    @ddt.data(None, {'VCPU': 4})
    def test_a_move_that_is_given_up_does_not_count_any_more(self, used):
        """Both hosts would have the same load with the move."""
        self.cloud.used = used
        later = self.clock() + datetime.timedelta(hours=1)
        self.journal.record_plan(fixtures.report([('vm1', 'a', 'b')], name='gpu'),
                                 plans.EXECUTING, self.clock(), later)
        [report] = self.run_cycle(more='rules:\n- {name: r, servers: {uuid: [vm1]}, '
                                       'must_not_run_on: {hosts: b}}\n').aggregates
        self.assertAlmostEqual(0.2, report.policies[0].imbalance_before)
        self.assertNotEqual(plans.BALANCED, report.outcome)
        self.assertEqual([], self.journal.moves_under_way())

    @ddt.data('must_run_on: {hosts: b}', 'should_not_run_on: {hosts: b}', 'keep_together: host')
    def test_a_move_that_waits_is_not_given_up_for_other_rules(self, relation):
        self.assertIsNone(self.given_up(relation))

    @ddt.data('must_not_run_on: {hosts: b}', 'never_move: true')
    def test_what_empties_a_host_is_not_given_up_for_a_rule_that_gives_way(self, relation):
        self.assertIsNone(self.given_up(relation, '{name: vm*}', plans.EVACUATE))

    def test_what_makes_room_is_given_up_for_a_rule_that_holds_at_all_times(self):
        self.assertIn('rule r', self.given_up('never_move: true', phase=plans.MAKE_ROOM))

    def test_what_makes_room_is_not_given_up_for_the_times_of_a_rule(self):
        self.assertIsNone(self.given_up('move_only: "*; 0 3 1 1 *; 60"', phase=plans.MAKE_ROOM))

    @ddt.data('must_not_run_on: {hosts: b}', 'never_move: true')
    def test_what_empties_a_host_is_given_up_for_a_rule_that_holds(self, relation):
        self.assertIn('rule r', self.given_up(relation, '{uuid: [vm1]}', plans.EVACUATE))

    def propose(self):
        """The plan that waits for approval after an evaluation."""
        self.run_cycle(rules=self.level(gpu='approve'))
        [record] = self.journal.proposed_plans()
        return record

    def test_a_plan_that_waits_stays_while_the_cloud_is_as_it_was(self):
        record = self.propose()
        self.clock.go(60)
        [report] = self.run_cycle(rules=self.level(gpu='approve')).aggregates
        self.assertEqual((plans.COOLING, f'plan {record.uuid} waits for approval'),
                         (report.outcome, report.warnings[0]))
        [again] = self.journal.proposed_plans()
        self.assertEqual(record.uuid, again.uuid)
        self.assertAlmostEqual(record.combined_after, again.combined_now)

    def test_a_plan_that_waits_is_superseded_once_a_new_one_ends_better(self):
        record = self.propose()
        self.cloud.load = {'a': 0.9}
        self.clock.go(60)
        [report] = self.run_cycle(rules=self.level(gpu='approve')).aggregates
        self.assertEqual(plans.PLANNED, report.outcome)
        old = self.journal.plan(record.uuid)
        self.assertEqual(plans.SUPERSEDED, old.state)
        self.assertRegex(old.ended_because, r'it would end at a combined imbalance of 0\.\d+ by '
                                            r'now, and a new plan at 0\.\d+')
        [new] = self.journal.proposed_plans()
        self.assertNotEqual(record.uuid, new.uuid)
        self.assertRaises(exception.PlanNotWaiting, self.journal.approve_plan, record.uuid, (),
                          'jane', self.clock())

    def test_a_plan_that_waits_is_superseded_once_none_is_needed(self):
        record = self.propose()
        self.cloud.placed['vm3'] = 'b'
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertEqual((plans.SUPERSEDED, 'every policy is at or below its threshold by now'), (
            self.journal.plan(record.uuid).state, self.journal.plan(record.uuid).ended_because))

    def test_a_plan_that_waits_gives_way_when_the_level_is_raised_to_auto(self):
        record = self.propose()
        self.clock.go(60)
        self.run_cycle(rules=self.level(gpu='auto'))
        self.assertIn('the level is auto by now', self.journal.plan(record.uuid).ended_because)
        self.assertEqual(1, len(self.journal.running_plans()))

    def test_a_plan_that_waits_stays_while_there_are_no_metrics(self):
        record = self.propose()
        self.clock.go(3600)
        self.cloud.query = lambda query: metrics.Vector(samples=())
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertEqual([record.uuid], [each.uuid for each in self.journal.proposed_plans()])

    def test_a_host_that_was_emptied_is_filled_again_within_the_window_of_no_return(self):
        """A server that left because its host was serviced may return to it."""
        since = self.clock().timestamp() - 60
        gone = [PastMove(instance_uuid=uuid, source='b', destination='a', ended_at=since)
                for uuid in ('vm1', 'vm2', 'vm3', 'vm4')]
        self.cloud.placed = dict.fromkeys(('vm1', 'vm2', 'vm3', 'vm4'), 'a')
        window = dataclasses.replace(OPTIONS, no_return_window=86400)
        [report] = self.run_cycle(engine_options=window, history=gone).aggregates
        self.assertEqual(plans.NO_MOVE, report.outcome)
        plan = self.journal.record_plan(dataclasses.replace(
            fixtures.report([]), moves=tuple(dataclasses.replace(
                fixtures.report([(each.instance_uuid, 'b', 'a')]).moves[0], phase=plans.EVACUATE,
                order=number) for number, each in enumerate(gone, 1))),
            plans.EXECUTING, self.clock(), self.clock())
        for move in self.journal.dispatch(moves.Caps(total=9, per_source=9, per_destination=9),
                                          self.clock):
            move = self.journal.claim(move.uuid, self.clock())
            for state in (moves.MIGRATING, moves.VERIFYING):
                move = self.journal.advance(move, state, self.clock())
            self.journal.advance(move, moves.COMPLETED, self.clock(), finished_at=self.clock())
            self.journal.settle(move.uuid, self.clock())
        self.journal.close_plans(self.clock())
        self.assertEqual(plans.DONE, self.journal.plan(plan).state)
        [report] = self.run_cycle(engine_options=window, history=gone).aggregates
        self.assertEqual((plans.PLANNED, {'b'}), (
            report.outcome, {move.destination for move in report.moves}))

    def test_a_proposal_is_void_where_the_level_is_observe_by_now(self):
        record = self.propose()
        self.clock.go(60)
        self.run_cycle(rules=self.level(gpu='observe'))
        void = self.journal.plan(record.uuid)
        self.assertEqual((plans.VOID, 'the level is observe'), (void.state, void.ended_because))
        self.assertEqual({plans.VOID, plans.OBSERVED}, {*self.states()})

    def test_a_proposal_stays_while_its_aggregate_is_paused(self):
        record = self.propose()
        switches.SwitchBoard(self.database).set(Switch(
            kind=PAUSE, aggregate='gpu', value=PAUSE, set_at=self.clock(), set_by='jane'))
        self.clock.go(60)
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertEqual(plans.PROPOSED, self.journal.plan(record.uuid).state)

    def test_an_approved_plan_that_gains_half_as_much_by_now_is_not_started(self):
        self.cloud.placed = {f'vm{number}': 'a' for number in range(6)}
        record = self.propose()
        self.journal.approve_plan(record.uuid, self.moves_of(record), 'jane', self.clock())
        self.clock.go(60)
        self.cloud.load = {'a': 0.62, 'b': 0.38}
        self.run_cycle(rules=self.level(gpu='approve'))
        old = self.journal.plan(record.uuid)
        self.assertEqual(plans.VOID, old.state)
        self.assertIn('it was to bring the combined imbalance from 0.600 to 0.000, and by now '
                      'brings it from', old.ended_because)

    def moved_in_two_aggregates(self, rules=RULES):
        """Return the number of moves of each aggregate, while a project may have three a day."""
        self.cloud.hosts = 'abcd'
        self.cloud.aggregates = {'gpu': ('a', 'b'), 'ssd': ('c', 'd')}
        self.cloud.placed = {f'vm{number}': host for number, host in enumerate('aaaacccc')}
        self.cycles.begin('ssd', 'one', self.clock(), 1)
        return [len(report.moves) for report in self.run_cycle(
            rules, dataclasses.replace(OPTIONS, aggregates=('gpu', 'ssd'), move_limits=MoveLimits(
                per_project_and_day=3))).aggregates]

    def test_a_project_has_no_more_moves_a_day_in_two_aggregates_than_in_one(self):
        self.assertEqual([2, 1], self.moved_in_two_aggregates())

    def test_moves_that_do_not_start_are_not_counted(self):
        self.assertEqual([2, 2], self.moved_in_two_aggregates(
            self.level(gpu='observe', ssd='auto')))

    def propose_and_approve(self):
        self.run_cycle(rules=self.level(gpu='approve'))
        [record] = self.journal.plans()
        self.journal.approve_plan(record.uuid, self.moves_of(record), 'jane', self.clock())
        return record.uuid

    def moves_of(self, record):
        return plans.AggregateReport.from_json(record.report).moves

    def test_an_approved_plan_is_started_by_the_next_cycle(self):
        uuid = self.propose_and_approve()
        self.assertEqual([], self.journal.moves())
        logger = self.useFixture(test_fixtures.FakeLogger(level=logging.INFO))
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertIn(f'Plan {uuid} for aggregate gpu, approved by jane, is executing: 1 move\n',
                      logger.output)
        self.assertEqual(plans.EXECUTING, self.journal.plan(uuid).state)
        self.assertEqual(1, len(self.journal.moves()))

    def test_an_approved_plan_that_holds_no_more_is_not_started(self):
        uuid = self.propose_and_approve()
        self.cloud.status['b'] = 'disabled'
        self.run_cycle(rules=self.level(gpu='approve'))
        void = self.journal.plan(uuid)
        self.assertEqual(plans.VOID, void.state)
        self.assertIn('move 1: ', void.ended_because)
        self.assertEqual([], self.journal.moves())

    def test_an_approved_plan_that_is_not_started_begins_no_cooldown(self):
        """Server vm1, which was to move, is in quarantine by now. Another server moves instead."""
        uuid = self.propose_and_approve()
        self.cooldowns.quarantine('vm1', -1, 'failed', self.clock())
        [report] = self.run_cycle(rules=self.level(gpu='auto')).aggregates
        self.assertEqual(plans.VOID, self.journal.plan(uuid).state)
        self.assertEqual(plans.PLANNED, report.outcome)
        self.assertEqual(['vm2'], [move.instance_uuid for move in report.moves])

    def test_an_approved_plan_waits_while_there_are_no_metrics_and_says_so(self):
        uuid = self.propose_and_approve()
        self.cloud.load = {'b': float('nan')}
        for _cycle in range(2):
            self.run_cycle(rules=self.level(gpu='approve'))
            self.assertEqual(plans.APPROVED, self.journal.plan(uuid).state)
            self.assertIn('policy cpu has no data', self.journal.plan(uuid).detail)
        self.cloud.load = {}
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertEqual((plans.EXECUTING, None),
                         (self.journal.plan(uuid).state, self.journal.plan(uuid).detail))

    @ddt.data(plans.STOPPED, plans.APPROVED)
    def test_an_approved_plan_that_ended_meanwhile_leaves_the_evaluation_alone(self, state):
        """It is stopped while it is checked, or expires while no executor runs that ends it."""
        uuid, query = self.propose_and_approve(), self.cloud.query

        def stop(asked):
            self.journal.end_plan(uuid, plans.APPROVED, plans.STOPPED, 'by jane', self.clock())
            return query(asked)
        if state == plans.STOPPED:
            self.cloud.query = stop
        else:
            self.clock.go(RULES.stale_plan_age + 1)
        [report] = self.run_cycle(rules=self.level(gpu='approve')).aggregates
        self.assertEqual('gpu', report.name)
        self.assertEqual(self.clock(), self.cycles.of_aggregate('gpu').finished_at)
        self.assertEqual((state, []), (self.journal.plan(uuid).state, self.journal.moves()))

    def expires(self, **changes):
        """Return whether an approved plan ends unstarted after the load changed."""
        uuid = self.propose_and_approve()
        self.cloud.load = changes
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertEqual([], self.journal.moves())
        return self.journal.plan(uuid).state == plans.VOID

    def test_an_approved_plan_is_not_started_onto_a_host_that_is_full_by_now(self):
        self.assertTrue(self.expires(a=1.0, b=0.9))

    def test_nor_where_it_would_gain_nothing_any_more(self):
        self.assertTrue(self.expires(a=0.3, b=0.3))

    def test_nor_where_it_would_gain_less_than_it_costs(self):
        uuid = self.propose_and_approve()
        self.run_cycle(rules=self.level(gpu='approve'),
                       engine_options=dataclasses.replace(OPTIONS, min_gain=MinGain(per_move=0.5)))
        self.assertEqual(plans.VOID, self.journal.plan(uuid).state)

    def test_nor_an_instance_that_is_in_quarantine_by_now(self):
        uuid = self.propose_and_approve()
        [move] = self.moves_of(self.journal.plan(uuid))
        self.cooldowns.quarantine(move.instance_uuid, -1, 'failed', self.clock())
        self.run_cycle(rules=self.level(gpu='approve'))
        self.assertEqual(plans.VOID, self.journal.plan(uuid).state)

    def test_moves_of_an_approved_plan_are_as_old_as_it_and_checked_when_it_starts(self):
        self.propose_and_approve()
        planned_at = self.clock()
        self.clock.go(300)
        self.run_cycle(rules=self.level(gpu='approve'))
        [move] = self.journal.moves()
        self.assertEqual((planned_at, self.clock()), (move.created_at, move.checked_at))
        # Too old by its making, but held against the load of a moment ago.
        self.assertEqual([], self.journal.abandon(
            self.clock(), planned_at + datetime.timedelta(seconds=1)))

    def test_a_host_that_was_not_believed_is_believed_after_two_good_cycles(self):
        found = []
        for load in ({'a': 0.0}, {}, {}):    # 0 under three servers that work
            self.cloud.load = load
            [report] = self.run_cycle(self.level()).aggregates
            found.append([(each.host, each.is_failing) for each in report.unbelieved])
            self.clock.go(300)
        self.assertEqual([[('a', True)], [('a', False)], []], found)

    def test_an_evaluation_without_figures_is_no_good_one(self):
        """The host's series is missing once, and then the source does not answer."""
        found, good = [], self.cloud.query

        def silent(query):
            raise exception.MetricsUnreachable(source='Prometheus', problem='no connection')

        def partly(query):
            answer = good(query)
            return metrics.Vector(tuple(
                sample for sample in answer.samples if sample.labels.get('host') != 'a'))

        self.cloud.load = {'a': 0.0}    # 0 under three servers that work
        for query in (good, partly, silent, good, good):
            self.cloud.query = query
            [report] = self.run_cycle(self.level(), engine_options=dataclasses.replace(
                OPTIONS, min_coverage=0.5)).aggregates
            found.append([(each.host, each.is_failing) for each in report.unbelieved])
            self.cloud.load = {}
            self.clock.go(300)
        self.assertEqual([[('a', True)], [], [], [('a', False)], []], found)

    def test_an_instance_that_is_refused_everywhere_rests_for_some_cycles(self):
        asked = []

        def dry_run(move, instance, destination, before):
            asked.append(move.instance_uuid)
            return Verdict('no NUMA node fits')
        self.dry_run = dry_run
        rules = dataclasses.replace(self.level(), rejection_backoff=900)
        [report] = self.run_cycle(rules=rules).aggregates
        self.assertEqual(plans.NO_MOVE, report.outcome)
        [(refusal, until, _at), *_others] = self.refusals.list(self.clock())
        self.assertEqual((('b',), 'no NUMA node fits'), (refusal.hosts, refusal.reason))
        self.assertEqual(self.clock() + datetime.timedelta(seconds=900), until)
        asked.clear()
        [report] = self.run_cycle(rules=rules).aggregates
        self.assertEqual([], asked)
        self.assertEqual({'refused'}, {skip.reason for skip in report.not_moved} - {'no_gain'})
        self.clock.go(901)
        self.run_cycle(rules=rules)
        self.assertNotEqual([], asked)

    def test_moves_of_open_plans_of_every_worker_are_seen(self):
        self.cloud.used = {'VCPU': 2}
        other = db_journal.Journal(self.database, 'two')
        report = fixtures.report([('vm1', 'a', 'b'), ('vm4', 'a', 'b')], name='elsewhere')
        later = self.clock() + datetime.timedelta(hours=1)
        other.record_plan(report, plans.EXECUTING, self.clock(), later)
        read = observe.observe(self.ports(), OPTIONS, RULES).snapshot
        self.assertEqual([snapshot.MoveUnderWay(instance_uuid='vm1', source='a', destination='b')],
                         list(read.moves_under_way))  # vm4 is on b by now
        self.assertEqual({'vm1', 'vm4'}, {move.instance_uuid for move in self.cloud.asked_for})
        self.assertEqual([2, 3], [host.used['VCPU'] for host in read.hosts])

    def test_what_shares_hosts_cools_together(self):
        self.cloud.aggregates['ssd'] = ('b',)
        both = dataclasses.replace(OPTIONS, aggregates=('gpu', 'ssd'))
        self.cycles.begin('ssd', 'one', self.clock(), 1)
        fixtures.cool(self.database, cooldowns.AGGREGATE, ['ssd'],
                            self.clock() + datetime.timedelta(seconds=60))
        reports = {report.name: report for report in self.run_cycle(engine_options=both).aggregates}
        self.assertEqual(plans.COOLING, reports['gpu'].outcome)

    def test_one_that_shares_hosts_with_anothers_is_left_to_the_next_cycle(self):
        self.cloud.aggregates['ssd'] = ('b',)
        rules = dataclasses.replace(RULES, in_scope=('gpu', 'ssd'))
        self.assertEqual((), self.run_cycle(rules=rules).aggregates)
        off = dataclasses.replace(rules, automation=Defaults(level='auto', levels={'ssd': 'off'}))
        self.assertEqual(1, len(self.run_cycle(rules=off).aggregates))

    def test_an_aggregate_that_does_not_exist_keeps_no_other_from_being_planned(self):
        with_a_typo = dataclasses.replace(OPTIONS, aggregates=('gpu', 'gup'))
        self.cycles.begin('gup', 'one', self.clock(), 1)
        self.assertEqual(['gpu'], [report.name for report in self.run_cycle(
            engine_options=with_a_typo).aggregates])
        reported = {row.aggregate: row for row in self.cycles.last()}['gup']
        self.assertEqual(plans.FAILED, reported.outcome)
        self.assertIn('there is no aggregate of that name', overview.reason(
            plans.AggregateReport.from_json(reported.report)))

    def test_that_an_aggregate_does_not_exist_is_logged_once(self):
        with_a_typo = dataclasses.replace(OPTIONS, aggregates=('gup',))
        self.cycles.begin('gup', 'one', self.clock(), 1)
        logger = self.useFixture(test_fixtures.FakeLogger(level=logging.INFO))
        for _ in range(2):
            self.run_cycle(engine_options=with_a_typo)
        self.assertEqual(1, logger.output.count('there is no aggregate'))

    def test_a_peak_that_does_not_last_moves_nothing(self):
        patient = dataclasses.replace(OPTIONS, stabilization_cycles=2)
        outcomes = [self.run_cycle(engine_options=patient).aggregates[0].outcome for _ in range(2)]
        self.assertEqual([plans.COOLING, plans.PLANNED], outcomes)

    def test_no_instance_is_moved_back_to_its_last_host(self):
        now = self.clock().timestamp()
        history = [PastMove(instance_uuid=uuid, source='b', destination='a', ended_at=now - 10)
                   for uuid in self.cloud.placed]
        careful = dataclasses.replace(OPTIONS, no_return_window=60.0)
        [report] = self.run_cycle(engine_options=careful, history=history).aggregates
        self.assertEqual(plans.NO_MOVE, report.outcome)

    def test_a_cycle_whose_conductor_died_writes_nothing(self):
        self.assertRaises(exception.JournalError, self.run_cycle, may_write=False)
        self.assertEqual([], self.states())

    def test_scores_are_reported_beside_their_place_among_the_hosts(self):
        [report] = self.run_cycle().aggregates
        self.assertEqual(['Aggregate gpu, policy cpu: a has 0.300, normalised 1.000',
                          'Aggregate gpu, policy cpu: b has 0.100, normalised 0.000'],
                         list(persist.describe_scores(report)))


@ddt.ddt
class DrainingTest(CycleTestCase):
    """The same cloud with two servers on each host and one of them to be emptied."""

    def setUp(self):
        super().setUp()
        self.board = drains.Drains(self.database)
        self.cloud.status['a'] = 'disabled'

    def drain(self, **what):
        self.board.request([Drain(**{
            'uuid': 'd', 'host': 'a', 'aggregate': 'gpu', 'state': 'draining',
            'requested_by': 'jane', 'requested_at': self.clock(), **what})])

    def state(self):
        found = self.board.get('d')
        return found.state, found.left, len(found.blocked)

    def test_a_drain_is_planned_at_every_level_and_runs_at_once(self):
        self.drain()
        self.run_cycle(rules=self.level(gpu='off'))
        [plan] = self.journal.plans()
        self.assertEqual((plans.EXECUTING, 'drain'), (plan.state, plan.purpose))
        self.assertEqual({'a'}, {move.source for move in self.journal.moves()})
        self.assertEqual(('draining', len(self.journal.moves()), 0), self.state())

    def test_it_is_reported_when_the_host_is_empty(self):
        self.drain()
        self.cloud.placed = dict.fromkeys(self.cloud.placed, 'b')
        self.run_cycle()
        self.assertEqual(('empty', 0, 0), self.state())

    def lose_sight_of(self, *hosts, **unread):
        """The next readings of the cloud have neither these hosts nor their servers."""
        real = type(self.cloud).read

        def read(scopes=None, moves=()):
            found = real(self.cloud, scopes, moves)
            return dataclasses.replace(
                found, hosts=tuple(host for host in found.hosts if host.name not in hosts),
                instances=tuple(each for each in found.instances if each.host not in hosts),
                unread=unread)
        self.cloud.read = read

    @ddt.data(('a',), ('a', 'b'))
    def test_a_host_that_cannot_be_read_is_not_empty(self, hosts):
        self.drain()
        self.run_cycle()
        before = self.board.get('d')
        self.lose_sight_of(*hosts, gpu='1 of its hosts could not be read and are left out: cell '
                                       'one does not answer')
        self.run_cycle()
        found = self.board.get('d')
        self.assertEqual(('draining', before.left, before.looked_at),
                         (found.state, found.left, found.looked_at))
        self.assertIn('cell one does not answer', found.waits_for)
        self.assertIsNone(found.finished_at)
        self.assertEqual([], [each for each in self.journal.plans() if each.purpose != 'drain'])
        del self.cloud.read
        self.run_cycle()
        self.assertNotIn('cell one', self.board.get('d').waits_for)
        self.assertIs(False, found.waits_in_vain)  # an evaluation may read it at any time

    def test_a_host_that_is_no_longer_read_is_not_empty(self):
        self.drain()
        self.drain(uuid='e', host='b')
        self.lose_sight_of('a')
        self.run_cycle()
        found = self.board.get('d')
        self.assertEqual(('draining', None), (found.state, found.left))
        self.assertIn('placement does not know it', found.waits_for)
        self.assertEqual(1, self.board.get('e').left)

    def test_a_host_that_has_left_its_aggregate_is_not_blocked_by_its_servers(self):
        self.drain()
        self.cloud.aggregates = {'gpu': ('b',), 'other': ('a',)}
        self.run_cycle()
        found = self.board.get('d')
        self.assertEqual(('draining', None, {}), (found.state, found.left, found.blocked))
        self.assertEqual('an evaluation that finds a: it is not in aggregate gpu any more; "host '
                         'release a" ends the drain', found.waits_for)
        self.assertIs(True, found.waits_in_vain)
        self.cloud.aggregates = {'gpu': ('a', 'b')}
        self.run_cycle()
        self.assertIs(False, self.board.get('d').waits_in_vain)

    def test_servers_that_were_blocked_are_not_when_their_host_has_left_its_aggregate(self):
        """None of them is stopped any more."""
        self.drain(unmovable='stop')
        self.board.enter(self.board.get('d'), ('draining',), 'blocked', to_stop=['vm1'],
                         blocked={'vm1': 'no other host has room for it'})
        self.lose_sight_of('a', gpu='cell one does not answer')
        self.run_cycle()
        found = self.board.get('d')
        self.assertEqual(('blocked', ('vm1',), 1), (found.state, found.to_stop, len(found.blocked)))
        del self.cloud.read
        self.cloud.aggregates = {'gpu': ('b',), 'other': ('a',)}
        self.run_cycle()
        found = self.board.get('d')
        self.assertEqual(('draining', (), {}), (found.state, found.to_stop, found.blocked))
        self.assertIn('it is not in aggregate gpu any more', found.waits_for)

    def test_a_host_whose_aggregate_was_deleted_waits_for_its_release(self):
        self.drain()
        self.cloud.aggregates = {'other': ('a', 'b')}
        self.run_cycle()
        found = self.board.get('d')
        self.assertEqual(('draining', None, {}), (found.state, found.left, found.blocked))
        self.assertEqual('an evaluation of aggregate gpu, which Nova does not have any more; "host '
                         'release a" ends the drain', found.waits_for)
        self.assertIs(True, found.waits_in_vain)

    def test_a_host_of_which_nothing_can_leave_is_blocked_and_looked_at_again(self):
        self.drain()
        self.cloud.status['b'] = 'disabled'
        self.run_cycle()
        state, left, blocked = self.state()
        self.assertEqual(('blocked', left), (state, blocked))
        self.cloud.status['b'] = 'enabled'
        self.run_cycle()
        self.assertEqual('draining', self.state()[0])

    def test_another_host_that_is_down_is_reported_beside_the_drain(self):
        self.drain()
        self.cloud.silent = {'b'}
        self.run_cycle()
        [last] = self.cycles.last()
        report = plans.AggregateReport.from_json(last.report)
        self.assertEqual(1, report.intended)
        self.assertEqual(('b is down (enabled) with 1 server on it; nothing can be migrated off '
                          'it',), report.warnings[1:])

    def test_a_plan_that_waits_for_approval_is_superseded(self):
        self.cloud.status['a'] = 'enabled'
        self.run_cycle(rules=self.level(gpu='approve'))
        self.cloud.status['a'] = 'disabled'
        self.drain()
        self.run_cycle(rules=self.level(gpu='approve'))
        found = [plan for plan in self.journal.plans() if plan.state == plans.SUPERSEDED]
        self.assertEqual(['a is being drained, which goes first'],
                         [plan.ended_because for plan in found])

    def test_a_server_that_was_started_meanwhile_is_planned_again_and_live(self):
        self.cloud.stopped = {'vm1'}
        self.drain(with_stopped=True)
        self.run_cycle()
        self.assertEqual({'vm1': 'cold', 'vm2': 'live', 'vm3': 'live'},
                         {move.instance_uuid: move.kind for move in self.journal.moves()})
        self.cloud.stopped = set()
        for move in self.journal.dispatch(WIDE, self.clock):
            taken = self.journal.claim(move.uuid, self.clock())
            # What the executor does with one that is not as it was planned for.
            states = ([moves.ABANDONED] if move.kind == 'cold' else
                      [moves.MIGRATING, moves.VERIFYING, moves.COMPLETED])
            for state in states:
                taken = self.journal.advance(taken, state, self.clock(), finished_at=self.clock())
            self.journal.settle(move.uuid, self.clock())
        self.journal.close_plans(self.clock())
        self.cloud.placed |= {'vm2': 'b', 'vm3': 'b'}
        self.run_cycle()
        [again] = self.journal.moves(states=(moves.PLANNED,))
        self.assertEqual(('vm1', 'a', 'live'), (again.instance_uuid, again.source, again.kind))
        self.assertEqual(('draining', 1, 0), self.state())

    def test_it_is_not_empty_before_the_last_cold_migration_is_confirmed(self):
        self.cloud.stopped = {'vm1'}
        self.drain(with_stopped=True)
        self.run_cycle()
        [cold] = [move for move in self.journal.dispatch(WIDE, self.clock) if move.kind == 'cold']
        taken = self.journal.claim(cold.uuid, self.clock())
        for state in (moves.MIGRATING, moves.VERIFYING):
            taken = self.journal.advance(taken, state, self.clock())
        self.cloud.placed = dict.fromkeys(self.cloud.placed, 'b')
        self.run_cycle()
        self.assertEqual('draining', self.state()[0])
        self.assertGreaterEqual(self.state()[1], 1)
        for move in self.journal.moves(states=moves.IN_FLIGHT):
            taken = (taken if move.uuid == cold.uuid
                     else self.journal.claim(move.uuid, self.clock()))
            self.journal.advance(taken, moves.COMPLETED if move.uuid == cold.uuid
                                 else moves.ABANDONED, self.clock())
        self.run_cycle()
        self.assertEqual(('empty', 0, 0), self.state())

    def test_while_its_moves_run_it_is_only_counted(self):
        self.drain()
        self.run_cycle()
        self.run_cycle()
        self.assertEqual(1, len(self.journal.plans()))

    def test_nothing_is_begun_while_kronos_is_paused(self):
        self.drain()
        switches.SwitchBoard(self.database).set(Switch(
            kind=PAUSE, aggregate='*', value='pause', set_at=self.clock(), set_by='jane'))
        self.run_cycle()
        self.assertEqual([], self.journal.plans())


class LogTest(CycleTestCase):
    """The log of a busy hour."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(test_fixtures.FakeLogger('kronos_nova.cycle',
                                                            level=logging.INFO))

    def test_a_plan_is_one_line_with_all_that_counts(self):
        self.run_cycle()
        [plan] = self.journal.plans()
        found, made = self.log.output.splitlines()
        self.assertEqual('Aggregate gpu is planned; cpu 0.200 (threshold 0.050)', found)
        self.assertEqual(f'Plan {plan.uuid} for aggregate gpu is executing (level auto): 1 move, '
                         '0.5 GiB of memory; imbalance cpu 0.200 to 0.000 (threshold '
                         '0.050)', made)

    def test_an_evaluation_that_ends_as_the_last_one_is_no_news(self):
        self.cloud.placed['vm1'] = 'b'
        self.run_cycle()
        self.assertEqual('Aggregate gpu is balanced; cpu 0.000 (threshold 0.050)\n',
                         self.log.output)
        self.run_cycle()
        self.assertEqual(1, len(self.log.output.splitlines()))

    def test_a_plan_that_waits_is_reported_as_the_reason(self):
        self.run_cycle(self.level(gpu='approve'))
        [plan] = self.journal.plans()
        [report] = self.run_cycle(self.level(gpu='approve')).aggregates
        self.assertEqual((f'plan {plan.uuid} waits for approval',), report.warnings)
        self.assertIn(f'Aggregate gpu is left alone: plan {plan.uuid} waits for approval; cpu',
                      self.log.output)
