"""Controllers whose clocks are wrong, with one control database."""

import datetime

import fixtures
import testtools
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.db import cooldowns as db_cooldowns
from kronos_nova.db import future_times
from kronos_nova.db import journal as db_journal
from kronos_nova.db import leases
from kronos_nova.db import retention
from kronos_nova.db import shared_clock
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.db import fixtures as db_fixtures
from tests.unit.executor import test_executor
from tests.unit.executor.fakes_executor import Worker

DAY, HOUR = 86400, 3600
AHEAD = (-DAY, -HOUR, HOUR, DAY)


class SkewedClock:
    """A host's clock, ahead of the true one."""

    def __init__(self, true, seconds):
        self._true = true
        self.ahead = datetime.timedelta(seconds=seconds)

    def __call__(self):
        return self._true() + self.ahead


class ControllersTest(test_executor.ExecutorTestCase):
    def beside(self, seconds, name='two'):
        """A second controller, with a clock that is so many seconds ahead."""
        return Worker(db_journal.Journal(self.journal.database, name), self.nova, self.cooldowns,
                      test_executor.OPTIONS, SkewedClock(self.clock, seconds))

    def run_beside(self, other, seconds=60, step=5):
        for _ in range(seconds // step):
            self.clock.go(step)
            self.worker.tick()
            other.tick()

    def complete(self):
        """See the move completed, and put the instance back for the next one."""
        self.nova.says('completed')
        self.nova.puts('b')
        self.tick()
        self.assertEqual(moves.COMPLETED, self.move().state)
        self.nova.puts('a')
        self.nova.migrations.clear()

    def test_a_clock_that_is_wrong_for_a_minute_takes_nothing_and_fails_nothing(self):
        for seconds in AHEAD:
            self.plan()
            self.tick()
            self.nova.says('running')
            self.run_beside(self.beside(seconds, f'two{seconds}'))
            self.assertEqual((moves.MIGRATING, 'one', 0),
                             (self.move().state, self.move().owner, self.move().retry_count))
            self.assertEqual({}, self.cooldowns.quarantined(self.clock()))
            self.complete()

    def test_moves_of_a_dead_controller_whose_clock_was_ahead_are_adopted_in_a_minute(self):
        for seconds in AHEAD:
            wrong = self.beside(seconds, f'wrong{seconds}')
            self.plan()
            self.worker.is_heard = False
            self.worker.dispatcher.tick()
            wrong.executor.accept(self.move().uuid)
            self.nova.says('running')
            self.assertEqual(f'wrong{seconds}', self.move().owner)

            self.worker.is_heard = True
            for _ in range(14):
                self.tick(5)

            self.assertEqual(('one', moves.MIGRATING), (self.move().owner, self.move().state))
            self.complete()

    def test_a_step_of_the_clock_in_mid_move_ends_nothing(self):
        seconds = [0.0]
        clock = SkewedClock(self.clock, 0)
        worker = Worker(db_journal.Journal(self.journal.database, 'steps'), self.nova,
                        self.cooldowns, test_executor.OPTIONS, clock, monotonic=lambda: seconds[0])
        self.plan()
        worker.tick()
        worker.tick()
        self.nova.says('running')
        for step in AHEAD:
            clock.ahead = datetime.timedelta(seconds=step)
            seconds[0] += 5
            worker.tick()
            self.assertEqual((moves.MIGRATING, []), (self.move().state, self.nova.aborts))
        seconds[0] += 100
        worker.tick()
        self.assertEqual(['vm1'], self.nova.aborts)

    def test_a_step_of_the_clock_right_after_the_request_ends_nothing(self):
        clock = SkewedClock(self.clock, 0)
        worker = Worker(db_journal.Journal(self.journal.database, 'steps'), self.nova,
                        self.cooldowns, test_executor.OPTIONS, clock, monotonic=lambda: 0.0)
        for step in AHEAD:
            self.plan()
            while not self.nova.requests:
                worker.tick()
            self.assertEqual(moves.MIGRATING, self.move().state)
            self.nova.says('running')
            clock.ahead = datetime.timedelta(seconds=step)
            worker.tick()
            self.assertEqual((moves.MIGRATING, []), (self.move().state, self.nova.aborts), step)
            self.nova.says('completed')
            self.nova.puts('b')
            worker.tick()
            self.assertEqual(moves.COMPLETED, self.move().state)
            clock.ahead = datetime.timedelta()
            self.nova.puts('a')
            self.nova.migrations.clear()
            self.nova.requests.clear()
            self.clock.go(60)

    def test_a_correction_of_the_times_in_mid_move_ends_nothing(self):
        """The database's clock steps a day back, the times of the move are corrected, and the clock
        becomes right again."""
        self.plan()
        self.tick()
        self.nova.says('running')
        self.tick(5)
        corrected = future_times.FutureTimes(self.journal.database).correct(
            self.clock() - datetime.timedelta(days=1))
        self.assertIn('moves', corrected)
        self.assertEqual(moves.MIGRATING, self.tick(5))
        self.assertEqual([], self.nova.aborts)
        self.tick(95)
        self.assertEqual(['vm1'], self.nova.aborts)

    def test_a_move_that_comes_back_to_a_worker_has_the_time_of_its_present_try(self):
        self.plan()
        self.tick()
        self.nova.says('running')
        heir = self.beside(0)
        for _ in range(13):
            self.clock.go(5)
            heir.tick()
        self.nova.says('error')
        heir.tick()
        self.nova.migrations.clear()
        while len(self.nova.requests) < 2:
            self.clock.go(5)
            heir.tick()
        self.assertEqual(('two', 1, moves.MIGRATING), (
            self.move().owner, self.move().retry_count, self.move().state))
        self.nova.says('running')
        heir.executor.retire()
        for _ in range(3):
            self.tick(5)
        self.assertEqual(('one', moves.MIGRATING), (self.move().owner, self.move().state))
        self.assertEqual([], self.nova.aborts)

    def test_an_adopted_move_that_fails_is_no_judgement_on_the_instance(self):
        self.plan()
        self.tick()
        heir = self.beside(0)
        heir.tick()
        self.nova.says('running')
        self.clock.go(61)
        heir.tick()
        self.assertTrue(self.move().adopted)
        for _ in range(30):
            self.clock.go(10)
            heir.tick()
        self.assertEqual((moves.FAILED, 'MigrationTimeout'),
                         (self.move().state, self.move().error_type))
        self.assertEqual({}, self.cooldowns.quarantined(self.clock()))

    def test_a_controller_that_knows_that_its_clock_is_wrong_adopts_nothing(self):
        self.plan()
        self.tick()
        heir = self.beside(0)
        heir.trusts_clock = False
        for _ in range(3):
            heir.tick()
            self.clock.go(61)
        self.assertEqual('one', self.move().owner)

    def test_a_move_that_nova_never_heard_of_is_aborted(self):
        self.plan()
        self.nova.silent = True
        self.tick()
        self.nova.silent = False
        self.journal.request_abort(self.move().uuid, 'jane', self.clock())
        self.tick(11)
        self.assertEqual(moves.ABANDONED, self.move().state)


class FutureTimesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.clock = db_fixtures.Clock()
        self.wrong = SkewedClock(self.clock, DAY)
        self.cooldowns = db_cooldowns.Cooldowns(self.database)

    def seconds(self, number):
        return datetime.timedelta(seconds=number)

    def correct(self):
        return future_times.FutureTimes(self.database).correct(self.clock())

    def test_cooldowns_and_quarantines_last_as_long_as_their_options_say(self):
        db_fixtures.cool(self.database, db_cooldowns.AGGREGATE, ['gpu'],
                         self.wrong() + self.seconds(300), self.wrong())
        self.cooldowns.quarantine('vm1', 3600, 'it failed', self.wrong())
        self.assertEqual({'cooldowns': 1, 'quarantines': 1},
                         future_times.FutureTimes(self.database).count(self.clock()))

        self.assertEqual({'cooldowns': 1, 'quarantines': 1}, self.correct())

        self.assertEqual({'gpu': 300}, self.cooldowns.cooling(self.clock())['aggregate'])
        self.assertEqual({'vm1': 3600}, self.cooldowns.quarantined(self.clock()))
        self.assertEqual({}, self.correct())

    def test_a_cooldown_that_a_right_clock_sets_ends_the_wrong_one(self):
        for clock in self.wrong, self.clock:
            db_fixtures.cool(self.database, 'aggregate', ['gpu'], clock() + self.seconds(300),
                             clock())
        self.assertEqual({'gpu': 300}, self.cooldowns.cooling(self.clock())['aggregate'])

    def test_a_plan_of_the_future_expires_in_time(self):
        journal = db_journal.Journal(self.database, 'one')
        journal.record_plan(db_fixtures.report([('vm1', 'a', 'b')]), plans.EXECUTING, self.wrong(),
                            self.wrong() + self.seconds(600))
        self.assertEqual({'moves': 1, 'plans': 1}, self.correct())
        [move], [plan] = journal.moves(), journal.open_plans()
        self.assertEqual((self.clock(), self.clock() + self.seconds(600)),
                         (move.not_before, plan.expires_at))

    def test_a_lease_until_tomorrow_does_not_count(self):
        self.assertTrue(leases.Leases(self.database, 'wrong', self.wrong).hold('reconciler', 60))
        self.assertTrue(leases.Leases(self.database, 'one', self.clock).hold('reconciler', 60))
        self.assertFalse(leases.Leases(self.database, 'two', self.clock).hold('reconciler', 60))

    def test_the_services_do_that_by_themselves_within_a_minute(self):
        self.cooldowns.quarantine('vm1', 3600, 'it failed', self.wrong())
        conf = _configured()
        retention.Pruner(conf, self.database, 'one', self.clock).tick()
        self.assertEqual({'vm1': 3600}, self.cooldowns.quarantined(self.clock()))
        self.assertIn('1 rows of table quarantines', self.log.output)


class SharedClockTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(db_fixtures.ControlDatabase()).database
        self.now = 0.0
        self.true = datetime.datetime.now(datetime.UTC)
        self.ahead = 0.0

    def wall(self):
        return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=self.ahead)

    def clock(self):
        return shared_clock.SharedClock(self.database.engine, self.wall, lambda: self.now)

    def assertNear(self, expected, found, within=2):  # noqa: N802 - testtools' way
        self.assertLess(abs((expected - found).total_seconds()), within)

    def test_the_time_is_the_databases_whatever_the_host_says(self):
        for self.ahead in AHEAD:
            self.assertNear(datetime.datetime.now(datetime.UTC), self.clock()())

    def test_it_continues_by_the_monotonic_clock(self):
        clock = self.clock()
        first = clock()
        self.now, self.ahead = 5.0, DAY
        self.assertEqual(first + datetime.timedelta(seconds=5), clock())

    def test_a_wrong_clock_is_said_in_the_same_words_until_it_changes(self):
        for self.ahead, word in (DAY, 'ahead of'), (-HOUR, 'behind'):
            clock = self.clock()
            error = self.assertRaises(exception.ClockSkewed, clock.check)
            self.assertIn(f'{abs(self.ahead)} s {word}', str(error))
            self.ahead += 1
            self.now += 60
            again = self.assertRaises(exception.ClockSkewed, clock.check)
            self.assertEqual(str(error), str(again))
            self.ahead = 0
            self.now += 60
            clock.check()
            self.assertTrue(clock.is_right())

    def test_without_a_database_it_is_the_hosts_and_goes_on_from_the_last_answer(self):
        clock = self.clock()
        clock()
        self.addCleanup(setattr, self.database.engine, 'connect', self.database.engine.connect)
        self.database.engine.connect = _refuse
        self.now, self.ahead = 60.0, HOUR
        self.assertNear(datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=60),
                        clock())
        self.assertNear(self.wall(), shared_clock.SharedClock(self.database.engine, self.wall)())

    def test_what_a_worker_says_of_its_clock_is_known_to_all(self):
        self.ahead = HOUR
        self.database.utcnow = self.clock()
        journal = db_journal.Journal(self.database, 'one')
        journal.heartbeat(self.true)
        [(name, skew)] = journal.skewed_workers(self.true - datetime.timedelta(seconds=1), 5)
        self.assertEqual(('one', HOUR), (name, round(skew)))


def _refuse():
    raise shared_clock.db_exc.DBConnectionError('away')


def _configured():
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    conf([], default_config_files=[])
    return conf


