"""Room that is made, held, and kept as a buffer, from evaluation to evaluation."""

import dataclasses
import datetime
import time
import types

import fixtures
import testtools
from oslo_db import exception as db_exc

from kronos_nova import clock
from kronos_nova import exception
from kronos_nova.cooldown import PastMove
from kronos_nova.cooldown import PlanningHistory
from kronos_nova.cycle import buffers
from kronos_nova.cycle import evaluation
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.move_limits import MoveLimits
from kronos_nova.cycle.room_requests import RoomRequests
from kronos_nova.db import drains
from kronos_nova.db import holds
from kronos_nova.db import schedulers
from kronos_nova.db.journal import Journal
from kronos_nova.drain.progress import HostDrains
from kronos_nova.drain.states import Drain
from kronos_nova.executor import permits
from kronos_nova.objects import automation
from kronos_nova.objects import hold
from kronos_nova.objects import metrics
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from kronos_nova.objects.automation import PAUSE
from kronos_nova.objects.automation import Switch
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.shape import Shape
from kronos_nova.policies import loader
from kronos_nova.policies import windows
from tests.unit.cycle import test_evaluation
from tests.unit.db import fixtures as db_fixtures
from tests.unit.db import test_holds
from tests.unit.room import clouds as room_clouds

FITS = Shape(name='fits', vcpus=63, memory_mb=0)
"""Host b has room for one: 63 of its 64 VCPUs are free."""
WHOLE = Shape(name='whole', vcpus=64, memory_mb=0)
"""No host has room, unless one server leaves b."""
WIDE = Shape(name='wide', vcpus=8, memory_mb=0, extra_specs={'hw:numa_nodes': '2'})


class RoomTestCase(test_evaluation.CycleTestCase):
    buffers = ''

    def setUp(self):
        super().setUp()
        self.holds = holds.Holds(self.database)
        schedulers.Schedulers(self.database).report('scheduler', True)
        self.cloud.read_flavors = lambda: (FITS, WHOLE)

    def evaluate(self, rules=test_evaluation.RULES, history=(), **engine_options):
        ports = dataclasses.replace(self.ports(history), requesters=(HostDrains, RoomRequests))
        return evaluation.Cycle(
            ports, loader.parse(test_evaluation.POLICIES + self.buffers),
            dataclasses.replace(test_evaluation.OPTIONS, **engine_options),
            rules, self.clock).run().aggregates

    def age_reports(self):
        """Let the nova-schedulers have reported long ago."""
        Journal(self.database, 'scheduler').heartbeat(
            self.database.utcnow() - datetime.timedelta(hours=1), schedulers.FILTERING)

    def state(self):
        return self.holds.get('r1').state

    def end_the_move(self, *states):
        [move] = self.journal.dispatch(test_evaluation.WIDE, self.clock)
        move = self.journal.claim(move.uuid, self.clock())
        for state in states:
            move = self.journal.advance(move, state, self.clock(), **(
                {'finished_at': self.clock()} if state in moves.TERMINAL else {})) or move
        self.journal.settle(move.uuid, self.clock())
        self.journal.close_plans(self.clock())


class LossRuleTest(testtools.TestCase):
    """Room whose moves make it worse which hosts may be lost."""

    def plan(self, **more):
        ports = types.SimpleNamespace(
            holds=types.SimpleNamespace(in_force=list),
            schedulers=types.SimpleNamespace(all_filter=lambda: True),
            cooldowns=types.SimpleNamespace(quarantined=lambda _now: {}))
        requests = RoomRequests(
            ports, loader.parse(test_evaluation.POLICIES),
            dataclasses.replace(test_evaluation.OPTIONS, failover_hosts=1),
            test_evaluation.RULES, clock.utcnow)
        wanted = test_holds.wish('r1', clock.utcnow(), **{
            'shape': Shape(name='huge', vcpus=8, memory_mb=4096), 'count': 1, **more})
        return requests.plan(
            room_clouds.covered(), PlannerPorts(source=None, clock=time.monotonic, now=1e9), None,
            'gpu', [wanted])

    def test_is_not_made(self):
        found = self.plan()
        [why] = found.missing
        self.assertEqual(((), ()), (found.moves, found.hosts))
        self.assertIn('c could not be lost any more', why)

    def test_is_made_where_that_was_forced(self):
        self.assertEqual((1, ()), (len((found := self.plan(is_forced=True)).moves), found.missing))

    def test_is_there_where_nothing_moves(self):
        found = self.plan(shape=Shape(name='small', vcpus=1, memory_mb=64))
        self.assertEqual(((), 1), (found.missing, len(found.hosts)))


