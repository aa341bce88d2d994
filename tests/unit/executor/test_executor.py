"""The executor against a recorded Nova: what it asks, what it makes of the answers."""

import dataclasses
import datetime
from concurrent import futures

import testtools
from oslo_context import context as oslo_context
from oslo_db import exception as db_exc

from kronos_nova import exception
from kronos_nova.db import cooldowns
from kronos_nova.db import drains
from kronos_nova.db import journal as db_journal
from kronos_nova.db import stopping
from kronos_nova.db import switches
from kronos_nova.drain.states import ACTIVE
from kronos_nova.drain.states import Drain
from kronos_nova.executor import compute
from kronos_nova.executor import options
from kronos_nova.executor import runner
from kronos_nova.objects import automation
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from kronos_nova.objects import snapshot
from tests.unit.db import fixtures
from tests.unit.executor import fakes_executor

OPTIONS = options.ExecutorOptions(
    caps=moves.Caps(total=4, per_source=2, per_destination=2), migration_timeout=100,
    timeout_action=options.ABORT, max_retries=1, retry_interval=10, request_grace=30,
    message_grace=20, worker_timeout=60, stale_plan_age=600, cooldown=60, quarantine=3600)
UP = snapshot.Service(state='up', status='enabled')
SILENT = snapshot.Service(state='down', status='enabled')
FORCED_DOWN = snapshot.Service(state='down', status='enabled', forced_down=True)
DISABLED = snapshot.Service(state='up', status='disabled')


class RecordedNova:
    """Answers as the test sets, and records requests."""

    def __init__(self):
        self.instances = {'vm1': compute.InstanceState(host='a', status='ACTIVE')}
        self.services = {'a': UP, 'b': UP}
        self.migrations = {}
        self.requests, self.aborts, self.forced = [], [], []
        self.cold, self.confirmed = [], []
        self.silent = self.is_full = False
        self.silence = exception.NovaClientError
        self.aborts_now = self.forces_now = True
        self.sets_free = True
        self.on_hold_room = lambda: None
        self.on_instance = lambda uuid: None
        self.held, self.released = set(), []

    def instance(self, uuid):
        self.on_instance(uuid)
        return self.instances.get(uuid)

    def service(self, host):
        return self.services.get(host)

    def hold_room(self, move):
        if self.is_full:
            raise exception.PreFlightError(instance=move.instance_uuid, reason='no NUMA cell fits')
        self.on_hold_room()
        self.held.add(move.uuid)

    def release_room(self, move, has_moved):
        if move.uuid in self.held:
            self.held.remove(move.uuid)
            self.released.append(has_moved)

    def live_migrate(self, move):
        self.requests.append(move)
        if self.silent:
            raise self.silence(instance=move.instance_uuid, reason='timed out')

    def cold_migrate(self, move):
        self.cold.append(move.instance_uuid)

    def confirm(self, move):
        self.confirmed.append(move.instance_uuid)

    def migration(self, move):
        return self.migrations.get(move.instance_uuid)

    def set_free(self, move):
        if self.sets_free:
            self.puts('a')
        return self.sets_free

    def abort(self, move):
        if self.silent:
            raise self.silence(instance=move.instance_uuid, reason='timed out')
        self.aborts.append(move.instance_uuid)
        return self.aborts_now

    def force_complete(self, move):
        if self.silent:
            raise self.silence(instance=move.instance_uuid, reason='timed out')
        self.forced.append(move.instance_uuid)
        return self.forces_now

    def puts(self, host, status='ACTIVE', **what):
        self.instances['vm1'] = compute.InstanceState(host=host, status=status, **what)

    def says(self, status, **what):
        self.migrations['vm1'] = compute.MigrationState(
            uuid='migration', status=status, **{'was_started': True, **what})


class ExecutorTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        database = self.useFixture(fixtures.ControlDatabase()).database
        self.clock = fixtures.Clock()
        self.nova = RecordedNova()
        self.journal = db_journal.Journal(database, 'one')
        self.cooldowns = cooldowns.Cooldowns(database)
        self.worker = self.new_worker(self.journal)

    def assert_no_fault_of_the_instance(self):
        self.assertEqual('NovaClientError', self.move().error_type)
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def assert_refused(self):
        """The move failed as refused, and the server is in no quarantine."""
        self.assertEqual((moves.FAILED, 'PreFlightError'),
                         (self.move().state, self.move().error_type))
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def new_worker(self, journal, **changed):
        return fakes_executor.Worker(journal, self.nova, self.cooldowns,
                            dataclasses.replace(OPTIONS, **changed), self.clock)

    def plan(self, *planned, **changes):
        """A plan to carry out; ``changes`` are attributes that its moves get."""
        report = fixtures.report(planned or [('vm1', 'a', 'b')])
        report = dataclasses.replace(report, moves=tuple(
            dataclasses.replace(move, **changes) for move in report.moves))
        self.journal.record_plan(report, plans.EXECUTING, self.clock(),
                                 self.clock() + datetime.timedelta(hours=1))

    def move(self):
        return self.journal.moves()[0]

    def tick(self, seconds=2):
        self.clock.go(seconds)
        self.worker.tick()
        return self.move().state

    def to_the_end(self):
        """Until the last try has failed; the pauses between tries are waited for."""
        return next(state for state in (self.tick(50) for _ in range(20))
                    if state in moves.TERMINAL)


