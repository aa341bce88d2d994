"""``stop``, ``resume`` and ``status`` while the control database does not answer."""

import subprocess
import sys
import types
from unittest import mock

import oslo_messaging as messaging

from kronos_client.cli import automation
from kronos_client.cli import watching
from kronos_nova.cmd import database as database_of_commands
from kronos_nova.db import switches
from kronos_nova.executor import broker
from kronos_nova.executor import pending_stops
from kronos_nova.objects import move as moves
from tests.unit.cmd import test_automation

PROGRAM = 'import sys; from kronos_nova.cmd.start import manage; sys.exit(manage())'
AWAY = 'mysql+pymysql://k:k@127.0.0.1:1/kronos'


class StopWithoutDatabaseTest(test_automation.OperatorTestCase):
    def setUp(self):
        super().setUp()
        self.sent = []
        self.patch(broker, 'fan_out', lambda _transports, aggregates, method, **arguments:
                   self.sent.append((aggregates, method, arguments)))
        self.stops = pending_stops.PendingStops(str(self.directory / pending_stops.FILE))
        self.lose_the_database()

    def lose_the_database(self):
        self.configure('aggregates = gpu, db', '[kronos_database]', f'connection = {AWAY}')

    def find_the_database(self):
        self.configure('aggregates = gpu, db')

    def test_a_stop_is_written_and_sent_to_all(self):
        said = self.manage('stop', '--reason', 'strange load', expected=automation.NOT_QUIET)
        self.assertIn('does not answer', said)
        self.assertIn('The stop is in force all the same', said)
        found = self.stops.read()['*']
        self.assertEqual(('strange load', False), (found.switch.reason, found.let_finish))
        self.assertEqual([(['gpu', 'db'], 'stop_moves', {'stop': found.to_json()})], self.sent)

    def test_it_is_shown_by_status_before_and_after_the_database_is_back(self):
        self.manage('stop', '--aggregate', 'gpu', expected=automation.NOT_QUIET)
        self.assertIn('Stop of aggregate gpu: stop by jane', self.manage('status', expected=1))
        self.find_the_database()
        said = self.manage('status', expected=4)
        self.assertIn('Stop of aggregate gpu: stop by jane', said)
        self.assertIn(self.stops.path, said)

    def test_what_is_watched_is_shown_once_the_database_is_back(self):
        find, database = database_of_commands.control_database, self.database

        def come_back(_seconds):
            if come_back.pauses:
                raise KeyboardInterrupt
            come_back.pauses += 1
            self.patch(database_of_commands, 'control_database', lambda _conf: database)

        for words, shown, code in ((('status',), 'CRITICAL: No process', 4),
                                   (('move', 'list', '--all'), 'No recorded move', 0)):
            self.patch(database_of_commands, 'control_database', find)
            come_back.pauses = 0
            with mock.patch.object(watching, 'time', types.SimpleNamespace(sleep=come_back)):
                said = self.manage(*words, '--watch', expected=code)
            self.assertIn('does not answer', said)
            self.assertIn('The command asks again.', said)
            self.assertIn(shown, said)

    def test_a_worker_writes_it_into_the_database(self):
        self.run_plan(('vm1', 'a', 'b'))
        self.manage('stop', expected=automation.NOT_QUIET)
        pending_stops.settle(self.stops, self.database, 'one')
        self.assertEqual([moves.ABANDONED], [move.state for move in self.journal.moves()])
        self.find_the_database()
        self.assertNotIn('does not have it yet', self.manage('status', expected=4))

    def test_it_is_taken_back_with_and_without_the_database(self):
        self.manage('stop', expected=automation.NOT_QUIET)
        self.assertIn('Taken back: Stop of all aggregates', self.manage('resume', expected=1))
        self.assertEqual({}, self.stops.read())
        self.assertEqual('resume_moves', self.sent[-1][1])
        self.manage('stop', expected=automation.NOT_QUIET)
        self.find_the_database()
        [ended] = self.table('resume')
        self.assertEqual(('*', 'stop', True),
                         (ended['Aggregate'], ended['What'], ended['Ended']))
        pending_stops.settle(self.stops, self.database, 'one')
        self.assertEqual({}, switches.SwitchBoard(self.database).read().pauses)

    def test_a_file_that_outlives_the_writing(self):
        self.manage('stop', expected=automation.NOT_QUIET)
        kept = (self.directory / pending_stops.FILE).read_text()
        pending_stops.settle(self.stops, self.database, 'one')
        (self.directory / pending_stops.FILE).write_text(kept)
        self.find_the_database()
        self.assertNotIn('does not have it yet', self.manage('status', expected=4))
        [ended] = self.table('resume')
        self.assertEqual(('*', 'stop', True),
                         (ended['Aggregate'], ended['What'], ended['Ended']))

    def test_what_was_not_reached_is_named(self):
        def refuse(*_args, **_kwargs):
            raise messaging.MessageDeliveryFailure('no broker')
        self.patch(broker, 'fan_out', refuse)
        said = self.manage('stop', expected=automation.NOT_QUIET)
        self.assertIn('The broker was not reached: no broker.', said)
        (self.directory / pending_stops.FILE).unlink()
        (self.directory / pending_stops.FILE).mkdir()
        said = self.manage('stop', expected=1)
        self.assertIn('stop nova-conductor', said)


class ProgramTest(test_automation.OperatorTestCase):
    def test_the_program_finds_oslo_messaging(self):
        """Other tests run in a process that has chosen how oslo.messaging works, and where its
        options are registered in the configuration of a service."""
        self.configure('aggregates = gpu', '[kronos_database]', f'connection = {AWAY}',
                       '[DEFAULT]', 'transport_url = fake://')
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', PROGRAM, f'--config-file={self.config}', 'stop'],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(automation.NOT_QUIET, done.returncode, done.stderr)
        self.assertIn('The stop is in force all the same', done.stdout)