class HoldTest(RoomTestCase):
    def ask(self, shape, **more):
        self.holds.request(test_holds.wish('r1', self.clock(), **{
            'shape': shape, 'count': 1, 'moves': 1, 'memory_mb': 512,
            'expires_at': self.clock() + datetime.timedelta(days=1), **more}))

    def test_room_that_is_there_is_held_at_once(self):
        self.ask(FITS)
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.HELD, {'b': 1}), (found.state, found.hosts))
        self.assertEqual(self.clock() + datetime.timedelta(seconds=1800), found.expires_at)

    def test_nothing_is_balanced_into_it(self):
        self.ask(FITS)
        self.evaluate()
        self.clock.go(100)
        [report] = self.evaluate()
        self.assertEqual(plans.NO_MOVE, report.outcome)
        self.assertEqual([], self.journal.moves())

    def test_its_moves_run_at_every_level(self):
        self.ask(WHOLE)
        self.evaluate(self.level(gpu='observe'))
        [move] = self.journal.moves()
        self.assertEqual(('vm4', 'b', 'a', plans.MAKE_ROOM),
                         (move.instance_uuid, move.source, move.destination, move.phase))
        [plan] = self.journal.running_plans()
        self.assertEqual(automation.MAKE_ROOM, plan.purpose)
        found = self.holds.get('r1')
        self.assertEqual((hold.MAKING, {'b': 1}, 1), (found.state, found.hosts, found.plans))

    def come(self, flavor, vcpus):
        """A server is booted on host b."""
        real = self.cloud.read

        def read(*args):
            found = real(*args)
            return dataclasses.replace(found, instances=(*found.instances, dataclasses.replace(
                found.instances[0], uuid='new', host='b', resources={'VCPU': vcpus},
                flavor=snapshot.Flavor(name=flavor, id='1'))))
        self.cloud.read = read

    def test_while_its_plan_runs_nothing_else_is_planned_for_it(self):
        self.ask(WHOLE)
        self.evaluate()
        self.evaluate()
        self.assertEqual(1, len(self.journal.moves()))

    def test_a_move_that_fails_is_made_again_and_not_for_ever(self):
        self.ask(WHOLE)
        for _plan in range(hold.TRIES):
            self.evaluate()
            self.assertEqual(hold.MAKING, self.state())
            self.end_the_move(moves.FAILED)
            self.clock.go(10)
        self.evaluate()
        self.assertEqual(hold.FAILED, self.state())
        self.assertIn('after 3 plans', self.holds.get('r1').problem)

    def test_a_plan_that_is_not_recorded_is_no_try(self):
        self.ask(WHOLE)

        def fail(*_args, **_options):
            raise db_exc.DBConnectionError
        with fixtures.MonkeyPatch('kronos_nova.db.journal.Journal.record_plan', fail):
            for _evaluation in range(hold.TRIES):
                self.assertRaises(db_exc.DBConnectionError, self.evaluate)
                self.clock.go(10)
        self.evaluate()
        self.assertEqual((hold.MAKING, 1), (self.state(), self.holds.get('r1').plans))
        self.assertEqual(1, len(self.journal.moves()))

    def test_more_moves_than_were_approved_wait_for_approval_again(self):
        self.ask(WHOLE, moves=0, memory_mb=0)
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.PROPOSED, 1, 512), (found.state, found.moves, found.memory_mb))
        self.assertEqual([], self.journal.moves())

    def test_more_moves_than_were_approved_are_not_made_after_one_has_failed(self):
        self.ask(WHOLE)
        self.evaluate()
        self.end_the_move(moves.FAILED)
        self.clock.go(10)
        self.cloud.placed['vm5'] = 'b'
        self.cloud.placed['vm6'] = 'a'
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.PROPOSED, 2, 1), (found.state, found.moves, found.plans))
        self.assertEqual(1, len(self.journal.moves()))

    def test_a_room_that_cannot_be_planned_ends_no_evaluation(self):
        self.ask(WHOLE)
        self.dry_run = self.fail_to_answer
        self.evaluate()
        self.assertEqual(hold.REQUESTED, self.state())

    def fail_to_answer(self, *_args):
        raise RuntimeError('something is wrong')

    def test_what_nothing_makes_fails_with_what_is_missing(self):
        self.ask(Shape(name='huge', vcpus=65, memory_mb=0))
        self.evaluate()
        self.assertEqual(hold.FAILED, self.state())
        self.assertIn('65 VCPU', self.holds.get('r1').problem)

    def test_moves_that_the_scheduler_refuses_are_not_made(self):
        self.dry_run = lambda *_args: Verdict(refused='no')
        self.ask(WHOLE)
        self.evaluate()
        self.assertEqual(hold.FAILED, self.state())
        self.assertEqual([], self.journal.moves())

    def test_a_pause_holds_it(self):
        self.ports().switches.set(Switch(kind=PAUSE, aggregate='gpu', value='pause',
                                         set_at=self.clock(), set_by='jane'))
        self.ask(WHOLE)
        self.evaluate()
        self.assertEqual((hold.REQUESTED, []), (self.state(), self.journal.moves()))
        self.assertIn('Kronos is paused: pause by jane', self.holds.get('r1').problem)

    def test_room_that_waits_for_another_plan_names_it(self):
        self.ask(WHOLE)
        self.evaluate()
        self.holds.request(test_holds.wish('r2', self.clock(), shape=FITS, count=1))
        self.evaluate()
        [plan] = self.journal.running_plans()
        self.assertEqual(f'waits for the end of plan {plan.uuid}', self.holds.get('r2').problem)

    def test_room_that_only_the_filter_keeps_waits_for_it(self):
        self.age_reports()
        self.ask(WIDE)
        self.evaluate()
        self.assertEqual(hold.REQUESTED, self.state())
        self.assertIn('enable KronosFilter', self.holds.get('r1').problem)

    def test_room_whose_filter_was_disabled_is_said_so(self):
        self.ask(FITS)
        self.evaluate()
        self.assertEqual((hold.HELD, hold.FILTER), (self.state(), self.holds.get('r1').keeper))
        self.age_reports()
        self.evaluate()
        self.assertIn('has no KronosFilter', self.holds.get('r1').problem)
        schedulers.Schedulers(self.database).report('scheduler', True)
        self.evaluate()
        self.assertEqual('', self.holds.get('r1').problem)

    def test_room_on_a_host_that_takes_no_servers_is_said_so(self):
        self.ask(FITS)
        self.evaluate()
        for status, problem in (('disabled', 'no server is started at present on b'),
                                ('enabled', '')):
            self.cloud.status['b'] = status
            self.evaluate()
            found = self.holds.get('r1')
            self.assertEqual((hold.HELD, problem), (found.state, found.problem.partition(':')[0]))

    def test_room_of_an_aggregate_that_is_gone_is_said_so(self):
        self.ask(FITS)
        self.evaluate()
        self.cloud.aggregates = {'db': ('a', 'b')}
        self.evaluate()
        self.assertEqual('there is no aggregate gpu any more', self.holds.get('r1').problem)

    def test_a_drain_for_which_it_waits_is_named(self):
        self.ask(WHOLE)
        board = drains.Drains(self.database)
        board.request([Drain(uuid='d', host='a', aggregate='gpu', state='draining',
                             requested_by='jane', requested_at=self.clock())])
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.REQUESTED, 'waits for the drain of a'),
                         (found.state, found.problem))
        db_fixtures.bring(board, board.get('d'), 'released')
        self.journal.give_up({move.uuid: 'released' for move in self.journal.moves()},
                             self.clock())
        self.journal.close_plans(self.clock())
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.MAKING, ''), (found.state, found.problem))

    def lose_sight_of_b(self):
        """The cell of host b does not answer: the host and its servers are not read."""
        real = type(self.cloud).read

        def read(scopes=None, moves=()):
            found = real(self.cloud, scopes, moves)
            return dataclasses.replace(
                found, hosts=found.hosts[:1], unread={'gpu': 'cell one does not answer'},
                instances=tuple(each for each in found.instances if each.host == 'a'))
        self.cloud.read = read

    def test_a_cell_that_does_not_answer_ends_no_request(self):
        self.ask(WHOLE)
        self.lose_sight_of_b()
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.REQUESTED, None), (found.state, found.finished_at))
        self.assertIn('cell one does not answer', found.problem)
        del self.cloud.read
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.MAKING, ''), (found.state, found.problem))

    def test_a_nova_compute_that_does_not_report_ends_no_room_that_is_made(self):
        self.ask(WHOLE)
        self.evaluate()
        self.end_the_move(moves.FAILED)
        self.clock.go(10)
        self.cloud.silent = {'b'}
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.MAKING, 1), (found.state, found.plans))
        self.assertIn('nova-compute on b does not report', found.problem)
        self.cloud.silent = set()
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.MAKING, 2, ''), (found.state, found.plans, found.problem))

    def permits(self):
        """Plans that may continue: (uuids of plans, {uuid of a plan: why it may not})."""
        return permits.Permits(
            self.database, lambda: test_evaluation.RULES.automation, lambda *_args: True,
        ).sort(self.journal.running_plans(), self.clock())

    def test_moves_of_room_that_is_released_are_given_up_for_other_room_too(self):
        self.ask(WHOLE)
        self.evaluate()
        self.holds.request(test_holds.wish('r2', self.clock(), shape=FITS, count=1))
        self.assertEqual(({}, 1), (self.permits()[1], len(self.permits()[0])))
        self.holds.enter(self.holds.get('r1'), hold.RELEASED)
        self.assertEqual(([], 1), (self.permits()[0], len(self.permits()[1])))

    def test_room_that_is_released_while_its_plan_is_written_moves_nothing(self):
        self.ask(WHOLE)
        self.holds.request(test_holds.wish('r2', self.clock(), shape=FITS, count=1))
        real = holds.Holds.enter

        def enter(store, found, new, **values):
            is_changed = real(store, found, new, **values)
            if new == hold.MAKING:
                real(store, dataclasses.replace(found, state=new), hold.RELEASED)
            return is_changed
        self.useFixture(fixtures.MonkeyPatch('kronos_nova.db.holds.Holds.enter', enter))
        self.evaluate()
        self.assertEqual(([], 1), (self.permits()[0], len(self.permits()[1])))

    def test_a_server_that_comes_while_it_is_made_uses_it(self):
        self.ask(WHOLE)
        self.evaluate()
        [move] = self.journal.moves()
        self.end_the_move(moves.MIGRATING, moves.VERIFYING, moves.COMPLETED)
        self.cloud.placed[move.instance_uuid] = 'a'
        self.come('whole', 64)
        self.clock.go(10)
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.USED, {'new': 'b'}), (found.state, found.used), found.problem)

    def test_servers_that_come_use_it(self):
        self.ask(FITS)
        self.evaluate()
        self.come('fits', 63)
        self.evaluate()
        found = self.holds.get('r1')
        self.assertEqual((hold.USED, {'new': 'b'}), (found.state, found.used))

    def test_it_ends_with_its_time(self):
        self.ask(FITS)
        self.evaluate()
        self.clock.go(1801)
        self.evaluate()
        self.assertEqual(hold.EXPIRED, self.state())
        self.assertEqual(1, len(self.journal.moves()))  # which balances