class ExecutorTest(ExecutorTestCase):
    def test_what_is_logged_of_a_move_carries_its_request_id(self):
        said_under = {}

        def remember(uuid):
            # As Nova makes those for work that no request asked for.
            oslo_context.RequestContext(overwrite=False)
            said_under[uuid] = oslo_context.get_current().global_request_id

        self.nova.on_instance = remember
        self.nova.instances['vm2'] = compute.InstanceState(host='a', status='ACTIVE')
        self.plan(('vm1', 'a', 'b'), ('vm2', 'a', 'b'))
        self.tick()
        self.assertEqual({move.instance_uuid: f'req-{move.uuid}' for move in self.journal.moves()},
                         said_under)

    def test_a_move_that_goes_well(self):
        self.plan()
        self.assertEqual(moves.MIGRATING, self.tick())
        self.nova.puts('a', task_state='migrating')
        self.nova.says('running')
        self.assertEqual(moves.MIGRATING, self.tick())
        self.assertEqual('migration', self.move().migration_uuid)
        self.nova.puts('b')
        self.nova.says('completed')
        self.assertEqual(moves.COMPLETED, self.tick())
        self.assertEqual([True], self.nova.released)
        self.assertEqual(1, len(self.nova.requests))
        self.assertEqual([plans.DONE], [p.state for p in self.journal.plans()])
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_nova_is_not_asked_where_pre_flight_fails(self):
        wrong = {
            'it does not exist any more': lambda: self.nova.instances.clear(),
            'it is on b, not on a any more': lambda: self.nova.puts('b'),
            'it is SUSPENDED, not ACTIVE or PAUSED': lambda: self.nova.puts(
                'a', status='SUSPENDED'),
            'it is locked': lambda: self.nova.puts('a', locked=True),
            'it is busy: rebuilding': lambda: self.nova.puts('a', task_state='rebuilding'),
            'destination b is not up and enabled': lambda: self.nova.services.update(b=DISABLED),
            'source a is not up and enabled': lambda: self.nova.services.update(a=FORCED_DOWN),
        }
        for reason, spoil in wrong.items():
            self.nova = self.worker.runner.compute = RecordedNova()
            spoil()
            self.plan()
            self.assertEqual(moves.ABANDONED, self.tick())
            self.assertEqual(f'Instance vm1: {reason}', self.move().error)
            self.assertEqual('PlanOutdated', self.move().error_type)
            self.assertEqual([], self.nova.requests)
            self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_server_that_is_deleted_before_the_next_try_is_no_failure(self):
        self.plan()
        self.tick()
        self.nova.says('error')
        self.assertEqual(moves.PLANNED, self.tick())
        self.nova.instances.clear()
        self.assertEqual(moves.ABANDONED, self.tick(60))
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_server_that_is_deleted_while_it_is_moved_is_no_failure(self):
        def is_going():
            self.nova.says('error', fault='Instance vm1 could not be found.')
            self.nova.puts('a', task_state='deleting')
        for delete in (self.nova.instances.clear, is_going):
            self.plan()
            self.tick()
            delete()
            self.assertEqual(moves.ABANDONED, self.tick())
            self.assertEqual(('PlanOutdated', 'Instance vm1: it was deleted while it was moved'),
                             (self.move().error_type, self.move().error))
            self.assertEqual({}, self.cooldowns.quarantined(self.clock()))
            self.nova.puts('a')

    def test_room_is_held_before_nova_is_asked_and_given_back_after_every_failure(self):
        self.plan()
        self.tick()
        self.assertEqual({self.move().uuid}, self.nova.held)
        self.nova.says('error')
        self.to_the_end()
        self.assertEqual([False] * (OPTIONS.max_retries + 1), self.nova.released)
        self.assertEqual(set(), self.nova.held)

    def test_a_destination_where_it_does_not_fit_is_a_failed_pre_flight(self):
        self.nova.is_full = True
        self.plan()
        self.to_the_end()
        self.assert_refused()
        self.assertEqual([], self.nova.requests)

    def test_a_failed_migration_is_tried_again_and_then_quarantined(self):
        self.plan()
        self.tick()
        self.nova.says('error', fault='no route')
        self.assertEqual(moves.PLANNED, self.tick())
        self.assertEqual(moves.PLANNED, self.tick())
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))
        self.assertEqual(moves.FAILED, self.to_the_end())
        self.assertEqual(2, len(self.nova.requests))
        self.assertEqual('MigrationFailed', self.move().error_type)
        self.assertEqual('Instance vm1: its migration ended as error: no route', self.move().error)
        self.assertEqual({'vm1'}, set(self.cooldowns.quarantined(self.clock())))

    def test_a_migration_that_never_began_was_refused(self):
        self.plan()
        self.tick()
        self.nova.says('error', was_started=False, fault='No valid host was found.')
        self.to_the_end()
        self.assert_refused()
        self.assertEqual('Instance vm1: Nova refused to begin the migration: '
                         'No valid host was found.', self.move().error)

    def test_nor_was_one_while_the_clock_of_a_controller_is_wrong(self):
        """By that clock Nova takes services for down, and the scheduler finds no host."""
        database = self.journal.database
        self.patch(database.utcnow, 'skew', lambda: -3600.0)
        db_journal.Journal(database, 'another').heartbeat(self.clock())
        self.plan()
        self.tick()
        self.nova.says('error', was_started=False, fault='No valid host was found.')
        self.assertEqual(moves.PLANNED, self.tick())
        self.assertEqual(('NovaClientError', 0), (self.move().error_type, self.move().retry_count))
        self.assertIn('the clock of another is 3600 s behind', self.move().error)

    def test_one_that_was_given_up_because_its_conductor_died_was_not(self):
        self.plan()
        self.tick()
        self.nova.says('error', was_started=False)
        self.to_the_end()
        self.assert_no_fault_of_the_instance()

    def test_one_that_an_outage_ended_is_no_fault_of_the_instance(self):
        for was_started in (False, True):
            self.nova = self.worker.runner.compute = RecordedNova()
            self.plan()
            self.tick()
            self.nova.says('error', was_started=was_started, is_outage=True, fault='Placement: ...')
            self.assertEqual(moves.FAILED, self.to_the_end())
            self.assert_no_fault_of_the_instance()

    def test_nor_one_of_which_the_conductor_noted_that_for_those_who_cannot_see_it(self):
        self.plan()
        self.tick()
        self.nova.says('error', was_started=False, fault='Placement: ...')
        self.journal.note_outage(self.move().uuid)
        self.assertEqual(moves.PLANNED, self.tick())
        self.assertEqual('NovaClientError', self.move().error_type)
        # The next try is judged by itself.
        self.assertEqual(moves.FAILED, self.to_the_end())
        self.assertEqual('PreFlightError', self.move().error_type)

    def test_a_host_that_does_not_report_is_no_fault_of_the_instance(self):
        for host in ('a', 'b'):
            self.nova.services = {'a': UP, 'b': UP, host: SILENT}
            self.plan()
            self.assertEqual(moves.FAILED, self.to_the_end())
            self.assertEqual(('NovaClientError', 0),
                             (self.move().error_type, self.move().retry_count))
            self.assertIn(f'nova-compute on {host} does not report', self.move().error)
        self.assertEqual([], self.nova.requests)
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_host_that_is_emptied_and_does_not_report_is_waited_for(self):
        self.nova.services['a'] = dataclasses.replace(SILENT, status='disabled')
        self.plan(phase=plans.EVACUATE)
        self.assertEqual(moves.PLANNED, self.tick())
        self.nova.services['a'] = dataclasses.replace(UP, status='disabled')
        self.tick(20)
        self.assertEqual(moves.MIGRATING, self.move().state)

    def test_a_move_goes_on_after_an_outage_of_any_length_that_a_plan_outlives(self):
        self.nova.services['b'] = SILENT
        self.plan()
        for _ in range(50):
            self.assertEqual(moves.PLANNED, self.tick(10))
        self.assertEqual((0, []), (self.move().retry_count, self.nova.requests))
        self.nova.services['b'] = UP
        self.tick(20)
        self.assertEqual(moves.MIGRATING, self.move().state)
        self.nova.says('completed')
        self.nova.puts('b')
        self.assertEqual(moves.COMPLETED, self.tick())

    def test_an_outage_does_not_outlive_the_word_of_an_operator(self):
        self.nova.services['b'] = SILENT
        self.plan()
        self.tick()
        self.journal.request_abort(self.move().uuid, 'jane', self.clock())
        self.assertEqual(moves.ABANDONED, self.tick())

    def test_a_migration_that_never_began_while_a_host_was_silent_was_not_refused(self):
        self.plan()
        self.tick()
        self.nova.says('error', was_started=False, fault='Compute service is unavailable.')
        self.nova.services['b'] = SILENT
        self.assertEqual(moves.FAILED, self.to_the_end())
        self.assertEqual('NovaClientError', self.move().error_type)

    def test_completed_is_not_believed_when_the_instance_stayed(self):
        self.plan()
        self.tick()
        self.nova.says('completed')
        self.to_the_end()
        self.assertEqual(('MigrationFailed', 'Instance vm1: Nova reports the migration as '
                          'completed, but the instance is on a'),
                         (self.move().error_type, self.move().error))

    def test_what_a_user_does_to_a_server_that_has_arrived_is_no_failure(self):
        for status in ('SHUTOFF', 'REBOOT', 'HARD_REBOOT', 'RESIZE', 'VERIFY_RESIZE', 'SUSPENDED'):
            self.plan()
            self.tick()
            self.nova.says('completed')
            self.nova.puts('b', status=status)
            self.assertEqual(moves.COMPLETED, self.tick(), status)
            self.nova = self.worker.runner.compute = RecordedNova()
        self.assertEqual([], self.nova.confirmed)
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_server_that_has_been_moved_on_since_is_no_failure(self):
        self.plan()
        self.tick()
        self.nova.says('completed')
        self.nova.puts('c')
        self.assertEqual(moves.COMPLETED, self.tick())
        self.assertEqual('moved, and on c since', self.journal.events(self.move().uuid)[-1][-1])

    def test_a_server_that_is_evacuated_from_a_lost_source_is_not_called_moved(self):
        """Nova writes the end of the evacuation into the record of the live migration."""
        self.plan()
        self.tick()
        self.nova.says('done')
        self.nova.puts('c', status='SHUTOFF')
        self.assertEqual(moves.ABANDONED, self.tick())
        self.assertIn('it was evacuated while it was moved', self.move().error)
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_server_that_arrives_in_error_is_a_failure(self):
        self.plan()
        self.tick()
        self.nova.says('completed')
        self.nova.puts('b', status='ERROR')
        self.assertEqual(moves.FAILED, self.to_the_end())
        self.assertEqual('MigrationFailed', self.move().error_type)

    def test_a_migration_that_hangs_is_aborted_and_told_as_a_timeout(self):
        self.plan()
        self.tick()
        self.nova.says('running')
        self.tick(99)
        self.assertEqual([], self.nova.aborts)
        self.tick(2)
        self.assertEqual(['vm1'], self.nova.aborts)
        self.nova.says('cancelled')
        self.tick()
        self.assertEqual('MigrationTimeout', self.move().error_type)

    def test_a_migration_that_was_aborted_through_nova_is_not_begun_again(self):
        for status in ('running', 'queued'):
            self.nova.migrations.clear()
            self.nova.requests.clear()
            self.plan()
            self.tick()
            self.nova.says(status, was_started=status == 'running')
            self.tick()
            self.nova.says('cancelled', was_started=status == 'running')
            self.assertEqual(moves.ABANDONED, self.tick())
            self.assertIn('aborted through Nova', self.journal.events(self.move().uuid)[-1][-1])
            self.to_the_end()
            self.assertEqual(1, len(self.nova.requests))
            self.assertEqual({}, self.cooldowns.quarantined(self.clock()))
            self.clock.go(100)

    def test_a_request_without_an_answer_may_have_been_taken(self):
        self.plan()
        self.nova.silent = True
        self.assertEqual(moves.MIGRATING, self.tick())
        self.nova.says('completed')
        self.nova.puts('b')
        self.assertEqual(moves.COMPLETED, self.tick())

    def test_a_request_that_was_lost_is_no_fault_of_the_instance(self):
        self.plan()
        self.nova.silent = True
        self.tick()
        self.assertEqual(moves.MIGRATING, self.tick(29))
        self.assertEqual(moves.FAILED, self.to_the_end())
        self.assert_no_fault_of_the_instance()

    def test_a_request_that_met_an_outage_uses_no_try_however_long_the_outage_lasts(self):
        self.plan()
        self.nova.silent, self.nova.silence = True, exception.NovaUnavailable
        for number in range(1, 7):
            self.assertEqual(moves.MIGRATING, self.tick(15))
            self.assertEqual(moves.PLANNED, self.tick(31))
            self.assertEqual((number, 0), (len(self.nova.requests), self.move().retry_count))
        self.nova.silent = False
        self.assertEqual(moves.MIGRATING, self.tick(15))
        self.nova.says('completed')
        self.nova.puts('b')
        self.assertEqual(moves.COMPLETED, self.tick())

    def test_a_request_that_nova_lost_half_way_is_made_again(self):
        self.plan()
        self.tick()
        self.nova.puts('a', task_state='migrating')
        self.assertEqual(moves.MIGRATING, self.tick(29))
        self.assertEqual(moves.PLANNED, self.tick(10))
        self.assertEqual('NovaClientError', self.move().error_type)
        self.tick(50)
        self.assertEqual(2, len(self.nova.requests))

    def test_a_request_that_nova_may_still_act_on_is_not_repeated(self):
        self.plan()
        self.tick()
        self.nova.sets_free = False
        self.nova.puts('a', task_state='migrating')
        self.assertEqual(moves.MIGRATING, self.tick(129))
        self.assertEqual(moves.FAILED, self.tick(10))
        self.assertEqual('MigrationTimeout', self.move().error_type)
        self.assertEqual(1, len(self.nova.requests))

    def give_up(self):
        """Let Nova neither end nor abort a migration, until Kronos gives the move up."""
        self.plan()
        self.tick()
        self.nova.says('running')
        self.nova.puts('a', task_state='migrating')
        self.tick(101)
        self.assertEqual(moves.FAILED, self.tick(30))
        self.assertEqual('MigrationTimeout', self.move().error_type)
        self.assertEqual({'vm1'}, {*self.cooldowns.quarantined(self.clock())})

    def test_a_server_that_arrives_after_its_move_was_given_up_is_released(self):
        self.give_up()
        self.tick(60)
        self.assertEqual({'vm1'}, {*self.cooldowns.quarantined(self.clock())})
        self.nova.puts('b')
        self.tick(60)
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_one_that_cannot_be_read_keeps_no_other_server_in_quarantine(self):
        asked = []

        def fails_once(uuid):
            asked.append(uuid)
            if len(asked) == 1:
                raise KeyError('flavor')

        def put(host, **what):
            self.nova.instances |= dict.fromkeys(
                servers, compute.InstanceState(host=host, status='ACTIVE', **what))

        servers = ('vm1', 'vm2')
        put('a')
        self.plan(*((uuid, 'a', 'b') for uuid in servers))
        self.tick()
        put('a', task_state='migrating')
        self.nova.migrations = dict.fromkeys(servers, compute.MigrationState(
            uuid='migration', status='running', was_started=True))
        self.tick(101)
        self.tick(30)
        self.assertEqual({*servers}, {*self.cooldowns.quarantined(self.clock())})
        put('b')
        self.nova.on_instance = fails_once
        self.tick(60)
        self.assertEqual({asked[0]}, {*self.cooldowns.quarantined(self.clock())})
        self.tick(60)
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_server_that_comes_back_or_is_in_error_is_not_released(self):
        self.give_up()
        for host, status in (('a', 'ACTIVE'), ('b', 'ERROR')):
            self.nova.puts(host, status=status)
            self.tick(60)
            self.assertEqual({'vm1'}, {*self.cooldowns.quarantined(self.clock())})

    def test_a_cold_migration_that_arrives_after_its_move_was_given_up_is_confirmed(self):
        self.drain()
        self.tick()
        self.nova.says('migrating')
        self.nova.puts('a', status='SHUTOFF', task_state='resize_migrating')
        self.assertEqual(moves.FAILED, self.tick(131))
        self.nova.puts('b', status='VERIFY_RESIZE')
        self.tick(60)
        self.assertEqual(['vm1'], self.nova.confirmed)
        self.assertEqual({'vm1'}, {*self.cooldowns.quarantined(self.clock())})
        self.nova.puts('b', status='SHUTOFF')
        self.tick(60)
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_cold_request_that_nova_lost_is_made_again(self):
        self.drain()
        self.tick()
        self.nova.puts('a', status='SHUTOFF', task_state='resize_prep')
        self.assertEqual(moves.MIGRATING, self.tick(29))
        self.assertEqual(moves.PLANNED, self.tick(10))
        self.assertEqual('NovaClientError', self.move().error_type)
        self.nova.puts('a', status='SHUTOFF')
        self.tick(50)
        self.assertEqual(['vm1'] * 2, self.nova.cold)

    def test_an_operator_aborts(self):
        self.plan()
        self.tick()
        self.nova.says('running')
        self.journal.request_abort(self.move().uuid, 'jane', self.clock())
        self.tick()
        self.assertEqual(['vm1'], self.nova.aborts)
        self.nova.says('cancelled')
        self.assertEqual(moves.ABANDONED, self.tick())
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_nova_is_asked_for_an_abort_once_in_a_while(self):
        self.plan()
        self.tick()
        self.nova.says('running')
        self.journal.request_abort(self.move().uuid, 'jane', self.clock())
        for _look in range(5):
            self.tick(1)
        self.assertEqual(['vm1'], self.nova.aborts)
        self.tick(runner.ABORT_AGAIN_SECONDS)
        self.assertEqual(['vm1'] * 2, self.nova.aborts)

    def test_nova_is_not_asked_again_to_abort_what_is_being_prepared(self):
        self.plan()
        self.tick()
        self.nova.says('preparing')
        self.journal.request_abort(self.move().uuid, 'jane', self.clock())
        self.tick()
        self.tick(runner.ABORT_AGAIN_SECONDS)
        self.assertEqual(['vm1'], self.nova.aborts)
        self.nova.says('running')
        self.tick()
        self.assertEqual(['vm1'] * 2, self.nova.aborts)

    def test_an_abort_that_nova_cannot_do_yet_is_asked_for_with_the_next_look(self):
        self.nova.aborts_now = False
        self.plan()
        self.tick()
        self.nova.says('preparing')
        self.journal.request_abort(self.move().uuid, 'jane', self.clock())
        self.tick()
        self.tick()
        self.assertEqual(['vm1'] * 2, self.nova.aborts)

    def test_another_worker_goes_on_where_a_dead_one_stopped(self):
        self.plan()
        self.tick()
        heir = self.new_worker(db_journal.Journal(self.journal.database, 'two'))
        heir.tick()
        self.nova.says('completed')
        self.nova.puts('b')
        self.clock.go(59)
        heir.tick()
        self.assertEqual(moves.MIGRATING, self.move().state)
        self.clock.go(2)
        heir.tick()
        self.assertEqual((moves.COMPLETED, 'two'), (self.move().state, self.move().owner))
        self.assertEqual(1, len(self.nova.requests))

    def heir_without_the_aggregate(self):
        """Return another worker, whose configuration does not have the aggregate any more."""
        return fakes_executor.Worker(
            db_journal.Journal(self.journal.database, 'two'), self.nova, self.cooldowns, OPTIONS,
            self.clock, aggregates=('gpu-renamed',))

    def test_a_migration_is_watched_to_its_end_although_its_aggregate_left_the_scope(self):
        self.plan()
        self.tick()
        self.journal.retire(self.clock())
        self.nova.says('completed')
        self.nova.puts('b')
        heir = self.heir_without_the_aggregate()
        self.clock.go(2)
        heir.tick()
        self.assertEqual(moves.COMPLETED, self.move().state)
        self.clock.go(2)
        heir.tick()
        self.assertEqual([], self.journal.aggregates_with_open_plans())

    def test_a_move_whose_aggregate_left_the_scope_is_not_begun(self):
        self.plan()
        self.journal.heartbeat(self.clock())
        [move] = self.journal.dispatch(OPTIONS.caps, self.clock)
        self.journal.claim(move.uuid, self.clock())
        heir = self.heir_without_the_aggregate()
        for seconds in (1, 61):
            self.clock.go(seconds)
            heir.tick()
        self.assertEqual((moves.PLANNED, []), (self.move().state, self.nova.requests))
        self.clock.go(OPTIONS.stale_plan_age)
        heir.tick()
        self.assertEqual(moves.ABANDONED, self.move().state)

    def test_an_abort_that_nova_does_not_hear_is_asked_for_again(self):
        self.plan()
        self.tick()
        self.nova.says('running')
        self.nova.silent = True
        self.assertEqual(moves.MIGRATING, self.tick(101))
        self.nova.silent = False
        self.assertEqual(moves.MIGRATING, self.tick())
        self.assertEqual(['vm1'], self.nova.aborts)

    def test_a_force_that_nova_does_not_hear_is_asked_for_again(self):
        self.worker = self.new_worker(self.journal, timeout_action=options.FORCE_COMPLETE)
        self.plan()
        self.tick()
        self.nova.says('running')
        self.nova.silent = True
        self.assertEqual(moves.MIGRATING, self.tick(101))
        self.nova.silent = False
        self.tick()
        self.tick()
        self.assertEqual((['vm1'], []), (self.nova.forced, self.nova.aborts))

    def test_a_migration_that_hangs_is_forced_once_and_aborted_only_if_that_does_not_help(self):
        self.worker = self.new_worker(self.journal, timeout_action=options.FORCE_COMPLETE)
        self.plan()
        self.tick()
        self.nova.says('running')
        self.tick(101)
        self.tick(99)
        self.assertEqual((['vm1'], []), (self.nova.forced, self.nova.aborts))
        self.tick()
        self.assertEqual((['vm1'], ['vm1']), (self.nova.forced, self.nova.aborts))

    def test_a_migration_that_cannot_be_forced_yet_is_forced_as_soon_as_it_can(self):
        self.worker = self.new_worker(self.journal, timeout_action=options.FORCE_COMPLETE)
        self.nova.forces_now = False
        self.plan()
        self.tick()
        self.nova.says('preparing')
        self.tick(101)
        self.nova.says('running')
        self.nova.forces_now = True
        self.tick()
        self.tick()
        self.assertEqual((['vm1'] * 2, []), (self.nova.forced, self.nova.aborts))

    def test_a_migration_that_can_never_be_forced_is_aborted(self):
        self.worker = self.new_worker(self.journal, timeout_action=options.FORCE_COMPLETE)
        self.nova.forces_now = False
        self.plan()
        self.tick()
        self.nova.says('queued')
        self.tick(101)
        self.assertEqual([], self.nova.aborts)
        self.tick(100)
        self.assertEqual(['vm1'], self.nova.aborts)

    def test_a_migration_does_not_end_where_its_nova_compute_is_dead(self):
        for host in ('a', 'b'):
            self.nova = self.worker.runner.compute = RecordedNova()
            self.plan()
            self.tick()
            self.nova.says('running')
            self.nova.services[host] = SILENT
            self.assertEqual(moves.FAILED, self.tick(132))
            self.assert_no_fault_of_the_instance()
            self.assertEqual(f'Nova neither ends nor aborts it: nova-compute on {host} does not '
                             'report', self.move().error)
            self.assertEqual(1, len(self.nova.requests))

    def test_a_migration_that_nova_never_ends_does_not_hold_up_the_plan_for_ever(self):
        self.plan()
        self.tick()
        self.nova.says('queued')
        self.assertEqual(moves.MIGRATING, self.tick(128))
        self.assertEqual(moves.FAILED, self.tick(4))
        self.assertEqual('MigrationTimeout', self.move().error_type)
        self.assertEqual((['vm1'], 1), (self.nova.aborts, len(self.nova.requests)))

    def test_an_earlier_try_that_was_only_slow_counts(self):
        self.plan()
        self.nova.silent = True
        self.tick()
        self.tick(31)
        self.assertEqual(moves.PLANNED, self.move().state)
        self.nova.puts('b')
        self.assertEqual(moves.COMPLETED, self.tick(50))
        self.assertEqual(1, len(self.nova.requests))

    def test_an_earlier_try_may_arrive_while_the_next_one_claims_room(self):
        self.plan()
        self.nova.silent = True
        self.tick()
        self.tick(31)

        def lose_the_database():
            self.nova.puts('b')
            raise db_exc.DBConnectionError

        self.nova.on_hold_room = lose_the_database
        self.tick(50)
        self.assertEqual(moves.CLAIMING, self.move().state)
        self.assertEqual(moves.COMPLETED, self.tick())
        self.assertEqual(1, len(self.nova.requests))

    def test_a_task_that_is_delivered_twice_is_done_once(self):
        self.plan()
        self.worker.is_heard = False
        self.tick()
        uuid = self.move().uuid
        other = self.new_worker(db_journal.Journal(self.journal.database, 'two'))
        for worker in (self.worker, other, self.worker):
            worker.executor.accept(uuid)
        self.assertEqual(['one'], [move.owner for move in self.nova.requests])
        self.nova.says('completed')
        self.nova.puts('b')
        self.tick()
        other.executor.accept(uuid)
        self.assertEqual(1, len(self.nova.requests))

    def test_a_task_that_is_lost_is_sent_again(self):
        self.plan()
        self.worker.is_heard = False
        self.assertEqual(moves.DISPATCHED, self.tick())
        self.assertEqual(moves.DISPATCHED, self.tick(19))
        self.worker.is_heard = True
        self.assertEqual(moves.MIGRATING, self.tick(2))
        self.assertEqual(1, len(self.nova.requests))

    def test_a_move_that_waits_does_not_start_outside_a_window(self):
        self.plan()
        self.worker.is_open = False
        self.assertEqual(moves.PLANNED, self.tick(OPTIONS.stale_plan_age - 10))
        self.worker.is_open = True
        self.assertEqual(moves.MIGRATING, self.tick())

    def test_nor_does_a_retry_and_what_waits_too_long_is_given_up(self):
        self.plan()
        self.tick()
        self.worker.is_open = False
        self.nova.says('error')
        self.assertEqual(moves.PLANNED, self.tick())
        self.assertEqual(moves.PLANNED, self.tick(OPTIONS.stale_plan_age - 10))
        self.assertEqual(moves.FAILED, self.tick(10))
        self.assertEqual('MigrationFailed', self.move().error_type)
        self.assertEqual(1, len(self.nova.requests))
        self.assertEqual({'vm1'}, set(self.cooldowns.quarantined(self.clock())))

    def test_a_timeout_is_remembered_where_the_plan_is_too_old_for_another_try(self):
        self.worker = self.new_worker(self.journal,
                                      stale_plan_age=OPTIONS.migration_timeout)
        self.plan()
        self.tick()
        self.nova.says('running')
        self.tick(OPTIONS.migration_timeout + 1)
        self.nova.says('cancelled')

        self.assertEqual(moves.FAILED, self.to_the_end())

        self.assertEqual('MigrationTimeout', self.move().error_type)
        self.assertEqual({'vm1'}, set(self.cooldowns.quarantined(self.clock())))

    def test_a_server_that_a_failed_try_left_unwell_is_quarantined_for_that_failure(self):
        self.plan()
        self.tick()
        self.nova.says('error', fault='no route')
        self.nova.puts('a', status='ERROR')

        self.assertEqual(moves.FAILED, self.to_the_end())

        self.assertEqual('MigrationFailed', self.move().error_type)
        self.assertEqual({'vm1'}, set(self.cooldowns.quarantined(self.clock())))

    def test_an_operators_abort_between_two_tries_is_no_failure(self):
        self.plan()
        self.tick()
        self.nova.says('error', fault='no route')
        self.tick()
        self.journal.request_abort(self.move().uuid, 'jane', self.clock())

        self.assertEqual(moves.ABANDONED, self.tick())
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_what_is_in_progress_is_carried_on_when_the_window_closes(self):
        self.plan()
        self.tick()
        self.worker.is_open = False
        self.nova.says('completed')
        self.nova.puts('b')
        self.assertEqual(moves.COMPLETED, self.tick())

    def switch(self, kind, value):
        switches.SwitchBoard(self.journal.database).set(automation.Switch(
            kind=kind, aggregate=automation.EVERY, value=value, set_at=self.clock(),
            set_by='jane'))

    def test_at_every_level_what_is_in_progress_is_looked_after_and_nothing_new_is_started(self):
        for level in (automation.OFF, automation.OBSERVE, automation.APPROVE):
            self.plan(('vm1', 'a', 'b'), ('vm1', 'a', 'b', 1))
            self.switch(automation.LEVEL, automation.AUTO)
            self.assertEqual(moves.MIGRATING, self.tick())
            self.switch(automation.LEVEL, level)
            self.tick()
            self.nova.says('completed')
            self.nova.puts('b')
            self.tick()
            self.assertEqual([moves.COMPLETED, moves.ABANDONED],
                             [move.state for move in self.journal.moves()[:2]], level)
            self.tick()
            self.assertEqual([], self.journal.aggregates_with_open_plans())
            self.nova.puts('a')
            self.nova.says('running')
        self.assertEqual(3, len(self.nova.requests))

    def test_a_move_that_was_taken_on_when_a_pause_was_set_waits_and_gives_its_room_back(self):
        self.plan()
        self.nova.on_hold_room = lambda: self.switch(automation.PAUSE, 'pause')
        self.assertEqual(moves.PLANNED, self.tick())
        self.assertEqual(([], [False]), (self.nova.requests, self.nova.released))
        self.assertEqual(moves.PLANNED, self.tick())
        switches.SwitchBoard(self.journal.database).resume(
            self.journal_entry(), everyone=True)
        self.nova.on_hold_room = lambda: None
        self.assertEqual(moves.MIGRATING, self.tick())

    def journal_entry(self):
        return automation.Switch(kind=automation.PAUSE, aggregate=automation.EVERY, value='',
                                 set_at=self.clock(), set_by='jane')

    def test_after_a_stop_nova_is_asked_to_abort_and_asked_for_nothing_more(self):
        self.plan(('vm1', 'a', 'b'), ('vm2', 'a', 'b', 1))
        self.tick()
        self.nova.says('running')
        stopping.Stopping(self.journal.database, 'jane').stop(automation.Switch(
            kind=automation.PAUSE, aggregate=automation.EVERY, value='stop', set_at=self.clock(),
            set_by='jane'))
        self.tick()
        self.assertEqual(['vm1'], self.nova.aborts)
        self.nova.says('cancelled')
        self.tick()
        self.assertEqual([moves.ABANDONED] * 2, [move.state for move in self.journal.moves()])
        self.assertEqual(1, len(self.nova.requests))
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_level_that_there_is_not_holds_moves_and_lets_the_others_end(self):
        self.plan(('vm1', 'a', 'b'), ('vm2', 'a', 'b', 1))
        self.tick()
        self.worker.complaint = exception.ConfigurationError(what='x', problem='y', remedy='z')
        self.nova.says('completed')
        self.nova.puts('b')
        self.clock.go(2)
        self.assertRaises(exception.ConfigurationError, self.worker.tick)
        self.assertEqual([moves.COMPLETED, moves.PLANNED],
                         [move.state for move in self.journal.moves()])
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def drain(self, status='SHUTOFF', cold=('vm1',), locked=False, kind='cold'):
        """A host is drained, and the plan for it runs."""
        board = drains.Drains(self.journal.database)
        board.request([Drain(uuid='d', host='a', aggregate='gpu', state='draining',
                             requested_by='jane', requested_at=self.clock())])
        self.nova.services['a'] = DISABLED
        self.nova.instances['vm1'] = compute.InstanceState(host='a', status=status, locked=locked)
        report = fixtures.report([('vm1', 'a', 'b')])
        report = dataclasses.replace(report, moves=tuple(
            dataclasses.replace(move, phase=plans.EVACUATE) for move in report.moves))
        self.journal.record_plan(report, plans.EXECUTING, self.clock(),
                                 self.clock() + datetime.timedelta(hours=1),
                                 purpose=automation.DRAIN, kinds=dict.fromkeys(cold, kind))
        return board

    def test_a_paused_server_is_migrated_live_and_stays_paused(self):
        self.drain(status='PAUSED', cold=())
        self.assertEqual(moves.MIGRATING, self.tick())
        self.nova.says('completed')
        self.nova.puts('b', status='PAUSED')
        self.assertEqual(moves.COMPLETED, self.tick())

    def test_a_stopped_server_is_migrated_cold_and_confirmed(self):
        self.drain()
        self.switch(automation.LEVEL, automation.OFF)   # an operator's drain asks for no level
        self.assertEqual(moves.MIGRATING, self.tick())
        self.assertEqual(([], ['vm1']), (self.nova.requests, self.nova.cold))
        self.nova.says('finished')
        self.nova.puts('b', status='VERIFY_RESIZE')
        self.tick()
        self.assertEqual(['vm1'], self.nova.confirmed)
        self.nova.says('confirmed')
        self.nova.puts('b', status='SHUTOFF')
        self.assertEqual(moves.COMPLETED, self.tick())

    def test_a_cold_migration_that_nova_gave_up_is_tried_again(self):
        self.drain()
        self.tick()
        self.nova.says('error', fault='No valid host')
        self.assertEqual(moves.PLANNED, self.tick())
        self.assertIn('No valid host', self.move().error)

    def test_an_outage_that_ends_a_cold_migration_uses_no_try(self):
        for was_started in (False, True):
            self.nova = self.worker.runner.compute = RecordedNova()
            self.drain()
            self.tick()
            self.nova.says('error', was_started=was_started, is_outage=True, fault='Placement: ...')
            self.assertEqual(moves.PLANNED, self.tick())
            self.assertEqual(0, self.move().retry_count)
            self.to_the_end()
            self.assert_no_fault_of_the_instance()

    def test_a_server_that_is_deleted_during_its_cold_migration_is_no_failure(self):
        self.drain()
        self.tick()
        self.nova.says('error', fault='Instance vm1 could not be found.')
        self.nova.puts('a', status='SHUTOFF', task_state='deleting')
        self.assertEqual(moves.ABANDONED, self.tick())
        self.assertEqual('PlanOutdated', self.move().error_type)

    def test_a_cold_migration_that_failed_is_not_begun_again_after_an_abort(self):
        self.drain()
        self.tick()
        self.journal.request_abort(self.move().uuid, 'jane', self.clock())
        self.nova.says('error', fault='No valid host')
        self.assertEqual(moves.ABANDONED, self.tick())
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_cold_migration_that_was_reverted_is_not_begun_again(self):
        self.drain()
        self.tick()
        self.nova.says('reverted')
        self.nova.puts('a', status='SHUTOFF')
        self.assertEqual(moves.ABANDONED, self.tick())
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_confirmation_that_is_lost_is_asked_for_again(self):
        self.worker = self.new_worker(self.journal, migration_timeout=1000)
        self.drain()
        self.tick()
        self.nova.says('finished')
        self.nova.puts('b', status='VERIFY_RESIZE')
        self.tick()
        self.nova.says('confirming')
        self.tick(runner.CONFIRM_AGAIN_SECONDS - 1)
        self.assertEqual(['vm1'], self.nova.confirmed)
        self.tick()
        self.tick()
        self.assertEqual(['vm1'] * 2, self.nova.confirmed)

    def test_a_cold_migration_that_is_never_confirmed_is_a_failure(self):
        self.drain()
        self.tick()
        self.nova.says('confirmed')
        self.nova.puts('b', status='VERIFY_RESIZE')
        self.tick()
        self.assertEqual(moves.VERIFYING, self.move().state)
        self.assertEqual(moves.FAILED, self.to_the_end())
        self.assertEqual('MigrationFailed', self.move().error_type)

    def test_a_cold_migration_that_never_began_was_refused(self):
        self.drain()
        self.tick()
        self.nova.says('error', was_started=False, fault='No valid host was found.')
        self.to_the_end()
        self.assert_refused()
        self.assertEqual('Instance vm1: Nova refused to begin the migration: '
                         'No valid host was found.', self.move().error)

    def test_a_running_server_is_migrated_cold_where_that_is_wanted_and_runs_again(self):
        self.drain(status='ACTIVE', kind='restart')
        self.assertEqual(moves.MIGRATING, self.tick())
        self.assertEqual(([], ['vm1']), (self.nova.requests, self.nova.cold))
        self.nova.says('finished')
        self.nova.puts('b', status='VERIFY_RESIZE')
        self.tick()
        self.assertEqual(['vm1'], self.nova.confirmed)
        self.nova.says('confirmed')
        self.nova.puts('b', status='ACTIVE')
        self.assertEqual(moves.COMPLETED, self.tick())

    def test_a_server_that_its_owner_has_locked_is_not_interrupted(self):
        self.drain(status='ACTIVE', kind='restart', locked=True)
        self.assertEqual(moves.ABANDONED, self.tick())
        self.assertEqual([], self.nova.cold)

    def test_a_server_that_was_started_meanwhile_is_not_migrated_cold(self):
        self.drain(status='ACTIVE')
        self.assertEqual(moves.ABANDONED, self.tick())
        self.assertEqual([], self.nova.cold)

    def test_a_tenants_lock_does_not_keep_a_server_on_a_host_that_is_drained(self):
        self.drain(status='ACTIVE', cold=(), locked=True)
        self.assertEqual(moves.MIGRATING, self.tick())

    def test_moves_of_a_drain_that_has_ended_are_given_up(self):
        board = self.drain()
        [drain] = board.in_states(ACTIVE)
        board.enter(drain, ACTIVE, 'releasing')
        self.assertEqual(moves.ABANDONED, self.tick())

    def drain_with_room(self):
        """A host is drained: vm2 leaves b, so that vm1 can leave the host for b."""
        board = drains.Drains(self.journal.database)
        board.request([Drain(uuid='d', host='a', aggregate='gpu', state='draining',
                             requested_by='jane', requested_at=self.clock())])
        self.nova.services |= {'a': DISABLED, 'c': UP}
        self.nova.instances['vm2'] = compute.InstanceState(host='b', status='ACTIVE')
        report = fixtures.report([('vm2', 'b', 'c'), ('vm1', 'a', 'b', 1)], phase=plans.EVACUATE)
        self.journal.record_plan(
            fixtures.making_room(report, 1), plans.EXECUTING, self.clock(),
            self.clock() + datetime.timedelta(hours=1), purpose=automation.DRAIN)
        return board

    def states(self):
        """The states of the plan's moves, in the order of the plan."""
        return [move.state for move in sorted(self.journal.moves(), key=lambda m: m.ordinal)]

    def test_a_server_of_another_host_makes_room_for_a_drain(self):
        self.drain_with_room()
        self.tick()
        self.assertEqual([moves.MIGRATING, moves.PLANNED], self.states())
        self.nova.migrations['vm2'] = compute.MigrationState(
            uuid='migration', status='completed', was_started=True)
        self.nova.instances['vm2'] = compute.InstanceState(host='c', status='ACTIVE')
        self.tick()
        self.assertEqual([moves.COMPLETED, moves.MIGRATING], self.states())

    def test_no_server_that_its_owner_has_locked_makes_room_for_a_drain(self):
        self.drain_with_room()
        self.nova.instances['vm2'] = compute.InstanceState(host='b', status='ACTIVE', locked=True)
        self.tick()
        self.assertEqual(moves.ABANDONED, self.states()[0])
        self.assertEqual([], self.nova.requests)

    def test_no_server_makes_room_for_a_move_that_an_operator_has_aborted(self):
        self.drain_with_room()
        [served] = [move for move in self.journal.moves() if move.instance_uuid == 'vm1']
        self.journal.request_abort(served.uuid, 'jane', self.clock())
        self.tick()
        self.assertEqual([moves.ABANDONED, moves.ABANDONED], self.states())
        self.assertEqual([], self.nova.requests)

    def test_no_server_makes_room_for_a_drain_that_has_ended(self):
        board = self.drain_with_room()
        board.request([Drain(uuid='e', host='e', aggregate='gpu', state='draining',
                             requested_by='jane', requested_at=self.clock())])
        board.end(board.get('d'), ACTIVE, 'releasing', self.clock(), 'jane')
        self.tick()
        self.assertEqual([moves.ABANDONED, moves.ABANDONED], self.states())
        self.assertEqual([], self.nova.requests)

    def test_no_accepted_move_makes_room_for_a_move_that_is_aborted_meanwhile(self):
        self.drain_with_room()
        [served] = [move for move in self.journal.moves() if move.instance_uuid == 'vm1']
        self.nova.on_hold_room = lambda: self.journal.request_abort(
            served.uuid, 'jane', self.clock())
        self.tick()
        self.tick()
        self.assertEqual([moves.ABANDONED, moves.ABANDONED], self.states())
        self.assertEqual([], self.nova.requests)

    def test_a_drain_goes_before_what_was_planned_to_balance(self):
        self.plan(('vm2', 'a', 'b'))
        drains.Drains(self.journal.database).request([Drain(
            uuid='d', host='a', aggregate='gpu', state='requested', requested_by='jane',
            requested_at=self.clock())])
        self.assertEqual(moves.ABANDONED, self.tick())
        self.assertIn('a is being drained', self.journal.events(self.move().uuid)[-1][-1])

    def test_a_result_that_is_lost_is_taken_from_the_journal(self):
        self.plan()
        self.tick()
        self.nova.says('error')
        self.worker.is_heard = False
        self.to_the_end_unheard()
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))
        self.assertEqual([plans.EXECUTING], [p.state for p in self.journal.plans()])
        self.tick(21)
        self.assertEqual({'vm1'}, set(self.cooldowns.quarantined(self.clock())))
        self.assertEqual([plans.DONE], [p.state for p in self.journal.plans()])

    def to_the_end_unheard(self):
        """One tick at a time, each task handed over by hand."""
        while self.tick(8) not in moves.TERMINAL:
            self.worker.executor.accept(self.move().uuid)

    def test_an_instance_that_is_released_stays_released(self):
        self.plan()
        self.tick()
        self.nova.says('error')
        self.to_the_end()
        self.cooldowns.release('vm1')
        self.worker.outcomes.settle(self.move().uuid)
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_what_was_not_begun_goes_back_when_a_worker_ends(self):
        self.plan()
        self.worker.is_heard = False
        self.tick()
        self.journal.claim(self.move().uuid, self.clock())
        self.journal.retire(self.clock())
        self.assertEqual((moves.PLANNED, None), (self.move().state, self.move().owner))

    def recorded(self):
        return [name for name, *_ in self.journal.workers(
            self.clock() - datetime.timedelta(hours=1))]

    def test_a_worker_that_has_ended_accepts_no_move_that_a_late_message_names(self):
        self.plan()
        self.worker.is_heard = False
        self.tick()
        self.worker.executor.retire()
        self.worker.executor.accept(self.move().uuid)
        self.assertEqual(moves.DISPATCHED, self.move().state)
        self.assertNotIn(self.worker.executor.journal.worker, self.recorded())

    def test_a_move_that_was_accepted_while_the_worker_ended_goes_back(self):
        self.plan()
        self.worker.is_heard = False
        self.tick()
        journal = self.worker.executor.journal
        claim = journal.claim

        def claim_late(*arguments):
            self.worker.executor.retire()
            return claim(*arguments)
        self.patch(journal, 'claim', claim_late)
        self.worker.executor.pool = futures.ThreadPoolExecutor(1)
        self.worker.executor.accept(self.move().uuid)
        self.assertEqual((moves.PLANNED, None), (self.move().state, self.move().owner))
        self.assertNotIn(journal.worker, self.recorded())

    def test_what_is_in_progress_is_taken_over_at_once_from_a_worker_that_ends(self):
        self.plan()
        self.tick()
        self.worker.executor.retire()
        self.new_worker(db_journal.Journal(self.journal.database, 'two')).tick()
        self.assertEqual((moves.MIGRATING, 'two'), (self.move().state, self.move().owner))

    def test_progress_is_kept(self):
        self.plan()
        self.tick()
        self.nova.migrations['vm1'] = compute.MigrationState(
            uuid='migration', status='running', was_started=True, memory_total=100,
            memory_remaining=40)
        self.tick()
        self.assertEqual((100, 40), (self.move().memory_total, self.move().memory_remaining))
