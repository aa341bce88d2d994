"""The services of Kronos in a conductor worker."""

import datetime
import pathlib
import threading
import time
from unittest import mock

import fixtures as testtools_fixtures
import nova.conf
import testtools
from nova import service as nova_service
from nova.conductor import manager as nova_manager
from oslo_config import fixture as config_fixture
from oslo_db import exception as db_exc
from oslo_messaging import conffixture

from kronos_nova import clock
from kronos_nova import conf as kronos_conf
from kronos_nova.db import drains as db_drains
from kronos_nova.db import journal as db_journal
from kronos_nova.drain import states as drains
from kronos_nova.objects import plan as plans
from kronos_nova.plugin import conductor
from tests.unit.db import fixtures
from tests.unit.drain.test_disabling import RecordedHosts


class ConductorTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        kronos_conf.register_opts(nova.conf.CONF)
        self.conf = conf = self.useFixture(config_fixture.Config(nova.conf.CONF))
        conf.set_default('connection', 'sqlite://', group='api_database')
        self.useFixture(conffixture.ConfFixture(nova.conf.CONF)).transport_url = 'fake:/'
        conf.config(group='kronos', aggregates=['gpu', 'hpc'], automation='auto',
                    maintenance_window=['gpu; now; 60'])
        self.database = self.useFixture(fixtures.ControlDatabase()).database
        self.hosts = RecordedHosts()
        self.patch(conductor, '_database', lambda: self.database)
        self.patch(conductor.host_api, 'InProcessHostApi', lambda: self.hosts)
        self.patch(conductor.compute_api, 'InProcessComputeApi', mock.Mock())
        self.kronos = conductor.Kronos(nova.conf.CONF)
        self.addCleanup(self.kronos.stop)

    def test_a_problem_of_the_dispatcher_does_not_stop_drains(self):
        now = clock.utcnow()
        db_journal.Journal(self.database, 'one').record_plan(
            fixtures.report([('vm1', 'a', 'b')]), plans.EXECUTING, now,
            now + datetime.timedelta(hours=1))
        db_drains.Drains(self.database).request([drains.Drain(
            uuid='d', host='a', aggregate='hpc', state=drains.REQUESTED, requested_by='jane',
            requested_at=now)])
        self.kronos.execute()
        self.assertEqual('disabled', self.hosts.services['a'].status)

    def test_an_invalid_option_is_reported_once(self):
        """Nova reads its configuration again on SIGHUP, and does not check the values."""
        logger = self.useFixture(testtools_fixtures.FakeLogger())
        self.conf.conf.clear_override('automation', 'kronos')
        for group, option in (('kronos', 'automation'), ('kronos', 'atomic_moves'),
                              ('kronos_executor', 'poll_interval')):
            self.conf.load_raw_values(group=group, **{option: 'wrong'})
        for _ in range(3):
            self.kronos.execute()
            self.kronos.plan()
            self.kronos.reconcile()
            self.kronos.prune()
        [conductor_line, reconciler_line] = logger.output.splitlines()
        self.assertIn('The conductor of Kronos waits until this is corrected: Value for option '
                      'automation', conductor_line)
        self.assertIn('Value for option atomic_moves', reconciler_line)
        self.conf.config(group='kronos', automation='auto')
        self.kronos.execute()
        self.assertIn('Value for option poll_interval', logger.output)

    def test_a_file_that_cannot_be_read_any_more_is_reported_once(self):
        """After SIGHUP Nova's workers start with the options that they had, even if a file of the
        configuration cannot be read."""
        logger = self.useFixture(testtools_fixtures.FakeLogger())
        path = pathlib.Path(self.useFixture(testtools_fixtures.TempDir()).path) / 'nova.conf'
        path.write_text('')
        self.conf.conf(['--config-file', str(path)], project='nova', default_config_files=[])
        for number, (break_it, expected) in enumerate((
                (lambda: path.write_text('[kronos\n'), 'Invalid section'),
                (lambda: path.write_bytes(b'[kronos]\nreason = \xff\n'), 'not UTF-8'),
                (path.unlink, 'No such file')), 1):
            break_it()
            for _ in range(3):
                self.kronos.plan()
            lines = logger.output.splitlines()
            self.assertEqual(number, len(lines), lines)
            self.assertIn('The planner of Kronos waits until this is corrected: Failed to parse '
                          f'{path}: ', lines[-1])
            self.assertIn(expected, lines[-1])

    def test_the_dispatcher_is_stopped_although_the_moves_cannot_be_left_to_others(self):
        self.kronos.execute()
        stopped = mock.Mock()
        self.patch(conductor.service.DispatchService, 'stop', stopped)
        self.patch(db_journal.Journal, 'retire', mock.Mock(
            side_effect=db_exc.DBConnectionError('gone')))
        self.kronos.stop()
        stopped.assert_called_once_with()

    def recorded(self):
        """Return the names of the workers that the journal has."""
        journal = db_journal.Journal(self.database, 'test')
        return [name for name, *_ in journal.workers(clock.utcnow() - datetime.timedelta(hours=1))]

    def nova_service(self):
        """Return Nova's service of a conductor, with the services of Kronos of this test."""
        manager = conductor.KronosConductorManager.__new__(conductor.KronosConductorManager)
        manager.kronos, manager._shutdown_in_progress = self.kronos, threading.Event()
        self.patch(nova_manager.ConductorManager, 'graceful_shutdown', mock.Mock())
        found = nova_service.Service.__new__(nova_service.Service)
        found.binary, found.topic, found.manager = 'nova-conductor', 'conductor', manager
        found.rpcserver, found.rpcserver_alt, found.tg = mock.Mock(), None, mock.Mock()
        return found

    def test_a_worker_that_nova_stops_leaves_its_moves_however_little_time_nova_gives(self):
        """Nova 34 gives a manager no time if ``graceful_shutdown_timeout`` is 10 s or less."""
        nova.conf.CONF.import_opt('graceful_shutdown_timeout', 'oslo_service.opts')
        self.conf.config(graceful_shutdown_timeout=5)
        self.kronos.execute()
        self.assertEqual(1, len(self.recorded()))
        leave = db_journal.Journal.retire

        def leave_late(journal, now):
            time.sleep(0.3)
            leave(journal, now)
        self.patch(db_journal.Journal, 'retire', leave_late)
        self.nova_service().stop()
        self.assertEqual([], self.recorded())

    def test_nova_does_not_wait_long_for_a_worker_that_cannot_leave_its_moves(self):
        self.kronos.execute()
        may_leave = threading.Event()
        self.addCleanup(may_leave.set)
        self.patch(db_journal.Journal, 'retire', lambda *_: may_leave.wait(60))
        logger = self.useFixture(testtools_fixtures.FakeLogger())
        self.kronos.stop(0.1)
        self.assertIn('Kronos has not stopped within', logger.output)

    def test_a_turn_that_ends_after_the_stop_began_does_not_record_the_worker_again(self):
        self.kronos.execute()
        say, stop = db_journal.Journal.heartbeat, threading.Thread(target=self.kronos.stop)

        def say_late(journal, now, *more):
            stop.start()
            stop.join(0.3)
            say(journal, now, *more)
        self.patch(db_journal.Journal, 'heartbeat', say_late)
        self.kronos._services.execution._executor._said_at = None
        self.kronos._next_execution = 0
        self.kronos.execute()
        stop.join()
        self.assertEqual([], self.recorded())
        self.kronos._next_execution = 0
        self.kronos.execute()
        self.assertEqual([], self.recorded())

    def stopped_during(self, turn, part):
        """Return in which order a turn of a part and the end of the part happen, if a stop begins
        during the turn.

        :param turn: method of Kronos that runs the turn
        :param part: mock of the part
        """
        stop, seen = threading.Thread(target=self.kronos.stop), []

        def work():
            stop.start()
            stop.join(0.3)
            seen.append('turn')
        part.tick, part.stop = work, lambda: seen.append('end')
        self.kronos._next_execution = 0
        turn()
        stop.join()
        self.kronos._next_execution = 0
        turn()
        return seen

    def test_a_cycle_that_begins_while_the_worker_ends_is_ended(self):
        planning = mock.Mock()
        self.patch(self.kronos, '_make_planning', lambda: planning)
        self.assertEqual(['turn', 'end'], self.stopped_during(self.kronos.plan, planning))

    def test_the_dispatcher_ends_after_its_turn_in_progress(self):
        self.kronos.execute()
        dispatch = mock.Mock()
        self.kronos._services = self.kronos._services._replace(dispatch=dispatch)
        self.assertEqual(['turn', 'end'], self.stopped_during(self.kronos.execute, dispatch))

    def test_a_worker_leaves_its_moves_although_the_broker_fails(self):
        self.kronos.execute()
        logger = self.useFixture(testtools_fixtures.FakeLogger())
        self.patch(conductor.service.ExecutionService, 'stop_taking', mock.Mock(
            side_effect=OSError('the broker is gone')))
        self.kronos.stop()
        self.assertEqual([], self.recorded())
        self.assertIn('the broker is gone', logger.output)