class BufferTest(RoomTestCase):
    buffers = 'buffers: [{name: spare, aggregate: gpu, flavor: fits, keep: 1}]\n'

    def test_nothing_is_balanced_into_it(self):
        [report] = self.evaluate()
        self.assertEqual((plans.NO_MOVE, ()), (report.outcome, report.moves))

    def test_its_room_is_on_empty_hosts_only_where_load_is_packed(self):
        """One of two hosts is empty, the other has room for one."""
        cloud = room_clouds.cloud(
            [room_clouds.host('a'), room_clouds.host('b')], [room_clouds.server('s', 'b', 4, 8192)],
            aggregates=(room_clouds.objects.Aggregate(name='gpu', uuid='g', hosts=('a', 'b')),))
        ports = PlannerPorts(source=None, clock=time.monotonic, now=1e9)
        for mode, host in (('spread', 'b'), ('pack', 'a')):
            policies = loader.parse(
                test_evaluation.POLICIES.replace(
                    'mode: spread', f'mode: {mode}, capacity_query: c, capacity_threshold: .8')
                + 'buffers: [{name: half, aggregate: gpu, flavor: "4:8192", keep: 1}]\n')
            kept = buffers.keep_buffers(cloud, policies, test_evaluation.OPTIONS, ports,
                                        PlanningHistory(), None)
            [taken] = [each.name for each, before in zip(
                kept.snapshot.hosts, cloud.hosts, strict=True) if each != before]
            self.assertEqual(host, taken, mode)

    def test_an_aggregate_that_there_is_not_is_logged(self):
        self.buffers = self.buffers.replace('gpu', 'nowhere')
        log = self.useFixture(fixtures.FakeLogger())
        self.evaluate()
        self.assertIn('Buffer spare of the policies file: there is no aggregate nowhere',
                      log.output)

    def test_a_flavor_that_there_is_not_is_said(self):
        self.buffers = self.buffers.replace('fits', 'none')
        [report] = self.evaluate()
        self.assertIn('buffer spare: Nova has no flavor none; nothing is kept for it',
                      report.warnings)
        self.assertEqual(plans.PLANNED, report.outcome)

    def test_flavors_that_cannot_be_read_keep_no_plan_waiting(self):
        def fails():
            raise exception.InventoryError(problem='HTTP 500')

        self.cloud.read_flavors = fails
        self.buffers = ('buffers: [{name: spare, aggregate: gpu, flavor: fits, keep: 1}, '
                        '{name: plain, aggregate: gpu, flavor: "1:1024", keep: 1}]\n')
        [report] = self.evaluate()
        self.assertIn('buffer spare: the flavors cannot be read (Nova could not be read: '
                      'HTTP 500); nothing is kept for it', report.warnings)
        self.assertEqual((plans.PLANNED, ['plain']),
                         (report.outcome, [each.name for each in report.buffers]))


class LostBufferTest(RoomTestCase):
    buffers = 'buffers: [{name: spare, aggregate: gpu, flavor: whole, keep: 1}]\n'

    def test_it_is_made_before_load_is_spread(self):
        [report] = self.evaluate()
        [move] = self.journal.moves()
        self.assertEqual(('vm4', 'a', plans.MAKE_ROOM),
                         (move.instance_uuid, move.destination, move.phase))
        self.assertIn('makes room for buffer spare', move.reason)
        self.assertIn('buffer spare: 0 of 1 servers of whole fit; moves make room for more',
                      report.warnings)

    def test_servers_that_a_rule_holds_now_do_not_give_way(self):
        """The clock of these tests is at noon."""
        for rule, state in (('never_move: true', 0), ("move_only: '*; 0 3 * * *; 60'", 0),
                            ("move_only: '*; 0 0 * * *; 1440'", 1)):
            self.buffers = LostBufferTest.buffers + (
                f'rules: [{{name: held, {rule}, servers: '
                '{uuid: [vm1, vm2, vm3, vm4]}}]\n')
            [report] = self.evaluate(self.level(gpu='observe'))
            self.assertEqual(state, [move.phase for move in report.moves].count(plans.MAKE_ROOM),
                             rule)

    def test_nothing_is_made_while_hosts_that_may_have_the_room_are_not_read(self):
        real = self.cloud.read
        self.cloud.read = lambda *scope: dataclasses.replace(
            real(*scope), unread={'gpu': 'cell one does not answer'})
        [report] = self.evaluate(self.level(gpu='observe'))
        self.assertNotIn(plans.MAKE_ROOM, [move.phase for move in report.moves])
        self.assertIn('buffer spare: 0 of 1 servers of whole fit; room is made once all hosts of '
                      'the aggregate can be read', report.warnings)

    def test_nothing_is_made_outside_of_maintenance_windows(self):
        """The clock of these tests is at noon."""
        for window, said, planned in (
                ('gpu; 0 3 * * *; 60', 'room is made in the next maintenance window', []),
                ('gpu; 0 0 * * *; 780', 'moves make room for more', [plans.MAKE_ROOM])):
            [report] = self.evaluate(self.level(gpu='observe'), windows=windows.parse([window]))
            self.assertEqual(planned, [move.phase for move in report.moves])
            self.assertIn(f'buffer spare: 0 of 1 servers of whole fit; {said}', report.warnings)

    def test_it_waits_for_the_plan_of_another_aggregate_with_the_same_hosts(self):
        """Both aggregates have hosts a and b. Load leaves b for a, and room is made on a."""
        self.buffers = self.buffers.replace('gpu', 'ssd')
        self.cloud.aggregates = {'gpu': ('a', 'b'), 'ssd': ('a', 'b')}
        self.cloud.placed = {'vm1': 'a', 'vm2': 'b', 'vm3': 'b', 'vm4': 'b'}
        self.cycles.begin('ssd', 'one', self.clock(), 1)
        gpu, ssd = self.evaluate(self.level(gpu='observe'), aggregates=('gpu', 'ssd'))
        self.assertEqual(([plans.SPREAD], ()), ([move.phase for move in gpu.moves], ssd.moves))
        self.assertIn('buffer spare: 0 of 1 servers of whole fit; room is made once the aggregate '
                      'is at rest', ssd.warnings)
        self.cloud.placed['vm2'] = 'a'
        gpu, ssd = self.evaluate(self.level(gpu='observe'), aggregates=('gpu', 'ssd'))
        self.assertEqual(((), plans.MAKE_ROOM), (gpu.moves, ssd.moves[0].phase))

    def test_the_moves_of_a_project_are_limited(self):
        """Server vm4 is stopped, so that the three servers of host a have to leave it."""
        self.cloud.stopped = {'vm4'}
        for limit in 'per_project', 'per_project_and_day':
            for cap, planned in ((3, 3), (2, 0)):
                [report] = self.evaluate(self.level(gpu='observe'),
                                         move_limits=MoveLimits(**{limit: cap}))
                self.assertEqual(
                    planned, [move.phase for move in report.moves].count(plans.MAKE_ROOM))

    def test_it_supersedes_a_plan_by_load_that_waits_for_approval(self):
        """The lost room is asked for once: the plan that makes it is not superseded by itself."""
        for buffer in '', self.buffers, self.buffers:
            self.buffers = buffer
            self.evaluate(self.level(gpu='approve'))
            self.clock.go(60)
        made, spread = self.journal.plans()
        self.assertEqual((plans.SUPERSEDED, plans.PROPOSED), (spread.state, made.state))
        self.assertEqual('room is made first', spread.ended_because)
        self.assertIn('makes room for buffer spare', made.report)

    def test_moves_that_make_room_count_for_their_project(self):
        self.evaluate()
        [move] = self.journal.moves()
        self.assertEqual((plans.MAKE_ROOM, 'p'), (move.phase, move.project_id))
        day = self.clock() - datetime.timedelta(days=1)
        self.assertEqual({'p': 1}, self.journal.moved_since(day)[0])

    def test_moves_of_another_aggregate_count_for_the_limits_of_a_day(self):
        """The one move of project p that is left relieves a host of the other aggregate. Load was
        to be spread in the first one, and its plan is not replaced."""
        self.cloud.hosts, self.cloud.aggregates['ssd'] = 'abcd', ('c', 'd')
        self.cloud.placed |= dict.fromkeys(('vm5', 'vm6'), 'c')
        self.cloud.load |= {'c': 0.5, 'd': 0.3}
        self.cycles.begin('ssd', 'one', self.clock(), 1)
        for level, phases in (('observe', [plans.SPREAD, plans.MAKE_ROOM]),
                              ('auto', [plans.SPREAD, plans.SPREAD])):
            reports = self.evaluate(self.level(gpu='observe', ssd=level),
                                    aggregates=('gpu', 'ssd'),
                                    move_limits=MoveLimits(per_project_and_day=1))
            self.assertEqual(phases, sorted((move.phase for report in reports
                                             for move in report.moves), reverse=True), level)

    def test_a_server_that_was_moved_as_often_as_may_be_does_not_give_way(self):
        self.journal.record_plan(
            db_fixtures.report([('vm4', 'a', 'b')], name='gpu'), plans.EXECUTING,
            self.clock(), self.clock() + datetime.timedelta(hours=1))
        self.end_the_move(moves.CLAIMING, moves.MIGRATING, moves.VERIFYING, moves.COMPLETED)
        self.clock.go(10_000)
        for cap, gives_way in ((0, True), (2, True), (1, False)):
            for name in 'per_instance_and_week', 'per_instance_and_day':
                self.assert_gives_way(gives_way, move_limits=MoveLimits(**{name: cap}))

    def test_a_server_does_not_return_to_a_host_that_it_left(self):
        left = PastMove(instance_uuid='vm4', source='a', destination='b',
                        ended_at=self.clock().timestamp() - 600)
        rules = dataclasses.replace(self.level(gpu='observe'), no_return_window=3600)
        for window, gives_way in ((0, True), (3600, False)):
            self.assert_gives_way(gives_way, rules, [left], no_return_window=window)

    def test_a_server_whose_migration_would_not_end_does_not_give_way(self):
        self.buffers += 'migration: {dirty_rate_query: dirty, label: uuid}\n'
        query = self.cloud.query

        def with_dirty_rates(asked):
            return query(asked) if asked.kind != metrics.DIRTY_RATE else metrics.Vector((
                metrics.Sample({'uuid': 'vm4'}, self.dirty, self.clock().timestamp()),))

        self.cloud.query = with_dirty_rates
        for self.dirty, gives_way in ((1.0, True), (1e12, False)):
            self.assert_gives_way(gives_way)

    def test_a_server_that_nova_refused_lately_does_not_give_way(self):
        self.assert_gives_way(True)
        self.refusals.rest([plans.Refusal(instance_uuid='vm4', hosts=('a',), reason='no')], 900,
                           self.clock())
        self.assert_gives_way(False)

    def assert_gives_way(self, gives_way, rules=None, history=(), **engine_options):
        """Evaluate, and assert whether server vm4 leaves host b, or the three servers of host a
        leave it."""
        [report] = self.evaluate(rules or self.level(gpu='observe'), history, **engine_options)
        self.assertEqual(
            ['vm4'] if gives_way else ['vm1', 'vm2', 'vm3'],
            sorted(move.instance_uuid for move in report.moves if move.phase == plans.MAKE_ROOM))

    def made(self, *moves, **servers):
        """Return the hosts that servers leave so that two servers of half a host fit on one of
        three hosts, none of which has room for two.

        :param moves: (host, MiB) that are to leave a host for load
        :param servers: name of the host to the MiB of its server
        """
        cloud = room_clouds.cloud(
            [room_clouds.host(name) for name in 'abc'],
            [room_clouds.server(f's{name}', name, 1, mib) for name, mib in servers.items()],
            aggregates=(room_clouds.objects.Aggregate(name='gpu', uuid='g', hosts=tuple('abc')),))
        policies = loader.parse(test_evaluation.POLICIES + (
            'buffers: [{name: half, aggregate: gpu, flavor: "4:8192", keep: 4}]\n'))
        report = plans.AggregateReport(
            name='gpu', outcome=plans.PLANNED, mode='spread', planner='spread', moves=tuple(
                plans.PlannedMove(order=order, phase=plans.SPREAD, instance_uuid=f's{host}',
                                  source=host, destination='c', memory_mb=mib, combined_after=None,
                                  reason='') for order, (host, mib) in enumerate(moves, 1)))
        [found] = buffers.keep_buffers(
            cloud, policies, test_evaluation.OPTIONS,
            PlannerPorts(source=None, clock=time.monotonic, now=1e9), PlanningHistory(),
            None).applied([report])
        return {move.source for move in found.moves if move.phase == plans.MAKE_ROOM}

    def test_it_is_made_on_hosts_that_load_has_to_leave(self):
        alike = {'a': 2048, 'b': 2048, 'c': 2048}
        for host in 'abc':
            self.assertEqual({host}, self.made((host, 2048), **alike))
        self.assertEqual({'a'}, self.made(a=1024, b=2048, c=2048))
        self.assertEqual({'b'}, self.made(('b', 1024), a=1024, b=2048, c=2048))

    def test_it_is_made_elsewhere_where_that_copies_less_also_with_what_load_copies(self):
        self.assertEqual({'a'}, self.made(('b', 1000), a=1024, b=2048, c=2048))

    def test_by_the_level_of_its_aggregate(self):
        self.evaluate(self.level(gpu='approve'))
        self.assertEqual(['proposed'], self.states())
        self.assertEqual([], self.journal.moves())

    def test_one_that_no_moves_make_is_said_so_and_load_is_spread(self):
        self.buffers = self.buffers.replace('keep: 1', 'keep: 3')
        self.cloud.stopped = {'vm1', 'vm4'}
        [report] = self.evaluate()
        self.assertTrue(any('no moves within the budget were found' in said
                            for said in report.warnings), report.warnings)
